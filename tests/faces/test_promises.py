"""Promises that hold across features: isolation of calls, vocabulary on the wire, secrets."""

from __future__ import annotations

import json
import logging
import socket
import threading
from typing import Any

import pytest

from tests.faces.server import Seen, make_factory
from tests.faces.serving import Client, modern_body, modern_headers, running
from twolane import AuthInfo, Context, McpServer, create_mcp_handler
from twolane.server.caching import CacheHint


@pytest.mark.obligation("S-013")
def test_a_slow_call_holds_up_nobody(client: Client, seen: Seen) -> None:
    """While one call waits, others on the same server are answered."""
    body = json.dumps(modern_body("tools/call", {"name": "hang", "arguments": {}})).encode()
    headers = {**modern_headers("tools/call", {"name": "hang"}), "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with client.raw(f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n".encode() + body):
        assert seen.started.wait(10)
        assert client.call("greet").status == 200
    assert seen.cancelled.wait(10)


@pytest.mark.obligation("S-029", "S-045", "S-068")
def test_the_vocabulary_of_the_wire(client: Client) -> None:
    """Results are complete or input_required, our _meta keys are the specification's own, and nobody is cancelled."""
    answers = [
        client.request("server/discover"),
        client.request("tools/list"),
        client.call("count", meta={"progressToken": 1}),
        client.call("ask", capabilities={"elicitation": {}}),
    ]
    for answer in answers:
        assert answer.result["resultType"] in ("complete", "input_required")
        assert set(answer.result["_meta"]) == {"io.modelcontextprotocol/serverInfo"}
        assert all(message.get("method") != "notifications/cancelled" for message in answer.messages)


@pytest.mark.obligation("S-075", "S-153", "S-155")
def test_logging_is_declared_where_logs_can_be_sent() -> None:
    """Logs carry their data and logger name where logging is declared; a server without it sends none."""
    for declared in (True, False):

        def create_server(declared: bool = declared) -> McpServer:
            server = McpServer("logs", version="1", logging=declared)

            @server.tool
            async def speak(ctx: Context) -> str:
                """Speak."""
                await ctx.log("info", {"table": 4}, logger="kitchen")
                return "spoken"

            return server

        with running(create_mcp_handler(create_server)) as port:
            client = Client(port)
            assert ("logging" in client.request("server/discover").result["capabilities"]) is declared
            answer = client.call("speak", meta={"io.modelcontextprotocol/logLevel": "info"})
            logs = [message["params"] for message in answer.messages[:-1]]
            assert logs == ([{"level": "info", "data": {"table": 4}, "logger": "kitchen"}] if declared else [])


@pytest.mark.obligation("S-154")
def test_leaving_as_the_answer_comes(client: Client) -> None:
    """Clients that leave at the very moment of their answer harm nothing."""
    body = json.dumps(modern_body("tools/call", {"name": "greet", "arguments": {}})).encode()
    headers = {**modern_headers("tools/call", {"name": "greet"}), "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    data = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n".encode() + body

    def leave() -> None:
        for _ in range(20):
            with client.raw(data) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    threads = [threading.Thread(target=leave) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert client.call("greet").status == 200


@pytest.mark.obligation("L-004")
def test_older_clients_meet_the_same_origin_check(client: Client) -> None:
    """A 2025-era request from a foreign origin is 403 as well."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"content-type": "application/json", "origin": "https://evil.example.com"}
    assert client.post(body, headers).status == 403


@pytest.mark.obligation("L-025")
def test_tasks_are_not_offered(client: Client) -> None:
    """params.task is ignored and the call served normally; the task methods do not exist."""
    params = {"name": "greet", "arguments": {}, "task": {"ttl": 1000}}
    assert client.legacy("tools/call", params).result["content"][0]["text"] == "Hello, World!"
    assert client.legacy("tasks/list").error["code"] == -32601


@pytest.mark.obligation("X-07")
def test_tokens_stay_where_they_are(caplog: pytest.LogCaptureFixture) -> None:
    """A caller's token is in no log, no record, no answer and no representation, even when everything fails."""
    from starlette.requests import Request

    seen = Seen()
    handler = create_mcp_handler(make_factory(seen), on_error=seen.on_error, on_request=seen.on_request)
    info = AuthInfo(token="token-secret", client_id="c", extra={"props": {"k": "props-secret"}})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        response = await handler.fetch(Request(scope, receive), auth_info=info)
        await response(scope, receive, send)

    with caplog.at_level(logging.DEBUG), running(app) as port:
        client = Client(port)
        answers = [
            client.call("fail", {"how": "value"}),
            client.call("unencodable", {"kind": "nan"}),
            client.call("nope"),
        ]
    texts = [
        caplog.text,
        repr(info),
        repr(seen.records),
        repr(seen.errors),
        *(str(answer.content) for answer in answers),
    ]
    for text in texts:
        assert "token-secret" not in text
        assert "props-secret" not in text


@pytest.mark.obligation("X-14", "S-094", "S-095")
def test_hints_say_who_may_share() -> None:
    """Results are private unless the server says public, and all pages of a list say the same."""

    def create_server() -> McpServer:
        hints = {"tools/list": CacheHint(ttl=60, scope="public")}
        server = McpServer("hints", version="1", page_size=1, cache_hints=hints)
        for name in ("one", "two"):

            @server.tool(name=name)
            async def tool() -> str:
                """Answer."""
                return "x"

        return server

    with running(create_mcp_handler(create_server)) as port:
        client = Client(port)
        first = client.request("tools/list").result
        second = client.request("tools/list", {"cursor": first["nextCursor"]}).result
        assert [(page["ttlMs"], page["cacheScope"]) for page in (first, second)] == [(60_000, "public")] * 2
        assert "nextCursor" not in second
        assert client.request("server/discover").result["cacheScope"] == "private"


@pytest.mark.obligation("S-150", "S-151")
def test_questions_are_whole_and_only_asked_of_who_can_answer() -> None:
    """Each kind of question has the parameters its mode needs, and roots are asked for only where declared."""
    from twolane import elicit, elicit_url, input_required, list_roots

    def create_server() -> McpServer:
        server = McpServer("asks", version="1")
        form = {"type": "object", "properties": {"ok": {"type": "boolean"}}}

        @server.tool
        async def ask(ctx: Context) -> Any:
            """Ask everything."""
            return input_required(
                form=elicit("Fine?", form), page=elicit_url("Please look", "https://example.com/x"), roots=list_roots()
            )

        return server

    with running(create_mcp_handler(create_server)) as port:
        client = Client(port)
        capable = {"elicitation": {"form": {}, "url": {}}, "roots": {}}
        asked = client.call("ask", capabilities=capable).result["inputRequests"]
        assert asked["form"]["params"]["mode"] == "form"
        assert asked["form"]["params"]["requestedSchema"]["type"] == "object"
        assert asked["page"]["params"] == {"mode": "url", "message": "Please look", "url": "https://example.com/x"}
        del capable["roots"]
        refused = client.call("ask", capabilities=capable)
        assert refused.error["data"]["requiredCapabilities"] == {"roots": {}}
