"""One text for each JSON value, so that a digest tells whether a request came back with the same arguments."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

__all__ = ["canonical_json", "check_json", "digest"]

_MAX_DEPTH = 220
# Up to here JavaScript writes whole numbers without an exponent, so a client may send either form.
_WHOLE_BELOW = 1e21


def canonical_json(value: Any) -> bytes:
    """
    Write *value* with sorted keys and whole floats as integers: ``1.0`` and ``1`` are one number in JSON.

    Raises:
        TypeError: the value is not JSON.
    """
    check_json(value, "a canonical value")
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    # Only these spellings can hide a whole float, so most values skip the second pass.
    if ".0" in text or "e+" in text:
        text = json.dumps(_whole(value), sort_keys=True, separators=(",", ":"))
    return text.encode()


def _whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _WHOLE_BELOW else value
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def digest(arguments: Any) -> bytes:
    """
    Return a digest of a request's arguments. Arguments that are absent, null or empty are all the same.

    Raises:
        TypeError: the arguments are not JSON.
    """
    return hashlib.sha256(canonical_json(arguments)).digest() if arguments else _EMPTY


_EMPTY = hashlib.sha256(b"{}").digest()


def check_json(value: Any, what: str) -> None:
    """
    Check that *value* is JSON as it stands, so that it comes back equal: str keys, no NaN, no foreign types.

    Tuples pass; they come back as lists.

    Raises:
        TypeError: it is not; the text names the type.
    """
    _check(value, what, _MAX_DEPTH)


def _check(value: Any, what: str, depth: int) -> None:
    if value is None or isinstance(value, str | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{what} must be JSON, which has no NaN and no infinity")
        return
    # Depth first, so that a value that holds itself is found at once.
    if depth == 0:
        raise TypeError(f"{what} must be JSON; it is nested too deeply or holds itself")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{what} must be JSON, whose keys are strings; found {type(key).__name__}")
            _check(item, what, depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item, what, depth - 1)
    else:
        raise TypeError(f"{what} must be JSON; found {type(value).__name__}{_hint(value)}")


def _hint(value: Any) -> str:
    return ", so dump it to a dict first" if hasattr(value, "model_dump") else ""
