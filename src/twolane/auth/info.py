"""What is known of the caller, and the principal it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ANONYMOUS", "AuthInfo", "McpAuthContext", "Principal", "principal_of"]

#: Who a request acts for: comparable, stable over token rotation, and never the bytes of a token.
Principal = tuple[str, ...]

#: All callers about whom nothing is known. It is a principal of its own.
ANONYMOUS: Principal = ("anonymous",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthInfo:
    """
    Verified facts about the caller (basic/authorization).

    twolane verifies no tokens: whoever hands this over has done so. ``token`` and ``extra`` stay out of ``repr``.

    Args:
        token: the access token, when the application needs it.
        client_id: the OAuth client.
        scopes: the granted scopes.
        expires_at: expiry in seconds since the epoch.
        resource: the resource (audience) that the token was issued for.
        subject: the user at the issuer.
        issuer: who issued the token.
        extra: anything else. ``extra["props"]`` is what ``get_mcp_auth_context()`` returns as props.
    """

    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    scopes: tuple[str, ...] = ()
    expires_at: float | None = None
    resource: str | None = None
    subject: str | None = None
    issuer: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class McpAuthContext:
    """
    Application properties of the caller, readable anywhere below a request.

    Args:
        props: set by the ``auth_context`` option, else ``auth_info.extra["props"]``. Never holds the token.
    """

    props: Mapping[str, Any]


def principal_of(auth_info: AuthInfo | None) -> Principal:
    """Return whom a request acts for: (issuer, subject, client id), or the anonymous principal."""
    if auth_info is None or (auth_info.client_id is None and auth_info.subject is None):
        return ANONYMOUS
    return ("auth", auth_info.issuer or "", auth_info.subject or "", auth_info.client_id or "")
