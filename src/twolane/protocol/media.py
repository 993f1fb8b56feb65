"""Content-Type and Accept (RFC 9110): what the body is, and what the client can read."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

__all__ = ["Accepts", "accepts", "is_json"]

_LONGEST_CACHED = 256


class Accepts(NamedTuple):
    """Which of the two answers the client can read."""

    json: bool
    sse: bool


_BOTH = Accepts(True, True)


def is_json(content_type: str | None) -> bool:
    """Tell whether *content_type* is ``application/json``, whatever its parameters."""
    if content_type == "application/json":
        return True
    return content_type is not None and content_type.partition(";")[0].strip(" \t").lower() == "application/json"


def accepts(header: str | None) -> Accepts:
    """Read an Accept header. A missing one, or one that lists nothing, accepts everything (RFC 9110, 12.5.1)."""
    if not header:
        return _BOTH
    return _read_cached(header) if len(header) <= _LONGEST_CACHED else _read(header)


def _read(header: str) -> Accepts:
    qualities: dict[str, bool] = {}
    for item in header.split(","):
        range_, *parameters = (part.strip(" \t").lower() for part in item.split(";"))
        # Empty elements, which joined headers leave behind, count for nothing (RFC 9110, section 5.6.1).
        if range_:
            qualities[range_] = not any(_is_zero(parameter) for parameter in parameters)
    if not qualities:
        return _BOTH

    def wanted(media: str) -> bool:
        kind = media.partition("/")[0]
        for candidate in (media, f"{kind}/*", "*/*"):
            if candidate in qualities:
                return qualities[candidate]
        return False

    return Accepts(wanted("application/json"), wanted("text/event-stream"))


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if name.strip() != "q":
        return False
    try:
        return float(value) == 0.0
    except ValueError:
        return False


# Clients send one of a handful of values; the cache is bounded in entries and in their length.
_read_cached = lru_cache(maxsize=64)(_read)
