"""JSON Schemas that users write: checked at registration, bounded, and never fetched."""

from __future__ import annotations

import gc
import math
import socket
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.strategies import FUZZ, WILD

from twolane.server.schema import MAX_DEPTH, MAX_SUBSCHEMAS, path_of, validator_of

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


BIG = range(50_000)
D4 = "http://json-schema.org/draft-04/schema#"
D7 = "http://json-schema.org/draft-07/schema#"
D2020 = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.obligation("S-098", "X-10")
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"default": {"$ref": "https://example.com/s"}}},
        {"properties": {"const": {"properties": {"enum": {"$ref": "https://example.com/s"}}}}},
        {"properties": {"examples": {"items": {"$dynamicRef": "https://example.com/s#a"}}}},
        {"allOf": [{"if": {"not": {"$ref": "file:///etc/passwd"}}}]},
        {"x-mine": {"a": {"$ref": "https://example.com/s"}}, "properties": {"a": {"$ref": "#/x-mine/a"}}},
        {"$id": "https://example.com/a", "properties": {"a": {"$ref": "b"}}},
        {"$id": "https://example.com/a", "$defs": {"c": {}, "b": {"$id": "b", "$ref": "#/$defs/c"}}, "$ref": "b"},
        {"$schema": D4, "definitions": {"a": {"id": "http://example.com/a", "items": {"$ref": "b"}}}},
        {"$ref": "http://[broken"},
    ],
)
def test_references_are_found_wherever_a_schema_may_stand(schema: dict[str, Any]) -> None:
    """A reference that leaves the schema is refused under property names that are keywords too, and behind another."""
    with pytest.raises(ValueError, match=r"refers to .*nothing is fetched"):
        validator_of({"type": "object", **schema}, "input_schema")


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ({"properties": {"$ref": {"type": "string"}}}, {"$ref": 1}),
        ({"const": {"$ref": "https://example.com/s"}}, {"$ref": "x"}),
        ({"x-mine": {"$ref": "https://example.com/s"}, "required": ["a"]}, {}),
        ({"x-mine": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/x-mine/a"}}}, {"a": 1}),
        ({"$defs": {"a b": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a%20b"}}}, {"a": 1}),
        ({"allOf": [{"required": ["a"]}], "properties": {"b": {"$ref": "#/allOf/0"}}}, {"a": 1, "b": {}}),
        ({"$dynamicAnchor": "node", "properties": {"a": {"$dynamicRef": "#node"}}}, {"a": {"a": 1}}),
        ({"$id": "https://example.com/a", "properties": {"a": {"$ref": "b"}},
          "$defs": {"b": {"$id": "b", "$ref": "#/$defs/c", "$defs": {"c": {"type": "string"}}}}}, {"a": 1}),
        ({"properties": {"a": {"$ref": D2020}}}, {"a": {"type": 5}}),
        ({"$schema": D2020, "properties": {"a": {"$ref": "#"}}}, {"a": 1}),
        ({"$schema": D4, "id": "http://x/y", "definitions": {"z": {"id": "z", "type": "string"}},
          "properties": {"a": {"$ref": "z"}}}, {"a": 1}),
        ({"$defs": {"old": {"$id": "https://example.com/old", "$schema": D7, "type": "string"}},
          "properties": {"a": {"$ref": "https://example.com/old"}}}, {"a": 1}),
    ],
)  # fmt: skip
def test_references_within_are_followed(schema: dict[str, Any], bad: Any) -> None:
    """Pointers, anchors, identifiers of embedded schemas and the dialects themselves resolve without any network."""
    schema = {"type": "object", **schema}
    validator = validator_of(schema, "input_schema")
    assert validator.problems(bad) != []
    assert validator.schema() == schema


@pytest.mark.obligation("S-097")
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"properties": {"a": {"$ref": "#/title"}}, "title": "x"}, "'#/title', which is not a schema"),
        ({"properties": {"a": {"$ref": "#/const/x"}}, "const": {"x": 5}}, "'#/const/x', which is not a schema"),
        ({"properties": {"a": {"pattern": "("}}}, r"properties\.a\.pattern"),
        ({"patternProperties": {"(": {}}}, "patternProperties"),
        ({"$schema": D4, "patternProperties": {"(": {}}}, "not a regular expression"),
        ({"$defs": {"a": {"$schema": "https://example.com/mine"}}}, "dialect 'https://example.com/mine'"),
        ({1: {}}, "no JSON form"),
        ({"const": math.nan}, "no JSON form"),
        ({"maximum": math.inf}, "no JSON form"),
        ({"maxProperties": 10**30}, "no JSON form"),
        ({"title": "\ud800"}, "no JSON form"),
    ],
)
def test_more_invalid_schemas(schema: dict[Any, Any], text: str) -> None:
    """What would fail only when a value comes is refused at registration, in a sentence that begins with its name."""
    with pytest.raises(ValueError, match=rf"\Ainput_schema.*{text}"):
        validator_of({"type": "object", **schema}, "input_schema")


