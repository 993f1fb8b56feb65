"""What handlers return that breaks their own declaration or has no JSON form: the server's error, never another."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import uuid
from collections.abc import Iterator
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_serializer, model_serializer
from tests.fuzz.strategies import FUZZ

from twolane import ServerOutputError, ToolResult
from twolane.protocol.message import EncodeError, decode, result_message
from twolane.server.schema import validator_of
from twolane.server.signature import compile_handler


class Place(BaseModel):
    city: str
    size: float = 0


class Broken(BaseModel):
    a: int = 1

    @model_serializer
    def serialize(self) -> Any:
        """Fail."""
        raise KeyError("a")


class Odd(BaseModel):
    a: Any = 1

    @field_serializer("a")
    def serialize(self, value: Any) -> Any:
        """Return what is no JSON either."""
        return object()


@dataclasses.dataclass
class Pair:
    left: Any
    right: int = 2


class Lazy:
    """Raises when it is looked at."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Small(enum.IntEnum):
    ONE = 1


def result_of(value: Any, annotation: Any = Any, **options: Any) -> dict[str, Any]:
    def tool() -> Any:
        """Return."""

    tool.__annotations__["return"] = annotation
    return compile_handler(tool, **options).result(value)


def sent(value: Any, annotation: Any = Any, **options: Any) -> dict[str, Any]:
    """The result as a client decodes it."""
    decoded: dict[str, Any] = decode(result_message(1, result_of(value, annotation, **options)))["result"]
    return decoded


TEXT = mcp_types.TextContent(type="text", text="block")
ANNOTATIONS = [Any, str, int, float, bool, list[Any], list[int], dict[str, Any], Place, Pair, Place | None, Small]


def looped() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def nested(levels: int) -> Any:
    deep: Any = []
    for _ in range(levels):
        deep = [deep]
    return deep


def endless() -> Any:
    loop: dict[str, Any] = {}
    loop["a"] = [loop]
    return loop


HOSTILE = [
    math.nan, -math.inf, 10**30, 10**5000, "\ud800", ["\ud800"], {"\ud800": 1}, {"a": math.nan}, [[math.inf]], b"\xff",
    object(), {"a": object()}, looped(), endless(), nested(300), nested(100_000), {1: 2}, {(1, object()): 2},
    {10**5000: 1}, complex(1, 2), {1, 2}, iter([1]), (part for part in "ab"), type, len, Lazy(), Broken(), Odd(),
    Place.model_construct(city=object()), Place.model_construct(), Pair(math.nan), Pair(looped()), TEXT,
    [TEXT, looped()], [TEXT, object()], mcp_types.TextContent.model_construct(type="text", text=object()),
    mcp_types.CallToolResult.model_construct(content=[object()]), ToolResult(content=looped()),
    ToolResult(content=nested(100_000)), ToolResult(content=object()), ToolResult(structured=looped()),
    ToolResult(structured=math.nan), ToolResult(content="x", meta=[1]),  # type: ignore[arg-type]
    ToolResult(content="x", meta={"a": object()}), ToolResult(content="x", meta={"a": math.nan}),
]  # fmt: skip


@pytest.mark.obligation("S-105")
@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_hostile_values(annotation: Any) -> None:
    """Whatever a handler returns is sent as valid JSON or refused as the server's error, in bounded time."""
    for value in HOSTILE:
        for options in ({}, {"structured_output": False}, {"output_schema": {}}):
            try:
                body = result_message(1, result_of(value, annotation, **options))
            except (ServerOutputError, EncodeError):
                continue
            decode(body)


def test_what_is_refused_is_not_repeated() -> None:
    """The client's text names the type and the place of what is wrong, and never the value."""
    for value, annotation in (("secret" * 3, int), ({"city": ["secret"]}, Place), ({"secret": object()}, Any)):
        with pytest.raises(ServerOutputError) as caught:
            result_of(value, annotation)
        assert "secretsecret" not in caught.value.message
        assert "'secret'" not in caught.value.message
        assert caught.value.code == -32603


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5), st.just("\ud800"),
        st.binary(max_size=3), st.dates(), st.uuids(), st.decimals(), st.just(Small.ONE), st.just(TEXT),
        st.just(Place(city="x")),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.none()), inner, max_size=3),
        st.builds(Pair, inner),
        st.builds(lambda content, structured: ToolResult(content=content, structured=structured), inner, inner),
    ),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.obligation("S-103")
