"""Arguments that do not fit, input schemas of every kind, and what is refused at registration."""

from __future__ import annotations

import copy
import datetime
import enum
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter
from tests.fuzz.strategies import FUZZ, WILD

from twolane import Context
from twolane.protocol.headers import Headers, check_params
from twolane.server.arguments import ArgumentError
from twolane.server.signature import compile_handler

Region = Annotated[str | None, Field(json_schema_extra={"x-mcp-header": "Region"})]
Limit = Annotated[int, Field(json_schema_extra={"x-mcp-header": "Limit"})]
Rate = Annotated[float, Field(json_schema_extra={"x-mcp-header": "Rate"})]


class Color(enum.Enum):
    RED = "red"


class Place(BaseModel):
    city: str
    zip: int = 0


@dataclass
class Pair:
    left: int
    right: int = 2


class Options(typing.TypedDict, total=False):
    depth: int


class Old(typing.TypedDict):
    a: int
    b: typing.NotRequired[int]


class New(typing_extensions.TypedDict):
    a: int
    b: typing_extensions.NotRequired[int]


class Circle(BaseModel):
    kind: Literal["circle"]


class Square(BaseModel):
    kind: Literal["square"]
    side: int = 1


Shape = Annotated[Circle | Square, Field(discriminator="kind")]


class Tree(BaseModel):
    children: list[Tree] = []


def bound(handler: Any, arguments: Any, **options: Any) -> dict[str, Any]:
    return compile_handler(handler, **options).bind(arguments)


def tenant_of(annotation: Any) -> Any:
    def tool(value: Any) -> str:
        """Take."""
        return ""

    tool.__annotations__["value"] = annotation
    return tool


@pytest.mark.parametrize("schema", [Place, Pair, Options])
def test_models_as_input_schema(schema: Any) -> None:
    """A model, dataclass or TypedDict as input_schema describes the arguments and arrives as one value."""

    async def tool(args: Any, ctx: Context) -> str:
        """Take."""
        return ""

    compiled = compile_handler(tool, input_schema=schema)
    assert compiled.input_schema["type"] == "object"
    assert compiled.context_name == "ctx"
    arguments = {Place: {"city": "Graz"}, Pair: {"left": 1}, Options: {"depth": 1}}[schema]
    expected = {Place: Place(city="Graz"), Pair: Pair(1), Options: {"depth": 1}}[schema]
    assert compiled.bind(arguments) == {"args": expected}
    if schema is not Options:
        with pytest.raises(ArgumentError):
            compiled.bind({})


