"""
Pages of a list under opaque cursors (server/utilities/pagination).

A cursor names the list and the last entry sent, so it means the same on every worker and to a server built afresh.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson

from twolane.errors import InvalidParams

__all__ = ["paginate"]

_Entry = TypeVar("_Entry")
_MAX_CURSOR = 16384


def paginate(
    kind: str, entries: Sequence[_Entry], key: Callable[[_Entry], str], params: dict[str, Any], size: int | None
) -> tuple[Sequence[_Entry], str | None]:
    """
    Return one page of *entries* and the cursor of the next one, None at the end.

    Args:
        kind: the list's method, so that a cursor of one list does not open another.
        entries: the whole list, in order.
        key: the stable identity of an entry.
        params: the request's parameters; ``cursor`` is read.
        size: entries on a page, None for all of them.

    Raises:
        InvalidParams: the cursor is none of ours, an empty one included (S-092), or its entry is gone.
    """
    start = 0
    if "cursor" in params:
        start = _position(kind, entries, key, params["cursor"])
    if size is None or start + size >= len(entries):
        return entries[start:] if start else entries, None
    end = start + size
    cursor = orjson.dumps([kind, end, key(entries[end - 1])])
    return entries[start:end], urlsafe_b64encode(cursor).rstrip(b"=").decode()


def _position(kind: str, entries: Sequence[_Entry], key: Callable[[_Entry], str], cursor: object) -> int:
    """Return the index behind the entry that *cursor* names."""
    match _decode(cursor):
        case [str(list_kind), int(index), str(last)] if list_kind == kind:
            if 0 < index <= len(entries) and key(entries[index - 1]) == last:
                return index
            # Entries before it came or went since.
            for position, entry in enumerate(entries, 1):
                if key(entry) == last:
                    return position
    raise InvalidParams("Invalid cursor: start again without one", {"reason": "invalid_cursor"})


def _decode(cursor: object) -> Any:
    if not isinstance(cursor, str) or not cursor or len(cursor) > _MAX_CURSOR or not cursor.isascii():
        return None
    try:
        return orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        return None
