"""Request bodies: read once and within the limit, and found again by whoever comes next."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from tests.support.posts import V, message, modern
from twolane.body import (
    BODY,
    DECODED,
    DEFAULT_MAX_BODY_SIZE,
    ClientGone,
    body_of,
    is_legacy_request,
    read_body,
)

GONE = {"type": "http.disconnect"}
LEGACY_CALL = message()
MODERN_CALL = modern()
BATCH = [message(), message(id=2)]


class Channel:
    """A receive channel with the given messages, silent after them: reading on is a failure, not a hang."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = list(messages)

    async def __call__(self) -> Any:
        assert self.messages, "read beyond the end of the body"
        return self.messages.pop(0)


def chunks(*parts: bytes) -> list[dict[str, Any]]:
    """Body messages, the last of which ends the body."""
    return [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, start=1)
    ]


def request(
    *messages: dict[str, Any], method: str = "POST", headers: list[tuple[bytes, bytes]] | None = None
) -> Request:
    scope = {"type": "http", "method": method, "path": "/mcp", "query_string": b"", "headers": headers or []}
    return Request(scope, Channel(*messages))


def posted(value: Any, version: str | None = None) -> Request:
    """A POST of *value* (bytes as they are) with its version header, sent in two parts."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    headers = [] if version is None else [(b"MCP-Protocol-Version", version.encode())]
    return request(*chunks(body[:7], body[7:]), headers=headers)


# -- reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "body"),
    [
        (chunks(b""), b""),
        ([{"type": "http.request"}], b""),
        (chunks(b"0123456789"), b"0123456789"),
        (chunks(b"01234", b"56789"), b"0123456789"),
        ([*chunks(b"0", b"1")[:1], {"type": "http.request", "body": b"1"}], b"01"),
        (chunks(b"", b"0", b"", b"1", b""), b"01"),
    ],
)
async def test_bodies_are_read(messages: list[dict[str, Any]], body: bytes) -> None:
    """A body is read whole, whatever pieces it comes in, and exactly to its end."""
    channel = Channel(*messages)
    assert await read_body(channel, 10) == body
    assert channel.messages == []


@pytest.mark.obligation("X-15")
@pytest.mark.parametrize(
    ("messages", "left"),
    [
        (chunks(b"0123456789A"), 0),
        (chunks(b"01234", b"56789A"), 0),
        (chunks(b"0123456789A", b"x", b"x"), 2),
        (chunks(b"0", b"123456789A", *[b"x"] * 1_000), 1_000),
        (chunks(b"0123456789", b"", b"A", b"x"), 1),
    ],
)
async def test_bodies_beyond_the_limit(messages: list[dict[str, Any]], left: int) -> None:
    """Reading stops at the piece that breaks the limit: what was never announced is not read either."""
    channel = Channel(*messages)
    assert await read_body(channel, 10) is None
    assert len(channel.messages) == left


@pytest.mark.parametrize("before", [[], chunks(b"0", b"1")[:1], chunks(b"0", b"1", b"2")[:2]])
async def test_a_client_that_leaves(before: list[dict[str, Any]]) -> None:
    """A client that leaves in the middle of its body ends the reading."""
    with pytest.raises(ClientGone):
        await read_body(Channel(*before, GONE), 10)


async def test_bodies_of_requests() -> None:
    """Starlette's request gives its body up to the limit, from the scope where it was kept, and from its own cache."""
    assert await body_of(request(*chunks(b"01", b"23")), 4) == b"0123"
    long = request(*chunks(b"01", b"23", b"45", b"67"))
    assert await body_of(long, 3) == b"0123"
    exact = request(*chunks(b"01", b"23", b"45", b"67"))
    assert await body_of(exact, 4) == b"012345"
    kept = request()
    kept.scope[BODY] = b"kept"
    assert await body_of(kept, 1) == b"kept"
    cached = request(*chunks(b"01"))
    await cached.body()
    assert await body_of(cached, 4) == b"01"


async def test_a_consumed_body() -> None:
    """A body that was consumed without being kept is a TypeError that names the way out."""
    for read in (lambda one: body_of(one, 10), is_legacy_request):
        consumed = request(*chunks(b"01"))
        async for _ in consumed.stream():
            pass
        with pytest.raises(TypeError, match="parsed_body="):
            await read(consumed)


async def test_a_client_that_leaves_a_request() -> None:
    """Starlette's own exception tells that the client left."""
    with pytest.raises(ClientDisconnect):
        await is_legacy_request(request(*chunks(b"01", b"2")[:1], GONE))


