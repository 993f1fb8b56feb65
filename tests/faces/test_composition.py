"""The handler among others: mounted, beside a 2025 handler, with parsed bodies, over several lifespans."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, Route

from tests.faces.server import Seen, make_factory
from tests.faces.serving import Client, modern_body, modern_headers, running
from twolane import McpServer, create_mcp_handler, is_legacy_request


@pytest.mark.parametrize("path", ["/api/mcp", "/api/mcp/"])
def test_mounted(path: str) -> None:
    """Mounted under a prefix the mount's own path answers, without lifespan wiring and without a redirect."""
    handler = create_mcp_handler(make_factory(Seen()))
    with running(Starlette(routes=[Mount("/api/mcp", handler)])) as port:
        assert Client(port).call("greet", path=path).status == (307 if path == "/api/mcp" else 200)
    with running(Starlette(routes=[Mount("/api", handler)])) as port:
        assert Client(port).call("greet", path=path).status == 200


def test_as_a_route() -> None:
    """As the endpoint of a Route it serves every HTTP method at the exact path."""
    handler = create_mcp_handler(make_factory(Seen()), route=None)
    with running(Starlette(routes=[Route("/tools", endpoint=handler)])) as port:
        client = Client(port)
        assert client.call("greet", path="/tools").status == 200
        assert client.http.get("/tools").status_code == 405


@pytest.mark.obligation("S-142", "S-143", "S-144", "S-145", "S-147")
def test_beside_a_2025_handler() -> None:
    """is_legacy_request routes by the body, and whoever comes next, ours or not, can read it."""
    handler = create_mcp_handler(make_factory(Seen()), legacy="reject")

    async def old(scope: Any, receive: Any, send: Any) -> None:
        body = await Request(scope, receive).body()
        await JSONResponse({"old": len(body)})(scope, receive, send)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        chosen = old if await is_legacy_request(request) else handler
        await chosen(scope, request.receive, send)

    with running(app) as port:
        client = Client(port)
        assert client.call("greet").status == 200
        assert "old" in client.legacy("initialize", {"protocolVersion": "2025-11-25"}).messages[0]
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert client.post(body, {"content-type": "application/json"}).messages == [{"old": len(json.dumps(body))}]
        assert client.http.get("/mcp").json() == {"old": 0}
        assert client.post(b"not json", {"content-type": "application/json"}).messages == [{"old": 8}]
        half = client.call("greet", meta={"io.modelcontextprotocol/clientCapabilities": None})
        assert (half.status, half.error["code"]) == (400, -32602)
        assert client.legacy("initialize", {}, revision="2026-07-28").error["code"] == -32020
        assert client.request("initialize").status == 404
        old_claim = client.call(
            "greet",
            meta={"io.modelcontextprotocol/protocolVersion": "2025-11-25"},
            headers={"mcp-protocol-version": "2025-11-25"},
        )
        assert old_claim.error["code"] == -32022


async def test_a_client_that_leaves_during_its_body() -> None:
    """Through fetch, a client that leaves before the end of its body gets an empty 499 and raises nothing."""
    handler = create_mcp_handler(make_factory(Seen()))
    inbox = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return inbox.pop(0)

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [], "query_string": b""}
    assert (await handler.fetch(Request(scope, receive))).status_code == 499


def test_the_limit_holds_after_is_legacy_request() -> None:
    """A body that is_legacy_request read is still held to the handler's own limit, and can be read by the tool."""
    handler = create_mcp_handler(make_factory(Seen()), max_body_size=2000)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        assert not await is_legacy_request(request)
        await handler(scope, request.receive, send)

    with running(app) as port:
        client = Client(port)
        assert client.call("body_again").result["structuredContent"]["result"] > 100
        answer = client.post(
            modern_body("tools/call", {"name": "greet", "arguments": {"name": "x" * 3000}}),
            modern_headers("tools/call", {"name": "greet"}),
        )
        assert answer.status == 413


def test_a_parsed_body() -> None:
    """A framework that has read the body hands over its JSON value; without it a consumed body is a TypeError."""
    handler = create_mcp_handler(make_factory(Seen()))
    caught: list[Exception] = []

    async def endpoint(request: Request) -> Any:
        if "streamed" in request.query_params:
            async for _ in request.stream():
                pass
            try:
                return await handler.fetch(request)
            except TypeError as exc:
                caught.append(exc)
                return PlainTextResponse("caught", 500)
        return await handler.fetch(request, parsed_body=await request.json())

    with running(Starlette(routes=[Route("/mcp", endpoint, methods=["POST"])])) as port:
        client = Client(port)
        assert client.call("greet").status == 200
        assert client.call("count", meta={"progressToken": 1}).streamed
        assert client.call("greet", path="/mcp?streamed=1").status == 500
    assert "parsed_body" in str(caught[0])


