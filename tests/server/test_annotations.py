"""Annotations as types: what strings mean, when they mean it no longer, and TypedDicts of either module."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Generic, List, Literal, Optional, TypeVar, Union, get_type_hints  # noqa: UP035

import pytest
import typing_extensions
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from twolane.server.annotations import Names, modern, resolve

T = TypeVar("T")


class Old(typing.TypedDict):
    """With keys of both kinds."""

    needed: int
    left_out: typing.NotRequired[str]


class OldPartial(typing.TypedDict, total=False):
    optional: int
    needed: typing.Required[int]


class OldDerived(OldPartial):
    third: Annotated[int, Field(ge=1)]


class OldNested(typing.TypedDict):
    items: list[Old]
    either: Old | None


class OldLoop(typing.TypedDict):
    inner: list[OldLoop]


class OldUnknown(typing.TypedDict):
    inner: NoSuchType  # type: ignore[name-defined]  # noqa: F821


class New(typing_extensions.TypedDict):
    needed: int


class OldGeneric(typing.TypedDict, Generic[T]):
    value: T


class Model(BaseModel):
    a: int


def function_of(source: str, **variables: Any) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Define ``make`` in a module of its own that postpones annotations; return it and the module's variables."""
    module = types.ModuleType("elsewhere")
    namespace = vars(module)
    namespace.update(variables)
    exec(compile("from __future__ import annotations\n" + source, "elsewhere.py", "exec"), namespace)
    return namespace["make"], namespace


def names_of(function: Any) -> Names:
    names = resolve(function.__annotations__, function, "f()")[1]
    assert names is not None
    return names


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, int),
        ("int", int),
        ("int | None", int | None),
        (Optional["Model"], Optional[Model]),  # noqa: UP045
        (list["Model"], list[Model]),
        (List["Model"], List[Model]),  # noqa: UP006
        (Union["Model", "int"], Union[Model, int]),  # noqa: UP007
        ("List['Model']", List[Model]),  # noqa: UP006
        (Annotated["int", "str"], Annotated[int, "str"]),
        ("Annotated[int, 'str']", Annotated[int, "str"]),
        (Literal["Model"], Literal["Model"]),
        ("Literal['Model']", Literal["Model"]),
        (Callable[["Model"], "int"], Callable[[Model], int]),
        (None, None),
        ("None", type(None)),
    ],
)
def test_strings_become_types(annotation: Any, expected: Any) -> None:
    """An annotation is resolved wherever a type in it is quoted; texts that are data stay texts."""

    def function() -> None:
        """Stand for a handler of this module."""

    resolved, names = resolve({"x": annotation}, function, "f()")
    assert resolved == {"x": expected}
    assert names is None or names.hold(function)


def test_names_are_remembered_only_for_strings() -> None:
    """Where nothing is quoted, nothing has to be looked up again."""

    def function() -> None:
        """Stand for a handler."""

    assert resolve({"x": int, "y": Literal["a"], "z": list[Model]}, function, "f()")[1] is None


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        ("NoSuchType", "name 'NoSuchType' is not defined"),
        (list["NoSuchType"], "NoSuchType"),  # type: ignore[name-defined]  # noqa: F821
        ("int[", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("typing.Nothing", "AttributeError"),
    ],
)
@pytest.mark.parametrize(("name", "called"), [("x", "the parameter 'x'"), ("return", "the return annotation")])
def test_what_cannot_be_resolved(annotation: Any, reason: str, name: str, called: str) -> None:
    """An annotation that cannot be resolved is a TypeError that names function, parameter, reason and way out."""

    def function() -> None:
        """Stand for a handler."""

    with pytest.raises(TypeError) as caught:
        resolve({name: annotation}, function, "f()")
    text = str(caught.value)
    for part in ("f(): ", called, reason, "module level"):
        assert part in text


MODULE = """
from typing import *
from pydantic import BaseModel, Field
class Model(BaseModel):
    a: int
class Space:
    Inner = Model
class Settings:
    def __init__(self): self.values = {"d": "one"}
    def __getitem__(self, key): return self.values[key]
    @property
    def listed(self): return [*self.values]
Alias = List["Quoted"]
class Quoted: pass
settings = Settings()
MODES = ["a"]
TEXTS = {"d": {"e": "one"}}
TEXT = "one"
def now(): return MODES[-1]
def make():
    def f(x: ANNOTATION): ...
    return f
"""


class Other(BaseModel):
    b: int


