"""The client for users' tests, on the real handler and on applications made for one test."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Annotated, Any

import pytest
from pydantic import Field
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from twolane import Context, InputRequired, McpServer, accepted_content, create_mcp_handler, elicit, input_required
from twolane.protocol.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from twolane.testing import McpTestClient

CONFIRM = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
Region = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


def create_server() -> McpServer:
    """Build a server with one of each."""
    server = McpServer("probe", version="1.0.0")

    @server.tool
    async def hello(name: str = "World") -> str:
        """Greet."""
        return f"Hello, {name}!"

    @server.tool
    async def where(region: Region) -> str:
        """Tell the region."""
        return region

    @server.tool
    async def count(ctx: Context) -> str:
        """Count to three, with progress."""
        for step in (1, 2, 3):
            await ctx.progress(step, 3)
        return "done"

    @server.tool
    async def ask(ctx: Context) -> str | InputRequired:
        """Ask before acting."""
        known = accepted_content(ctx, "confirm", CONFIRM)
        if known is None:
            return input_required({"confirm": elicit("Sure?", CONFIRM)}, state={"round": 1})
        return f"{known['sure']} after {ctx.request_state}"

    @server.tool
    async def who(ctx: Context) -> str:
        """Tell the caller."""
        return str(ctx.request.user.display_name if "user" in ctx.request.scope else None)

    @server.prompt
    def greet(name: str) -> str:
        """Greet by prompt."""
        return f"Say hello to {name}"

    @server.resource("memo://one")
    def memo() -> str:
        """A memo."""
        return "text of the memo"

    return server


app = create_mcp_handler(create_server)


class Recorder:
    """An application that keeps the requests it gets and answers each with one result."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.bodies: list[Any] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError("no lifespan here")
        self.scopes.append(scope)
        body = (await receive())["body"]
        self.bodies.append(json.loads(body) if body else None)
        answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": answer})

    def headers(self) -> dict[str, str]:
        """Return the headers of the last request."""
        return {name.decode(): value.decode("latin-1") for name, value in self.scopes[-1]["headers"]}


