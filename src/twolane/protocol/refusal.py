"""What is answered instead of serving a request: a value, never an exception."""

from __future__ import annotations

from typing import Any, NamedTuple

from twolane.errors import INVALID_REQUEST

__all__ = ["Refusal", "refuse"]


class Refusal(NamedTuple):
    """
    A request that is refused before anything of the user's ran.

    ``status`` is the HTTP status; ``code``, ``message`` and ``data`` make the JSON-RPC error; ``id`` is the request's
    id where it could be read; ``headers`` are further response headers, encoded.
    """

    status: int
    code: int
    message: str
    data: dict[str, Any] | None = None
    id: int | str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


def refuse(
    status: int, reason: str, message: str, headers: tuple[tuple[bytes, bytes], ...] = (), **details: Any
) -> Refusal:
    """
    Refuse for a reason of the transport.

    The code is -32600: the specification asks to stay clear of -32000..-32019 (basic, "Error codes"), so
    ``data.reason`` tells the cases apart.
    """
    return Refusal(status, INVALID_REQUEST, message, {"reason": reason, **details}, None, headers)
