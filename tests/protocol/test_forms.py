"""Flat forms: what they are made from."""

from __future__ import annotations

import typing
from enum import IntEnum
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, TypeAdapter
from tests.support.forms import ENUMS, New, Old, Order, Point

from twolane.protocol.forms import form_schema


@pytest.mark.obligation("S-121")
def test_model_becomes_flat() -> None:
    """References are inlined, null becomes optional, and titles, descriptions, defaults and bounds stay."""
    form = form_schema(Order)
    assert set(form) == {"type", "properties", "required"}
    assert form["required"] == ["name", "color", "day"]
    fields = form["properties"]
    assert fields["name"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 20,
        "title": "Your name",
        "description": "As on the card",
    }
    assert fields["note"] == {"type": "string", "title": "Note"}
    assert fields["color"] == {
        "type": "string",
        "enum": ["red", "green"],
        "title": "Color",
        "description": "A colour.",
    }
    assert fields["accent"]["description"] == "Second colour"
    assert fields["accent"]["enum"] == ["red", "green"]
    assert "default" not in fields["accent"]
    assert fields["only"]["enum"] == ["a"]
    assert fields["only"]["default"] == "a"
    assert fields["size"] == {"type": "string", "enum": ["s", "m"], "default": "m", "title": "Size"}
    assert fields["fixed"]["enum"] == ["x"]
    assert fields["extras"]["items"] == {"type": "string", "enum": ["red", "green"]}
    assert fields["extras"]["maxItems"] == 2
    assert fields["tags"] == {
        "type": "array",
        "items": {"type": "string", "enum": ["a", "b"]},
        "default": ["a"],
        "title": "Tags",
    }
    assert fields["day"]["format"] == "date"
    assert fields["at"]["format"] == "date-time"
    assert fields["link"]["format"] == "uri"
    assert fields["count"] == {"type": "integer", "minimum": 1, "maximum": 9, "default": 1, "title": "Count"}
    assert fields["price"] == {"type": "number", "default": 0.5, "title": "Price"}
    assert fields["gift"] == {"type": "boolean", "default": False, "title": "Gift"}


@pytest.mark.parametrize("schema", [Point, Old, New, TypeAdapter(Point)])
def test_other_kinds_of_types(schema: Any) -> None:
    """Dataclasses, both kinds of TypedDict and adapters make forms as models do."""
    form = form_schema(schema)
    assert all(field["type"] in ("integer", "number", "string") for field in form["properties"].values())
    assert form["required"][0] in ("x", "a")
    assert len(form["required"]) == 1


def test_forms_of_a_type_are_not_shared() -> None:
    """Changing one form leaves the next one of the same type as it was."""
    form_schema(Point)["properties"]["x"]["title"] = "changed"
    assert form_schema(Point)["properties"]["x"]["title"] == "X"


def test_dict_is_kept() -> None:
    """A JSON Schema that is flat already passes unchanged, every kind of choice included."""
    assert form_schema(ENUMS) == ENUMS
    assert form_schema({"type": "object"}) == {"type": "object", "properties": {}}
    dated = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}}
    assert form_schema(dated) == dated


def test_dict_references_and_null() -> None:
    """Local references, single allOf and null unions of a dict are resolved as those of a model are."""
    schema = {
        "type": "object",
        "definitions": {"c": {"enum": ["a"]}},
        "properties": {
            "one": {"$ref": "#/definitions/c"},
            "two": {"allOf": [{"$ref": "#/definitions/c"}], "title": "Two"},
            "three": {"type": ["null", "string"], "default": None},
            "four": {"enum": ["a", None]},
        },
    }
    assert form_schema(schema)["properties"] == {
        "one": {"type": "string", "enum": ["a"]},
        "two": {"type": "string", "enum": ["a"], "title": "Two"},
        "three": {"type": "string"},
        "four": {"type": "string", "enum": ["a"]},
    }


class Inner(BaseModel):
    a: int


class Nested(BaseModel):
    address: Inner


class Patterned(BaseModel):
    code: str = Field(pattern="a+")


class Above(BaseModel):
    age: int = Field(gt=0)


class Secret(BaseModel):
    token: SecretStr


class Listed(BaseModel):
    names: list[str]


class Rank(IntEnum):
    LOW = 1


class Ranked(BaseModel):
    rank: Rank


class Either(BaseModel):
    value: int | str


class Recursive(BaseModel):
    child: Recursive | None = None


class Odd(typing.TypedDict):
    a: Missing  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.obligation("S-121")
@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (Nested, "'address' is a nested object"),
        (Recursive, "'child' is a nested object"),
        (Patterned, "'code' uses 'pattern'"),
        (Above, "'age' uses 'exclusiveMinimum'"),
        (Secret, "'token' is a secret"),
        (Listed, "'names' is a list of free values"),
        (Ranked, "'rank'"),
        (Either, "'value' is neither"),
        (Odd, "Missing"),
        (int, "int"),
        (TypeAdapter(int), "object"),
        ("a string", "str"),
        (None, "NoneType"),
        ({}, "object"),
        ({"type": "object", "oneOf": []}, "'oneOf'"),
        ({"type": "object", "required": ["a"]}, "'a'"),
    ],
)
def test_refused_schemas(schema: Any, problem: str) -> None:
    """A schema with no flat form is a TypeError that names the field and what is wrong with it."""
    with pytest.raises(TypeError, match=problem):
        form_schema(schema)


@pytest.mark.obligation("S-121")
@pytest.mark.parametrize(
    "field",
    [
        True,
        {},
        {"type": "null"},
        {"type": "object"},
        {"properties": {}},
        {"type": "array"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"enum": []}},
        {"type": "string", "enum": []},
        {"type": "string", "enum": ["a", "a"]},
        {"type": "string", "enum": [1]},
        {"type": "string", "enum": "ab"},
        {"type": "string", "enum": ["a"], "enumNames": []},
        {"type": "string", "enum": ["a"], "enumNames": [1]},
        {"type": "string", "enum": ["a"], "minLength": 1},
        {"type": "string", "oneOf": [{"const": "a"}]},
        {"type": "string", "oneOf": [{"const": "a", "title": 1}]},
        {"type": "string", "oneOf": {}},
        {"type": "string", "format": "uuid"},
        {"type": "string", "minLength": -1},
        {"type": "string", "maxLength": "9"},
        {"type": "string", "title": 1},
        {"type": "string", "default": 1},
        {"type": "string", "pattern": "a"},
        {"type": "string", "minimum": 1},
        {"type": "integer", "default": 1.5},
        {"type": "integer", "default": True},
        {"type": "number", "minimum": "0"},
        {"type": "number", "multipleOf": 2},
        {"type": "boolean", "default": "true"},
        {"type": ["string", "integer"]},
        {"$ref": "#/$defs/none"},
        {"$ref": "#/$defs/loop"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    ],
)
def test_refused_fields(field: Any) -> None:
    """Each field of a kind, keyword or value that forms do not know is refused by its name."""
    with pytest.raises(TypeError, match="field 'f'"):
        form_schema({"type": "object", "$defs": {"loop": {"$ref": "#/$defs/loop"}}, "properties": {"f": field}})
