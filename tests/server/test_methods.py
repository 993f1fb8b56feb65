"""Methods beside those of the specification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, field_validator
from tests.support.calls import ask, refusal

from twolane.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY
from twolane.protocol.inputs import input_required, list_roots
from twolane.server.context import Context
from twolane.server.server import McpServer

BILLING = "com.example/billing"
TASKS = "io.modelcontextprotocol/tasks"


class Order(BaseModel):
    item: str
    count: int = 1

    @field_validator("count")
    @classmethod
    def _check(cls, count: int) -> int:
        if count == 13:
            raise KeyError("unlucky")
        return count


@dataclass
class Point:
    x: int


class Options(TypedDict):
    deep: bool


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1", extensions={BILLING: {"v": 1}, TASKS: {}})


async def echo(params: dict[str, Any]) -> dict[str, Any]:
    return {"echo": params}


async def test_the_decorator_returns_the_function(server: McpServer) -> None:
    """@server.method registers a function under a name and leaves it as it is; the result is its dict."""
    assert server.method("acme/echo")(echo) is echo
    assert await ask(server, "acme/echo", {"a": 1}) == {"echo": {"a": 1}}
    assert list(server.methods) == ["acme/echo"]
    assert repr(server.methods["acme/echo"]) == "<RegisteredMethod 'acme/echo'>"


async def test_handlers_take_what_they_ask_for(server: McpServer) -> None:
    """A handler takes the params, the params and the context, the context alone, or nothing."""

    async def both(params: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"method": ctx.method, **params}

    async def turned(ctx: Context, params: dict[str, Any]) -> dict[str, Any]:
        return {"method": ctx.method, **params}

    async def context(ctx: Context) -> dict[str, Any]:
        return {"method": ctx.method}

    def nothing() -> None:
        return None

    for name, handler in {"both": both, "turned": turned, "context": context, "nothing": nothing}.items():
        server.register_method(name, handler)
    assert await ask(server, "both", {"a": 1}) == {"method": "both", "a": 1}
    assert await ask(server, "turned", {"a": 1}) == {"method": "turned", "a": 1}
    assert await ask(server, "context", {"a": 1}) == {"method": "context"}
    assert await ask(server, "nothing") == {}


async def test_params_are_validated_by_a_model(server: McpServer) -> None:
    """A model, dataclass or TypedDict as annotation or as params= validates; what does not fit is -32602."""

    async def order(params: Order) -> Order:
        return params

    async def shift(point: Point) -> dict[str, Any]:
        return {"x": point.x + 1}

    async def deep(options: Options) -> dict[str, Any]:
        return {"deep": options["deep"]}

    async def given(params: Any) -> dict[str, Any]:
        return {"x": params.x}

    server.register_method("order", order)
    server.register_method("shift", shift)
    server.register_method("deep", deep)
    server.register_method("given", given, params=Point)
    assert await ask(server, "order", {"item": "tea"}) == {"item": "tea", "count": 1}
    assert await ask(server, "shift", {"x": 1}) == {"x": 2}
    assert await ask(server, "deep", {"deep": True}) == {"deep": True}
    assert await ask(server, "given", {"x": 1}) == {"x": 1}
    error = await refusal(server, "order", {"item": "tea", "count": "many"})
    assert error.code == INVALID_PARAMS
    assert error.message.startswith("Invalid params: params.count: ")
    assert "\n" not in error.message
    for method in ("order", "shift", "deep", "given"):
        assert (await refusal(server, method, {})).code == INVALID_PARAMS


async def test_a_validator_that_breaks_is_a_failure(server: McpServer) -> None:
    """A validator of the user's that raises something odd is the server's failure and leaks nothing."""

    async def order(params: Order) -> Order:
        return params

    server.register_method("order", order)
    error = await refusal(server, "order", {"item": "tea", "count": 13})
    assert error.code == INTERNAL_ERROR
    assert "unlucky" not in error.message


@pytest.mark.parametrize("value", [7, "x", [], object(), input_required(roots=list_roots())])
async def test_wrong_output_is_the_servers_error(server: McpServer, value: Any) -> None:
    """A result that is no object, and a round where none can be, are -32603."""

    async def handler() -> Any:
        return value

    server.register_method("it", handler)
    assert (await refusal(server, "it")).code == INTERNAL_ERROR


@pytest.mark.parametrize(
    "name",
    ["tools/list", "tools/call", "initialize", "ping", "server/discover", "subscriptions/listen", "logging/setLevel",
     "sampling/createMessage", "notifications/mine", "rpc.discover", "tasks/get"],
)  # fmt: skip
def test_names_of_the_specification_are_refused(server: McpServer, name: str) -> None:
    """No server redefines what the specification defines."""
    with pytest.raises(ValueError, match=r"belongs to the specification"):
        server.register_method(name, echo)


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 129, "a\n"])
def test_a_method_fits_a_header(server: McpServer, name: str) -> None:
    """A method's name travels in a header, so it is visible ASCII."""
    with pytest.raises(ValueError, match=r"visible ASCII"):
        server.register_method(name, echo)


