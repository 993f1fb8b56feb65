"""JSON Schemas of Python types: as MCP clients read them best, and always JSON."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel, TypeAdapter
from typing_extensions import TypedDict

from twolane.protocol.headers import header_params
from twolane.protocol.message import encode
from twolane.server.typeschema import adapter_of, as_object_schema, is_strict, json_schema_of, plain_header_params


class Place(BaseModel):
    city: str
    big_number: int = Field(0, title="Kept")


class Node(BaseModel):
    next: Node | None = None


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Unbounded(BaseModel):
    limit: float = math.inf
    low: Annotated[float, Field(ge=-math.inf)] = 0
    nested: dict[str, Any] = {"x": [math.nan]}


class Row(TypedDict):
    a: int


@dataclass
class Data:
    a: int


class Color(enum.Enum):
    RED = "red"


class Region(BaseModel):
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


class Loop(BaseModel):
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]
    again: Loop | None = None


class Junk(BaseModel):
    a: Annotated[int, Field(json_schema_extra={"x": object()})]


def schema_of(annotation: Any, mode: Literal["validation", "serialization"] = "validation") -> dict[str, Any]:
    return json_schema_of(adapter_of(annotation, "it"), mode, "it")


def test_titles_that_say_nothing_are_left_out() -> None:
    """Pydantic's made-up titles of fields are gone; those that somebody wrote stay."""
    schema = schema_of(Place)
    assert schema["properties"]["city"] == {"type": "string"}
    assert schema["properties"]["big_number"]["title"] == "Kept"


def test_an_adapter_is_taken_as_it_is() -> None:
    """A TypeAdapter that somebody configured is used, not wrapped."""
    adapter: TypeAdapter[Any] = TypeAdapter(int)
    assert adapter_of(adapter, "it") is adapter


@pytest.mark.parametrize("annotation", [object(), 5, type("Plain", (), {}), list[type("Plain", (), {})]])
def test_what_pydantic_cannot_handle(annotation: Any) -> None:
    """A type that pydantic cannot validate is a TypeError of one line that begins with what it is about."""
    with pytest.raises(TypeError, match=r"\Ait cannot be handled by pydantic: [^\n]+\Z"):
        adapter_of(annotation, "it")


@pytest.mark.parametrize("annotation", [Callable[[int], int], Junk])
def test_what_has_no_schema(annotation: Any) -> None:
    """A type that no JSON Schema describes is a TypeError of one line that begins with what it is about."""
    with pytest.raises(TypeError, match=r"\Ait has (no|a) JSON Schema[^\n]+\Z"):
        schema_of(annotation)


def test_an_unresolved_name_within_a_type() -> None:
    """A model whose annotations cannot be resolved is a TypeError that names what is missing."""

    @dataclass
    class Local:
        a: Missing  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="Missing"):
        adapter_of(Local, "it")


def test_members_without_a_json_form_are_left_out() -> None:
    """Infinity and NaN in defaults and bounds are left out of a schema, which then is JSON."""
    schema = schema_of(Unbounded)
    assert schema["properties"]["limit"] == {"type": "number"}
    assert schema["properties"]["low"] == {"type": "number", "default": 0}
    encode(schema)


@pytest.mark.parametrize(
    ("annotation", "is_object"),
    [
        (Place, True),
        (Row, True),
        (Data, True),
        (dict[str, int], True),
        (Node, True),
        (Cat | Dog, True),
        (Annotated[Cat | Dog, Field(discriminator="kind")], True),
        (RootModel[dict[str, int]], True),
        (Place | None, False),
        (Place | int, False),
        (list[Place], False),
        (RootModel[list[int]], False),
        (int, False),
        (Color, False),
        (Any, False),
    ],
)
@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_roots_of_type_object(annotation: Any, is_object: bool, mode: Any) -> None:
    """What is always an object gets a root of type object, recursive models and unions of models included."""
    made = as_object_schema(schema_of(annotation, mode))
    assert (made is not None) is is_object
    if made is not None:
        assert made["type"] == "object"
        assert "$ref" not in made


@pytest.mark.parametrize(
    ("annotation", "strict"),
    [(int, False), (Annotated[int, Field(strict=True)], True), (list[Annotated[int, Field(strict=True)]], True),
     (Place, False)],
)  # fmt: skip
def test_strictness_is_found(annotation: Any, strict: bool) -> None:
    """Strict validation somewhere within a type is noticed: there, JSON is not read as Python would be."""
    assert is_strict(adapter_of(annotation, "it").core_schema) is strict


def headed(annotation: Any, **fields: Any) -> Any:
    """An arguments type whose one field declares a header."""
    return TypedDict("A", {"x": Annotated[annotation, Field(json_schema_extra={"x-mcp-header": "X"}, **fields)]})  # type: ignore[misc]


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (str, "string"),
        (str | None, "string"),
        (int | None, "integer"),
        (bool, "boolean"),
        (Literal["a", "b"], "string"),
        (Literal["a", "b"] | None, "string"),
        (Color, "string"),
        (Color | None, "string"),
        (enum.IntEnum("Number", ["ONE"]), "integer"),
    ],
)
def test_header_parameters_are_made_plain(annotation: Any, kind: str) -> None:
    """A declared parameter is listed as string, integer or boolean, optional ones and enums included."""
    schema = plain_header_params(schema_of(headed(annotation)))
    listed = schema["properties"]["x"]
    assert listed["type"] == kind
    assert listed["x-mcp-header"] == "X"
    assert not {"anyOf", "$ref"} & listed.keys()
    assert "$defs" not in schema
    assert [param.type for param in header_params(schema)] == [kind]


@pytest.mark.obligation("S-050")
@pytest.mark.parametrize("annotation", [float, float | None, str | int, list[str], dict[str, str], Place, Any, None])
def test_header_parameters_that_cannot_be_made_plain(annotation: Any) -> None:
    """Numbers, lists, objects and unions of types stay what they are, and are refused."""
    with pytest.raises(ValueError, match="needs the type string, integer or boolean"):
        header_params(plain_header_params(schema_of(headed(annotation))))


@pytest.mark.obligation("S-050")
def test_headers_of_nested_models() -> None:
    """A nested model that declares a header is written out in place; in a list or an optional place it is refused."""
    schema = plain_header_params(schema_of(TypedDict("A", {"where": Region, "here": Place, "also": list[Place]})))  # type: ignore[misc]
    assert [param.path for param in header_params(schema)] == [("where", "region")]
    assert set(schema["$defs"]) == {"Place"}
    assert schema["properties"]["where"]["type"] == "object"
    for annotation in (list[Region], dict[str, Region], Region | None, Loop):
        with pytest.raises(ValueError, match="through 'properties' alone"):
            header_params(plain_header_params(schema_of(TypedDict("B", {"where": annotation}))))  # type: ignore[misc]


def test_schemas_without_headers_are_left_alone() -> None:
    """A schema that declares no header comes back as it is."""
    schema = schema_of(TypedDict("A", {"x": int | None, "y": Node}))  # type: ignore[misc]
    assert plain_header_params(schema) is schema