# -- routing -----------------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-140", "S-142", "S-143", "S-144", "S-145", "S-146")
@pytest.mark.parametrize(
    ("value", "version", "legacy"),
    [
        (LEGACY_CALL, None, True),
        (LEGACY_CALL, "2025-11-25", True),
        (LEGACY_CALL, "banana", True),
        (message("initialize", params={"protocolVersion": "2025-11-25"}), None, True),
        (message(params={"_meta": {"progressToken": 1}}), None, True),
        (message("initialize", params={"_meta": {"io.modelcontextprotocol/protocolVersion": V}}), None, True),
        (BATCH, None, True),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, None, True),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, None, True),
        (b"", None, True),
        (b"not json", None, True),
        (b"\xff", V, True),
        (MODERN_CALL, V, False),
        (MODERN_CALL, None, False),
        (MODERN_CALL, "2025-11-25", False),
        (LEGACY_CALL, V, False),
        (LEGACY_CALL, "2030-01-01", False),
        (message("initialize"), V, False),
        (modern("initialize"), None, False),
        (modern(params={"_meta": {"io.modelcontextprotocol/protocolVersion": "2025-06-18"}}), None, False),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, V, False),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, V, False),
        ([], None, False),
        ([LEGACY_CALL, 5], None, False),
        ([LEGACY_CALL, MODERN_CALL], None, False),
        (BATCH, V, False),
        (b"null", None, False),
        ({"jsonrpc": "1.0"}, None, False),
    ],
)
async def test_which_requests_are_legacy(value: Any, version: str | None, legacy: bool) -> None:
    """Legacy is what the older handler is to answer; the modern handler serves or refuses everything else."""
    assert await is_legacy_request(posted(value, version)) is legacy
    if not isinstance(value, bytes):
        consumed = posted(value, version)
        async for _ in consumed.stream():
            pass
        assert await is_legacy_request(consumed, value) is legacy
        assert consumed.scope[DECODED] == value


@pytest.mark.obligation("S-146")
@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT", "HEAD"])
async def test_other_methods_are_legacy(method: str) -> None:
    """Only POST is modern; any other method is the older handler's affair, and its body stays unread."""
    body = json.dumps(MODERN_CALL).encode()
    other = request(*chunks(body), method=method, headers=[(b"mcp-protocol-version", V.encode())])
    assert await is_legacy_request(other)
    assert await other.body() == body


@pytest.mark.obligation("S-147")
@pytest.mark.parametrize("value", [LEGACY_CALL, MODERN_CALL, BATCH, b"", b"not json"])
async def test_the_body_stays_readable(value: Any) -> None:
    """After the question the body is there again: in the request, behind its receive, and for twolane in the scope."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    first, second, third = posted(value), posted(value), posted(value)
    for one in (first, second, third):
        await is_legacy_request(one)
        assert await is_legacy_request(one) is await is_legacy_request(one)
        assert one.scope[BODY] == body
    assert await first.body() == body
    assert await Request(second.scope, second.receive).body() == body
    assert await read_body(third.receive, 1_000) == body
    if body.startswith((b"{", b"[")):
        assert first.scope[DECODED] == value


async def test_what_follows_the_body_stays_readable() -> None:
    """Whoever reads on after the body hears the client leave."""
    one = request(*chunks(json.dumps(MODERN_CALL).encode()), GONE)
    assert not await is_legacy_request(one)
    assert (await one.receive())["type"] == "http.request"
    assert await one.receive() == GONE


async def test_a_cached_body_stays_readable() -> None:
    """A body that somebody read through the request before is found there and behind its receive."""
    one = posted(LEGACY_CALL)
    body = await one.body()
    assert await is_legacy_request(one)
    assert await one.json() == LEGACY_CALL
    assert await read_body(one.receive, 1_000) == body


@pytest.mark.obligation("X-15")
async def test_the_longest_body() -> None:
    """A body of exactly the default limit of 4 MiB is read and judged."""
    assert DEFAULT_MAX_BODY_SIZE == 4_194_304
    one = posted(json.dumps(LEGACY_CALL).encode().ljust(DEFAULT_MAX_BODY_SIZE))
    assert await is_legacy_request(one)
    assert one.scope[DECODED] == LEGACY_CALL


@pytest.mark.parametrize("parts", [1, 3])
async def test_overlong_bodies(parts: int) -> None:
    """A body beyond the default limit is the modern handler's, and one with a higher limit can still read all of it."""
    piece = b"x" * DEFAULT_MAX_BODY_SIZE
    one = request(*chunks(*[piece + b"y"] * parts))
    assert not await is_legacy_request(one)
    assert not await is_legacy_request(one)
    assert DECODED not in one.scope
    assert await body_of(one, 10 * len(piece)) == (piece + b"y") * parts
