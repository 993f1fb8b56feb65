"""Completers: functions that propose values for an argument, and the mark that ties one to a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Completable", "Completer", "check_completers", "completable"]

Completer = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Completable:
    """The mark that :func:`completable` puts into an annotation; ``fn`` proposes the values."""

    fn: Completer


def completable(fn: Completer) -> Completable:
    """
    Mark a prompt or template parameter as completable: ``Annotated[str, completable(cities)]``.

    Args:
        fn: takes ``(value)``, ``(value, arguments)`` or ``(value, arguments, ctx)``, plain or ``async``, and returns
            the values to propose, best first. ``value`` is what the user typed so far, ``arguments`` the other
            arguments they have filled in. It must filter for itself; at most 100 values are sent.

    Raises:
        TypeError: *fn* cannot be called.
    """
    _check_completer(fn)
    return Completable(fn)


def check_completers(complete: Mapping[str, Completer], names: Iterable[str], what: str) -> None:
    """
    Check ``complete=`` of a prompt or template.

    Raises:
        TypeError: a value cannot be called.
        ValueError: there is no such argument.
    """
    names = list(names)
    for name, fn in complete.items():
        if name not in names:
            raise ValueError(f"complete: {what} has no argument {name!r}; it has {', '.join(names) or 'none'}")
        _check_completer(fn)


def _check_completer(fn: object) -> None:
    if not callable(fn):
        raise TypeError(f"a completer is a function of the value typed so far, not {type(fn).__name__}")
