"""The cache of compiled handlers keeps no request alive, stays small, and serves many threads."""

from __future__ import annotations

import enum
import functools
import gc
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, TypeAdapter

from twolane import McpServer
from twolane.server import signature
from twolane.server.signature import MAX_VARIANTS, compile_handler


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    """Start each test with nothing compiled."""
    signature._CACHE.clear()
    yield
    signature._CACHE.clear()


class Red(enum.Enum):
    RED = "red"


class Blue(enum.Enum):
    BLUE = "blue"


class One(BaseModel):
    one: int


class Service:
    """A service."""

    def method(self, a: int) -> str:
        """Do it."""
        return ""

    def __call__(self, a: int, b: str = "") -> str:
        return ""


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Secret:
    """Stands for a request's data."""


def holding(shape: str) -> tuple[Any, list[weakref.ref[Any]]]:
    """Make a handler that holds a secret, and references to both."""
    secret = Secret()

    def tool(a: int, b: One | None = None) -> str:
        """Do it."""
        return str(secret)

    class Local(Service):
        def method(self, a: int) -> str:
            """Do it."""
            return str(secret)

    handler: Any = {
        "function": lambda: tool,
        "partial": lambda: functools.partial(tool, b=secret),
        "wrapped": lambda: decorated(tool),
        "method": lambda: Local().method,
        "object": lambda: Local(),
        "lambda": lambda: lambda a: secret,
    }[shape]()
    owner = handler.__self__ if shape == "method" else handler
    return handler, [weakref.ref(secret), weakref.ref(owner)]


@pytest.mark.parametrize("shape", ["function", "partial", "wrapped", "method", "object", "lambda"])
def test_no_handler_is_kept_alive(shape: str) -> None:
    """With a request's server, its handler and all that it closed over are gone; the compiled form stays."""
    handler, references = holding(shape)
    for options in ({}, {"kind": "prompt"}, {"structured_output": False}):
        compile_handler(handler, **options)  # type: ignore[arg-type]
    del handler
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert signature._CACHE


def test_memory_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A factory that makes new types for each of many requests leaves a bounded number behind, and one warning."""

    def factory(number: int) -> Callable[..., Any]:
        def tool(value: Any = number) -> None:
            """Do it."""

        if number % 20 == 0:
            tool.__annotations__["value"] = Annotated[int, AfterValidator(lambda value: value + number)]
        return tool

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    with caplog.at_level(logging.WARNING, logger="twolane.server"):
        for number in range(500):
            compile_handler(factory(number))
        before = objects()
        for number in range(500, 3_000):
            compile_handler(factory(number))
    assert objects() - before < 500
    assert sum(isinstance(found, TypeAdapter) for found in gc.get_objects()) <= MAX_VARIANTS + 20
    (slot,) = signature._CACHE.values()
    assert len(slot.variants) == len(slot.plain) == MAX_VARIANTS
    assert len(caplog.records) == 1
    assert "factory.<locals>.tool()" in caplog.text


def test_code_that_is_made_anew_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that are compiled from text for each request push the oldest out, and nothing is mixed up."""
    monkeypatch.setattr(signature, "_MAX_CODES", 10)
    for number in range(50):
        namespace: dict[str, Any] = {}
        exec(f"def tool(a{number}: int) -> str: ...", namespace)
        assert list(compile_handler(namespace["tool"]).input_schema["properties"]) == [f"a{number}"]
    assert len(signature._CACHE) == 10


def test_a_default_without_an_end() -> None:
    """A default that holds itself is compiled each time: nothing could tell whether it is still the same."""
    loop: list[Any] = []
    loop.append(loop)

    def tool(a: Any = loop) -> str:
        """Do it."""
        return ""

    assert compile_handler(tool).input_schema["properties"] == {"a": {}}
    assert compile_handler(tool) is not compile_handler(tool)


def test_a_factory_in_many_threads_at_once() -> None:
    """Threads that run the factory at the same moment get servers that show each its own tenant."""
    wrong: list[Any] = []
    barrier = threading.Barrier(8)

    def factory(kind: Any, limit: int) -> McpServer:
        server = McpServer("test", version="1")
        for index in range(5):

            def tool(value: Any, limit: int = limit) -> str:
                """Do it."""
                return ""

            tool.__annotations__["value"] = kind
            server.register_tool(f"tool{index}", tool)
        return server

    def work(kind: Any, limit: int, text: str) -> None:
        barrier.wait(30)
        for _ in range(50):
            for tool in factory(kind, limit).tools.values():
                listed = tool.descriptor()["inputSchema"]
                if text not in str(listed) or listed["properties"]["limit"]["default"] != limit:
                    wrong.append(listed)

    tenants = ((Red, 1, "red"), (Blue, 2, "blue"), (Literal["x"], 3, "x"), (One, 4, "one")) * 2
    threads = [threading.Thread(target=work, args=tenant) for tenant in tenants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    (slot,) = signature._CACHE.values()
    assert len(slot.variants) <= MAX_VARIANTS