@pytest.mark.obligation("S-099")
@pytest.mark.parametrize("keyword", ["default", "const", "properties", "x-mine", "examples"])
def test_no_place_escapes_the_bounds(keyword: str) -> None:
    """Depth and size are bounded in data and in property names that are keywords, as everywhere."""
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH):
        deep = {keyword: deep}
    for schema in (deep, {"properties": {"default": deep}}, {keyword: [[{}] * (MAX_SUBSCHEMAS + 1)]}):
        with pytest.raises(ValueError, match=f"more than ({MAX_DEPTH} levels|{MAX_SUBSCHEMAS} objects)"):
            validator_of({"type": "object", **schema}, "input_schema")


@pytest.mark.obligation("S-099")
def test_schemas_within_the_bounds_work() -> None:
    """A schema as deep as the bound allows is checked and validates, from a deep stack too."""
    schema: dict[str, Any] = {"type": "string"}
    value: Any = 5
    for _ in range(MAX_DEPTH // 2 - 1):
        schema, value = {"properties": {"a": schema}}, {"a": value}
    assert len(validator_of(schema, "input_schema").problems(value)) == 1


def test_values_that_nest_without_end() -> None:
    """A value that nests deeper than validation can follow, and references that go in circles, are problems."""
    tree = {"anyOf": [{"allOf": [{"properties": {"a": {"$ref": "#/$defs/t"}}}]}, {"type": "string"}]}
    value: Any = {}
    for _ in range(199):
        value = {"a": value}
    loop = {"$defs": {"t": {"$ref": "#/$defs/u"}, "u": {"$ref": "#/$defs/t"}}}
    for schema in ({"$defs": {"t": tree}, "$ref": "#/$defs/t"}, {**loop, "$ref": "#/$defs/t"}):
        ((path, message),) = validator_of(schema, "input_schema").problems(value)
        assert (path, message) == ("", "cannot be checked against the schema (RecursionError)")


@pytest.mark.parametrize(
    ("schema", "value"),
    [({"multipleOf": 0.1}, 10**400), ({"multipleOf": 0.5}, math.nan), ({"maximum": 1}, 10**5000),
     ({"type": "string"}, 10**5000), ({"type": "string"}, "\ud800"), ({"type": "string"}, [10**5000])],
    ids=["huge", "nan", "wide", "wide text", "surrogate", "wide within"],
)  # fmt: skip
def test_numbers_that_cannot_be_divided_or_shown(schema: dict[str, Any], value: Any) -> None:
    """Integers too large for a float or for a message, and NaN, never make validation raise."""
    assert isinstance(validator_of(schema, "input_schema").problems(value), list)


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, "1", [1], {"a": 1}, None, False, 0], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
        ([{"a": 1}, {"a": True}], True),
        ([[1], [1, 1], [], [[]], [[], []], {}], True),
        ([[], []], False),
        ([2**60, float(2**60)], False),
        ([2**60, 2**60 + 1, 0.5, 0.25, -0.5], True),
        ([0.0, -0.0], False),
        (["", None, 0, False, [], {}], True),
    ],
)
def test_unique_items(items: list[Any], unique: bool) -> None:
    """Items are equal as JSON values are: numbers by value, objects without order, and true is not 1."""
    for schema in (
        {"uniqueItems": True},
        {"$schema": D2020, "$defs": {"a": {"uniqueItems": True}}, "$ref": "#/$defs/a"},
    ):
        assert (validator_of(schema, "input_schema").problems(items) == []) is unique
    assert validator_of({"uniqueItems": False}, "input_schema").problems(items) == []