def test_misuse_says_what_to_write(server: McpServer) -> None:
    """A missing or taken name and a handler of another shape are refused with a reason."""
    with pytest.raises(TypeError, match=r"@server\.method\("):
        server.method(echo)  # type: ignore[arg-type]
    server.register_method("a", echo)
    with pytest.raises(ValueError, match=r"already registered"):
        server.register_method("a", echo)
    with pytest.raises(TypeError, match=r"\(params\) or \(params, ctx\)"):
        server.register_method("b", lambda a, b, c: {})
    with pytest.raises(TypeError, match=r"context"):
        server.register_method("c", _two_contexts)
    with pytest.raises(TypeError):
        server.register_method("d", 7)  # type: ignore[arg-type]
    assert list(server.methods) == ["a"]


async def _two_contexts(a: Context, b: Context) -> None:
    return None


async def test_unknown_and_disabled_methods_are_not_found(server: McpServer) -> None:
    """A method that is not there, disabled or removed is -32601."""
    handle = server.register_method("it", echo)
    assert (await refusal(server, "nope")).code == METHOD_NOT_FOUND
    handle.disable()
    assert repr(handle) == "<RegisteredMethod 'it' (disabled)>"
    assert (await refusal(server, "it")).code == METHOD_NOT_FOUND
    handle.enable()
    assert await ask(server, "it") == {"echo": {}}
    handle.remove()
    handle.remove()
    assert (await refusal(server, "it")).code == METHOD_NOT_FOUND


@pytest.mark.obligation("S-083")
async def test_a_method_of_an_extension_is_for_those_who_declare_it(server: McpServer) -> None:
    """A client that does not declare the extension gets -32021 that names it; a 2025-era client -32601."""
    server.register_method("billing/charge", echo, extension=BILLING)
    error = await refusal(server, "billing/charge")
    assert error.code == MISSING_CLIENT_CAPABILITY
    assert error.data == {"requiredCapabilities": {"extensions": {BILLING: {}}}}
    assert (await refusal(server, "billing/charge", capabilities={"extensions": []})).code == MISSING_CLIENT_CAPABILITY
    assert (await refusal(server, "billing/charge", era="legacy")).code == METHOD_NOT_FOUND
    assert await ask(server, "billing/charge", capabilities={"extensions": {BILLING: {}}}) == {"echo": {}}


def test_an_extension_is_declared_first(server: McpServer) -> None:
    """A method cannot belong to an extension the server does not declare; the official tasks need theirs."""
    with pytest.raises(ValueError, match=r"extensions=\{'com\.example/other': \{\}\}"):
        server.register_method("x", echo, extension="com.example/other")
    server.register_method("tasks/get", echo, extension=TASKS)