@pytest.mark.parametrize(
    ("annotation", "change"),
    [
        ("Model", lambda module: module.update(Model=Other)),
        ("Model | None", lambda module: module.update(Model=Other)),
        ("List['Model']", lambda module: module.update(Model=Other)),
        ("'Model'", lambda module: module.update(Model=Other)),
        ("Space.Inner", lambda module: setattr(module["Space"], "Inner", Other)),
        ("Space.Inner", lambda module: module.update(Space=type("Space", (), {"Inner": Other}))),
        ("Alias", lambda module: module.update(Quoted=Other)),
        ("int", lambda module: module.update(int=str)),
        ("Annotated[str, Field(description=TEXT)]", lambda module: module.update(TEXT="two")),
        ("Annotated[str, Field(description=TEXTS['d']['e'])]", lambda module: module["TEXTS"]["d"].update(e="two")),
        ("Annotated[str, Field(description=settings['d'])]", lambda module: module["settings"].values.update(d="2")),
        ("Annotated[str, Field(description=settings.values['d'])]", lambda m: m["settings"].values.update(d="2")),
        ("Annotated[str, Field(description=f'{MODES}')]", lambda module: module["MODES"].append("b")),
        ("Annotated[str, Field(examples=MODES)]", lambda module: module["MODES"].append("b")),
        ("Annotated[str, Field(description=now())]", lambda module: module["MODES"].append("b")),
        ("Literal[tuple(MODES)]", lambda module: module["MODES"].append("b")),
        ("Literal[*MODES]", lambda module: module["MODES"].append("b")),
        ("Literal[*settings.listed]", lambda module: module["settings"].values.update(e="x")),
        ("Literal['a'] if MODES == ['a'] else str", lambda module: module["MODES"].append("b")),
        ("Literal[now()] | None", lambda module: module["MODES"].append("b")),
    ],
)
def test_names_that_come_to_mean_something_else(annotation: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """What an annotation was resolved with holds until something it depends on is rebound or changed within."""
    make, module = function_of(MODULE.replace("ANNOTATION", annotation))
    first = make()
    names = names_of(first)
    assert names.hold(first)
    assert names.hold(make())
    change(module)
    assert not names.hold(make())
    assert names_of(make()).hold(make())


@pytest.mark.parametrize(
    "annotation",
    [
        "Annotated[str, Field(description='f(x) or else', pattern='^[a')]",
        "Annotated[List[int], Field(default_factory=lambda: now() or [1])]",
        "Literal['now()', 'some words', 'MODES[0]']",
        "Annotated[str, {'a': [-1, (2,)]}]",
        "Annotated[str, str.upper]",
        "Dict[str, Callable[..., int]]",
    ],
)
def test_what_does_not_change_is_not_evaluated_again(annotation: str) -> None:
    """Texts, constants and pydantic's own constructors settle what an annotation means: names alone are compared."""
    make, _ = function_of(MODULE.replace("ANNOTATION", annotation))
    names = names_of(make())
    assert names.hold(make())
    assert not names._evaluated


def test_an_annotation_that_fails_later_does_not_hold() -> None:
    """One that is evaluated each time and fails then is left for compiling to complain about."""
    make, module = function_of(MODULE.replace("ANNOTATION", "Literal[MODES.copy()[0]]"))
    names = names_of(make())
    assert names.hold(make())
    module["MODES"].clear()
    assert not names.hold(make())


def test_closures() -> None:
    """A closure variable goes before the module's; each function of the closure is held to its own."""
    make, _ = function_of(
        "class Model: 'module'\n"
        "def make(own):\n"
        "    if own is not None: Model = own\n"
        "    def f(x: Model): return Model\n"
        "    return f"
    )
    without, one, two = make(None), make(int), make(str)  # type: ignore[call-arg]
    for mine, others in ((without, (one, two)), (one, (without, two)), (two, (without, one))):
        names = names_of(mine)
        assert names.hold(mine)
        assert not any(names.hold(other) for other in others)
    assert resolve(without.__annotations__, without, "f()")[0]["x"].__doc__ == "module"
    assert resolve(one.__annotations__, one, "f()")[0]["x"] is int


def shape(schema: Any) -> dict[str, Any]:
    """Which keys pydantic wants, by type."""
    described = TypeAdapter(modern(schema)).json_schema()
    return {name: name in described.get("required", ()) for name in described["properties"]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (Old, {"needed": True, "left_out": False}),
        (OldPartial, {"optional": False, "needed": True}),
        (OldDerived, {"optional": False, "needed": True, "third": True}),
        (OldNested, {"items": True, "either": True}),
        (New, {"needed": True}),
        (typing.TypedDict("Made", {"needed": int, "left_out": typing.NotRequired[int]}),
         {"needed": True, "left_out": False}),
    ],
)  # fmt: skip
def test_typed_dicts_of_either_module(schema: Any, expected: dict[str, bool]) -> None:
    """A TypedDict of typing reaches pydantic with its required and optional keys, where annotations are strings too."""
    assert shape(schema) == expected
    assert modern(schema) is modern(schema)


def test_typed_dicts_within_other_types() -> None:
    """A TypedDict is found within parametrised types, unions and Annotated; other types come back as they are."""
    for annotation in (list[Old], dict[str, Old], Old | None, Optional[Old], Annotated[Old, Field()], list[list[Old]]):  # noqa: UP045
        adapter = TypeAdapter(modern(annotation))
        assert "needed" in str(adapter.json_schema())
    for annotation in (int, list[int], Literal["a"], Model, Annotated[int, Field()], None, Any):
        assert modern(annotation) is annotation


def test_a_converted_typed_dict_validates() -> None:
    """Constraints and nesting survive the conversion, and so do name, module and docstring."""
    adapter = TypeAdapter(modern(OldDerived))
    assert adapter.validate_python({"needed": 1, "third": 1}) == {"needed": 1, "third": 1}
    with pytest.raises(ValidationError):
        adapter.validate_python({"needed": 1, "third": 0})
    made = modern(Old)
    assert (made.__name__, made.__module__, made.__doc__) == ("Old", __name__, Old.__doc__)
    assert set(get_type_hints(modern(OldNested))) == {"items", "either"}


@pytest.mark.parametrize(("schema", "text"), [(OldLoop, "refers to itself"), (OldUnknown, "NoSuchType")])
def test_typed_dicts_that_cannot_be_converted(schema: Any, text: str) -> None:
    """Where pydantic does not take those of typing, one that refers to itself or to nothing is a clear TypeError."""
    if sys.version_info >= (3, 12):
        assert modern(schema) is schema
    else:
        with pytest.raises(TypeError, match=text):
            modern(schema)