@pytest.mark.obligation("S-099", "X-15")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, [{"x": number} for number in BIG]),
        (
            {"$schema": D2020, "properties": {"a": {"$ref": "#"}}, "uniqueItems": True},
            {"a": [[n] for n in BIG]},
        ),
        ({"uniqueItems": True}, [number * (2**61 - 1) for number in BIG]),
        ({"patternProperties": {"^k": {}}, "unevaluatedProperties": False}, {f"k{n}": n for n in BIG}),
        ({"$defs": {"a": {"items": {}}}, "$ref": "#/$defs/a", "unevaluatedItems": False}, [0] * len(BIG)),
    ],
)
@pytest.mark.timeout(60)
def test_no_value_takes_the_square_of_its_size(schema: dict[str, Any], value: Any) -> None:
    """Fifty thousand items are checked in a moment: comparing each with all others would take many minutes."""
    assert len(validator_of(schema, "input_schema").problems(value)) <= 1


def test_paths_are_short() -> None:
    """A path names where a value stands; keys, which may be data, are cut."""
    assert path_of(["a", 0, "b"]) == "a.0.b"
    assert path_of([]) == ""
    assert len(path_of(["k" * 10_000] * 50)) <= 300


KEYWORDS = st.sampled_from(
    [
        *("$anchor", "$defs", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "a", "additionalProperties"),
        *("allOf", "anyOf", "const", "contains", "default", "dependencies", "dependentSchemas", "else", "enum", "if"),
        *("items", "maximum", "minContains", "multipleOf", "not", "oneOf", "pattern", "patternProperties"),
        *("prefixItems", "properties", "propertyNames", "then", "type", "unevaluatedItems", "unevaluatedProperties"),
        "uniqueItems",
    ]
)
PARTS = st.sampled_from(
    ["object", "array", "#", "#/$defs/a", "#/properties/a", "#/properties", "a", "https://x.example/a", D2020, D4, D7,
     "(", "^a", 0, 0.1, -1, True, False, None]
)  # fmt: skip
SCHEMAS = st.recursive(
    PARTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4), max_leaves=12
)


@pytest.mark.obligation("S-097")
@FUZZ
@example({"$ref": "#/properties", "properties": {"pattern": {"type": "object"}}}, "x")
@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=5), WILD | st.fixed_dictionaries({"a": WILD}))
def test_every_schema_is_refused_or_validates(schema: dict[str, Any], value: Any) -> None:
    """Any JSON is a schema or a ValueError of one short line; and a schema then answers for any value."""
    try:
        validator = validator_of(schema, "input_schema")
    except ValueError as exc:
        refused = str(exc)
    else:
        refused = ""
        assert validator.schema() == schema
        assert all(isinstance(part, str) for problem in validator.problems(value) for part in problem)
    assert len(refused) < 1_000


def test_validators_are_bounded_in_number() -> None:
    """A factory that writes another schema for each request leaves no more behind than the bound."""
    from twolane.server import schema as module

    for number in range(module._MAX_CACHED + 50):
        validator_of({"type": "object", "title": str(number)}, "input_schema")
    assert len(module._CACHE) == module._MAX_CACHED
    gc.collect()
    alive = sum(isinstance(found, module.SchemaValidator) for found in gc.get_objects())
    assert alive <= module._MAX_CACHED + 5
