"""JSON Schemas of Python types, as pydantic describes them and as MCP clients read them best."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal

from pydantic import PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, SchemaError

from twolane.protocol.message import EncodeError, encode

__all__ = ["Adapter", "adapter_of", "as_object_schema", "is_strict", "json_schema_of", "plain_header_params"]

Adapter = TypeAdapter[Any]


class _Generator(GenerateJsonSchema):
    """Leaves out the title that pydantic makes up from each field's name: it says nothing and costs tokens."""

    # A default without a JSON form is not listed; the handler still gets it.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def adapter_of(annotation: Any, what: str) -> Adapter:
    """
    Build pydantic's adapter of *annotation*.

    Raises:
        TypeError: pydantic cannot handle it; the text begins with *what*.
    """
    try:
        if isinstance(annotation, TypeAdapter):
            return annotation
        adapter: Adapter = TypeAdapter(annotation)
        if not adapter.pydantic_complete:
            adapter.rebuild(raise_errors=True)  # Tells which name is missing.
        return adapter
    except PydanticUndefinedAnnotation as exc:
        raise TypeError(f"{what} has an annotation that cannot be resolved: {exc.name}") from exc
    except PydanticUserError as exc:
        raise TypeError(f"{what} cannot be handled by pydantic: {_first_line(exc.message)}") from exc
    except (SchemaError, NameError, TypeError, ValueError) as exc:
        raise TypeError(f"{what} cannot be handled by pydantic: {exc}") from exc


def json_schema_of(adapter: Adapter, mode: Literal["validation", "serialization"], what: str) -> dict[str, Any]:
    """
    Describe what *adapter* takes ("validation") or writes ("serialization").

    Raises:
        TypeError: there is no JSON Schema for it; the text begins with *what*.
    """
    try:
        schema = adapter.json_schema(by_alias=True, mode=mode, schema_generator=_Generator)
    except PydanticUserError as exc:
        raise TypeError(f"{what} has no JSON Schema: {_first_line(exc.message)}") from exc
    except (TypeError, ValueError) as exc:
        raise TypeError(f"{what} has no JSON Schema: {exc}") from exc
    try:
        encode(schema)
    except EncodeError:
        schema = _finite(schema)
        try:
            encode(schema)
        except EncodeError as exc:
            raise TypeError(f"{what} has a JSON Schema that cannot be written as JSON: {exc}") from exc
    return schema


def _finite(schema: Any) -> Any:
    """Leave out members such as ``"default": inf``, which say nothing that JSON could."""
    if isinstance(schema, dict):
        return {
            key: _finite(value)
            for key, value in schema.items()
            if not (isinstance(value, float) and not isfinite(value))
        }
    return list(map(_finite, schema)) if isinstance(schema, list) else schema


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def is_strict(schema: CoreSchema) -> bool:
    """Tell whether something in *schema* is strict, so that its input must be read as JSON and not as Python."""
    return "'strict': True" in repr(schema)


def as_object_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """
    Give *schema* a root of type object (server/tools, "Tool"; S-096), or return None where it allows other values.

    Pydantic refers to a recursive model from the root, and leaves the type out of a union of models.
    """
    schema = _inlined(schema)
    if schema.get("type") == "object":
        return {"type": "object", **schema}
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if branches and all(_resolved(schema, branch).get("type") == "object" for branch in branches):
            return {"type": "object", **schema}
    return None


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    target = _resolved(schema, schema)
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _resolved(root: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    found = root.get("$defs", {}).get(name, schema)
    return found if isinstance(found, dict) else schema


def plain_header_params(schema: dict[str, Any]) -> dict[str, Any]:
    """
    Bring ``x-mcp-header`` annotations into the form that clients accept (S-050).

    An optional parameter is ``anyOf [T, null]`` to pydantic and becomes plain ``T``; an enum, and a nested model that
    declares a header, are written where they are used, because a header must be reached through ``properties`` alone.
    """
    if "x-mcp-header" not in repr(schema):
        return schema
    definitions = schema.get("$defs", {})
    plain = _plain({key: value for key, value in schema.items() if key != "$defs"}, definitions, ())
    used: set[str] = set()
    open_ = list(_references(plain))
    while open_:
        name = open_.pop().removeprefix("#/$defs/")
        if name not in used:
            used.add(name)
            open_.extend(_references(definitions.get(name)))
    kept = {name: value for name, value in definitions.items() if name in used}
    return {**plain, "$defs": kept} if kept else plain


def _plain(schema: dict[str, Any], definitions: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    made = {}
    for name, value in properties.items():
        if isinstance(value, dict):
            value = _without_null(value)
            reference = str(value.get("$ref", "")).removeprefix("#/$defs/")
            target = definitions.get(reference)
            inner = path
            if target is not None and reference not in path and "x-mcp-header" in repr((value, target)):
                value = {**target, **{key: item for key, item in value.items() if key != "$ref"}}
                inner = (*path, reference)
            value = _plain(value, definitions, inner)
        made[name] = value
    return {**schema, "properties": made}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    branches = schema.get("anyOf")
    if "x-mcp-header" not in schema or not branches:
        return schema
    kept = [branch for branch in branches if branch != {"type": "null"}]
    if len(kept) != 1 or len(kept) == len(branches):
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if rest.get("default", ...) is None:
        del rest["default"]
    return {**kept[0], **rest}


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)