async def test_lifespans_come_and_go() -> None:
    """Lifespan events are answered; after shutdown requests are 503 until the next startup."""
    handler = create_mcp_handler(make_factory(Seen()))
    for _ in range(2):
        inbox = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
        sent: list[Any] = []

        async def receive(inbox: list[Any] = inbox) -> Any:
            return inbox.pop(0)

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message["type"])

        await handler({"type": "lifespan"}, receive, send)
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert await status_of(handler) == 503
    async with handler:
        assert await status_of(handler) == 200


async def status_of(handler: Any) -> int:
    from tests.lanes.wire import Wire

    wire = Wire()
    body = json.dumps(modern_body("tools/call", {"name": "greet", "arguments": {}})).encode()
    wire.inbox.put_nowait({"type": "http.request", "body": body})
    headers = [(k.encode(), v.encode()) for k, v in modern_headers("tools/call", {"name": "greet"}).items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "server": ("testserver", 80)}
    await handler(scope, wire.receive, wire.send)
    return wire.status


async def test_websockets_are_refused() -> None:
    """A WebSocket is closed, not served."""
    handler = create_mcp_handler(make_factory(Seen()))
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await handler({"type": "websocket", "path": "/mcp"}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"sessionIdGenerator": None}, TypeError, "sessionful lane"),
        ({"enableJsonResponse": True}, TypeError, "response_mode"),
        ({"keepAliveMs": 5}, TypeError, "keep_alive"),
        ({"corsOptions": {}}, TypeError, "cors"),
        ({"bus": object()}, TypeError, "backend"),
        ({"respons_mode": "json"}, TypeError, "response_mode"),
        ({"cors": {"origin": "*"}}, TypeError, "allow_origins"),
        ({"legacy": "sessions"}, ValueError, "stateless"),
        ({"response_mode": "xml"}, ValueError, "auto"),
        ({"route": "mcp"}, ValueError, "/mcp"),
        ({"max_body_size": 0}, ValueError, "max_body_size"),
        ({"keep_alive": -1}, ValueError, "keep_alive"),
        ({"request_timeout": 0}, ValueError, "request_timeout"),
        ({"state_keys": ["short"]}, ValueError, "state_keys"),
        ({"allowed_hostnames": ["http://x"]}, ValueError, "x"),
        ({"allowed_hostnames": "example.com"}, ValueError, "list"),
        ({"backend": "oracle://x"}, ValueError, "memory"),
        ({"auth_context": {"props": {}}}, TypeError, "McpAuthContext"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """An option that does not exist, or cannot have its value, fails when the handler is built and says what to use."""
    with pytest.raises(error, match=text):
        create_mcp_handler(make_factory(Seen()), **options)


def test_a_server_is_not_a_factory() -> None:
    """Passing a constructed server, ours or the SDK's, is a TypeError that shows the fix."""
    from mcp.server import MCPServer

    for server in (McpServer("x", version="1"), MCPServer("x"), 5):
        with pytest.raises(TypeError, match=r"create_mcp_handler\(create_server\)"):
            create_mcp_handler(server)  # type: ignore[arg-type]

    def needs_two(a: int, b: int) -> McpServer:
        raise AssertionError

    with pytest.raises(TypeError, match="a, b"):
        create_mcp_handler(needs_two)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("takes_context", [False, True])
def test_factories_of_every_shape(asynchronous: bool, takes_context: bool) -> None:
    """A factory is plain or async, and takes the request context or nothing."""
    seen: list[Any] = []

    def plain() -> McpServer:
        return make_factory(Seen())(None)

    def plain_with(request: Any) -> McpServer:
        seen.append((request.era, request.request_info.method))
        return plain()

    async def later() -> McpServer:
        return plain()

    async def later_with(request: Any) -> McpServer:
        return plain_with(request)

    factory: Any = (
        (later_with if takes_context else later) if asynchronous else (plain_with if takes_context else plain)
    )
    with running(create_mcp_handler(factory)) as port:
        client = Client(port)
        assert client.call("greet").status == 200
        assert client.legacy("tools/call", {"name": "greet"}).status == 200
    assert seen == ([("modern", "POST"), ("legacy", "POST")] if takes_context else [])
