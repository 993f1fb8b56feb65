"""Auth info that middleware left in the ASGI scope: Starlette's, and that of the ``mcp`` package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twolane.auth.info import AuthInfo
from twolane.errors import TwolaneError

__all__ = ["ConflictingIdentity", "ambient_auth", "settle"]


class ConflictingIdentity(TwolaneError):
    """Two sources name different clients for one request. Neither may win, so the request is not served."""

    def __str__(self) -> str:
        return "the auth info handed over and the authenticated user of the scope name different client ids"


def ambient_auth(scope: Mapping[str, Any]) -> AuthInfo | None:
    """Read ``scope["user"]`` and ``scope["auth"]`` as authentication middleware sets them."""
    user = scope.get("user")
    if user is None:
        return None
    token = getattr(user, "access_token", None)
    if token is not None and getattr(token, "client_id", None) is not None:
        return _from_access_token(token)
    if not getattr(user, "is_authenticated", False):
        return None
    scopes = getattr(scope.get("auth"), "scopes", None) or ()
    return AuthInfo(subject=_identity(user), scopes=tuple(scopes))


def settle(explicit: AuthInfo | None, ambient: AuthInfo | None) -> AuthInfo | None:
    """
    Choose between what was handed over and what middleware found: the explicit one wins.

    Raises:
        ConflictingIdentity: both name a client, and not the same.
    """
    if explicit is None or ambient is None:
        return explicit or ambient
    ids = {info.client_id for info in (explicit, ambient)} - {None}
    if len(ids) > 1:
        raise ConflictingIdentity
    return explicit


def _from_access_token(token: Any) -> AuthInfo:
    """Read the ``AccessToken`` of ``mcp.server.auth``, known by its attributes so that ``mcp`` is not imported."""
    claims = getattr(token, "claims", None) or {}
    resource = getattr(token, "resource", None)
    issuer = claims.get("iss")
    return AuthInfo(
        token=getattr(token, "token", None),
        client_id=token.client_id,
        scopes=tuple(getattr(token, "scopes", None) or ()),
        expires_at=getattr(token, "expires_at", None),
        resource=None if resource is None else str(resource),
        subject=getattr(token, "subject", None) or claims.get("sub"),
        issuer=issuer if isinstance(issuer, str) else None,
        extra={"claims": claims} if claims else {},
    )


def _identity(user: Any) -> str:
    # Starlette's SimpleUser has a username, and its ``identity`` raises NotImplementedError.
    for name in ("identity", "username", "display_name"):
        try:
            value = getattr(user, name, None)
        except NotImplementedError:
            continue
        if value is not None:
            return str(value)
    return repr(type(user))
