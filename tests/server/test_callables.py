"""What a handler is made of: the function whose signature counts, through all that may lie around it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import unittest.mock
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from twolane.server.callables import dissect, parameters_of


def plain(a: int, b: str = "x", *, c: float = 1.0) -> str:
    """Do it."""
    return ""


async def coroutine(a: int) -> str:
    """Do it."""
    return ""


def passing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap as decorators do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Service:
    """A service."""

    def method(self, a: int) -> str:
        """Do it."""
        return ""

    @classmethod
    def of_class(cls, a: int) -> str:
        """Do it."""
        return ""

    @staticmethod
    def static(a: int) -> str:
        """Do it."""
        return ""

    @passing
    def wrapped(self, a: int) -> str:
        """Do it."""
        return ""

    partly = functools.partialmethod(method, 1)

    def __call__(self, a: int) -> str:
        """Do it."""
        return ""


class Quiet:
    """Described by its class."""

    def __call__(self, a: int) -> str:
        return ""


class AsyncCall:
    async def __call__(self, a: int) -> str:
        return ""


class StaticCall:
    @staticmethod
    def __call__(a: int) -> str:
        return ""


class Decorator:
    """A decorator that is a class."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return None


@dataclasses.dataclass
class Configured:
    """A callable with settings."""

    limit: int

    def __call__(self, a: int) -> str:
        return ""


def names(handler: Any) -> list[str]:
    return [parameter.name for parameter in parameters_of(dissect(handler))]


@pytest.mark.parametrize(
    ("handler", "left", "name"),
    [
        (plain, ["a", "b", "c"], "plain"),
        (coroutine, ["a"], "coroutine"),
        (lambda a: a, ["a"], "<lambda>"),
        (functools.partial(plain, 1), ["b", "c"], "plain"),
        (functools.partial(plain, b="y"), ["a", "c"], "plain"),
        (functools.partial(functools.partial(plain, 1), c=2), ["b"], "plain"),
        (Service().method, ["a"], "method"),
        (Service().of_class, ["a"], "of_class"),
        (Service.of_class, ["a"], "of_class"),
        (Service().static, ["a"], "static"),
        (staticmethod(plain), ["a", "b", "c"], "plain"),
        (Service().wrapped, ["a"], "wrapped"),
        (Service().partly, [], "method"),
        (functools.partial(Service().method, 1), [], "method"),
        (Service(), ["a"], "Service"),
        (functools.partial(Service(), 1), [], "Service"),
        (StaticCall(), ["a"], "StaticCall"),
        (AsyncCall(), ["a"], "AsyncCall"),
        (Configured(3), ["a"], "Configured"),
        (passing(plain), ["a", "b", "c"], "plain"),
        (passing(passing(functools.partial(plain, 1))), ["b", "c"], "wrapper"),
        (functools.lru_cache(plain), ["a", "b", "c"], "plain"),
        (functools.singledispatch(plain), ["a", "b", "c"], "plain"),
        (Decorator(plain), ["a", "b", "c"], "plain"),
        (len, ["obj"], "len"),
        (unittest.mock.create_autospec(plain), ["a", "b", "c"], "plain"),
    ],
)
def test_what_a_caller_fills(handler: Any, left: list[str], name: str) -> None:
    """Parameters that a partial or an instance fills in are gone; the name is that of the outermost layer with one."""
    if name == "len":
        with pytest.raises(TypeError, match="positional-only"):
            names(handler)
    else:
        assert names(handler) == left
    assert dissect(handler).name == name


@pytest.mark.parametrize(
    ("handler", "doc"),
    [
        (plain, "Do it."),
        (passing(plain), "Do it."),
        (Service().method, "Do it."),
        (Service(), "Do it."),
        (Quiet(), "Described by its class."),
        (functools.partial(plain, 1), "Do it."),
        (lambda: 1, None),
    ],
)
def test_descriptions(handler: Any, doc: str | None) -> None:
    """The description is the docstring of the function; of a callable object, that of its call or of its class."""
    assert dissect(handler).doc == doc


def test_an_own_name_and_docstring_of_a_layer_win() -> None:
    """A partial or wrapper that was given a name and a docstring is known by these."""
    part: Any = functools.partial(plain, 1)
    part.__name__, part.__doc__ = "part", "Partly."
    assert dissect(part)[4:6] == ("part", "Partly.")
    wrapper = passing(plain)
    wrapper.__name__, wrapper.__doc__ = "other", "Otherwise."
    assert dissect(wrapper)[4:6] == ("other", "Otherwise.")
    service: Any = Service()
    service.__name__ = "mine"
    assert dissect(service).name == "mine"


@pytest.mark.parametrize(
    ("handler", "is_async"),
    [
        (coroutine, True),
        (functools.partial(coroutine, 1), True),
        (functools.partial(AsyncCall(), 1), True),
        (AsyncCall(), True),
        (AsyncCall().__call__, True),
        (plain, False),
        (passing(coroutine), False),  # plain: what it returns is awaited
        (Service().method, False),
    ],
)
def test_async_is_what_the_outermost_layer_is(handler: Any, is_async: bool) -> None:
    """A handler is asynchronous when calling it gives a coroutine by declaration."""
    assert dissect(handler).is_async is is_async


def test_an_explicit_signature_counts() -> None:
    """``__signature__`` overrides what the function says, wherever in the layers it stands."""

    def free(*args: Any, **kwargs: Any) -> Any:
        return None

    inner: Any = free
    inner.__signature__ = inspect.signature(lambda x, y=1: None)
    assert names(inner) == ["x", "y"]
    assert names(passing(inner)) == ["x", "y"]
    assert names(functools.partial(inner, 1)) == ["y"]


async def produces() -> AsyncIterator[int]:
    yield 1


def generates() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (5, "not int"),
        (None, "not NoneType"),
        ("name", "not str"),
        (Service, "Service is a class"),
        (generates, "generator"),
        (produces, "generator"),
        (functools.partial(generates), "generator"),
        (dict.fromkeys, "signature|positional-only"),
    ],
)
def test_what_is_no_handler(handler: Any, text: str) -> None:
    """What cannot be called, is a class or yields its result piece by piece is a TypeError in a sentence."""
    with pytest.raises(TypeError, match=text):
        parameters_of(dissect(handler))


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (lambda *rest: None, r"\*rest has no schema"),
        (lambda **rest: None, r"\*\*rest has no schema"),
        (lambda a, /: None, r"'a' is positional-only.*Remove the '/'"),
        (functools.partial(plain, 1, 2, 3), "more arguments are filled in"),
        (functools.partial(plain, d=1), "fills in 'd'"),
    ],
)
def test_what_cannot_be_called_by_name(handler: Any, text: str) -> None:
    """A signature that no set of named arguments fits is a TypeError that says what to change."""
    with pytest.raises(TypeError, match=text):
        names(handler)


def test_positional_only_is_fine_once_filled() -> None:
    """A positional-only parameter that a partial fills in is nobody's business."""
    assert names(functools.partial(lambda a, /, b: None, 1)) == ["b"]


def test_layers_without_an_end() -> None:
    """A wrapper that wraps itself is refused, not followed for ever."""
    wrapper: Any = passing(plain)
    wrapper.__wrapped__ = wrapper
    with pytest.raises(TypeError, match="layers"):
        dissect(wrapper)
