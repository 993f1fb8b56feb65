"""What the tests of sealed text share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import strategies as st

from twolane.errors import SealError
from twolane.keyring import StaticRing
from twolane.ports import Key
from twolane.seal import Binding, Sealer

__all__ = ["BINDING", "JSON", "KEY", "NAMES", "OTHER", "reason", "sealer"]

KEY = Key.of(b"k" * 32)
OTHER = Key.of(b"o" * 32)
BINDING = Binding("state", ("auth", "iss", "sub", "client"), "tools/call", "pay", b"d" * 32, "shop")

_TEXT = st.text(st.characters(codec="utf-8"))
#: Values that a sealed payload may hold.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
NAMES = st.text(st.characters(codec="utf-8"), max_size=12)


def sealer(*keys: Key, **options: Any) -> Sealer:
    """Return a sealer of *keys*, of one fixed key by default."""
    return Sealer(StaticRing(keys or (KEY,)), **options)


async def reason(opening: Awaitable[Any]) -> str:
    """Return why *opening* fails."""
    with pytest.raises(SealError) as caught:
        await opening
    assert caught.value.reason in SealError.REASONS
    return caught.value.reason
