"""JSON Schemas that users write: checked at registration, bounded, and never fetched."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from twolane.server.schema import MAX_DEPTH, validator_of

PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}


@pytest.mark.obligation("S-097")
@pytest.mark.parametrize(
    "dialect",
    [
        None,
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
    ],
)
def test_dialects(dialect: str | None) -> None:
    """A schema is validated by its own dialect, 2020-12 where it names none."""
    schema = PERSON if dialect is None else {"$schema": dialect, **PERSON}
    validator = validator_of(schema, "input_schema")
    assert validator.problems({"age": 3}) == []
    ((path, message),) = validator.problems({"age": "x"})
    assert path == "age"
    assert "integer" in message
    assert validator.problems({})[0][0] == ""


@pytest.mark.obligation("S-097")
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"$schema": "https://example.com/mine", "type": "object"}, "dialect"),
        ({"$schema": 5, "type": "object"}, "dialect"),
        ({"type": "objekt"}, "not a valid JSON Schema"),
        ({"type": "object", "properties": {"a": {"minimum": "x"}}}, r"properties\.a\.minimum"),
        ({"type": "object", "default": {1, 2}}, "no JSON form"),
    ],
)
def test_invalid_schemas(schema: dict[str, Any], text: str) -> None:
    """An invalid schema, or one of an unknown dialect, is refused at registration in a sentence that says where."""
    with pytest.raises(ValueError, match=text):
        validator_of(schema, "input_schema")


@pytest.mark.obligation("S-098", "X-10")
@pytest.mark.parametrize("reference", ["https://example.com/schema", "#/$defs/missing", "other.json", "#nowhere"])
def test_references_stay_inside(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference to anything outside of the schema is refused at registration, and no connection is tried."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    schema = {"type": "object", "properties": {"a": {"$ref": reference}}}
    with pytest.raises(ValueError, match="nothing is fetched"):
        validator_of(schema, "input_schema")


def test_local_references_work() -> None:
    """References and anchors within the schema are resolved, recursive ones too."""
    schema = {
        "type": "object",
        "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["v"]},
            "named": {"$anchor": "named", "type": "string"},
        },
        "properties": {"list": {"$ref": "#/$defs/node"}, "name": {"$ref": "#named"}},
    }
    validator = validator_of(schema, "input_schema")
    assert validator.problems({"list": {"v": 1, "next": {"v": 2}}, "name": "x"}) == []
    assert validator.problems({"list": {"v": 1, "next": {}}})[0][0] == "list.next"
    assert validator.problems({"name": 5})[0][0] == "name"


@pytest.mark.obligation("S-099")
def test_bounds() -> None:
    """Depth and size of a schema are bounded."""
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(ValueError, match="levels"):
        validator_of(deep, "input_schema")
    wide = {"type": "object", "properties": {f"p{n}": {} for n in range(10_001)}}
    with pytest.raises(ValueError, match="objects"):
        validator_of(wide, "input_schema")


def test_equal_schemas_share_a_validator() -> None:
    """A factory that writes the same schema for each request compiles it once; a later change of the dict is seen."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    first = validator_of(schema, "input_schema")
    assert validator_of({"type": "object", "properties": {"a": {"type": "string"}}}, "input_schema") is first
    schema["properties"]["a"]["type"] = "integer"  # type: ignore[index]
    assert first.problems({"a": "x"}) == []
    assert validator_of(schema, "input_schema").problems({"a": "x"}) != []


def test_long_values_are_not_repeated() -> None:
    """A message does not repeat a long value, and there are at most ten of them."""
    secret = "s" * 5000
    validator = validator_of({"type": "object", "additionalProperties": {"type": "integer"}}, "input_schema")
    problems = validator.problems({f"k{n}": secret for n in range(50)})
    assert len(problems) == 10
    assert all(len(message) <= 300 and secret[:100] not in message for _, message in problems)
