"""What a handler is made of: the function whose signature counts, and what lies around it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, NamedTuple

__all__ = ["Anatomy", "dissect", "parameters_of"]

_MAX_LAYERS = 100
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Anatomy(NamedTuple):
    """
    A callable, taken apart.

    ``function`` is the function whose signature counts, reached through partials, bound methods and ``__wrapped__``;
    None for callables without Python code. ``signature`` is set where a ``__signature__`` overrides it. ``bound``
    leading parameters and those named in ``fixed`` are filled in already: no caller can reach them.
    """

    function: FunctionType | None
    signature: inspect.Signature | None
    bound: int
    fixed: frozenset[str]
    name: str
    doc: str | None
    is_async: bool

    @property
    def where(self) -> str:
        """How messages name the handler."""
        return f"{getattr(self.function, '__qualname__', None) or self.name}()"


def dissect(handler: Callable[..., Any]) -> Anatomy:
    """
    Take *handler* apart.

    Raises:
        TypeError: it is not callable, is a class, or is a generator function.
    """
    if isinstance(handler, type):
        raise TypeError(
            f"a handler is a function; {handler.__name__} is a class. Pass an instance or one of its methods"
        )
    name: str | None = None
    doc: str | None = None
    bound = 0
    fixed: set[str] = set()
    current: Any = handler
    for _ in range(_MAX_LAYERS):
        own: dict[str, Any] = getattr(current, "__dict__", None) or {}
        if isinstance(current, partial):
            name = name or own.get("__name__")
            doc = doc or own.get("__doc__")
            bound += len(current.args)
            fixed.update(current.keywords)
            current = current.func
            continue
        if isinstance(current, MethodType):
            bound += 1
            current = current.__func__
            continue
        if isinstance(current, staticmethod):
            current = current.__func__
            continue
        is_function = isinstance(current, FunctionType)
        if is_function or inspect.isbuiltin(current):
            name = name or current.__name__
            doc = doc or current.__doc__
        else:
            name = name or own.get("__name__") or type(current).__name__
            doc = doc or own.get("__doc__")
        if isinstance(own.get("__signature__"), inspect.Signature):
            return _anatomy(handler, current if is_function else None, own["__signature__"], bound, fixed, name, doc)
        if callable(own.get("__wrapped__")):
            current = own["__wrapped__"]
        elif is_function:
            return _anatomy(handler, current, None, bound, fixed, name, doc)
        elif inspect.isbuiltin(current):
            return _anatomy(handler, None, _builtin_signature(current), bound, fixed, name, doc)
        else:
            call = _method(type(current), "__call__")
            if call is None:
                raise TypeError(f"a handler is a function or another callable, not {type(current).__name__}")
            doc = doc or getattr(call, "__doc__", None) or type(current).__doc__
            if isinstance(call, FunctionType):
                bound += 1
                current = call
            else:
                current = current.__call__
    raise TypeError(f"{name or handler!r} is wrapped in more than {_MAX_LAYERS} layers")


def _anatomy(
    handler: Any,
    function: FunctionType | None,
    signature: inspect.Signature | None,
    bound: int,
    fixed: set[str],
    name: str,
    doc: str | None,
) -> Anatomy:
    outer = handler
    while isinstance(outer, partial):
        outer = outer.func
    if not isinstance(outer, FunctionType | MethodType):
        outer = _method(type(outer), "__call__") or outer
    if inspect.isgeneratorfunction(outer) or inspect.isasyncgenfunction(outer):
        raise TypeError(f"{name}() is a generator; a handler returns its whole result, for example a list")
    is_async = inspect.iscoroutinefunction(outer) or inspect.iscoroutinefunction(handler)
    return Anatomy(function, signature, bound, frozenset(fixed), name, doc, is_async)


def _method(kind: type, name: str) -> Any:
    """Look *name* up on a class alone: as an attribute it might come from the metaclass."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def _builtin_signature(function: Any) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except ValueError as exc:
        raise TypeError(f"{function.__name__}() has no readable signature; wrap it in a function with hints") from exc


def parameters_of(anatomy: Anatomy) -> list[inspect.Parameter]:
    """
    Return the parameters that a call still has to fill.

    Raises:
        TypeError: a parameter cannot be passed by name, or a partial fills in what is not there.
    """
    signature = anatomy.signature
    if signature is None:
        if anatomy.function is None:  # pragma: no cover - a builtin always comes with its signature
            raise TypeError(f"{anatomy.where} has no signature")
        try:
            signature = inspect.signature(anatomy.function, follow_wrapped=False)
        except NameError as exc:  # Python 3.14 evaluates annotations here
            raise TypeError(f"{anatomy.where}: an annotation cannot be resolved: {exc}") from exc
    remaining: list[inspect.Parameter] = []
    skip = anatomy.bound
    for parameter in signature.parameters.values():
        if skip and parameter.kind in _POSITIONAL:
            skip -= 1
        elif parameter.name not in anatomy.fixed:
            _check_kind(parameter, anatomy.where)
            remaining.append(parameter)
    if skip:
        raise TypeError(f"{anatomy.where}: more arguments are filled in already than there are parameters")
    unknown = sorted(anatomy.fixed - signature.parameters.keys())
    if unknown:
        raise TypeError(f"{anatomy.where}: a partial fills in {unknown[0]!r}, but there is no such parameter")
    return remaining


def _check_kind(parameter: inspect.Parameter, where: str) -> None:
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(
            f"{where}: the parameter {parameter.name!r} is positional-only, but arguments are passed by name. "
            "Remove the '/' from the signature"
        )
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise TypeError(
            f"{where}: {stars}{parameter.name} has no schema. Name every parameter; in a decorator, "
            "use functools.wraps so that the wrapped function's signature counts"
        )
