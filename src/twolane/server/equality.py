"""
Whether two annotations or defaults mean the same, strictly enough to share what was compiled from them.

Python's ``==`` is too generous for that (``1 == True``, ``Annotated[int, 1] == Annotated[int, True]``,
``int | str == str | int``), and too strict for ``Field(...)``, which it compares by identity.
"""

from __future__ import annotations

import dataclasses
from copy import copy
from enum import Enum
from functools import lru_cache
from types import FunctionType
from typing import Any, ForwardRef, get_args, get_origin

__all__ = ["same", "snapshot"]

_VALUES = frozenset((str, int, bool, bytes))


def same(a: Any, b: Any) -> bool:
    """
    Tell whether *a* and *b* are interchangeable.

    Identity counts first, then the value of what is known: builtins of exactly the same type, parametrised
    annotations argument by argument and in order, two ``FieldInfo`` by what was set, dataclasses and models field by
    field. Anything else is the same when the types agree, its own ``==`` says so and both look alike; classes and
    functions only by identity.
    """
    if a is b:
        return True
    try:
        return _same(a, b)
    except Exception:
        # What cannot be compared, or never ends, is not the same as another.
        return False


def _same(a: Any, b: Any) -> bool:
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in _VALUES:
        return bool(a == b)
    if kind is float:
        return bool(a == b) and repr(a) == repr(b)  # 0.0 and -0.0 differ
    if kind is tuple or kind is list:
        return len(a) == len(b) and all(map(same, a, b))
    if kind is dict:
        return len(a) == len(b) and all(map(same, a, b)) and all(map(same, a.values(), b.values()))
    if kind is set or kind is frozenset:
        if a != b:
            return False
        partners = {item: item for item in b}
        return all(same(item, partners[item]) for item in a)
    origin = get_origin(a)
    if origin is not None:
        return origin is get_origin(b) and same(get_args(a), get_args(b))
    if isinstance(a, type | FunctionType | Enum):
        return False
    slots = _compared(kind)  # type: ignore[arg-type]
    if slots is not None:
        return all(same(getattr(a, slot, None), getattr(b, slot, None)) for slot in slots)
    # Decimal("1.0") == Decimal("1.00"), and one moment has a name in each time zone.
    return bool(a == b) and (getattr(kind, "__repr__", None) is object.__repr__ or repr(a) == repr(b))


@lru_cache(maxsize=256)
def _compared(kind: type) -> tuple[str, ...] | None:
    """The attributes that decide for objects of *kind*; None where ``==`` decides."""
    if kind is ForwardRef:
        return ("__forward_arg__", "__forward_module__", "__forward_is_class__")
    if (kind.__module__, kind.__qualname__) == ("pydantic.fields", "FieldInfo"):
        return (*(slot for slot in kind.__slots__ if not slot.startswith("_")), "_attributes_set")  # type: ignore[attr-defined]
    return _members(kind)


def _members(kind: type) -> tuple[str, ...] | None:
    """The attributes that hold the data of a dataclass or a model; None for anything else."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if isinstance(getattr(kind, "__pydantic_fields__", None), dict):
        return ("__dict__", "__pydantic_extra__", "__pydantic_private__")
    return None


def snapshot(value: Any) -> Any:
    """
    Copy what can change within *value*, so that a later change does not reach the copy: lists, dicts, sets, and what
    dataclasses and models hold.
    """
    kind = type(value)
    if kind is tuple:
        return tuple(map(snapshot, value)) if any(type(item) not in _VALUES for item in value) else value
    if kind is list:
        return list(map(snapshot, value))
    if kind is dict:
        return {key: snapshot(item) for key, item in value.items()}
    if kind is set:
        return set(value)
    members = _members(kind)
    if members is None:
        return value
    try:
        made = copy(value)
        for name in members:
            object.__setattr__(made, name, snapshot(getattr(value, name)))
    except Exception:
        return value  # It cannot be copied; then its identity has to do.
    return made
