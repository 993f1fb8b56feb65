"""Functions as handlers, and the cache: fast where functions are equal, and never one tenant's schema for another."""

from __future__ import annotations

import asyncio
import enum
import functools
import gc
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from twolane import Context, McpServer
from twolane.server import signature
from twolane.server.signature import MAX_VARIANTS, compile_handler


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """Start each test with nothing compiled."""
    signature._CACHE.clear()


def properties(handler: Callable[..., Any], **options: Any) -> Any:
    return compile_handler(handler, **options).input_schema["properties"]


class OwnContext(Context):
    """A context that a user derived."""


@pytest.mark.parametrize(
    "annotation",
    [
        *(Context, Context | None, Optional[Context], Annotated[Context, "doc"], Annotated[Context | None, "doc"]),  # noqa: UP045
        *("Context", "Context | None", "Optional[Context]", "Annotated[Context, 'doc']", OwnContext),
    ],
)
def test_the_context_is_injected(annotation: Any) -> None:
    """A parameter annotated with Context, under any name, is injected and not part of the schema."""

    def tool(a: int, anything: Any) -> str:
        """Take."""
        return ""

    tool.__annotations__["anything"] = annotation
    compiled = compile_handler(tool)
    assert compiled.context_name == "anything"
    assert set(compiled.input_schema["properties"]) == {"a"}


def test_there_is_one_context() -> None:
    """Two parameters for the context are a mistake, and a list of contexts is not one."""

    def two(a: Context, b: Context) -> None: ...
    def many(a: list[Context]) -> None: ...

    with pytest.raises(TypeError, match=r"two\(\): the parameters a, b are all the Context"):
        compile_handler(two)
    with pytest.raises(TypeError, match=r"many\(\): the parameter 'a' cannot be handled"):
        compile_handler(many)


def test_names_and_descriptions() -> None:
    """The name is the function's, the description its docstring without the indentation."""

    def tool() -> str:
        """
        Do it.

        All of it.
        """
        return ""

    compiled = compile_handler(tool)
    assert (compiled.name, compiled.description) == ("tool", "Do it.\n\nAll of it.")
    assert compile_handler(lambda: 1).description is None
    tool.__doc__ = "  \n "
    assert compile_handler(tool).description is None


def test_refused_signatures() -> None:
    """What cannot be called by name is a TypeError at registration that says what to change."""

    def stars(*args: int) -> None: ...
    def keywords(**kwargs: int) -> None: ...
    def positional(a: int, /) -> None: ...
    def unknown(a: int) -> None: ...
    def generator() -> Any:
        yield 1

    unknown.__annotations__["a"] = "NoSuchType"
    for handler, text in (
        (stars, r"\*args"),
        (keywords, r"\*\*kwargs"),
        (positional, "positional-only"),
        (unknown, "'a'.*NoSuchType"),
        (generator, "generator"),
        (5, "not int"),
        (Context, "class"),
    ):
        with pytest.raises(TypeError, match=text):
            compile_handler(handler)  # type: ignore[arg-type]


def test_async_is_found_through_wrappers() -> None:
    """Coroutine functions, partials of them, async methods and async callable objects are asynchronous."""

    async def plain() -> str:
        return ""

    class Object:
        async def method(self) -> str:
            return ""

        async def __call__(self) -> str:
            return ""

    for handler in (plain, functools.partial(plain), Object().method, Object()):
        assert compile_handler(handler).is_async
    assert not compile_handler(lambda: 1).is_async


def test_equal_functions_share_what_was_compiled() -> None:
    """A factory that defines the same function again finds the compiled form."""

    def factory() -> Callable[..., Any]:
        async def tool(name: str | None = None, count: int = 3, tags: tuple[str, ...] = ()) -> str:
            """Do it."""
            return ""

        return tool

    assert compile_handler(factory()) is compile_handler(factory())


def tenant(**parts: Any) -> Callable[..., Any]:
    """Make one tenant's function: the same code for all of them."""

    def tool(value: Any = None) -> Any:
        """Do it."""

    for name, part in parts.items():
        if name == "annotation":
            tool.__annotations__["value"] = part
        else:
            setattr(tool, f"__{name}__", part)
    return tool


class RedOnly(enum.Enum):
    RED = "red"


class BlueOnly(enum.Enum):
    BLUE = "blue"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"annotation": RedOnly}, {"annotation": BlueOnly}),
        ({"annotation": Literal["a"]}, {"annotation": Literal["b"]}),
        ({"annotation": Literal[1]}, {"annotation": Literal[True]}),
        ({"annotation": Annotated[int, Field(ge=1)]}, {"annotation": Annotated[int, Field(ge=2)]}),
        ({"annotation": Annotated[int, Field(title="a")]}, {"annotation": Annotated[int, Field(title="b")]}),
        ({"defaults": (1,)}, {"defaults": (2,)}),
        ({"defaults": (1,)}, {"defaults": (True,)}),
        ({"defaults": (0.0,)}, {"defaults": (-0.0,)}),
        ({"defaults": ([1],)}, {"defaults": ([2],)}),
        ({"defaults": (None,)}, {"defaults": None}),
        ({"doc": "One."}, {"doc": "Two."}),
        ({"name": "one"}, {"name": "two"}),
    ],
)  # fmt: skip
def test_tenants_do_not_see_each_other(one: dict[str, Any], two: dict[str, Any]) -> None:
    """Functions of one piece of code that differ in type, default, docstring or name are compiled apart, both ways."""
    for first, second in ((one, two), (two, one)):
        seen = [compile_handler(tenant(**parts)) for parts in (first, second, first, second)]
        assert seen[0] is seen[2]
        assert seen[1] is seen[3]
        assert seen[0] is not seen[1]
    assert seen[0].input_json != seen[1].input_json or seen[0].description != seen[1].description or "name" in one