@FUZZ
@given(JSON)
def test_what_is_sent_fits_the_declaration(value: Any) -> None:
    """Every result that goes out is strict JSON, has content, and fits the output schema of its tool."""
    for annotation in ANNOTATIONS:

        def tool() -> Any:
            """Return."""

        tool.__annotations__["return"] = annotation
        compiled = compile_handler(tool)
        try:
            body = result_message(1, compiled.result(value))
        except (ServerOutputError, EncodeError):
            continue
        result = decode(body)["result"]
        assert all(block["type"] for block in result["content"])
        if compiled.output_schema is not None:
            assert validator_of(compiled.output_schema, "it").problems(result["structuredContent"]) == []


@pytest.mark.obligation("S-103")
@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (str, {"result": "x"}, {"result": 5}),
        (int, {"result": 5}, 5),
        (list[int], {"result": [1]}, [1]),
        (Place, {"city": "Graz"}, {"town": "Graz"}),
        (Place, Place(city="Graz"), {"city": 5}),
        (dict[str, int], {"a": 1}, {"a": "x"}),
    ],
)
def test_whole_results_fit_the_declaration_too(annotation: Any, good: Any, bad: Any) -> None:
    """A ToolResult or CallToolResult of a tool with an output schema is checked against it, unless it is an error."""
    assert sent(ToolResult(content="x", structured=good), annotation)["content"] == [{"type": "text", "text": "x"}]
    for wrong in (ToolResult(content="x", structured=bad), ToolResult(content="x")):
        with pytest.raises(ServerOutputError, match="output schema"):
            result_of(wrong, annotation)
        failed = dataclasses.replace(wrong, is_error=True)
        assert sent(failed, annotation)["isError"] is True
    with pytest.raises(ServerOutputError, match="output schema"):
        result_of(mcp_types.CallToolResult(content=[TEXT]), annotation)


def test_an_output_schema_that_cannot_be_checked() -> None:
    """A whole result whose declared type has no checkable schema is refused, not sent unchecked."""

    class Deep(BaseModel):
        a: Any

    annotation: Any = int
    for _ in range(70):
        annotation = list[annotation]
    with pytest.raises(ServerOutputError, match="cannot be checked"):
        result_of(ToolResult(content="x", structured={"result": []}), annotation)
    assert sent([], annotation)["structuredContent"] == {"result": []}


@pytest.mark.obligation("S-103")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "integer"}, 5),
        ({"type": "null"}, None),
        ({"type": "string"}, "text"),
        ({}, {"a": [None]}),
        ({"$defs": {"a": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}, {"a": 1}),
    ],
)
def test_any_json_value_may_be_declared(schema: dict[str, Any], value: Any) -> None:
    """An output schema may be of any type; the value is sent as it is, and as text."""
    result = sent(value, output_schema=schema)
    assert result["structuredContent"] == value
    assert result["content"][0]["text"] == (
        value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    )


@pytest.mark.obligation("S-098", "S-097")
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "objekt"}, r"tool\(\): output_schema is not a valid"),
        ({"$ref": "https://example.com/s"}, r"tool\(\): output_schema refers to .*nothing is fetched"),
        ({"$schema": "https://example.com/d"}, r"tool\(\): output_schema names the dialect"),
    ],
)
def test_output_schemas_are_checked_at_registration(schema: dict[str, Any], text: str) -> None:
    """A broken output schema is refused where it is written, by the same rules as an input schema."""
    with pytest.raises(ValueError, match=text):
        result_of(None, output_schema=schema)


def test_an_output_schema_is_a_copy() -> None:
    """What becomes of the dict after registration changes neither what is listed nor what is enforced."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"enum": ["x"]}}}

    def tool() -> Any:
        """Return."""

    compiled = compile_handler(tool, output_schema=schema)
    schema["properties"]["a"]["enum"].append("y")
    assert compiled.output_schema == {"type": "object", "properties": {"a": {"enum": ["x"]}}}
    with pytest.raises(ServerOutputError):
        compiled.result({"a": "y"})
    assert compile_handler(tool, output_schema=schema).result({"a": "y"})["structuredContent"] == {"a": "y"}


@pytest.mark.parametrize("annotation", [Iterator[int], type("Plain", (), {})])
def test_return_types_that_cannot_be_described(annotation: Any) -> None:
    """A return type without a schema is a TypeError of one line that names the handler."""
    with pytest.raises(TypeError, match=r"tool\(\): the return type[^\n]*\Z"):
        result_of(None, annotation)


def test_values_with_their_own_json_form() -> None:
    """Dates, identifiers and enum members are written as pydantic writes them, as text without quotes."""
    day, key = datetime.date(2026, 7, 28), uuid.UUID(int=1)
    for value, text in ((day, "2026-07-28"), (key, str(key)), (Small.ONE, "1"), (b"abc", "abc")):
        for annotation in (Any, type(value)):
            assert sent(value, annotation)["content"] == [{"type": "text", "text": text}]
