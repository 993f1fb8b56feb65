"""Cache hints of results (server/utilities/caching)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["CACHEABLE", "NO_CACHE", "CacheHint", "CacheScope", "cache_scope", "check_hints", "ttl_ms"]

CacheScope = Literal["private", "public"]

#: The methods whose results carry hints (S-093).
CACHEABLE = frozenset(
    (
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    )
)
#: Stale at once, and for this caller only: the hint where nothing else is configured (S-095).
NO_CACHE: tuple[int, str] = (0, "private")
# The largest integer every JSON reader keeps.
_MAX_TTL_MS = 2**53 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHint:
    """
    How long clients may reuse a result.

    Args:
        ttl: seconds; 0 means stale at once.
        scope: ``"public"`` only for what is the same for every caller: shared caches hand it to anyone.
    """

    ttl: float = 0
    scope: CacheScope = "private"

    def __post_init__(self) -> None:
        ttl_ms(self.ttl)
        cache_scope(self.scope)

    def wire(self) -> tuple[int, str]:
        """``ttlMs`` and ``cacheScope``."""
        return ttl_ms(self.ttl), self.scope


def ttl_ms(ttl: object) -> int:
    """
    Return *ttl* seconds in milliseconds.

    Raises:
        ValueError: it is no finite number of seconds from 0 up.
    """
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and math.isfinite(ttl) and ttl >= 0:
        milliseconds = int(ttl * 1000)
        if milliseconds <= _MAX_TTL_MS:
            return milliseconds
    raise ValueError(f"ttl is a number of seconds from 0 up, not {ttl!r}")


def cache_scope(scope: object) -> str:
    """Return *scope* if it is one (raises ValueError)."""
    if scope not in ("private", "public"):
        raise ValueError(f'a cache scope is "private" or "public", not {scope!r}')
    return str(scope)


def check_hints(hints: Mapping[str, CacheHint]) -> dict[str, tuple[int, str]]:
    """
    Return the hints of a server by method.

    Raises:
        ValueError: a method that takes no hints, or a value that is none.
    """
    checked: dict[str, tuple[int, str]] = {}
    for method, hint in hints.items():
        if method != "*" and method not in CACHEABLE:
            known = ", ".join(sorted(CACHEABLE))
            raise ValueError(f"cache_hints: {method!r} takes no cache hint; use '*' or one of {known}")
        if not isinstance(hint, CacheHint):
            raise ValueError(f"cache_hints[{method!r}] must be a CacheHint(ttl=..., scope=...), not {hint!r}")
        checked[method] = hint.wire()
    return checked
