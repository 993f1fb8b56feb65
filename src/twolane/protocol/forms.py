"""
Forms of an elicitation: flat schemas out, checked answers in (client/elicitation, "Requested Schema").

A form is one object of strings, numbers, booleans, choices and multiple choices. Pydantic models, dataclasses,
TypedDicts and JSON Schema dicts are brought to that shape, or refused with the name of the field that has no place
in a form.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import is_dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NotRequired, Required, cast, get_origin
from urllib.parse import urlsplit

__all__ = ["form_schema", "is_form_content", "read_content"]

_TEXTS = ("title", "description")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum")
_FORMATS = ("email", "uri", "date", "date-time")
# Keywords that describe and do not constrain, so that leaving them out changes no answer. A multiple choice holds
# each value once whatever `uniqueItems` says.
_NOTES = frozenset(("$comment", "deprecated", "examples", "readOnly", "uniqueItems", "writeOnly"))
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_MAX_REFERENCES = 8


def form_schema(schema: Any) -> dict[str, Any]:
    """
    Return the flat JSON Schema of a form.

    Args:
        schema: a pydantic model, a dataclass, a TypedDict, a pydantic ``TypeAdapter`` or a JSON Schema dict.

    Raises:
        TypeError: the schema has no flat form; the text names the field and what is wrong with it.
    """
    if isinstance(schema, Mapping):
        return _flatten(schema)
    if isinstance(schema, type):
        return deepcopy(_form_of_type(schema))
    return _flatten(_json_schema(_adapter(schema)))


@lru_cache(maxsize=256)
def _form_of_type(schema: type) -> dict[str, Any]:
    return _flatten(_json_schema(_adapter(schema)))


def _json_schema(adapter: Any) -> Mapping[str, Any]:
    from pydantic import PydanticUserError

    try:
        return cast("Mapping[str, Any]", adapter.json_schema())
    except PydanticUserError as exc:
        raise TypeError(f"the form has no JSON Schema: {exc.message}") from exc


def _adapter(schema: Any) -> Any:
    from pydantic import TypeAdapter

    if isinstance(schema, TypeAdapter):
        return schema
    if not isinstance(schema, type):
        raise TypeError(
            "a form is described by a pydantic model, a dataclass, a TypedDict or a JSON Schema dict, "
            f"not by {type(schema).__name__}"
        )
    return _adapter_of_type(schema)


@lru_cache(maxsize=256)
def _adapter_of_type(schema: type) -> Any:
    from pydantic import BaseModel, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter
    from typing_extensions import is_typeddict

    target: Any = schema
    if is_typeddict(schema):
        target = _modern_typed_dict(schema)
    elif not (issubclass(schema, BaseModel) or is_dataclass(schema)):
        raise TypeError(f"a form is a pydantic model, a dataclass or a TypedDict; {schema.__name__} is neither")
    try:
        return TypeAdapter(target)
    except PydanticUndefinedAnnotation as exc:
        raise TypeError(f"{schema.__name__} has an annotation that cannot be resolved: {exc.name}") from exc
    except PydanticUserError as exc:
        raise TypeError(f"{schema.__name__} cannot describe a form: {exc.message}") from exc


def _modern_typed_dict(schema: Any) -> Any:
    # Pydantic refuses typing.TypedDict before Python 3.12, though all it misses there is which keys are optional.
    from typing_extensions import TypedDict, get_type_hints

    try:
        hints = get_type_hints(schema, include_extras=True)
    except NameError as exc:
        raise TypeError(f"{schema.__name__} has an annotation that cannot be resolved: {exc.name}") from exc
    required = schema.__required_keys__
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        # A hint that was a string when the class was made says it itself; the class did not see it.
        origin: Any = get_origin(hint)
        said = origin is Required or origin is NotRequired
        fields[name] = hint if said else Required[hint] if name in required else NotRequired[hint]
    return TypedDict(schema.__name__, fields)  # type: ignore[operator]


def _flatten(schema: Mapping[str, Any]) -> dict[str, Any]:
    definitions = {**(schema.get("definitions") or {}), **(schema.get("$defs") or {})}
    schema = _resolve(schema, definitions, "the form")
    if schema.get("type") != "object":
        raise TypeError("a form is an object with fields (client/elicitation)")
    for keyword in ("allOf", "anyOf", "dependentRequired", "else", "if", "oneOf", "patternProperties"):
        if keyword in schema:
            raise TypeError(f"a form cannot use {keyword!r}: its fields are independent of each other")
    properties = schema.get("properties") or {}
    required = list(schema.get("required") or ())
    for name in required:
        if name not in properties:
            raise TypeError(f"the form requires the field {name!r} but does not define it")
    form: dict[str, Any] = {"type": "object"}
    if "$schema" in schema:
        form["$schema"] = schema["$schema"]
    form["properties"] = {name: _field(name, field, definitions) for name, field in properties.items()}
    if required:
        form["required"] = required
    return form


def _resolve(schema: Any, definitions: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Replace a reference by what it names; keywords beside it win."""
    if not isinstance(schema, Mapping):
        raise TypeError(f"{where} must be described by a JSON Schema object")
    resolved = dict(schema)
    for _ in range(_MAX_REFERENCES):
        inner = resolved.get("allOf")
        if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], Mapping):
            del resolved["allOf"]
            resolved = {**inner[0], **resolved}
            continue
        reference = resolved.pop("$ref", None)
        if reference is None:
            return resolved
        target = definitions.get(str(reference).rpartition("/")[2])
        if not isinstance(target, Mapping):
            raise TypeError(f"{where} refers to {reference!r}, which is not among its definitions")
        resolved = {**target, **resolved}
    raise TypeError(f"{where} refers to itself")


