"""Whether two annotations or defaults mean the same: strict enough to share what was compiled from them."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, ForwardRef, Literal, Optional, Union

import annotated_types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from twolane.server.equality import same, snapshot

Pair = namedtuple("Pair", ["a", "b"])


class Model(BaseModel):
    x: Any = 1


@dataclasses.dataclass
class Data:
    x: Any = 1
    hidden: Any = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: Any


class Level(enum.IntEnum):
    LOW = 1


class Service:
    def method(self) -> None:
        """Do nothing."""


class Generous:
    """Says that it equals everything."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"Generous({self.name})"


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = object.__hash__


UTC = datetime.UTC
VIENNA = datetime.timezone(datetime.timedelta(hours=1))
SERVICE = Service()

EQUAL: list[tuple[Callable[[], Any], str]] = [
    (lambda: "x" * 3, "text"),
    (lambda: 10**30, "a large integer"),
    (lambda: 1.5, "a float"),
    (lambda: (1, [2, {"a": {3}}]), "nested builtins"),
    (lambda: frozenset((1, 2)), "a frozenset"),
    (lambda: list[dict[str, int | None]], "a parametrised builtin"),
    (lambda: Literal["a", 1], "a Literal"),
    (lambda: Annotated[int, Field(ge=1, description="d")], "a Field"),
    (lambda: Field(5, json_schema_extra={"a": [1]}), "a bare Field"),
    (lambda: Annotated[int, annotated_types.Ge(1)], "a constraint"),
    (lambda: Callable[[int], str], "a Callable"),
    (lambda: ForwardRef("X"), "a forward reference"),
    (lambda: Model(x=[1]), "a model"),
    (lambda: Data([1]), "a dataclass"),
    (lambda: Frozen((1,)), "a frozen dataclass with slots"),
    (lambda: Pair(1, 2), "a named tuple"),
    (lambda: Decimal("1.0"), "a Decimal"),
    (lambda: datetime.datetime(2026, 1, 1, tzinfo=UTC), "a moment"),
    (lambda: SERVICE.method, "a method of one object"),
]


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for make, name in EQUAL])
def test_what_is_written_twice_is_the_same(make: Callable[[], Any]) -> None:
    """Two objects that were made alike are the same, and so is a snapshot of one."""
    assert same(make(), make())
    assert same(make(), snapshot(make()))


DIFFERENT = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    ("a", b"a"),
    ((1,), [1]),
    ([1, 2], [2, 1]),
    ({"a": 1}, {"a": True}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1, 2.0}, {1.0, 2}),
    (frozenset((1,)), frozenset((True,))),
    (int | str, str | int),
    (list[int], list[bool]),
    (list[int], tuple[int]),
    (Literal[1], Literal[True]),
    (Literal["a", "b"], Literal["b", "a"]),
    (Optional[int], Union[int, str]),  # noqa: UP007, UP045
    (Annotated[int, 1], Annotated[int, True]),
    (Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1.0)]),
    (Annotated[int, Field(ge=1)], Annotated[int, Field(gt=1)]),
    (Annotated[str, Field(description="a")], Annotated[str, Field(description="b")]),
    (Annotated[int, Field()], Annotated[int, Field(default=None)]),
    (annotated_types.Ge(1), annotated_types.Ge(True)),  # not within Annotated, which typing caches by ==
    (Annotated[int, AfterValidator(lambda v: v)], Annotated[int, AfterValidator(lambda v: v)]),
    (ForwardRef("A"), ForwardRef("B")),
    (Model(x=1), Model(x=True)),
    (Data(1, hidden=1), Data(1, hidden=2)),
    (Pair(1, 2), (1, 2)),
    (Pair(1, 2), Pair(True, 2)),
    (Decimal("1.0"), Decimal("1.00")),
    (datetime.datetime(2026, 1, 1, 1, tzinfo=VIENNA), datetime.datetime(2026, 1, 1, 0, tzinfo=UTC)),
    (Level.LOW, 1),
    (type("A", (), {}), type("A", (), {})),
    (enum.Enum("E", ["A"]), enum.Enum("E", ["A"])),
    (lambda: 1, lambda: 1),
    (functools.partial(int), functools.partial(int)),
    (Service().method, Service().method),
    (Generous("a"), Generous("b")),
    (Incomparable(), Incomparable()),
    (object(), object()),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT, ids=[str(number) for number in range(len(DIFFERENT))])
def test_what_would_compile_differently_is_not_the_same(a: Any, b: Any) -> None:
    """Two values are told apart, both ways, wherever Python's == is too generous; each is the same as itself."""
    assert not same(a, b)
    assert not same(b, a)
    assert same(a, a)
    assert same(b, b)


def test_models_are_compared_by_value() -> None:
    """A model is compared by its values: which of them were set explicitly plays no part in a schema."""
    assert not same(Model(x=1), Model(x=2))
    assert same(Model(x=2), Model.model_construct(x=2))


def test_values_without_an_end() -> None:
    """Objects that hold themselves are compared in bounded time and are the same only by identity."""
    one: list[Any] = []
    one.append(one)
    two: list[Any] = []
    two.append(two)
    assert same(one, one)
    assert not same(one, two)
    first, second = Data(), Data()
    first.x, second.x = first, second
    assert same(first, first)
    assert not same(first, second)
    assert snapshot(first) is not None


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ([1], lambda value: value.append(2)),
        ({"a": [1]}, lambda value: value["a"].append(2)),
        ({1}, lambda value: value.add(2)),
        (([1],), lambda value: value[0].append(2)),
        (Data([1]), lambda value: value.x.append(2)),
        (Data(1), lambda value: setattr(value, "x", 2)),
        (Frozen([1]), lambda value: value.x.append(2)),
        (Model(x=[1]), lambda value: value.x.append(2)),
        (Model(x=1), lambda value: setattr(value, "x", 2)),
    ],
)
def test_a_snapshot_keeps_what_was(value: Any, change: Callable[[Any], None]) -> None:
    """A change within a list, dict, set, dataclass or model does not reach a snapshot taken before."""
    kept = snapshot(value)
    assert same(value, kept)
    change(value)
    assert not same(value, kept)


def test_a_snapshot_of_what_cannot_be_copied() -> None:
    """A dataclass that refuses to be copied is kept as it is."""

    @dataclasses.dataclass
    class Stubborn:
        x: int = 1

        def __copy__(self) -> Any:
            raise RuntimeError("no")

    value = Stubborn()
    assert snapshot(value) is value


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from([0.0, -0.0, 1.0, 2.0, "", "1"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        st.sets(SCALARS, max_size=3),
        st.builds(Data, inner),
        st.builds(Frozen, inner),
        st.builds(Model, x=inner),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_same_is_no_looser_than_what_is_shown(a: Any, b: Any) -> None:
    """Values that are the same are shown alike, types and order included; a snapshot is the same as its original."""
    if same(a, b):
        assert same(b, a)
        assert sorted(repr(a)) == sorted(repr(b))  # sets have no order
    assert same(a, snapshot(a))
