"""The cache of compiled handlers never gives one function what was compiled for another, and stays small."""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from tests.support.calls import ask

from twolane import Context, McpServer
from twolane.server import signature
from twolane.server.signature import Compiled, compile_handler


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    """Start each test with nothing compiled."""
    signature._CACHE.clear()
    yield
    signature._CACHE.clear()


def shown(compiled: Compiled) -> tuple[Any, ...]:
    """Everything of a compiled form that a client sees."""
    return (
        *(compiled.name, compiled.description, compiled.is_async, compiled.context_name, compiled.header_params),
        *(compiled.input_json, compiled.output_json, compiled.parameters),
    )


def fresh(handler: Callable[..., Any], **options: Any) -> tuple[Any, ...]:
    """What *handler* compiles to where nothing was compiled before."""
    kept = dict(signature._CACHE)
    signature._CACHE.clear()
    try:
        return shown(compile_handler(handler, **options))
    finally:
        signature._CACHE.clear()
        signature._CACHE.update(kept)


def check(*handlers: Callable[..., Any], **options: Any) -> None:
    """Each handler gets its own, the first time and the second, in either order."""
    for order in (handlers, handlers[::-1], handlers):
        for handler in order:
            assert shown(compile_handler(handler, **options)) == fresh(handler, **options)


class Red(enum.Enum):
    RED = "red"


class Blue(enum.Enum):
    BLUE = "blue"


class One(BaseModel):
    one: int


class Two(BaseModel):
    two: int


@dataclasses.dataclass
class Settings:
    limit: Any = 1


TENANTS = """
from __future__ import annotations
from typing import *
import enum
from pydantic import BaseModel, Field
class Model(BaseModel):
    shared: int
MODES = ["a"]
def allowed(): return tuple(MODES)
def by_model(field):
    Model = type("Model", (BaseModel,), {"__annotations__": {field: int}, "__module__": __name__})
    def tool(value: Model) -> list[Model]: return [Model]
    return tool
def by_enum(member):
    Kind = enum.Enum("Kind", [(member, member)])
    def tool(value: Kind = None) -> str: return str(Kind)
    return tool
def by_text(text):
    def tool(value: Annotated[str, Field(description=text)]) -> str: return text
    return tool
def by_choice(text):
    choices = [text, "all"]
    def tool(value: Literal[tuple(choices)]) -> str: return choices
    return tool
def perhaps_own(field):
    if field != "shared":
        Model = type("Model", (BaseModel,), {"__annotations__": {field: int}, "__module__": __name__})
    def tool(value: Model) -> str: return Model
    return tool
def by_setting(text):
    MODES[:] = [text]
    def tool(value: Literal[allowed()]) -> str: return ""
    return tool
def by_global(text):
    globals()["Named"] = enum.Enum("Named", [(text, text)])
    def tool(value: Named | None = None) -> str: return ""
    return tool
def by_default(text):
    def tool(value: str = text, *, other: str = text + text) -> str: return ""
    return tool
"""


@pytest.mark.parametrize(
    "factory",
    ["by_model", "by_enum", "by_text", "by_choice", "perhaps_own", "by_setting", "by_global", "by_default"],
)
def test_tenants_of_one_factory_with_postponed_annotations(factory: str) -> None:
    """A factory that closes over a tenant's types, texts or defaults never shows them to another tenant."""
    module = types.ModuleType("tenants")
    exec(compile(TENANTS, "tenants.py", "exec"), vars(module))
    make = vars(module)[factory]
    for tenant, others in (("shared", "first second"), ("first", "second shared"), ("second", "first shared")) * 2:
        text = str(shown(compile_handler(make(tenant))))
        assert tenant in text
        assert not any(other in text for other in others.split())