def _field(name: str, raw: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    where = f"field {name!r}"
    field = _without_null(_resolve(raw, definitions, where), definitions, where)
    field = {key: value for key, value in field.items() if key not in _NOTES}
    if "const" in field:
        field["enum"] = [field.pop("const")]
    if "type" not in field and ("enum" in field or "oneOf" in field):
        field["type"] = "string"
    kind = field.get("type")
    if kind == "string":
        if "oneOf" in field:
            allowed: tuple[str, ...] = ("oneOf",)
            field["oneOf"] = _titled(field["oneOf"], where)
        elif "enum" in field:
            allowed = ("enum", "enumNames")
            _check_choices(field, where)
        else:
            allowed = ("minLength", "maxLength", "format")
            _check_format(field.get("format"), where)
    elif kind in ("number", "integer"):
        allowed = ("minimum", "maximum")
    elif kind == "boolean":
        allowed = ()
    elif kind == "array":
        allowed = ("items", "minItems", "maxItems")
        field["items"] = _choices_of_array(field.get("items"), definitions, where)
    elif kind == "object" or "properties" in field:
        raise TypeError(f"{where} is a nested object; a form is flat, so ask for its fields themselves")
    else:
        raise TypeError(f"{where} is neither a string, number, integer, boolean, choice nor multiple choice")
    for keyword, value in field.items():
        if keyword not in allowed and keyword not in _TEXTS and keyword not in ("type", "default"):
            raise TypeError(f"{where} uses {keyword!r}, which a form cannot express")
        _check_keyword(keyword, value, where)
    if "default" in field and not _accepts(field["default"], field):
        raise TypeError(f"{where} has a default that the field itself does not accept")
    return field


def _without_null(field: dict[str, Any], definitions: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read ``T | None`` as a field that may be left out: a form has no null."""
    nullable = False
    branches = field.get("anyOf")
    if isinstance(branches, list):
        others = [branch for branch in branches if not (isinstance(branch, Mapping) and branch.get("type") == "null")]
        if len(others) == 1 and len(branches) == 2:
            nullable = True
            rest = {key: value for key, value in field.items() if key != "anyOf"}
            field = {**_resolve(others[0], definitions, where), **rest}
    kinds = field.get("type")
    if isinstance(kinds, list) and len(kinds) == 2 and "null" in kinds:
        nullable = True
        field["type"] = next(kind for kind in kinds if kind != "null")
    choices = field.get("enum")
    if isinstance(choices, list) and None in choices:
        nullable = True
        field["enum"] = [choice for choice in choices if choice is not None]
    if nullable and "default" in field and field["default"] is None:
        del field["default"]
    return field


def _titled(options: Any, where: str) -> list[dict[str, str]]:
    values = []
    for option in options if isinstance(options, list) else ():
        if not (isinstance(option, Mapping) and set(option) == {"const", "title"}):
            raise TypeError(f"{where}: each titled choice is an object of a const and a title")
        values.append(option["const"])
        if not isinstance(option["title"], str):
            raise TypeError(f"{where}: the title of a choice is a string")
    _check_values(values, where)
    return [dict(option) for option in options]


def _check_values(values: Any, where: str) -> None:
    if not (isinstance(values, list) and values and all(isinstance(value, str) for value in values)):
        raise TypeError(f"{where}: choices are one or more strings")
    if len(set(values)) != len(values):
        raise TypeError(f"{where}: a choice appears twice")


def _check_choices(field: dict[str, Any], where: str) -> None:
    _check_values(field["enum"], where)
    names = field.get("enumNames")
    if names is None:
        return
    if not (isinstance(names, list) and len(names) == len(field["enum"]) and all(isinstance(n, str) for n in names)):
        raise TypeError(f"{where}: enumNames holds one string for each choice")


def _check_keyword(keyword: str, value: Any, where: str) -> None:
    if keyword in _TEXTS and not isinstance(value, str):
        raise TypeError(f"{where}: {keyword} is a string")
    if keyword in _COUNTS and not (type(value) is int and value >= 0):
        raise TypeError(f"{where}: {keyword} is a whole number from 0")
    if keyword in _BOUNDS and not _is_number(value):
        raise TypeError(f"{where}: {keyword} is a number")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_format(form: Any, where: str) -> None:
    if form == "password":
        raise TypeError(f"{where} is a secret; a form must never ask for one, use elicit_url (client/elicitation)")
    if form is not None and form not in _FORMATS:
        raise TypeError(f"{where} has the format {form!r}; a form knows {', '.join(_FORMATS)}")


def _choices_of_array(items: Any, definitions: Mapping[str, Any], where: str) -> dict[str, Any]:
    problem = f"{where} is a list of free values; a form knows only lists of choices"
    if not isinstance(items, Mapping):
        raise TypeError(problem)
    items = _resolve(items, definitions, where)
    if "anyOf" in items:
        return {"anyOf": _titled(items["anyOf"], where)}
    values = [items["const"]] if "const" in items else items.get("enum")
    if values is None:
        raise TypeError(problem)
    _check_values(values, where)
    return {"type": "string", "enum": list(values)}


def is_form_content(content: Any) -> bool:
    """Tell whether *content* is an object of flat values, as the answer to a form is."""
    return isinstance(content, dict) and all(
        value is None
        or isinstance(value, str | int | float)
        or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        for value in content.values()
    )


def read_content(content: Any, schema: Any) -> Any:
    """
    Check the *content* of an accepted answer. Nothing is coerced: ``"5"`` is not a number.

    Args:
        content: what the client sent; None counts as an empty object.
        schema: as for :func:`form_schema`, or None for any flat object.

    Returns:
        An instance where the schema is a type, else a dict of the declared fields; None when the answer is invalid.
    """
    if content is None:
        content = {}
    if not is_form_content(content):
        return None
    if schema is None:
        return dict(content)
    # JSON has one kind of number, so 5.0 answers a field of integers.
    content = {key: _whole(value) for key, value in content.items()}
    if isinstance(schema, Mapping):
        return _read_fields(content, _flatten(schema))
    from pydantic import ValidationError

    adapter = _adapter(schema)
    try:
        return adapter.validate_json(json.dumps(content), strict=True)
    except ValidationError:
        return None


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_fields(content: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any] | None:
    fields: dict[str, Any] = {}
    for name, field in form["properties"].items():
        # Some clients send null for what was left empty.
        value = content.get(name)
        if value is None:
            continue
        if not _accepts(value, field):
            return None
        fields[name] = value
    return fields if all(name in fields for name in form.get("required", ())) else None


def _accepts(value: Any, field: Mapping[str, Any]) -> bool:
    kind = field["type"]
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "array":
        return _accepts_choices(value, field)
    if kind == "string":
        return isinstance(value, str) and _accepts_text(value, field)
    if not _is_number(value) or (kind == "integer" and not isinstance(_whole(value), int)):
        return False
    return bool(field.get("minimum", -math.inf) <= value <= field.get("maximum", math.inf))


def _accepts_text(value: str, field: Mapping[str, Any]) -> bool:
    if "enum" in field:
        return value in field["enum"]
    if "oneOf" in field:
        return value in _constants(field["oneOf"])
    if not field.get("minLength", 0) <= len(value) <= field.get("maxLength", math.inf):
        return False
    return "format" not in field or _has_format(value, field["format"])


def _accepts_choices(value: Any, field: Mapping[str, Any]) -> bool:
    items = field["items"]
    choices = items["enum"] if "enum" in items else _constants(items["anyOf"])
    return (
        isinstance(value, list)
        and all(isinstance(item, str) and item in choices for item in value)
        and len(set(value)) == len(value)
        and bool(field.get("minItems", 0) <= len(value) <= field.get("maxItems", math.inf))
    )


def _constants(options: Iterable[Mapping[str, str]]) -> list[str]:
    return [option["const"] for option in options]


def _has_format(value: str, form: str) -> bool:
    try:
        if form == "email":
            return _EMAIL.fullmatch(value) is not None
        if form == "uri":
            return bool(urlsplit(value).scheme) and not any(character <= " " for character in value)
        if form == "date":
            return _DATE.fullmatch(value) is not None and date.fromisoformat(value) is not None
        return _DATE_TIME.fullmatch(value) is not None and datetime.fromisoformat(value.upper()) is not None
    except ValueError:
        return False