class TestAgainstTheHandler:
    """Each method, on a real server."""

    async def test_tools_are_listed_and_called(self) -> None:
        """The usual round: discover, list, call."""
        async with McpTestClient(app) as client:
            assert (await client.discover()).result["supportedVersions"] == ["2026-07-28"]
            names = {tool["name"] for tool in (await client.list_tools()).result["tools"]}
            assert names == {"hello", "where", "count", "ask", "who"}
            answer = await client.call_tool("hello", {"name": "Ada"})
            assert (answer.status, answer.text) == (200, "Hello, Ada!")
            assert answer.structured == {"result": "Hello, Ada!"}

    async def test_prompts_and_resources_are_read(self) -> None:
        """Prompts and resources go with the right headers."""
        async with McpTestClient(app) as client:
            prompt = await client.get_prompt("greet", {"name": "Ada"})
            assert prompt.result["messages"][0]["content"]["text"] == "Say hello to Ada"
            resource = await client.read_resource("memo://one")
            assert resource.result["contents"][0]["text"] == "text of the memo"

    async def test_mirrored_arguments_travel_in_headers(self) -> None:
        """``param_headers`` sends what the tool's schema asks for, encoded where plain text would not survive."""
        async with McpTestClient(app) as client:
            for region in ("eu", "süd", " padded "):
                answer = await client.call_tool("where", {"region": region}, param_headers={"Region": region})
                assert answer.text == region
            missing = await client.call_tool("where", {"region": "eu"})
            assert (missing.status, missing.error["code"]) == (400, -32020)

    async def test_progress_arrives_before_the_result(self) -> None:
        """A progress token opens a stream, and its notifications are in the answer."""
        async with McpTestClient(app) as client:
            answer = await client.call_tool("count", progress_token="p")
            steps = [notice["params"]["progress"] for notice in answer.notifications]
            assert (steps, answer.text) == ([1, 2, 3], "done")
            assert answer.headers["content-type"] == "text/event-stream"

    async def test_two_rounds_carry_answers_and_state(self) -> None:
        """The second round sends the answers and the state of the first."""
        async with McpTestClient(app, capabilities={"elicitation": {}}) as client:
            first = await client.call_tool("ask")
            assert first.result["resultType"] == "input_required"
            second = await client.call_tool(
                "ask",
                input_responses={"confirm": {"action": "accept", "content": {"sure": True}}},
                request_state=first.result["requestState"],
            )
            assert second.text == "True after {'round': 1}"

    async def test_capabilities_belong_to_each_request(self) -> None:
        """A request may declare other capabilities than the client's own."""
        async with McpTestClient(app, capabilities={"elicitation": {}}) as client:
            answer = await client.call_tool("ask", capabilities={})
            assert answer.error["code"] == -32021

    async def test_legacy_requests_have_no_envelope(self) -> None:
        """A 2025-era request is served by the compat lane, on one client or as the client's own revision."""
        async with McpTestClient(app) as client:
            answer = await client.call_tool("hello", era="legacy")
            assert answer.text == "Hello, World!"
            assert "resultType" not in answer.result
        async with McpTestClient(app, revision="2025-06-18") as client:
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
            assert (await client.request("initialize", params)).result["protocolVersion"] == "2025-06-18"
            assert (await client.notify("notifications/initialized")).status == 202
            assert (await client.call_tool("hello")).text == "Hello, World!"
            assert (await client.discover(era="modern")).result["resultType"] == "complete"

    async def test_raw_requests_reach_the_server_as_they_are(self) -> None:
        """Broken bodies, other verbs and other paths are sent without help."""
        async with McpTestClient(app) as client:
            broken = await client.post(b"{")
            assert (broken.status, broken.error["code"]) == (400, -32700)
            assert (await client.send("GET")).status == 405
            assert (await client.send("POST", b"{}", path="/elsewhere")).status == 404
            preflight = await client.send(
                "OPTIONS", headers={"Origin": "http://localhost", "Access-Control-Request-Method": "POST"}
            )
            assert preflight.status == 204

    async def test_headers_can_be_taken_out(self) -> None:
        """A header given as None is not sent, however its name is written."""
        async with McpTestClient(app) as client:
            answer = await client.request("tools/list", headers={"MCP-METHOD": None})
            assert (answer.status, answer.error["code"]) == (400, -32020)

    async def test_the_scope_can_hold_a_user(self) -> None:
        """Members of the scope stand for the middleware that sets them."""
        scope = {"user": SimpleUser("ada"), "auth": AuthCredentials()}
        async with McpTestClient(app, scope=scope) as client:
            assert (await client.call_tool("who")).text == "ada"

    async def test_mounted_handlers_are_reached(self) -> None:
        """The path of a mount is the client's path, and the framework's lifespan runs."""
        site = Starlette(routes=[Mount("/api", app=create_mcp_handler(create_server))])
        async with McpTestClient(site, path="/api/mcp") as client:
            assert (await client.call_tool("hello")).text == "Hello, World!"

    async def test_one_application_serves_many_clients(self) -> None:
        """An application can be entered again after its lifespan has ended."""
        for _ in range(2):
            async with McpTestClient(app) as client:
                assert (await client.call_tool("hello")).text == "Hello, World!"


