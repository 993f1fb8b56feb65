"""Calls of tools: what is the client's mistake, what the model's, and what the server's."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import pytest
from pydantic import Field
from tests.support.calls import ask, make_call, refusal, text_of

from twolane.errors import INVALID_PARAMS, InternalError, McpError, PushUnavailable, ServerOutputError, ToolError
from twolane.protocol.inputs import InputRequired, input_required, list_roots
from twolane.server.context import Context
from twolane.server.server import McpServer


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1")


async def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"Hello, {name}!"] * times)


@pytest.mark.obligation("S-101")
@pytest.mark.parametrize(
    "params",
    [{}, {"name": None}, {"name": 7}, {"name": ["greet"]}, {"name": "greet", "arguments": []},
     {"name": "greet", "arguments": "x"}, {"name": "greet", "arguments": None}, {"name": "greet", "arguments": 0}],
)  # fmt: skip
async def test_malformed_params_are_invalid_params(server: McpServer, params: dict[str, Any]) -> None:
    """A call without a name, or with arguments that are no object, is -32602 in one sentence."""
    server.tool(greet)
    error = await refusal(server, "tools/call", params)
    assert error.code == INVALID_PARAMS
    assert "\n" not in error.message


@pytest.mark.obligation("S-101")
async def test_an_unknown_or_disabled_tool_is_not_found(server: McpServer) -> None:
    """A tool that is not there and one that is disabled answer alike."""
    server.tool(greet)
    server.tools["greet"].disable()
    for name in ("nope", "greet", "__init__", "constructor"):
        error = await refusal(server, "tools/call", {"name": name})
        assert (error.code, error.message) == (INVALID_PARAMS, f"Tool not found: {name}")


async def test_missing_arguments_are_an_empty_object(server: McpServer) -> None:
    """A tool without required parameters can be called without arguments."""

    async def ping(n: int = 4) -> str:
        return f"pong {n}"

    server.tool(ping)
    assert text_of(await ask(server, "tools/call", {"name": "ping"})) == "pong 4"


@pytest.mark.obligation("S-102")
@pytest.mark.parametrize("arguments", [{}, {"name": 7}, {"name": "x", "times": "many"}])
async def test_bad_arguments_are_for_the_model(server: McpServer, arguments: dict[str, Any]) -> None:
    """Arguments that do not fit give an isError result that names the argument, and the handler does not run."""
    ran = []

    async def strict(name: Annotated[str, Field(strict=True)], times: int = 1) -> str:
        ran.append(name)
        return name

    server.tool(strict)
    result = await ask(server, "tools/call", {"name": "strict", "arguments": arguments})
    assert result["isError"] is True
    assert "name" in text_of(result) or "times" in text_of(result)
    assert not ran


@pytest.mark.obligation("S-102")
async def test_a_tool_error_is_for_the_model(server: McpServer) -> None:
    """ToolError's text is the content of an isError result."""

    async def fail() -> str:
        raise ToolError("The city is unknown")

    server.tool(fail)
    result = await ask(server, "tools/call", {"name": "fail"})
    assert result == {"content": [{"type": "text", "text": "The city is unknown"}], "isError": True}


async def test_an_mcp_error_is_for_the_client(server: McpServer) -> None:
    """McpError from a tool is the JSON-RPC error it says, code and data included."""

    async def fail() -> str:
        raise McpError(4711, "Custom", {"a": 1})

    server.tool(fail)
    error = await refusal(server, "tools/call", {"name": "fail"})
    assert (error.code, error.message, error.data) == (4711, "Custom", {"a": 1})


async def test_a_push_that_nothing_carries_is_told_to_the_model(server: McpServer) -> None:
    """A tool that pushes where it cannot answers isError with the sentence that names the alternative."""

    async def fail() -> str:
        raise PushUnavailable("elicitation/create", "compat")

    server.tool(fail)
    result = await ask(server, "tools/call", {"name": "fail"})
    assert result["isError"] is True
    assert "sessionful lane" in text_of(result)


async def test_a_round_is_returned_as_it_is(server: McpServer) -> None:
    """input_required from a tool leaves dispatch untouched, for the lane to lower."""
    asked = input_required(roots=list_roots())

    async def again() -> InputRequired:
        return asked

    server.tool(again)
    assert await server.dispatch(make_call(server, "tools/call", {"name": "again"})) is asked


async def test_the_context_is_handed_over(server: McpServer) -> None:
    """A parameter annotated with Context receives the call's context and is no argument."""

    async def show(ctx: Context, name: str) -> str:
        return f"{ctx.method} {ctx.request_id} {name}"

    server.tool(show)
    result = await ask(server, "tools/call", {"name": "show", "arguments": {"name": "x"}})
    assert text_of(result) == "tools/call 1 x"
    assert set(server.tools["show"].descriptor()["inputSchema"]["properties"]) == {"name"}


async def test_plain_functions_leave_the_event_loop(server: McpServer) -> None:
    """A def tool runs in a worker thread, an async def tool on the loop."""

    def plain() -> str:
        return threading.current_thread().name

    async def on_loop() -> str:
        return threading.current_thread().name

    server.tool(plain)
    server.tool(on_loop)
    here = threading.current_thread().name
    assert text_of(await ask(server, "tools/call", {"name": "plain"})) != here
    assert text_of(await ask(server, "tools/call", {"name": "on_loop"})) == here


async def test_an_awaitable_from_a_plain_function_is_awaited(server: McpServer) -> None:
    """A wrapper that is no coroutine function but returns a coroutine works as its author meant."""

    def wrapper(name: str) -> Any:
        return greet(name)

    server.register_tool("wrapper", wrapper)
    result = await ask(server, "tools/call", {"name": "wrapper", "arguments": {"name": "Ada"}})
    assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}]


@pytest.mark.obligation("S-103")
async def test_what_cannot_be_sent_is_the_servers_error(server: McpServer) -> None:
    """A result that has no wire form is -32603, never the client's -32602."""

    async def junk() -> Any:
        return object()

    server.tool(junk)
    error = await refusal(server, "tools/call", {"name": "junk"})
    assert isinstance(error, ServerOutputError)
    assert isinstance(error, InternalError)
