"""Which answers a form takes."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter
from tests.support.forms import ENUMS, Color, New, Old, Order, Point

from twolane.protocol.forms import form_schema, is_form_content, read_content


@pytest.mark.obligation("S-119", "L-039")
def test_answers_become_instances() -> None:
    """A type gives an instance with its defaults, converted from JSON but never coerced from another type."""
    answer = {
        "name": "Ann",
        "color": "red",
        "day": "2026-07-28",
        "at": "2026-07-28T10:00:00Z",
        "count": 2.0,
        "price": 1,
    }
    order = read_content(answer, Order)
    assert isinstance(order, Order)
    assert (order.color, order.count, order.day) == (Color.RED, 2, datetime.date(2026, 7, 28))
    assert read_content({"x": 1}, Point) == Point(1)
    assert read_content({"a": 1}, Old) == {"a": 1}
    assert read_content({"a": 1, "b": "x"}, New) == {"a": 1, "b": "x"}
    assert read_content({"x": 1}, TypeAdapter(Point)) == Point(1)
    assert read_content({**answer, "unknown": "x"}, Order) == order


@pytest.mark.obligation("S-119", "L-039")
@pytest.mark.parametrize(
    "content",
    [
        {"x": "1"},
        {"x": True},
        {"x": 1.5},
        {"x": None},
        {},
        None,
        {"x": [1]},
        {"x": {"y": 1}},
        {"x": "\ud800"},
        [],
        "x",
        7,
    ],
)
def test_invalid_answers_to_types(content: Any) -> None:
    """An answer that does not fit the type gives None and raises nothing."""
    assert read_content(content, Point) is None


FIELDS = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "minLength": 2, "maxLength": 3},
        "e": {"type": "string", "format": "email"},
        "u": {"type": "string", "format": "uri"},
        "d": {"type": "string", "format": "date"},
        "t": {"type": "string", "format": "date-time"},
        "n": {"type": "number", "minimum": 0, "maximum": 1},
        "i": {"type": "integer"},
        "b": {"type": "boolean"},
        **ENUMS["properties"],
    },
}


@pytest.mark.obligation("S-119")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s", "ab"),
        ("s", "\U0001f600" * 3),
        ("e", "a@b.c"),
        ("u", "note:1"),
        ("d", "2026-02-28"),
        ("t", "2026-02-28t23:59:59.123456789z"),
        ("t", "2026-02-28T23:59:59+02:00"),
        ("n", 0.5),
        ("n", 1),
        ("i", 7),
        ("i", 2**80),
        ("b", False),
        ("untitledSingle", "a"),
        ("titledSingle", "b"),
        ("legacyEnum", "b"),
        ("untitledMulti", ["b", "a"]),
        ("titledMulti", []),
    ],
)
def test_valid_fields(name: str, value: Any) -> None:
    """A value that fits its field is returned as it is."""
    assert read_content({name: value}, FIELDS) == {name: value}


@pytest.mark.obligation("S-119")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s", "a"),
        ("s", "abcd"),
        ("s", 12),
        ("e", "nobody"),
        ("e", "a b@c"),
        ("u", "no scheme"),
        ("u", "http://[bad"),
        ("d", "2026-02-30"),
        ("d", "20260228"),
        ("t", "2026-02-28"),
        ("t", "2026-02-28T10:00:00"),
        ("n", 1.5),
        ("n", "1"),
        ("n", True),
        ("i", 1.5),
        ("b", 1),
        ("untitledSingle", "c"),
        ("titledSingle", "A"),
        ("untitledMulti", []),
        ("untitledMulti", ["a", "a"]),
        ("untitledMulti", "a"),
        ("titledMulti", ["c"]),
        ("titledMulti", [1]),
    ],
)
def test_invalid_fields(name: str, value: Any) -> None:
    """A value that does not fit its field makes the whole answer invalid."""
    assert read_content({name: value}, FIELDS) is None


def test_left_out_and_unknown_fields() -> None:
    """Unknown fields are dropped, null counts as left out, and a required field that is missing is invalid."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
    assert read_content({"a": 1.0, "b": None, "c": "x"}, schema) == {"a": 1}
    assert read_content({"b": "x"}, schema) is None
    assert read_content({"a": None}, schema) is None
    assert read_content(None, {"type": "object"}) == {}
    assert read_content({"c": 1}, None) == {"c": 1}


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.text())


@pytest.mark.obligation("S-119")
@given(content=st.dictionaries(st.sampled_from(sorted(FIELDS["properties"])), VALUES))
def test_agrees_with_json_schema(content: dict[str, Any]) -> None:
    """What is accepted is valid by the JSON Schema that was sent, whatever the client answers."""
    accepted = read_content(content, FIELDS)
    if accepted is not None:
        form = form_schema(FIELDS)
        form["properties"]["legacyEnum"].pop("enumNames")
        assert Draft202012Validator(form).is_valid(accepted)


@pytest.mark.obligation("S-119")
@given(content=st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_answer_raises(content: Any) -> None:
    """Any JSON value at all as an answer is either accepted or None, for every kind of schema."""
    for schema in (None, FIELDS, Order, Point, Old):
        read_content(content, schema)
    is_form_content(content)
