"""Whole requests against a whole handler: each is answered, none with a 5xx, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faces.server import Seen, make_factory
from tests.faces.serving import modern_body, modern_headers
from tests.fuzz.strategies import FUZZ, JSON, TEXT
from tests.lanes.wire import Wire
from twolane import create_mcp_handler

SEEN = Seen()
HANDLER = create_mcp_handler(make_factory(SEEN), on_error=SEEN.on_error, handle_signals=False)

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/call", {"name": "greet", "arguments": {"name": "x"}}),
    ("tools/call", {"name": "region", "arguments": {"region": "eu"}}),
    ("tools/call", {"name": "ask", "arguments": {}, "inputResponses": {"who": {"action": "accept"}}}),
    ("tools/call", {"name": "ask", "arguments": {}, "requestState": "x"}),
    ("tools/call", {"name": "count", "arguments": {"to": 2}}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "hello", "arguments": {"name": "x"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "faces://text"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "hello"}, "argument": {"name": "name", "value": ""}},
    ),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["faces://text"]}}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    ("logging/setLevel", {"level": "info"}),
    ("notifications/cancelled", {"requestId": 1}),
]


def paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every place in nested objects."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += paths(item, (*path, key))
    return found


@st.composite
def posts(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """A right request of either era with some of it replaced, left out, or its headers out of step."""
    method, params = draw(st.sampled_from(REQUESTS))
    modern = draw(st.booleans())
    capabilities = draw(st.sampled_from([{}, {"elicitation": {}}]))
    body = modern_body(method, params, capabilities=capabilities, meta={"progressToken": 1})
    if not modern:
        body["params"] = json.loads(json.dumps(params))
    body = json.loads(json.dumps(body))
    for _ in range(draw(st.integers(0, 3))):
        places = paths(body)
        if not places:
            break
        path = draw(st.sampled_from(places))
        target = body
        for key in path[:-1]:
            target = target[key]
        if draw(st.booleans()):
            target[path[-1]] = draw(JSON)
        else:
            del target[path[-1]]
    named = body.get("params") if isinstance(body.get("params"), dict) else {}
    headers = modern_headers(method, {key: str(value) for key, value in named.items() if key in ("name", "uri")})
    if not modern:
        headers["mcp-protocol-version"] = draw(st.sampled_from(["2025-11-25", "2025-03-26", "2024-11-05", "x"]))
    for _ in range(draw(st.integers(0, 2))):
        headers[draw(st.sampled_from([*headers, "mcp-param-region", "host", "origin"]))] = draw(TEXT)
    raw = [(key.encode(), value.encode("utf-8")) for key, value in headers.items()]
    data = json.dumps(body).encode() if draw(st.integers(0, 20)) else draw(st.binary(max_size=50))
    return data, raw


async def exchange(data: bytes, headers: list[tuple[bytes, bytes]]) -> Wire:
    """Post *data*, wait for the answer or the first frames, and leave."""
    wire = Wire()
    wire.inbox.put_nowait({"type": "http.request", "body": data, "more_body": False})
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "server": ("10.0.0.1", 80)}
    task = asyncio.ensure_future(HANDLER(scope, wire.receive, wire.send))
    async with asyncio.timeout(10):
        while not task.done() and len(wire.sent) < 2:  # noqa: ASYNC110 - two conditions, within bounds
            await asyncio.sleep(0)
        wire.disconnect()
        await task
    others = asyncio.all_tasks() - {asyncio.current_task()}
    async with asyncio.timeout(10):
        while any(not other.done() for other in others):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
    return wire


@settings(FUZZ, max_examples=5 * FUZZ.max_examples)
@given(posts())
def test_every_request_is_answered(post: tuple[bytes, list[tuple[bytes, bytes]]]) -> None:
    """Whatever a client sends is answered below 500 with well-formed JSON-RPC, and no failure is reported."""
    SEEN.clear()
    wire = asyncio.run(exchange(*post))
    assert 200 <= wire.status < 500
    failures = [exc for exc, context in SEEN.errors if type(exc).__name__ != "SealError"]
    assert failures == []
    if wire.status in (202, 204):
        assert wire.body == b""
        return
    for message in wire.messages:
        for one in message if isinstance(message, list) else [message]:
            assert one["jsonrpc"] == "2.0"
            assert ("result" in one) + ("error" in one) + ("method" in one) == 1
            if "error" in one:
                assert isinstance(one["error"]["code"], int)
                assert isinstance(one["error"]["message"], str)