class TestRequests:
    """What is sent."""

    async def test_the_envelope_and_the_headers_are_those_of_a_real_client(self) -> None:
        """A call carries version, capabilities and client in ``_meta`` and repeats itself in headers."""
        recorder = Recorder()
        client = McpTestClient(recorder, capabilities={"roots": {}}, headers={"Authorization": "Bearer x"})
        await client.call_tool("grüße", {"a": 1}, meta={"mine": 2})
        message = recorder.bodies[0]
        assert message["params"]["_meta"] == {
            PROTOCOL_VERSION: "2026-07-28",
            CLIENT_CAPABILITIES: {"roots": {}},
            CLIENT_INFO: {"name": "twolane-test-client", "version": "1.0.0"},
            "mine": 2,
        }
        assert message["params"]["arguments"] == {"a": 1}
        sent = recorder.headers()
        encoded = base64.b64encode("grüße".encode()).decode()
        assert sent["mcp-name"] == f"=?base64?{encoded}?="
        assert sent["host"] == "127.0.0.1:8000"
        assert sent["authorization"] == "Bearer x"
        assert int(sent["content-length"]) > 0

    async def test_the_client_can_stay_anonymous(self) -> None:
        """Without client information the envelope leaves it out."""
        recorder = Recorder()
        await McpTestClient(recorder, client_info=None).list_tools("cursor")
        assert CLIENT_INFO not in recorder.bodies[0]["params"]["_meta"]
        assert recorder.bodies[0]["params"]["cursor"] == "cursor"

    async def test_ids_are_counted_or_given(self) -> None:
        """Each request has an id of its own, unless the test gives one."""
        recorder = Recorder()
        client = McpTestClient(recorder)
        await client.discover()
        await client.discover()
        await client.discover(request_id="mine")
        assert [body["id"] for body in recorder.bodies] == [1, 2, "mine"]

    async def test_pairs_are_sent_exactly(self) -> None:
        """A sequence of pairs is the whole header list: doubles stay, nothing is added."""
        recorder = Recorder()
        await McpTestClient(recorder).discover(headers=[("Host", "a"), ("Accept", "x"), ("accept", "ü")])
        assert recorder.scopes[0]["headers"] == [(b"host", b"a"), (b"accept", b"x"), (b"accept", b"\xfc")]

    async def test_values_of_parameters_are_written_as_the_specification_says(self) -> None:
        """Booleans and integers are written in their JSON form."""
        recorder = Recorder()
        await McpTestClient(recorder).call_tool("x", param_headers={"Flag": True, "Off": False, "Count": 42})
        sent = recorder.headers()
        assert (sent["mcp-param-flag"], sent["mcp-param-off"], sent["mcp-param-count"]) == ("true", "false", "42")

    async def test_address_and_url_can_be_chosen(self) -> None:
        """Base URL, sockets, path and query end in the scope."""
        recorder = Recorder()
        client = McpTestClient(
            recorder,
            base_url="https://mcp.example",
            server=("10.0.0.1", 443),
            client=("10.0.0.2", 5),
            path="/a%20b?c=d",
        )
        await client.discover()
        scope = recorder.scopes[0]
        assert (scope["scheme"], scope["server"], scope["client"]) == ("https", ("10.0.0.1", 443), ("10.0.0.2", 5))
        assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/a b", b"/a%20b", b"c=d")
        assert recorder.headers()["host"] == "mcp.example"

    async def test_a_silent_application_times_out(self) -> None:
        """An application that never answers gives a TimeoutError, and learns that its client has left."""
        left = asyncio.Event()

        async def silent(scope: Scope, receive: Receive, send: Send) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            left.set()

        with pytest.raises(TimeoutError, match=r"no response within 0\.01 s"):
            await McpTestClient(silent, timeout=0.01).discover()
        async with asyncio.timeout(5):
            await left.wait()


class TestLifespan:
    """Entering and leaving."""

    async def test_startup_comes_first_and_its_state_reaches_requests(self) -> None:
        """The application starts before the first request, ends after the last, and hands its state on."""
        log: list[object] = []

        async def kept(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                for stage in ("startup", "shutdown"):
                    log.append((await receive())["type"])
                    scope["state"]["pool"] = "open"
                    await send({"type": f"lifespan.{stage}.complete"})
                return
            log.append(scope["state"])
            await Recorder()(scope, receive, send)

        async with McpTestClient(kept) as client:
            await client.discover()
        assert log == ["lifespan.startup", {"pool": "open"}, "lifespan.shutdown"]

    @pytest.mark.parametrize("stage", ["startup", "shutdown"])
    async def test_a_failed_lifespan_is_an_error(self, stage: str) -> None:
        """An application that says it cannot start or stop fails the test with its own words."""

        async def failing(scope: Scope, receive: Receive, send: Send) -> None:
            message: Message = await receive()
            while message["type"] != f"lifespan.{stage}":
                await send({"type": f"{message['type']}.complete"})
                message = await receive()
            await send({"type": f"{message['type']}.failed", "message": "no database"})

        with pytest.raises(RuntimeError, match=f"lifespan.{stage}.failed: no database"):
            async with McpTestClient(failing):
                pass

    async def test_an_application_without_lifespan_works(self) -> None:
        """An application that raises at lifespan events, or is used without them, serves all the same."""
        async with McpTestClient(Recorder()) as client:
            assert (await client.discover()).result == {}
        assert (await McpTestClient(create_mcp_handler(create_server)).call_tool("hello")).text == "Hello, World!"

    async def test_clients_within_one_another_share_the_lifespan(self) -> None:
        """A second client may come and go while the first one works: the application is started and ended once."""
        async with McpTestClient(app) as first:
            async with McpTestClient(app, headers={"X-Tenant": "b"}) as second:
                assert (await second.call_tool("hello")).text == "Hello, World!"
            assert (await first.call_tool("hello")).text == "Hello, World!"
