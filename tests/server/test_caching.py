"""Cache hints as they are configured."""

from __future__ import annotations

from typing import Any

import pytest

from twolane.server.caching import CacheHint


@pytest.mark.obligation("S-093")
@pytest.mark.parametrize(("ttl", "wire"), [(0, 0), (1, 1000), (0.0015, 1), (86400.0, 86400000)])
def test_seconds_become_whole_milliseconds(ttl: float, wire: int) -> None:
    """ttlMs is an integer of milliseconds."""
    milliseconds, scope = CacheHint(ttl=ttl).wire()
    assert (milliseconds, type(milliseconds), scope) == (wire, int, "private")


@pytest.mark.parametrize("ttl", [-1, -0.001, float("nan"), float("inf"), True, "60", None, 1e300])
def test_a_ttl_is_a_number_of_seconds(ttl: Any) -> None:
    """Anything but a finite number from 0 up is refused."""
    with pytest.raises(ValueError, match=r"seconds from 0 up"):
        CacheHint(ttl=ttl)


@pytest.mark.parametrize("scope", ["Public", "", None, "shared"])
def test_a_scope_is_private_or_public(scope: Any) -> None:
    """Any other scope is refused."""
    with pytest.raises(ValueError, match=r"private"):
        CacheHint(scope=scope)
