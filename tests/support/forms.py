"""The forms that tests ask for."""

from __future__ import annotations

import datetime
import typing
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

import typing_extensions
from pydantic import AnyUrl, BaseModel, Field

__all__ = ["ENUMS", "Color", "New", "Old", "Order", "Point"]


#: One field of each kind of choice.
ENUMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["a", "b"]},
        "titledSingle": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        "legacyEnum": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
        },
    },
}


class Color(StrEnum):
    """A colour."""

    RED = "red"
    GREEN = "green"


class Only(Enum):
    A = "a"


class Order(BaseModel):
    """An order."""

    name: str = Field(min_length=1, max_length=20, title="Your name", description="As on the card")
    note: str | None = None
    color: Color
    accent: Color | None = Field(None, description="Second colour")
    only: Only = Only.A
    size: Literal["s", "m"] = "m"
    fixed: Literal["x"] = "x"
    extras: list[Color] = Field(default_factory=list, max_length=2)
    tags: set[Literal["a", "b"]] = Field(default={"a"})
    day: datetime.date
    at: datetime.datetime | None = None
    link: AnyUrl | None = None
    count: Annotated[int, Field(ge=1, le=9)] = 1
    price: float = 0.5
    gift: bool = Field(False, examples=[True])


@dataclass
class Point:
    x: int
    y: float = 0.0


class Old(typing.TypedDict):
    a: int
    b: typing.NotRequired[str]


class New(typing_extensions.TypedDict, total=False):
    a: typing_extensions.Required[int]
    b: str
