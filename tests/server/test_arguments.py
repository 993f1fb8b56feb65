"""Arguments: from type hints to a JSON Schema, and from what a client sends to keyword arguments."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

from twolane import Context
from twolane.server.arguments import ArgumentError
from twolane.server.signature import compile_handler

Region = Annotated[str | None, Field(json_schema_extra={"x-mcp-header": "Region"})]
Limit = Annotated[int, Field(json_schema_extra={"x-mcp-header": "Limit"})]
Rate = Annotated[float, Field(json_schema_extra={"x-mcp-header": "Rate"})]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    city: str
    zip: int = 0


@dataclass
class Pair:
    left: int
    right: int = 2


class Options(TypedDict, total=False):
    depth: int


def test_hints_are_the_schema() -> None:
    """Types, constraints, descriptions and defaults of the parameters make the schema; the root is an object."""

    async def tool(
        name: Annotated[str, Field(description="Who", min_length=1)],
        count: int = 3,
        color: Color = Color.RED,
        mode: Literal["fast", "slow"] = "fast",
        note: str | None = None,
        *,
        places: list[Place] = [],  # noqa: B006
    ) -> str:
        """Do it."""
        return ""

    schema = compile_handler(tool).input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["name"]
    properties = schema["properties"]
    assert properties["name"] == {"type": "string", "description": "Who", "minLength": 1}
    assert properties["count"] == {"type": "integer", "default": 3}
    assert properties["color"]["default"] == "red"
    assert properties["mode"] == {"type": "string", "enum": ["fast", "slow"], "default": "fast"}
    assert properties["note"]["default"] is None
    assert properties["places"]["items"] == {"$ref": "#/$defs/Place"}


def test_binding() -> None:
    """Arguments are validated and converted; missing optional ones are left to the function, unknown ones dropped."""

    def tool(
        n: int, when: datetime.date, place: Place, pair: Pair, tags: set[str], options: Options, x: int = 5
    ) -> str:
        """Take."""
        return ""

    bind = compile_handler(tool).bind
    given = {
        "n": "7",
        "when": "2026-07-28",
        "place": {"city": "Graz"},
        "pair": {"left": 1},
        "tags": ["a", "a"],
        "options": {"depth": 2},
        "unknown": 1,
    }
    assert bind(given) == {
        "n": 7,
        "when": datetime.date(2026, 7, 28),
        "place": Place(city="Graz"),
        "pair": Pair(1),
        "tags": {"a"},
        "options": {"depth": 2},
    }


def test_problems_are_named() -> None:
    """What does not fit is listed by path in one short text, without the values themselves."""

    def tool(n: int, place: Place) -> str:
        """Take."""
        return ""

    with pytest.raises(ArgumentError) as caught:
        compile_handler(tool).bind({"n": "x" * 5000, "place": {"zip": []}})
    paths = [path for path, _ in caught.value.problems]
    assert paths == ["n", "place.city", "place.zip"]
    assert "xxxxx" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_field_defaults() -> None:
    """A Field may stand as the default value or within Annotated, with a default, a factory or an alias."""

    def tool(
        a: int = Field(5, ge=0),
        b: Annotated[int, Field(default=6)] = 7,
        c: Annotated[list[int], Field(default_factory=lambda: [1])] = Field(),  # noqa: B008
        d: Annotated[int, Field(alias="from")] = 0,
    ) -> str:
        """Take."""
        return ""

    compiled = compile_handler(tool)
    assert compiled.input_schema["properties"]["a"]["default"] == 5
    assert "from" in compiled.input_schema["properties"]
    assert compiled.bind({})["a"] == 5
    assert compiled.bind({})["c"] == [1]
    assert compiled.bind({"from": 4})["d"] == 4
    with pytest.raises(ArgumentError):
        compiled.bind({"a": -1})


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
