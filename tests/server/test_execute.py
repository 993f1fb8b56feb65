"""Failures of users' code: what the client reads, what the log and on_error get, and what passes through."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.calls import FakeServices, ask, make_call, refusal, text_of

from twolane.errors import INTERNAL_ERROR, McpError, PushUnavailable, ServerOutputError, ToolError
from twolane.server.execute import HandlerFailed
from twolane.server.resources import ResourceTemplate
from twolane.server.server import McpServer

SECRET = "postgres://user:hunter2@db"


class Strange(BaseException):
    """A failure outside of Exception."""


FAILURES: dict[str, Callable[[], BaseException]] = {
    "exception": lambda: ValueError(SECRET),
    "base exception": lambda: Strange(SECRET),
    "exit": lambda: SystemExit(SECRET),
    "interrupt": lambda: KeyboardInterrupt(SECRET),
    "cancelled": lambda: asyncio.CancelledError(SECRET),
    "generator exit": lambda: GeneratorExit(SECRET),
    "stop": lambda: StopAsyncIteration(SECRET),
    "group": lambda: ExceptionGroup(SECRET, [ToolError(SECRET), McpError(1, SECRET)]),
    "base group": lambda: BaseExceptionGroup(SECRET, [asyncio.CancelledError(), Strange(SECRET)]),
    "timeout": lambda: TimeoutError(SECRET),
    "code attribute": lambda: OSError(42, SECRET),
}


def failing(make: Callable[[], BaseException], *, plain: bool) -> Callable[[], Any]:
    async def on_loop() -> str:
        await asyncio.sleep(0)
        raise make()

    def in_thread() -> str:
        raise make()

    return in_thread if plain else on_loop


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1")


@pytest.mark.obligation("S-102")
@pytest.mark.parametrize("plain", [False, True], ids=["async", "thread"])
@pytest.mark.parametrize("make", FAILURES.values(), ids=FAILURES.keys())
async def test_a_failed_tool_names_only_a_reference(
    server: McpServer, caplog: pytest.LogCaptureFixture, make: Callable[[], BaseException], plain: bool
) -> None:
    """Whatever a tool raises, the client reads a reference, the log has the traceback under it, on_error hears it."""
    server.register_tool("fail", failing(make, plain=plain))
    services = FakeServices()
    with caplog.at_level(logging.ERROR, "twolane.server"):
        result = await ask(server, "tools/call", {"name": "fail"}, services=services)
    assert result["isError"] is True
    found = re.fullmatch(r"Tool fail failed \(ref ([0-9a-f]{8})\)", text_of(result))
    assert found
    (record,) = caplog.records
    assert found[1] in record.getMessage()
    assert record.exc_info is not None
    raised = record.exc_info[1]
    assert type(raised) is type(make()) or type(raised.__cause__) is type(make())  # type: ignore[union-attr]
    ((reported, call),) = services.reported
    assert reported is record.exc_info[1]
    assert call.method == "tools/call"


def _prompt(server: McpServer, handler: Callable[[], Any]) -> tuple[str, dict[str, Any]]:
    server.register_prompt("fail", handler)
    return "prompts/get", {"name": "fail"}


def _resource(server: McpServer, handler: Callable[[], Any]) -> tuple[str, dict[str, Any]]:
    server.register_resource("x://fail", handler, name="fail")
    return "resources/read", {"uri": "x://fail"}


def _listing(server: McpServer, handler: Callable[[], Any]) -> tuple[str, dict[str, Any]]:
    server.register_resource(ResourceTemplate("x://{a}", list=handler), lambda a: a, name="fail")
    return "resources/list", {}


def _method(server: McpServer, handler: Callable[[], Any]) -> tuple[str, dict[str, Any]]:
    server.register_method("fail", handler)
    return "fail", {}


def _completer(server: McpServer, handler: Callable[[], Any]) -> tuple[str, dict[str, Any]]:
    async def prompt(a: str) -> str:
        return a

    def complete(value: str) -> Any:
        return handler()

    server.register_prompt("fail", prompt, complete={"a": complete})
    return "completion/complete", {
        "ref": {"type": "ref/prompt", "name": "fail"},
        "argument": {"name": "a", "value": ""},
    }


KINDS = [_prompt, _resource, _listing, _method, _completer]


@pytest.mark.obligation("S-106")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plain", [False, True], ids=["async", "thread"])
@pytest.mark.parametrize("make", FAILURES.values(), ids=FAILURES.keys())
async def test_other_failures_are_internal_errors(
    server: McpServer,
    caplog: pytest.LogCaptureFixture,
    kind: Callable[[McpServer, Callable[[], Any]], tuple[str, dict[str, Any]]],
    make: Callable[[], BaseException],
    plain: bool,
) -> None:
    """A prompt, resource, listing, method or completer that breaks is -32603 with a reference and nothing else."""
    method, params = kind(server, failing(make, plain=plain))
    services = FakeServices()
    with caplog.at_level(logging.ERROR, "twolane.server"):
        error = await refusal(server, method, params, services=services)
    assert isinstance(error, HandlerFailed)
    assert error.code == INTERNAL_ERROR
    assert error.data is None
    found = re.fullmatch(r"\w+ [\w ]*fail failed \(ref ([0-9a-f]{8})\)", error.message)
    assert found
    assert [found[1] in record.getMessage() for record in caplog.records] == [True]
    assert len(services.reported) == 1


async def test_references_differ(server: McpServer) -> None:
    """Each failure has a reference of its own."""
    server.register_tool("fail", failing(FAILURES["exception"], plain=False))
    texts = {text_of(await ask(server, "tools/call", {"name": "fail"})) for _ in range(5)}
    assert len(texts) == 5


@pytest.mark.parametrize("kind", KINDS)
async def test_protocol_errors_pass_from_everywhere(
    server: McpServer, kind: Callable[[McpServer, Callable[[], Any]], tuple[str, dict[str, Any]]]
) -> None:
    """McpError reaches the client as raised and is nobody's failure."""

    async def handler() -> str:
        raise McpError(4711, "Custom", {"a": 1})

    method, params = kind(server, handler)
    services = FakeServices()
    error = await refusal(server, method, params, services=services)
    assert (error.code, error.message, error.data) == (4711, "Custom", {"a": 1})
    assert not services.reported


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exc", [ToolError("Not today"), PushUnavailable("sampling/createMessage", "stateless")])
async def test_texts_for_the_outside_pass_from_everywhere(
    server: McpServer,
    kind: Callable[[McpServer, Callable[[], Any]], tuple[str, dict[str, Any]]],
    exc: Exception,
) -> None:
    """Where there is no model to read it, a ToolError or a refused push is an internal error with its own text."""

    async def handler() -> str:
        raise exc

    method, params = kind(server, handler)
    services = FakeServices()
    error = await refusal(server, method, params, services=services)
    assert (error.code, error.message) == (INTERNAL_ERROR, str(exc))
    assert not services.reported


