"""Completion of prompt and template arguments."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Annotated, Any

import mcp_types
import pytest
from tests.support.calls import ask, refusal

from twolane.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from twolane.server.completable import completable
from twolane.server.context import Context
from twolane.server.resources import ResourceTemplate
from twolane.server.server import McpServer

NOTHING = {"values": [], "total": 0, "hasMore": False}


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1")


def cities(value: str) -> list[str]:
    return [city for city in ("Paris", "Prague", "Rome") if city.lower().startswith(value.lower())]


City = Annotated[str, completable(cities)]


async def visit(city: City, day: str = "today") -> str:
    """Visit a city."""
    return f"{city} {day}"


async def plain(a: str) -> str:
    return a


def params(name: str, argument: str = "city", value: str = "", **arguments: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": name}, "argument": {"name": argument, "value": value},
    }  # fmt: skip
    if arguments:
        result["context"] = {"arguments": arguments}
    return result


async def complete(server: McpServer, *args: Any, **arguments: str) -> dict[str, Any]:
    result = await ask(server, "completion/complete", params(*args, **arguments))
    mcp_types.CompleteResult.model_validate(result)
    completion = result["completion"]
    assert isinstance(completion, dict)
    return completion


def completing(server: McpServer, completer: Any) -> None:
    server.register_prompt("p", plain, complete={"a": completer})


@pytest.mark.obligation("S-109")
async def test_a_marked_parameter_is_completed(server: McpServer) -> None:
    """A parameter marked with completable proposes the values of its function."""
    server.prompt(visit)
    assert await complete(server, "visit", "city", "p") == {"values": ["Paris", "Prague"], "total": 2, "hasMore": False}
    assert await complete(server, "visit", "city", "x") == NOTHING


@pytest.mark.obligation("S-109")
async def test_complete_maps_arguments_to_functions(server: McpServer) -> None:
    """complete= of a prompt and of a template does the same as the mark, and wins over it."""
    server.register_prompt("p", visit, complete={"day": lambda value: ["monday"], "city": lambda value: ["Oslo"]})
    assert (await complete(server, "p", "day"))["values"] == ["monday"]
    assert (await complete(server, "p", "city"))["values"] == ["Oslo"]
    server.register_resource(ResourceTemplate("x://{a}", complete={"a": lambda value: [value + "!"]}), plain)
    result = await ask(
        server,
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "x://{a}"}, "argument": {"name": "a", "value": "v"}},
    )
    assert result["completion"]["values"] == ["v!"]


async def test_a_marked_template_parameter_is_completed(server: McpServer) -> None:
    """completable works on the parameters of a template's handler too."""

    async def read(city: City) -> str:
        return city

    server.register_resource("x://{city}", read)
    ref = {"type": "ref/resource", "uri": "x://{city}"}
    result = await ask(server, "completion/complete", {"ref": ref, "argument": {"name": "city", "value": "r"}})
    assert result["completion"]["values"] == ["Rome"]


@pytest.mark.obligation("S-109")
@pytest.mark.parametrize(
    ("count", "sent", "more"), [(99, 99, False), (100, 100, False), (101, 100, True), (150, 100, True)]
)
async def test_at_most_a_hundred_values_are_sent(server: McpServer, count: int, sent: int, more: bool) -> None:
    """Of more than 100 values the first 100 are sent, with the whole count."""
    completing(server, lambda value: [str(index) for index in range(count)])
    result = await complete(server, "p", "a")
    assert (len(result["values"]), result["total"], result["hasMore"]) == (sent, count, more)
    assert result["values"][:2] == ["0", "1"]


async def test_completers_take_what_they_ask_for(server: McpServer) -> None:
    """A completer takes the value, the value and the other arguments, or those and the context."""

    async def two(value: str, arguments: dict[str, str]) -> list[str]:
        return [value, *arguments.values()]

    async def three(value: str, arguments: dict[str, str], ctx: Context) -> list[str]:
        return [value, *arguments.values(), ctx.method]

    def with_default(value: str, names: tuple[str, ...] = ("n",)) -> list[str]:
        return [value, *names]

    def variadic(*args: Any) -> list[str]:
        return [str(len(args))]

    class Callable:
        async def __call__(self, value: str) -> list[str]:
            return [value, "called"]

    expected: list[tuple[Any, list[str]]] = [
        (two, ["v", "Rome"]),
        (three, ["v", "Rome", "completion/complete"]),
        (with_default, ["v", "n"]),
        (variadic, ["3"]),
        (Callable(), ["v", "called"]),
        (partial(with_default, names=("p",)), ["v", "p"]),
        (str.split, ["v"]),
    ]
    for completer, values in expected:
        completing(server, completer)
        assert (await complete(server, "p", "a", "v", city="Rome"))["values"] == values
        server.prompts["p"].remove()