def test_models_of_one_name_in_two_closures() -> None:
    """String annotations that name another class in each closure are told apart."""

    def factory(field: str) -> Callable[..., Any]:
        model = type("Model", (BaseModel,), {"__annotations__": {field: int}, "__module__": __name__})

        def tool(value: model) -> str:  # type: ignore[valid-type]
            """Do it."""
            return str(model)

        return tool

    one, two = compile_handler(factory("a")), compile_handler(factory("b"))
    assert list(one.input_schema["$defs"]["Model"]["properties"]) == ["a"]
    assert list(two.input_schema["$defs"]["Model"]["properties"]) == ["b"]


def test_rebound_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string annotation whose global was rebound is resolved anew."""
    namespace: dict[str, Any] = {"Kind": RedOnly}
    exec("def make():\n    def tool(value: 'Kind') -> str:\n        return ''\n    return tool", namespace)
    first = properties(namespace["make"]())
    namespace["Kind"] = BlueOnly
    assert properties(namespace["make"]()) != first


def test_functions_behind_one_decorator() -> None:
    """Functions wrapped by one decorator share its code, and each keeps its own signature."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return wrapper

    @decorate
    async def one(a: int) -> str:
        """One."""
        return ""

    @decorate
    async def two(b: str) -> int:
        """Two."""
        return 1

    assert (list(properties(one)), list(properties(two))) == (["a"], ["b"])
    assert compile_handler(one).description == "One."
    assert compile_handler(two).output_schema != compile_handler(one).output_schema


def test_partials_and_methods() -> None:
    """What a partial or a bound method fills in is not part of the schema, whatever the values are."""

    def tool(a: int, b: str, c: float = 1.0) -> str:
        """Do it."""
        return ""

    assert list(properties(functools.partial(tool, 1))) == ["b", "c"]
    assert list(properties(functools.partial(tool, b="x"))) == ["a", "c"]
    assert list(properties(tool)) == ["a", "b", "c"]

    class Service:
        def method(self, a: int) -> str:
            """Do it."""
            return ""

        def __call__(self, b: int) -> str:
            return ""

    assert list(properties(Service().method)) == ["a"]
    assert list(properties(Service())) == ["b"]
    assert compile_handler(Service().method) is compile_handler(Service().method)


def test_a_default_that_changes_later() -> None:
    """A mutable default that is changed after registration is seen at the next one."""
    values = [1]
    first = properties(tenant(defaults=(values,)))["value"]["default"]
    values.append(2)
    assert (first, properties(tenant(defaults=(values,)))["value"]["default"]) == ([1], [1, 2])


def test_options_are_part_of_the_key() -> None:
    """The same function under other schemas or as another kind is compiled apart."""

    def tool(value: Any) -> Any:
        """Do it."""

    schemas = [{"type": "object", "properties": {name: {}}} for name in "ab"]
    compiled = [compile_handler(tool, input_schema=schema) for schema in schemas]
    assert [list(one.input_schema["properties"]) for one in compiled] == [["a"], ["b"]]
    assert compile_handler(tool, input_schema=dict(schemas[0])) is compiled[0]
    assert compile_handler(tool, kind="prompt") is not compile_handler(tool)


def test_a_handler_is_not_kept_alive() -> None:
    """The cache holds no handler and nothing of its closure, which may be a request's data."""

    class Secret:
        pass

    def factory() -> tuple[Any, Any]:
        secret = Secret()

        async def tool(a: int) -> str:
            """Do it."""
            return str(secret)

        server = McpServer("x", version="1")
        server.tool(tool)
        return weakref.ref(tool), weakref.ref(secret)

    references = factory()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_variants_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A factory that builds new types for each request costs no memory beyond the bound and is told so once."""

    def factory(number: int) -> Callable[..., Any]:
        def tool(value: int = number) -> str:
            """Do it."""
            return ""

        return tool

    with caplog.at_level(logging.WARNING, logger="twolane.server"):
        for number in range(50):
            assert properties(factory(number))["value"]["default"] == number
    slot = signature._CACHE[id(factory(0).__code__)]
    assert len(slot.variants) == MAX_VARIANTS
    assert len(caplog.records) == 1
    assert "module level" in caplog.text


def test_two_threads_at_once() -> None:
    """Factories that run in several threads get right schemas."""
    wrong: list[Any] = []

    def work(kind: Any, value: str) -> None:
        for _ in range(200):
            listed = properties(tenant(annotation=kind))["value"]
            if value not in str(compile_handler(tenant(annotation=kind)).input_schema):
                wrong.append(listed)

    threads = [threading.Thread(target=work, args=pair) for pair in ((RedOnly, "red"), (BlueOnly, "blue")) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []


def test_a_hit_does_a_bounded_number_of_calls() -> None:
    """Registering a plain function again makes few Python calls: the cost of a factory is counted, not timed."""
    import sys

    def factory() -> Callable[..., Any]:
        async def tool(name: str | None = None) -> str:
            """Do it."""
            return ""

        return tool

    compile_handler(factory())
    again = factory()
    calls = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(profile)
    try:
        compile_handler(again)
    finally:
        sys.setprofile(None)
    assert calls <= 8
    assert asyncio.iscoroutinefunction(again)
