"""What handlers return, as tool results."""

from __future__ import annotations

import datetime
import enum
import sys
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Never, NoReturn, TypedDict

import mcp_types
import pytest
import typing_extensions
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from twolane import InputRequired, ServerOutputError, ToolResult
from twolane.protocol.message import EncodeError, result_message
from twolane.server.signature import compile_handler


class Place(BaseModel):
    city: str
    since: datetime.date = Field(serialization_alias="sinceDate")


@dataclass
class Pair:
    left: int
    right: int


class Row(TypedDict):
    name: str


class Level(enum.StrEnum):
    HIGH = "high"


def compiled_for(annotation: Any, **options: Any) -> Any:
    def tool() -> Any:
        """Return."""

    if annotation is not ...:
        tool.__annotations__["return"] = annotation
    else:
        del tool.__annotations__["return"]
    return compile_handler(tool, **options)


DAY = datetime.date(2026, 7, 28)
GRAZ = Place(city="Graz", since=DAY)
BLOCK = {"type": "text", "text": "block"}
X = {"type": "text", "text": "x"}
TEXT = mcp_types.TextContent(type="text", text="block")


@pytest.mark.obligation("S-103")
@pytest.mark.parametrize(
    ("annotation", "value", "text", "structured"),
    [
        (str, "hi", "hi", {"result": "hi"}),
        (int, 5, "5", {"result": 5}),
        (bool, True, "true", {"result": True}),
        (float, 1.5, "1.5", {"result": 1.5}),
        (list[int], [1, 2], "[1,2]", {"result": [1, 2]}),
        (str | None, None, "null", {"result": None}),
        (str | InputRequired, "hi", "hi", {"result": "hi"}),
        (datetime.date, DAY, "2026-07-28", {"result": "2026-07-28"}),
        (Level, Level.HIGH, "high", {"result": "high"}),
        (str, Level.HIGH, "high", {"result": "high"}),
        (Place, GRAZ, '{"city":"Graz","sinceDate":"2026-07-28"}', {"city": "Graz", "sinceDate": "2026-07-28"}),
        (Pair, Pair(1, 2), '{"left":1,"right":2}', {"left": 1, "right": 2}),
        (Row, {"name": "x"}, '{"name":"x"}', {"name": "x"}),
        (dict[str, int], {"a": 1}, '{"a":1}', {"a": 1}),
    ],
)  # fmt: skip
def test_declared_types(annotation: Any, value: Any, text: str, structured: Any) -> None:
    """A declared type gives an output schema, structured content that fits it, and the same as text."""
    from twolane.server.schema import validator_of

    compiled = compiled_for(annotation)
    result = compiled.result(value)
    assert result["content"] == [{"type": "text", "text": text}]
    assert result["structuredContent"] == structured
    assert compiled.output_schema["type"] == "object"
    assert validator_of(compiled.output_schema, "x").problems(structured) == []


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (..., "hi", {"content": [{"type": "text", "text": "hi"}]}),
        (..., None, {"content": []}),
        (None, None, {"content": []}),
        (Any, {"a": 1}, {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}}),
        (Any, [1], {"content": [{"type": "text", "text": "[1]"}]}),
        (Any, TEXT, {"content": [{"type": "text", "text": "block"}]}),
        (mcp_types.TextContent, TEXT, {"content": [{"type": "text", "text": "block"}]}),
        (list[mcp_types.TextContent | str], [TEXT, "x"], {"content": [BLOCK, X]}),
        (ToolResult, ToolResult(content="x", structured={"a": 1}, is_error=True, meta={"m": 1}),
         {"content": [X], "structuredContent": {"a": 1}, "isError": True, "_meta": {"m": 1}}),
        (ToolResult, ToolResult(structured=[1]),
         {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]}),
    ],
)  # fmt: skip
def test_free_values(annotation: Any, value: Any, expected: dict[str, Any]) -> None:
    """Where nothing is declared there is no output schema, and values become content by what they are."""
    compiled = compiled_for(annotation)
    assert compiled.output_schema is None
    assert compiled.result(value) == expected


