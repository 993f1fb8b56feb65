"""The request body: read once, within the limit, and found again by whichever handler comes next."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from twolane.protocol.classify import Legacy, classify, parse
from twolane.protocol.headers import Headers
from twolane.protocol.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Message, Receive

__all__ = [
    "BODY",
    "DECODED",
    "DEFAULT_MAX_BODY_SIZE",
    "UNSET",
    "ClientGone",
    "body_of",
    "is_legacy_request",
    "read_body",
]

#: 4 MiB, as in the other SDKs.
DEFAULT_MAX_BODY_SIZE = 4 * 1024 * 1024

#: Where a body that has been read, and one that has been decoded, travel in the ASGI scope.
BODY = "twolane.body"
DECODED = "twolane.decoded"
UNSET: Any = object()


class ClientGone(Exception):
    """The client left while it sent its body: there is nobody to answer."""


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """
    Read a request body.

    Returns:
        The body, or None when it exceeds *limit* bytes.

    Raises:
        ClientGone: the client left before the end of the body.
    """
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body if len(body) <= limit else None
    chunks = [body]
    size = len(body)
    while message.get("more_body", False):
        if size > limit:
            return None
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        chunks.append(chunk)
    return b"".join(chunks) if size <= limit else None


async def body_of(request: Request, limit: int) -> bytes:
    """
    Read the body of Starlette's *request*, or take it from where it was read before.

    Returns:
        The body; of one that exceeds *limit* bytes, the beginning, which exceeds it too.

    Raises:
        starlette.requests.ClientDisconnect: the client left before the end of the body.
        TypeError: the body was consumed without being kept.
    """
    body = request.scope.get(BODY)
    if body is not None:
        return body  # type: ignore[no-any-return]
    chunks: list[bytes] = []
    size = 0
    try:
        async with aclosing(request.stream()) as stream:
            async for chunk in stream:
                chunks.append(chunk)
                size += len(chunk)
                if size > limit:
                    break
    except RuntimeError:
        raise TypeError("the request body was consumed already; pass its JSON value as parsed_body=") from None
    return b"".join(chunks)


def _put_back(request: Request, body: bytes) -> None:
    """Let *request* hand out once more what was read from it, then whatever comes after that."""
    upstream: Receive = request.receive
    # Starlette offers no public way to do this; without it only its own classes could read on.
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": not request._stream_consumed}]

    async def receive() -> Message:
        return pending.pop() if pending else await upstream()

    request._receive = receive
    request._stream_consumed = False


async def is_legacy_request(
    request: Request, parsed_body: Any = UNSET, *, max_body_size: int = DEFAULT_MAX_BODY_SIZE
) -> bool:
    """
    Tell whether a request belongs to a 2025-era handler, by the same rules as the handlers themselves.

    False means: give it to the handler of :func:`create_mcp_handler`, which serves or refuses it. The body stays
    readable: for twolane's handlers, and for any other application through *request* or ``request.receive``.

    Args:
        request: Starlette's request.
        parsed_body: the JSON value of the body, where it has been read already.
        max_body_size: bytes; a larger body is not legacy, and the handler refuses it by its own limit.

    Raises:
        TypeError: the body was consumed and no *parsed_body* is given.
        ClientDisconnect: Starlette's; the client left while it sent its body.
    """
    if request.method != "POST":
        return True
    if parsed_body is UNSET:
        first = BODY not in request.scope
        body = await body_of(request, max_body_size)
        if first:
            _put_back(request, body)
        if len(body) > max_body_size:
            # Only the beginning was read; a handler with a higher limit may yet take all of it.
            return False
        request.scope[BODY] = body
        parsed_body = parse(body)
        if isinstance(parsed_body, Refusal):
            return True
    request.scope[DECODED] = parsed_body
    return isinstance(classify(parsed_body, Headers(request.scope["headers"])), Legacy)