async def test_two_tenants_of_one_server() -> None:
    """What tools/list shows is the caller's own server, schemas, defaults and descriptions included."""

    def create_server(kind: Any, limit: int, note: str) -> McpServer:
        server = McpServer("test", version="1")

        def search(value: Any, limit: int = limit) -> str:
            return ""

        search.__annotations__["value"] = Annotated[kind, Field(description=note)]
        search.__doc__ = note
        server.tool(search)
        return server

    for _ in range(3):
        for era in ("modern", "legacy"):
            for kind, limit, note, foreign in ((Red, 1, "for one", "Blue"), (Blue, 2, "for two", "Red")):
                (tool,) = (await ask(create_server(kind, limit, note), "tools/list", era=era))["tools"]
                assert tool["description"] == tool["inputSchema"]["properties"]["value"]["description"] == note
                assert tool["inputSchema"]["properties"]["limit"]["default"] == limit
                assert foreign not in str(tool)


def decorated(function: Callable[..., Any], *, wraps: bool) -> Callable[..., Any]:
    def wrapper(value: str = "") -> Any:
        """Stand for it."""
        return function(value)

    return functools.wraps(function)(wrapper) if wraps else wrapper


def first(a: int) -> int:
    """First."""
    return a


def second(b: str, c: Literal["x"] = "x") -> str:
    """Second."""
    return b


def test_functions_behind_one_decorator() -> None:
    """With functools.wraps each keeps its own signature; without, all have that of the wrapper."""
    check(decorated(first, wraps=True), decorated(second, wraps=True), first, second)
    bare = decorated(first, wraps=False)
    assert compile_handler(bare) is compile_handler(decorated(second, wraps=False))
    named = decorated(second, wraps=False)
    named.__name__, named.__doc__ = "named", "Named."
    noted = decorated(second, wraps=False)
    noted.__annotations__ = {"value": int, "return": str}
    check(bare, named, noted, decorated(first, wraps=True))


