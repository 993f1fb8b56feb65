"""Arguments: from type hints to a JSON Schema, and from what a client sends to keyword arguments."""

from __future__ import annotations

import datetime
import enum
import functools
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, SecretStr, create_model

from twolane import Context, completable
from twolane.protocol.message import encode
from twolane.server.arguments import ArgumentError
from twolane.server.signature import compile_handler


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    city: str
    zip: int = 0


@dataclass
class Pair:
    left: int
    right: int = 2


class Options(TypedDict, total=False):
    depth: int


class Circle(BaseModel):
    kind: Literal["circle"]


class Square(BaseModel):
    kind: Literal["square"]
    side: int = 1


class Tree(BaseModel):
    children: list[Tree] = []


def complete(value: str) -> list[str]:
    return []


def bound(handler: Any, arguments: Any, **options: Any) -> dict[str, Any]:
    return compile_handler(handler, **options).bind(arguments)


def listed(handler: Any, **options: Any) -> dict[str, Any]:
    properties: dict[str, Any] = compile_handler(handler, **options).input_schema["properties"]
    return properties


def tenant_of(annotation: Any) -> Any:
    def tool(value: Any) -> str:
        """Take."""
        return ""

    tool.__annotations__["value"] = annotation
    return tool


def test_hints_are_the_schema() -> None:
    """Types, constraints, descriptions and defaults of the parameters make the schema; the root is an object."""

    async def tool(
        name: Annotated[str, Field(description="Who", min_length=1)],
        count: int = 3,
        color: Color = Color.RED,
        mode: Literal["fast", "slow"] = "fast",
        note: str | None = None,
        *,
        places: list[Place] = [],  # noqa: B006
    ) -> str:
        """Do it."""
        return ""

    schema = compile_handler(tool).input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["name"]
    properties = schema["properties"]
    assert properties["name"] == {"type": "string", "description": "Who", "minLength": 1}
    assert properties["count"] == {"type": "integer", "default": 3}
    assert properties["color"]["default"] == "red"
    assert properties["mode"] == {"type": "string", "enum": ["fast", "slow"], "default": "fast"}
    assert properties["note"]["default"] is None
    assert properties["places"]["items"] == {"$ref": "#/$defs/Place"}


def test_binding() -> None:
    """Arguments are validated and converted; missing optional ones are left to the function, unknown ones dropped."""

    def tool(
        n: int, when: datetime.date, place: Place, pair: Pair, tags: set[str], options: Options, x: int = 5
    ) -> str:
        """Take."""
        return ""

    bind = compile_handler(tool).bind
    given = {
        "n": "7",
        "when": "2026-07-28",
        "place": {"city": "Graz"},
        "pair": {"left": 1},
        "tags": ["a", "a"],
        "options": {"depth": 2},
        "unknown": 1,
    }
    assert bind(given) == {
        "n": 7,
        "when": datetime.date(2026, 7, 28),
        "place": Place(city="Graz"),
        "pair": Pair(1),
        "tags": {"a"},
        "options": {"depth": 2},
    }


def test_problems_are_named() -> None:
    """What does not fit is listed by path in one short text, without the values themselves."""

    def tool(n: int, place: Place) -> str:
        """Take."""
        return ""

    with pytest.raises(ArgumentError) as caught:
        compile_handler(tool).bind({"n": "x" * 5000, "place": {"zip": []}})
    paths = [path for path, _ in caught.value.problems]
    assert paths == ["n", "place.city", "place.zip"]
    assert "xxxxx" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_field_defaults() -> None:
    """A Field may stand as the default value or within Annotated, with a default, a factory or an alias."""

    def tool(
        a: int = Field(5, ge=0),
        b: Annotated[int, Field(default=6)] = 7,
        c: Annotated[list[int], Field(default_factory=lambda: [1])] = Field(),  # noqa: B008
        d: Annotated[int, Field(alias="from")] = 0,
    ) -> str:
        """Take."""
        return ""

    compiled = compile_handler(tool)
    assert compiled.input_schema["properties"]["a"]["default"] == 5
    assert "from" in compiled.input_schema["properties"]
    assert compiled.bind({})["a"] == 5
    assert compiled.bind({})["c"] == [1]
    assert compiled.bind({"from": 4})["d"] == 4
    with pytest.raises(ArgumentError):
        compiled.bind({"a": -1})


@pytest.mark.parametrize(
    ("default", "shown"),
    [
        (None, None),
        (Color.RED, "red"),
        (datetime.date(2026, 7, 28), "2026-07-28"),
        (Place(city="Graz"), {"city": "Graz", "zip": 0}),
        ((1, 2), [1, 2]),
        (SecretStr("hunter2"), "**********"),
        (math.inf, ...),
        (math.nan, ...),
        (10**30, ...),
        (object(), ...),
        ("\ud800", ...),
    ],
)
def test_defaults_are_listed(default: Any, shown: Any) -> None:
    """A default is listed in its JSON form, a secret without its value, and one without a JSON form not at all."""

    def tool(a: Any = default) -> str:
        """Take."""
        return ""

    compiled = compile_handler(tool)
    assert compiled.input_schema["properties"]["a"].get("default", ...) == shown
    assert "required" not in compiled.input_schema
    assert compiled.bind({}) == {}
    encode(compiled.input_schema)