def test_results_of_the_wire_types() -> None:
    """An mcp_types.CallToolResult goes out as it is, whatever was declared."""
    given = mcp_types.CallToolResult(content=[TEXT], structured_content={"a": 1}, is_error=True)
    for annotation in (mcp_types.CallToolResult, Any, str, Place):
        result = compiled_for(annotation).result(given)
        assert result["content"] == [{"type": "text", "text": "block"}]
        assert (result["structuredContent"], result["isError"]) == ({"a": 1}, True)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(str, 5), (int, "5"), (int, True), (Place, {"town": "Graz"}), (list[int], ["x"]), (Pair, None), (Row, {})],
)
def test_broken_declarations(annotation: Any, value: Any) -> None:
    """A value that breaks the declared type is the server's error, never sent and never the client's fault."""
    with pytest.raises(ServerOutputError):
        compiled_for(annotation).result(value)


def test_output_schema_is_enforced() -> None:
    """A declared JSON Schema holds for what is sent, except for a result that is an error."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    compiled = compiled_for(Any, output_schema=schema)
    assert compiled.output_schema == schema
    assert compiled.result({"n": 1})["structuredContent"] == {"n": 1}
    for bad in ({}, {"n": "x"}, [1], "text", ToolResult(content="no structure"), ToolResult(structured={})):
        with pytest.raises(ServerOutputError):
            compiled.result(bad)
    assert compiled.result(ToolResult(content="sorry", is_error=True))["isError"] is True


def test_structured_output_can_be_switched() -> None:
    """False sends text alone; True insists on something that says what the structure is."""
    compiled = compiled_for(Place, structured_output=False)
    assert compiled.output_schema is None
    assert "structuredContent" not in compiled.result({"a": 1})
    with pytest.raises(TypeError, match="structured_output"):
        compiled_for(..., structured_output=True)


def _loop() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("annotation", [..., Any, list[Any], dict[str, Any], float, str])
@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), {"x": float("nan")}, object(), {"x": object()}, _loop(), "\ud800", {"\ud800": 1},
     10**30, b"\xff"],
    ids=["nan", "inf", "nan within", "object", "object within", "cycle", "surrogate", "surrogate key", "huge", "bytes"],
)  # fmt: skip
def test_what_has_no_json_form(annotation: Any, value: Any) -> None:
    """A value is either sent as valid JSON or refused as the server's error: nothing else happens."""
    import json

    try:
        body = result_message(1, compiled_for(annotation).result(value))
    except (ServerOutputError, EncodeError):
        return
    assert "NaN" not in body.decode()
    json.loads(body)


class Shaped(typing_extensions.TypedDict, total=False):
    name: str


class Own(mcp_types.TextContent):
    """A block that a user derived."""


class OwnResult(ToolResult):
    """A result that a user derived."""


Blocks = TypeAliasType("Blocks", list[mcp_types.ContentBlock])
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str")  # type: ignore[misc]
Numbers = TypeAliasType("Numbers", list[int])


@pytest.mark.parametrize(
    ("annotation", "declared"),
    [
        (Any, False),
        (object, False),
        (None, False),
        (NoReturn, False),
        (Never, False),
        (InputRequired, False),
        (InputRequired | None, False),
        (Annotated[InputRequired, "doc"], False),
        (mcp_types.CallToolResult, False),
        (mcp_types.ImageContent, False),
        (Own, False),
        (OwnResult, False),
        (list[mcp_types.ContentBlock], False),
        (Sequence[mcp_types.TextContent | str], False),
        (tuple[mcp_types.TextContent, ...], False),
        (str | mcp_types.CallToolResult, False),
        (ToolResult | InputRequired, False),
        (Annotated[list[Annotated[mcp_types.TextContent, "doc"]], "doc"], False),
        (Blocks, False),
        (Awaitable[mcp_types.TextContent], False),
        (str, True),
        (str | InputRequired, True),
        (Annotated[Place | InputRequired, "doc"], True),
        (Awaitable[str], True),
        (Coroutine[Any, Any, Place], True),
        (Numbers, True),
        (Json, True),
        (dict[str, mcp_types.TextContent], True),
        (Shaped, True),
    ],
)
def test_what_counts_as_declared(annotation: Any, declared: bool) -> None:
    """Data in a return annotation gives an output schema; content, whole results, input rounds and Any give none."""
    compiled = compiled_for(annotation)
    assert (compiled.output_schema is not None) is declared
    assert "InputRequired" not in str(compiled.output_schema)


def test_a_declaration_means_what_is_awaited() -> None:
    """A plain function that returns an awaitable declares what comes of it, and a union leaves input rounds out."""
    assert compiled_for(Awaitable[int]).output_schema == compiled_for(int).output_schema
    assert compiled_for(Coroutine[Any, Any, Place]).output_schema == compiled_for(Place).output_schema
    assert compiled_for(Annotated[Place | InputRequired, "doc"]).output_schema == compiled_for(Place).output_schema


