"""One text for each JSON value."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twolane.protocol.canonical import canonical_json, check_json, digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


def respelled(value: Any, shuffle: random.Random) -> Any:
    """Return an equal JSON value: keys in another order, whole numbers as floats."""
    if isinstance(value, dict):
        items = list(value.items())
        shuffle.shuffle(items)
        return {key: respelled(item, shuffle) for key, item in items}
    if isinstance(value, list):
        return [respelled(item, shuffle) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


@given(value=JSON, shuffle=st.randoms())
def test_spelling_does_not_matter(value: Any, shuffle: random.Random) -> None:
    """Key order and 1.0 for 1 change nothing."""
    assert canonical_json(value) == canonical_json(respelled(value, shuffle))


@given(value=JSON)
def test_meaning_is_kept(value: Any) -> None:
    """The text reads back as an equal value, so two texts are equal only where the values are."""
    assert json.loads(canonical_json(value)) == value


def test_known_texts() -> None:
    """Booleans are not numbers, -0.0 is 0, big integers stay exact, and fractions stay."""
    assert canonical_json([True, 1, 1.0, -0.0, 0.5, 1e20, 2**70]) == (
        b"[true,1,1,0,0.5,100000000000000000000,1180591620717411303424]"
    )
    assert canonical_json([1e20]) == canonical_json([10**20])
    assert canonical_json(1e300) == b"1e+300"
    assert canonical_json("text with .0 and e+") == b'"text with .0 and e+"'


def test_digest_of_nothing() -> None:
    """Absent, null and empty arguments are one; anything else is another."""
    assert digest(None) == digest({}) != digest({"a": None})
    assert digest({"a": True}) != digest({"a": 1})


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, {"a": object()}, [b""]])
def test_not_json(value: Any) -> None:
    """What is not JSON is a TypeError."""
    with pytest.raises(TypeError, match="JSON"):
        check_json(value, "it")


def test_depth() -> None:
    """Whatever a decoder lets in can be written; what nests without end is a TypeError."""
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    assert canonical_json(deep) == b"[" * 200 + b"1" + b"]" * 200
    endless: dict[str, Any] = {}
    endless["a"] = endless["b"] = endless
    with pytest.raises(TypeError, match="nested"):
        canonical_json(endless)