def test_a_default_of_the_signature_goes_before_one_of_a_field() -> None:
    """Of two defaults the one in the signature counts, listed and bound; with a factory beside it, it is refused."""

    def tool(
        a: Annotated[int, Field(default=6)] = 7,
        b: Annotated[int, Field(default=1), Field(default=2)] = Field(default=3, ge=0),
    ) -> str:
        """Take."""
        return ""

    def both(a: Annotated[list[int] | None, Field(default_factory=list)] = None) -> str:
        """Take."""
        return ""

    assert [schema["default"] for schema in listed(tool).values()] == [7, 3]
    assert bound(tool, {}) == {"a": 7, "b": 3}
    assert bound(tool, {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(TypeError, match=r"both\(\): the parameter 'a' has a default and a default_factory"):
        compile_handler(both)


def test_a_default_is_not_shared_between_calls() -> None:
    """What a handler does to a mutable Field default is gone at the next call: calls are other tenants' calls."""
    made = []

    def factory() -> list[str]:
        made.append(1)
        return []

    def tool(a: list[str] = Field(["x"]), b: list[str] = Field(default_factory=factory)) -> str:  # noqa: B008
        """Take."""
        return ""

    bind = compile_handler(tool).bind
    for value in bind({}).values():
        value.append("secret")
    assert bind({}) == {"a": ["x"], "b": []}
    assert len(made) == 2


def test_a_factory_may_look_at_the_other_arguments() -> None:
    """A default_factory with a parameter receives what was validated so far."""

    def tool(a: int, b: Annotated[int, Field(default_factory=lambda given: given["a"] + 1)]) -> str:
        """Take."""
        return ""

    assert bound(tool, {"a": "3"}) == {"a": 3, "b": 4}


def test_aliases() -> None:
    """A parameter with an alias is listed and sent under it, its default and completer included; its name is not."""

    def tool(
        a: Annotated[str, Field(alias="from"), completable(complete)] = "x",
        b: Annotated[list[int], Field(default_factory=list, validation_alias="to")] = Field(),  # noqa: B008
    ) -> str:
        """Take."""
        return ""

    compiled = compile_handler(tool)
    assert compiled.input_schema["properties"]["from"]["default"] == "x"
    assert [(p.name, p.required, p.completer) for p in compiled.parameters] == [
        ("from", False, complete),
        ("to", False, None),
    ]
    assert compiled.bind({"from": "y", "to": [1]}) == {"a": "y", "b": [1]}
    assert compiled.bind({"a": "y", "b": [1]}) == {"b": []}


def test_arguments_cannot_reach_what_is_filled_in() -> None:
    """Arguments named like the context, like ``self`` or like what a partial fills in are ignored."""

    class Service:
        def method(self, a: int, ctx: Context, fixed: str = "") -> str:
            """Take."""
            return ""

    handler = functools.partial(Service().method, fixed="x")
    assert bound(handler, {"a": 1, "ctx": 2, "self": 3, "fixed": "y", "return": 4, "": 5}) == {"a": 1}


def test_unions_models_and_dates_keep_their_form() -> None:
    """Discriminated unions, recursive models, dates and dictionaries are described by reference and bound as types."""

    def tool(
        shape: Annotated[Circle | Square, Field(discriminator="kind")],
        tree: Tree,
        at: datetime.datetime,
        either: int | str,
        counts: dict[str, int] | None = None,
    ) -> str:
        """Take."""
        return ""

    schema = compile_handler(tool).input_schema
    assert list(schema["properties"]) == ["shape", "tree", "at", "either", "counts"]
    assert schema["properties"]["at"] == {"type": "string", "format": "date-time"}
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert schema["properties"]["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    value = bound(
        tool,
        {
            "shape": {"kind": "square", "side": "2"},
            "tree": {"children": [{"children": []}]},
            "at": "2026-07-28T12:00:00Z",
            "either": "5",
        },
    )
    assert value["shape"] == Square(kind="square", side=2)
    assert value["tree"] == Tree(children=[Tree(children=[])])
    assert value["at"] == datetime.datetime(2026, 7, 28, 12, tzinfo=datetime.UTC)
    assert value["either"] == "5"


def test_a_model_named_like_our_own_type() -> None:
    """A user's model may have any name, that of the compiler's own container included."""
    model = create_model("Arguments", a=(int, ...))
    assert bound(tenant_of(model), {"value": {"a": 1}}) == {"value": model(a=1)}
    assert listed(tenant_of(model))["value"] == {"$ref": "#/$defs/Arguments"}