@pytest.mark.obligation("S-096")
def test_json_schema_dicts() -> None:
    """A JSON Schema dict is listed as it is; the handler gets the arguments as sent, or nothing if it takes nothing."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False, "x-mine": 1}

    def takes(args: dict[str, Any]) -> str:
        """Take."""
        return ""

    def takes_none(ctx: Context) -> str:
        """Take nothing."""
        return ""

    compiled = compile_handler(takes, input_schema=schema)
    assert compiled.input_schema == schema
    assert compiled.bind({"a": 1}) == {"args": {"a": 1}}
    assert compile_handler(takes_none, input_schema=schema).bind({"a": 1}) == {}
    for bad in ({"a": "x"}, {"b": 1}):
        with pytest.raises(ArgumentError):
            compiled.bind(bad)
    for root in ({"type": "array"}, {}, {"properties": {}}):
        with pytest.raises(ValueError, match="root"):
            compile_handler(takes, input_schema=root)


@pytest.mark.obligation("S-050")
def test_header_parameters() -> None:
    """An optional parameter with x-mcp-header is listed as the plain type clients accept; bad ones are refused."""

    def good(region: Region = None, limit: Limit = 1) -> str:
        """Take."""
        return ""

    compiled = compile_handler(good)
    assert compiled.input_schema["properties"]["region"] == {"type": "string", "x-mcp-header": "Region"}
    assert {param.header for param in compiled.header_params} == {"mcp-param-region", "mcp-param-limit"}

    def bad(rate: Rate) -> str:
        """Take."""
        return ""

    with pytest.raises(ValueError, match="string, integer or boolean"):
        compile_handler(bad)


@pytest.mark.obligation("S-105")
@pytest.mark.parametrize("value", [None, [], "text", 5, {"n": None}, {"n": [1]}, {"n": {}}, {"n": 1.5}, {"n": 10**30}])
def test_nothing_but_an_argument_error(value: Any) -> None:
    """Whatever a client sends either binds or is an ArgumentError."""

    def tool(n: int) -> str:
        """Take."""
        return ""

    try:
        bound = compile_handler(tool).bind(value)
    except ArgumentError:
        return
    assert type(bound["n"]) is int


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (type("Plain", (), {}), "'value' cannot be handled by pydantic"),
        (Callable[[], int], "'value' has no JSON Schema"),
        (Annotated[str, Field(json_schema_extra={"x": object()})], "'value' has"),
        (list["Nowhere"], "'value'.*Nowhere"),  # type: ignore[name-defined]  # noqa: F821
    ],
)
def test_a_type_that_does_not_work_is_named(annotation: Any, text: str) -> None:
    """A parameter whose type cannot be validated or described is a TypeError that names function and parameter."""
    handler = tenant_of(annotation)
    with pytest.raises(TypeError, match=rf"tool\(\): the.*parameter {text}"):
        compile_handler(handler)


@pytest.mark.obligation("S-050")
def test_a_broken_header_is_told_with_its_handler() -> None:
    """Of many tools, the one whose header declaration breaks the rules is named; two of one name are one too many."""

    def tool(
        a: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Same"})],
        b: Annotated[str, Field(json_schema_extra={"x-mcp-header": "same"})],
    ) -> str:
        """Take."""
        return ""

    with pytest.raises(ValueError, match=r"tool\(\): x-mcp-header 'S?s?ame' is declared twice"):
        compile_handler(tool)
    for name in ("", "a b", "a:b", "é", 5):
        with pytest.raises(ValueError, match=r"tool\(\): x-mcp-header at value"):
            compile_handler(tenant_of(Annotated[str, Field(json_schema_extra={"x-mcp-header": name})]))


@pytest.mark.obligation("S-051")
@pytest.mark.parametrize(("value", "fits"), [(2**53 - 1, True), (1 - 2**53, True), (2**53, False), (-(2**53), False)])
def test_integers_in_headers_stay_exact(value: int, fits: bool) -> None:
    """An annotated integer beyond what a double holds is a mismatch, whatever its header says."""

    def tool(limit: Limit) -> str:
        """Take."""
        return ""

    headers = Headers([(b"mcp-param-limit", str(value).encode())])
    problem = check_params(compile_handler(tool).header_params, {"limit": value}, headers)
    assert (problem is None) is fits


@pytest.mark.obligation("S-105")
def test_texts_are_concise() -> None:
    """However long or many the wrong values and keys are, the text stays short and does not repeat them."""

    def tool(
        items: list[int], counts: dict[str, int], kind: Annotated[Circle | Square, Field(discriminator="kind")]
    ) -> str:
        """Take."""
        return ""

    long = "k" * 100_000
    for arguments in (
        {"items": ["x"] * 5, "counts": {long: "x"}, "kind": {"kind": long}},
        {"items": ["x"] * 900},
        {"items": ["x"] * 200_000},
    ):
        for handler, options in ((tool, {}), (tenant_of(Any), {"input_schema": ARRAY_SCHEMA})):
            with pytest.raises(ArgumentError) as caught:
                bound(handler, arguments, **options)
            assert len(str(caught.value)) < 4_000
            assert long[:400] not in str(caught.value)
            assert len(caught.value.problems) <= 10


ARRAY_SCHEMA = {
    "type": "object",
    "properties": {"items": {"items": {"type": "integer"}}},
    "required": ["counts"],
    "additionalProperties": {"additionalProperties": {"type": "integer"}},
}
STRICT = Annotated[int, Field(strict=True)]


@pytest.mark.obligation("S-105")
@FUZZ
@given(WILD, st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e", "f"]), WILD, max_size=6))
def test_every_value_binds_or_is_an_argument_error(anything: Any, named: dict[str, Any]) -> None:
    """No decoded body, valid JSON or not, makes binding raise anything but ArgumentError; the text stays short."""

    def lax(
        a: int | None = None, b: float = 0, c: datetime.datetime | Color = Color.RED, d: Any = 0,
        e: Tree | dict[str, bytes] | None = None, f: str = "",
    ) -> str:  # fmt: skip
        """Take."""
        return ""

    def strict(a: STRICT | None = None, b: float = 0, e: Tree | None = None, f: str = "") -> str:
        """Take."""
        return ""

    def schema(args: Any) -> str:
        """Take."""
        return ""

    tree = {"$defs": {"tree": {"properties": {"children": {"items": {"$ref": "#/$defs/tree"}, "uniqueItems": True}}}}}
    checked = {"type": "object", **tree, "properties": {"e": {"$ref": "#/$defs/tree"}, "b": {"multipleOf": 0.1}}}
    for handler, options in (
        (lax, {}),
        (strict, {}),
        (schema, {"input_schema": checked}),
        (schema, {"input_schema": Tree}),
        (schema, {"input_schema": Pair}),
    ):
        compiled = compile_handler(handler, **options)
        for arguments in (anything, named):
            try:
                outcome: Any = compiled.bind(arguments)
            except ArgumentError as exc:
                outcome = exc
            assert isinstance(outcome, dict) or len(str(outcome)) < 4_000


def test_strict_arguments_may_be_any_integer_json_has() -> None:
    """Where validation is strict, integers of any size arrive exactly and dates are read from their text."""

    def tool(n: STRICT, day: Annotated[datetime.date, Field(strict=True)]) -> str:
        """Take."""
        return ""

    assert bound(tool, {"n": 10**30, "day": "2026-07-28"}) == {"n": 10**30, "day": datetime.date(2026, 7, 28)}
    with pytest.raises(ArgumentError):
        bound(tool, {"n": "5", "day": "2026-07-28"})
    with pytest.raises(ArgumentError, match="Unicode"):
        bound(tool, {"n": 5, "day": "\ud800"})


@pytest.mark.parametrize("schema", [int, list[int], Place | None, 5, "object", Color])
def test_input_schemas_that_are_no_object(schema: Any) -> None:
    """What does not describe an object is a TypeError at registration that names the handler."""
    with pytest.raises(TypeError, match=r"tool\(\): input_schema"):
        compile_handler(tenant_of(Any), input_schema=schema)


def test_more_kinds_of_input_schema() -> None:
    """TypedDicts of both modules, unions of models, root models and adapters describe arguments too."""
    for schema in (Old, New, TypeAdapter(New)):
        assert compile_handler(tenant_of(Any), input_schema=schema).input_schema["required"] == ["a"]
        assert bound(tenant_of(Any), {"a": "1", "extra": 2}, input_schema=schema) == {"value": {"a": 1}}
    assert bound(tenant_of(Any), {"kind": "circle"}, input_schema=Circle | Square) == {"value": Circle(kind="circle")}
    with pytest.raises(ArgumentError):
        bound(tenant_of(Any), {"kind": "cube"}, input_schema=Circle | Square)


def test_the_arguments_go_where_they_are_needed() -> None:
    """With an input_schema, they go to the one parameter that has no default; two such parameters are refused."""

    def tool(flag: bool = False, *, args: Any, ctx: Context) -> str:
        """Take."""
        return ""

    def two(a: Any, b: Any) -> str:
        """Take."""
        return ""

    assert bound(tool, {"a": 1}, input_schema={"type": "object"}) == {"args": {"a": 1}}
    with pytest.raises(TypeError, match=r"two\(\).*needs a, b"):
        compile_handler(two, input_schema={"type": "object"})


def test_a_listed_schema_is_a_copy() -> None:
    """What becomes of a JSON Schema dict after registration changes neither what is listed nor what is checked."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"enum": ["x"]}}}
    compiled = compile_handler(tenant_of(Any), input_schema=schema)
    before = copy.deepcopy(schema)
    schema["properties"]["a"]["enum"].append("secret")
    again = compile_handler(tenant_of(Any), input_schema=before)
    assert compiled.input_schema == again.input_schema == before
    with pytest.raises(ArgumentError):
        compiled.bind({"a": "secret"})
    assert compile_handler(tenant_of(Any), input_schema=schema).bind({"a": "secret"})
    assert compile_handler(tenant_of(Any), input_schema=types.MappingProxyType(before)).input_schema == before