@pytest.mark.parametrize("structured", [None, False])
def test_a_list_that_is_declared_as_content_is_content(structured: bool | None) -> None:
    """Where a list of blocks is declared, each item is content: in an empty list and in one of texts too."""
    convert = compiled_for(list[mcp_types.ContentBlock | str], structured_output=structured).result
    assert convert([]) == {"content": []}
    assert convert(["x", TEXT, ("x", [])]) == {"content": [X, BLOCK, X]}
    assert convert(["x"]) == {"content": [X]}
    assert convert("x") == {"content": [X]}
    free = compiled_for(Any, structured_output=structured).result
    assert free([])["content"] == [{"type": "text", "text": "[]"}]
    assert free([TEXT, {"a": 1}, "x"]) == {"content": [BLOCK, {"type": "text", "text": '{"a":1}'}, X]}


def test_text_alone() -> None:
    """structured_output=False leaves out the structure of values, not that of results that carry one themselves."""
    convert = compiled_for(Place, structured_output=False).result
    assert convert(GRAZ) == {"content": [{"type": "text", "text": '{"city":"Graz","sinceDate":"2026-07-28"}'}]}
    assert convert(ToolResult(content="x", structured={"a": 1}))["structuredContent"] == {"a": 1}
    whole = mcp_types.CallToolResult(content=[TEXT], structured_content={"a": None})
    assert convert(whole)["structuredContent"] == {"a": None}


def test_whole_results_carry_no_framing() -> None:
    """What the lane adds, such as resultType, is not taken from an mcp_types result; nulls in the data stay."""
    given = mcp_types.CallToolResult(content=[TEXT], structured_content={"a": None, "b": {"c": None}})
    result = compiled_for(Any).result(given)
    assert result == {"content": [BLOCK], "structuredContent": {"a": None, "b": {"c": None}}, "isError": False}
    assert compiled_for(Any).result(ToolResult(content=None)) == {"content": []}
    assert compiled_for(Any).result(ToolResult(content=None, structured="x"))["content"] == [X]
    assert compiled_for(Any).result(OwnResult(content=[TEXT, "x"])) == {"content": [BLOCK, X]}
    assert compiled_for(Any).result(Own(type="text", text="block")) == {"content": [BLOCK]}


def test_blocks_of_every_kind() -> None:
    """Each block goes out under its wire names, without members that are not set."""
    resource = mcp_types.TextResourceContents(uri="a://b", text="t", mime_type="text/plain")
    blocks = [
        mcp_types.ImageContent(type="image", data="AA==", mime_type="image/png"),
        mcp_types.AudioContent(type="audio", data="AA==", mime_type="audio/wav"),
        mcp_types.ResourceLink(type="resource_link", uri="a://b", name="b", mime_type="text/plain"),
        mcp_types.EmbeddedResource(type="resource", resource=resource),
    ]
    content = compiled_for(list[mcp_types.ContentBlock]).result(blocks)["content"]
    assert [block["type"] for block in content] == ["image", "audio", "resource_link", "resource"]
    assert content[0] == {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert content[3]["resource"] == {"uri": "a://b", "text": "t", "mimeType": "text/plain"}


def test_only_what_is_declared_is_sent() -> None:
    """Members of a subclass and keys that a TypedDict does not name are left out: they are not in the schema."""

    class Town(Place):
        secret: str = "s"

    assert compiled_for(Place).result(Town(city="Graz", since=DAY))["structuredContent"] == {
        "city": "Graz",
        "sinceDate": "2026-07-28",
    }
    assert compiled_for(Shaped).result({"name": "x", "secret": 1})["structuredContent"] == {"name": "x"}


def test_a_model_that_was_broken_later_is_refused() -> None:
    """A model instance whose members were set to something else afterwards is not sent."""
    place = Place(city="Graz", since=DAY)
    place.city = 5  # type: ignore[assignment]
    with pytest.raises(ServerOutputError, match="serialised"):
        compiled_for(Place).result(place)


def test_without_the_wire_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody has imported mcp_types, no value is taken for one of its classes."""
    monkeypatch.delitem(sys.modules, "mcp_types")
    assert compiled_for(Any).result({"a": [1]})["structuredContent"] == {"a": [1]}