async def test_wrong_output_is_logged_and_reported(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    """A result that cannot be sent is the server's error, with an entry in the log and in on_error."""
    server.register_prompt("junk", failing_value(object()))
    services = FakeServices()
    with caplog.at_level(logging.ERROR, "twolane.server"):
        error = await refusal(server, "prompts/get", {"name": "junk"}, services=services)
    assert isinstance(error, ServerOutputError)
    assert "junk" in caplog.text
    assert [reported for reported, _ in services.reported] == [error]


def failing_value(value: Any) -> Callable[[], Any]:
    async def handler() -> Any:
        return value

    return handler


@pytest.mark.obligation("S-067")
async def test_a_cancelled_request_is_cancelled(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    """Cancelling the task that serves a request cancels the handler; it is no failure and nothing is logged."""
    started = asyncio.Event()
    seen: list[str] = []

    async def wait() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "done"

    server.tool(wait)
    services = FakeServices()
    task = asyncio.ensure_future(ask(server, "tools/call", {"name": "wait"}, services=services))
    async with asyncio.timeout(5):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == ["cancelled"]
    assert not services.reported
    assert not caplog.records


async def test_an_inner_cancellation_is_a_failure(server: McpServer) -> None:
    """A handler that lets the cancellation of a task of its own escape has failed; the request is not cancelled."""

    async def handler() -> str:
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner
        return "done"

    server.tool(handler)
    result = await ask(server, "tools/call", {"name": "handler"})
    assert text_of(result).startswith("Tool handler failed")


async def test_a_closed_call_is_closed(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    """Closing the coroutine of a call unwinds the handler quietly: GeneratorExit is no failure then."""
    unwound: list[bool] = []

    async def wait() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            unwound.append(True)
        return "done"

    server.tool(wait)
    services = FakeServices()
    running = server.dispatch(make_call(server, "tools/call", {"name": "wait"}, services=services))
    running.send(None)
    running.close()
    assert unwound == [True]
    assert not services.reported
    assert not caplog.records


def test_a_call_closed_without_a_loop_is_closed(server: McpServer) -> None:
    """A call that is dropped after its loop is gone unwinds without a word."""

    async def wait() -> str:
        await Forever()
        return "done"

    server.tool(wait)
    services = FakeServices()
    running = server.dispatch(make_call(server, "tools/call", {"name": "wait"}, services=services))
    running.send(None)
    running.close()
    assert not services.reported


class Forever:
    """Awaits nothing that ends, and needs no event loop for it."""

    def __await__(self) -> Any:
        yield
