"""What goes wrong on the server's side: a clear answer for the client, everything else for the operator."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.faces.server import RAISED, Boom, Seen
from tests.faces.serving import Client, fetch_face, running
from twolane import McpServer, create_mcp_handler


@pytest.mark.parametrize("tool", ["fail", "fail_in_thread"])
@pytest.mark.parametrize("how", sorted(RAISED))
def test_whatever_a_handler_raises(client: Client, seen: Seen, tool: str, how: str) -> None:
    """Any exception of a handler becomes an isError result with a reference; its text stays here, and we live on."""
    answer = client.call(tool, {"how": how})
    assert answer.status == 200
    assert answer.result["isError"] is True
    text = answer.result["content"][0]["text"]
    assert text.startswith(f"Tool {tool} failed (ref ")
    assert b"secret-detail" not in answer.content
    assert len(seen.errors) == 1
    assert client.call("greet").status == 200


def test_errors_for_the_model_and_for_the_client(client: Client, seen: Seen) -> None:
    """ToolError is text for the model and McpError a JSON-RPC error; neither counts as a failure."""
    result = client.call("refuse").result
    assert (result["isError"], result["content"][0]["text"]) == (True, "not today")
    assert client.call("protocol_error").error == {"code": 1234, "message": "custom", "data": {"more": True}}
    assert seen.errors == []


@pytest.mark.parametrize("kind", ["nan", "object", "cycle", "surrogate"])
def test_unencodable_results(client: Client, seen: Seen, kind: str) -> None:
    """A result that has no JSON form is the server's error -32603, never a hang or a broken body."""
    answer = client.call("unencodable", {"kind": kind})
    assert answer.status == 200
    assert answer.error["code"] == -32603
    assert len(seen.errors) == 1


@pytest.mark.parametrize("mode", ["auto", "json", "sse"])
@pytest.mark.obligation("S-067")
def test_a_client_that_leaves_cancels_the_handler(mode: str) -> None:
    """Closing the connection cancels the handler within seconds, in every response mode and through both faces."""
    from tests.faces.server import make_factory

    for face in ("asgi", "fetch"):
        seen = Seen()
        handler = create_mcp_handler(make_factory(seen), response_mode=mode)  # type: ignore[arg-type]
        with running(handler if face == "asgi" else fetch_face(handler)) as port:
            client = Client(port)
            head, body = raw_call("hang", port)
            connection = client.raw(head + body)
            assert seen.started.wait(10)
            connection.close()
            assert seen.cancelled.wait(10), f"{face} {mode}"
            assert client.call("greet").status == 200


def raw_call(tool: str, port: int) -> tuple[bytes, bytes]:
    import json

    from tests.faces.serving import modern_body, modern_headers

    body = json.dumps(modern_body("tools/call", {"name": tool, "arguments": {}})).encode()
    headers = modern_headers("tools/call", {"name": tool})
    lines = [f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {len(body)}\r\n"]
    lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    return ("".join(lines) + "\r\n").encode(), body


def _raising() -> McpServer:
    raise RuntimeError("secret-detail")


def _exiting() -> McpServer:
    raise Boom("secret-detail")


async def _raising_later() -> McpServer:
    raise RuntimeError("secret-detail")


def _junk() -> Any:
    return {"not": "a server"}


async def _hanging() -> McpServer:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("factory", [_raising, _exiting, _raising_later, _junk])
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_broken_factory(factory: Any, era: str) -> None:
    """A factory that raises or returns junk is 500 and -32603 with the request's id, and on_error has the cause."""
    seen = Seen()
    handler = create_mcp_handler(factory, on_error=seen.on_error)
    with running(handler) as port:
        client = Client(port)
        answer = (
            client.request("tools/list", request_id=5) if era == "modern" else client.legacy("tools/list", request_id=5)
        )
        assert (answer.status, answer.error["code"], answer.last["id"]) == (500, -32603, 5)
        assert b"secret-detail" not in answer.content
        assert len(seen.errors) == 1


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_hanging_factory_is_timed_out(era: str) -> None:
    """request_timeout covers the factory: the client gets 504 and -32603 instead of waiting for ever."""
    handler = create_mcp_handler(_hanging, request_timeout=0.1)
    with running(handler) as port:
        client = Client(port)
        answer = client.request("tools/list") if era == "modern" else client.legacy("tools/list")
        assert (answer.status, answer.error["code"]) == (504, -32603)
        assert answer.reason == "request_timeout"


def test_a_hanging_handler_is_timed_out() -> None:
    """request_timeout cancels a handler, plain or threaded, and the answer does not wait for the thread."""

    def create_server() -> McpServer:
        server = McpServer("slow", version="1")

        @server.tool
        async def hang() -> str:
            """Wait."""
            await asyncio.Event().wait()
            return "never"

        @server.tool
        def block() -> str:
            """Block a thread."""
            time.sleep(1.5)
            return "late"

        return server

    handler = create_mcp_handler(create_server, request_timeout=0.1)
    with running(handler) as port:
        client = Client(port)
        for tool in ("hang", "block"):
            answer = client.call(tool)
            assert answer.reason == "request_timeout"


def test_a_handler_cancelled_from_inside(client: Client) -> None:
    """A handler that cancels its own task is answered with -32603, and the server lives on."""
    # Each on a connection of its own: uvicorn closes one whose application was cancelled.
    for ask in (lambda one: one.call("cancel_self"), lambda one: one.legacy("tools/call", {"name": "cancel_self"})):
        answer = ask(Client(client.port))
        assert (answer.status, answer.error["code"], answer.reason) == (500, -32603, "cancelled")
    assert Client(client.port).call("greet").status == 200
