"""What handlers return, as tool results."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import Any, TypedDict

import mcp_types
import pytest
from pydantic import BaseModel, Field

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