async def test_plain_completers_leave_the_event_loop(server: McpServer) -> None:
    """A def completer runs in a worker thread, its generator too; tuples, sets and None are fine."""
    names: list[str] = []

    def generate(value: str) -> Iterator[str]:
        names.append(threading.current_thread().name)
        yield "one"

    completing(server, generate)
    assert (await complete(server, "p", "a"))["values"] == ["one"]
    assert names[0] != threading.current_thread().name
    for value in (("one",), {"one"}, iter(["one"])):
        server.prompts["p"].update(complete={"a": lambda typed, value=value: value})
        assert (await complete(server, "p", "a"))["values"] == ["one"]
    server.prompts["p"].update(complete={"a": lambda typed: None})
    assert await complete(server, "p", "a") == NOTHING


async def _generate(value: str) -> AsyncIterator[str]:
    yield "x"


@pytest.mark.parametrize(
    "completer", [lambda value: "text", lambda value: 7, lambda value: [1], lambda value: {"values": []}, _generate]
)
async def test_wrong_output_is_the_servers_error(server: McpServer, completer: Any) -> None:
    """A completer that returns no strings is -32603."""
    completing(server, completer)
    assert (await refusal(server, "completion/complete", params("p", "a"))).code == INTERNAL_ERROR


@pytest.mark.obligation("S-109")
async def test_an_argument_without_completer_has_no_values(server: McpServer) -> None:
    """A known prompt's or template's argument without completer, and a fixed resource, complete to nothing."""
    server.prompt(visit)
    server.register_resource("x://{a}", plain)
    server.register_resource("x://fixed", lambda: "x")
    assert await complete(server, "visit", "day") == NOTHING
    assert await complete(server, "visit", "unknown") == NOTHING
    for uri in ("x://{a}", "x://fixed"):
        ref = {"type": "ref/resource", "uri": uri}
        result = await ask(server, "completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})
        assert result["completion"] == NOTHING


@pytest.mark.obligation("S-109")
@pytest.mark.parametrize(
    "bad",
    [{}, {"ref": 7}, {"ref": {}}, {"ref": {"type": "ref/tool", "name": "visit"}}, {"ref": {"type": "ref/prompt"}},
     {"ref": {"type": "ref/prompt", "name": "nope"}}, {"ref": {"type": "ref/prompt", "name": "hidden"}},
     {"ref": {"type": "ref/resource", "uri": "x://nope"}}, {"ref": {"type": "ref/resource", "name": "visit"}},
     {"argument": None}, {"argument": {"name": "city"}}, {"argument": {"name": 1, "value": ""}},
     {"argument": {"name": "city", "value": 1}}, {"context": 7}, {"context": None}, {"context": {"arguments": []}},
     {"context": {"arguments": {"a": 1}}}],
    ids=repr,
)  # fmt: skip
async def test_bad_requests_are_invalid_params(server: McpServer, bad: dict[str, Any]) -> None:
    """An unknown reference and a malformed request are -32602."""
    server.prompt(visit)
    server.register_prompt("hidden", visit).disable()
    request = {**params("visit"), **bad} if bad else {}
    assert (await refusal(server, "completion/complete", request)).code == INVALID_PARAMS


@pytest.mark.obligation("S-047", "S-081")
async def test_completion_exists_where_something_completes(server: McpServer) -> None:
    """Without a completer the method is not found and not declared; asked for, it answers with nothing."""
    server.register_prompt("p", plain)
    assert (await refusal(server, "completion/complete", params("p", "a"))).code == METHOD_NOT_FOUND
    assert "completions" not in server.capabilities("modern", push=True)
    server.prompt(visit)
    assert server.capabilities("modern", push=True)["completions"] == {}
    declared = McpServer("test", version="1", completions=True)
    declared.register_prompt("p", plain)
    assert declared.capabilities("legacy", push=False)["completions"] == {}
    assert await complete(declared, "p", "a") == NOTHING


def test_a_completer_is_callable() -> None:
    """What cannot be called is refused where it is written."""
    with pytest.raises(TypeError, match=r"a completer is a function"):
        completable(["Paris"])  # type: ignore[arg-type]