class Service:
    """One."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def method(self, a: int) -> str:
        """Do it."""
        return ""

    def __call__(self, a: int, b: str = "") -> str:
        return ""


class Other(Service):
    """Another, described by itself."""


def test_partials_methods_and_objects() -> None:
    """What is filled in decides, not with what: instances share, another set of names does not."""

    def tool(a: int, b: str = "", *, c: float = 1.0) -> str:
        """Do it."""
        return ""

    part = functools.partial
    check(tool, part(tool, 1), part(tool, 1, ""), part(tool, b="x"), part(tool, b="x", c=1), part(part(tool, 1), c=1))
    assert compile_handler(part(tool, b="x")) is compile_handler(part(tool, b="y"))
    assert compile_handler(Service(1).method) is compile_handler(Service(2).method)
    assert compile_handler(Service(1)) is compile_handler(Service(2))
    check(Service(1), Other(1), Service(1).method, Other(1).method, part(Service(1), 1), Service.method.__get__(1))
    check(lambda a: a, lambda a, b=1: a, lambda b: b)
    noted: Any = Service(1)
    noted.__name__, noted.__doc__ = "noted", "Noted."
    check(noted, Service(1))


def changed(name: str, value: Any) -> Callable[[Any], None]:
    return lambda function: setattr(function, name, value)


@pytest.mark.parametrize(
    "change",
    [
        changed("__doc__", "Other."),
        changed("__doc__", None),
        changed("__name__", "other"),
        changed("__defaults__", (5, 6)),
        changed("__defaults__", (True, 2)),
        changed("__defaults__", None),
        changed("__kwdefaults__", {"c": 9}),
        changed("__kwdefaults__", None),
        changed("__annotations__", {}),
        changed("__signature__", inspect.signature(first)),
        changed("__wrapped__", first),
        lambda function: function.__annotations__.update(a=str),
        lambda function: function.__annotations__.update(c=Annotated[int, Field(ge=1)]),
        lambda function: function.__annotations__.pop("return"),
        lambda function: function.__kwdefaults__.update(c=True),
    ],
)
def test_a_function_that_is_changed_after_its_definition(change: Callable[[Any], Any]) -> None:
    """A function is compiled as it is now: docstring, name, defaults, annotations, signature and what it wraps."""

    def tool(a: int = 1, b: int = 2, *, c: int = 1) -> str:
        """Do it."""
        return ""

    before = shown(compile_handler(tool))
    change(tool)
    assert shown(compile_handler(tool)) == fresh(tool) != before


@pytest.mark.parametrize(
    ("default", "change"),
    [
        ([1], lambda value: value.append(2)),
        ({"a": [1]}, lambda value: value["a"].append(2)),
        ({1}, lambda value: value.add(2)),
        (Settings([1]), lambda value: value.limit.append(2)),
        (One(one=1), lambda value: setattr(value, "one", 2)),
    ],
)
@pytest.mark.parametrize("place", ["default", "keyword", "signature"])
def test_a_mutable_default_that_is_changed_later(default: Any, change: Callable[[Any], Any], place: str) -> None:
    """A default is listed as it is now, wherever it stands; a change within does not reach who registered before."""
    default = copy.deepcopy(default)

    def tool(a: Any = default) -> str:
        """Do it."""
        return ""

    def keyword(*, a: Any = default) -> str:
        """Do it."""
        return ""

    handler: Any = keyword if place == "keyword" else tool
    if place == "signature":
        handler.__signature__ = inspect.signature(tool)
    compiled = compile_handler(handler)
    before = shown(compiled)
    change(default)
    assert shown(compile_handler(handler)) == fresh(handler) != before
    assert shown(compiled) == before


def test_options_decide_too() -> None:
    """One function under other options is another tool: schemas, structured output, kind and variables."""

    def tool(args: Any = None) -> dict[str, Any]:
        """Do it."""
        return {}

    schemas: list[Any] = [{"type": "object", "title": text} for text in ("a", "b")]
    options: list[dict[str, Any]] = [
        {},
        {"structured_output": False},
        {"structured_output": True},
        {"kind": "prompt"},
        {"kind": "resource", "uri_names": frozenset(("args",))},
        *({"input_schema": schema} for schema in (*schemas, One, Two)),
        *({"output_schema": schema} for schema in (*schemas, One, Two)),
        {"input_schema": schemas[0], "output_schema": schemas[0]},
    ]
    for _ in range(2):
        for chosen in options:
            assert shown(compile_handler(tool, **chosen)) == fresh(tool, **chosen)
    assert len({id(compile_handler(tool, **chosen)) for chosen in options}) == len(options)
    with pytest.raises(TypeError, match="variable 'id'"):
        compile_handler(tool, kind="resource", uri_names=frozenset(("id",)))


def test_unions_in_another_order() -> None:
    """int | str is not str | int: the order in which types are listed and tried is that of the function."""

    def tool(a: Any, b: Any) -> str:
        """Do it."""
        return ""

    for order in (int | str, str | int, int | str):
        tool.__annotations__["a"] = tool.__annotations__["b"] = order
        listed = compile_handler(tool).input_schema["properties"]
        assert [branch["type"] for branch in listed["a"]["anyOf"]] == [
            {int: "integer", str: "string"}[kind] for kind in order.__args__
        ]


PARTS = st.sampled_from(
    [int, str, "int", "Red", Red, Blue, One, Literal[1], Literal[True], Literal["a", "b"], Literal["b", "a"],
     int | None, None | int, list[One], list[Two], Annotated[int, Field(ge=1)], Annotated[int, Field(ge=2)],
     Annotated[str, Field(description="x")], Annotated[str, Field(alias="x")], Context, "Context | None"]
)  # fmt: skip
DEFAULTS = st.sampled_from([..., 1, True, 1.0, 0.0, -0.0, "1", None, Red.RED, [1], [True], Settings(1), Settings(True)])


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(PARTS, DEFAULTS, DEFAULTS, st.sampled_from(["One.", "Two.", None])), max_size=8))
def test_a_hit_is_what_compiling_anew_would_give(variants: list[tuple[Any, Any, Any, str | None]]) -> None:
    """Whatever was compiled before for the same code, a function gets exactly what it would get alone."""
    for annotation, default, keyword, doc in variants * 2:

        def tool(a: Any, *, b: Any) -> str:
            return ""

        tool.__annotations__["a"] = annotation
        tool.__defaults__ = None if default is ... else (default,)
        tool.__kwdefaults__ = None if keyword is ... else {"b": keyword}
        tool.__doc__ = doc
        assert shown(compile_handler(tool)) == fresh(tool)
