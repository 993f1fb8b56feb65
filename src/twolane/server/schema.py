"""
JSON Schemas that users write: checked at registration, then used to validate (basic, "JSON Schema usage").

Dialects: 2020-12 (the default), 2019-09, draft-07, draft-06 and draft-04. References stay inside the schema: nothing is
ever fetched (S-098). Depth and size are bounded (S-099); what a pattern costs is up to whoever wrote it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import orjson

from twolane.protocol.message import MAX_SAFE_INTEGER, EncodeError, encode

__all__ = ["MAX_DEPTH", "MAX_SUBSCHEMAS", "SchemaValidator", "path_of", "validator_of"]

MAX_DEPTH = 64
MAX_SUBSCHEMAS = 10_000
#: Members of an object or array that ``unevaluatedProperties`` or ``unevaluatedItems`` looks at: jsonschema compares
#: each with all others.
_MAX_UNEVALUATED = 2_000
_MAX_PROBLEMS = 10
_MAX_CACHED = 512

_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
_DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_CACHE: OrderedDict[bytes, SchemaValidator] = OrderedDict()


class SchemaValidator:
    """A JSON Schema, ready to validate."""

    __slots__ = ("_text", "_validator")

    def __init__(self, text: bytes, validator: Any) -> None:
        self._text = text
        self._validator = validator

    def schema(self) -> dict[str, Any]:
        """Return the schema as it was given: a copy, so that nobody's later change reaches another."""
        schema: dict[str, Any] = orjson.loads(self._text)
        return schema

    def problems(self, value: Any) -> list[tuple[str, str]]:
        """Return what is wrong with *value*, as (path, message) pairs; at most ten."""
        found: list[tuple[str, str]] = []
        try:
            for error in self._validator.iter_errors(value):
                found.append((path_of(error.absolute_path), _message(error)))
                if len(found) == _MAX_PROBLEMS:
                    break
        except Exception as exc:
            # A value that nests beyond Python's stack, or an integer too large to be divided or even shown.
            found.append(("", f"cannot be checked against the schema ({type(exc).__name__})"))
        return found


def path_of(parts: Iterable[Any]) -> str:
    """Write a path into a value for a message: ``a.0.b``; long names, which may be data, are cut."""
    names = map(str, parts)
    return ".".join(name if len(name) <= 60 else f"{name[:40]}..." for name in names)[:300]


def validator_of(schema: Mapping[str, Any], what: str) -> SchemaValidator:
    """
    Check *schema* and return its validator, compiled once for equal schemas.

    Args:
        schema: a JSON Schema.
        what: how to name it in an error.

    Raises:
        ValueError: it is not a valid schema, names an unknown dialect, refers outside of itself, or is too large.
    """
    try:
        key = encode(dict(schema))
    except EncodeError as exc:
        raise ValueError(f"{what} has no JSON form: {exc}") from None
    known = _CACHE.get(key)
    if known is not None:
        return known
    made = SchemaValidator(key, _compile(orjson.loads(key), what))
    _CACHE[key] = made
    while len(_CACHE) > _MAX_CACHED:
        _CACHE.popitem(last=False)
    return made


def _compile(schema: dict[str, Any], what: str) -> Any:
    from jsonschema import SchemaError
    from referencing import Registry

    own = _check_bounds(schema, what)
    dialect = _dialect(schema.get("$schema", _DEFAULT_DIALECT), what)
    kind = _validator_class(dialect)
    try:
        kind.check_schema(schema)
    except SchemaError as exc:
        where = ".".join(map(str, exc.absolute_path))
        raise ValueError(f"{what} is not a valid JSON Schema at {where or 'its root'}: {exc.message[:200]}") from None
    except RecursionError:
        raise ValueError(f"{what} nests too deeply to be checked") from None
    _check_references(schema, dialect, own, what)
    # A registry without a retrieve function knows this schema, the dialects and nothing else.
    return kind(schema, registry=Registry())


def _dialect(named: Any, what: str) -> str:
    dialect = named.rstrip("#") if isinstance(named, str) else ""
    if dialect not in _DIALECTS:
        raise ValueError(f"{what} names the dialect {named!r}; supported are {', '.join(_DIALECTS)}")
    return dialect


def _check_bounds(schema: dict[str, Any], what: str) -> set[int]:
    """Return the ids of all objects in *schema*."""
    stack: list[tuple[Any, int]] = [(schema, 1)]
    found: set[int] = set()
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"{what} nests more than {MAX_DEPTH} levels")
        if isinstance(node, dict):
            found.add(id(node))
            if len(found) > MAX_SUBSCHEMAS:
                raise ValueError(f"{what} holds more than {MAX_SUBSCHEMAS} objects")
            stack.extend((value, depth + 1) for value in node.values() if isinstance(value, dict | list))
        else:
            stack.extend((item, depth + 1) for item in node if isinstance(item, dict | list))
    return found


def _check_references(schema: dict[str, Any], dialect: str, own: set[int], what: str) -> None:
    """
    Follow every reference: each must lead to a schema within *schema*, or to a dialect itself.

    Takes ``$schema`` off each subschema of the same dialect, else jsonschema would go on there with its own keywords.
    """
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.jsonschema import specification_with

    specification: Any = specification_with(dialect)
    root = specification.create_resource(schema)
    resolver: Any = REGISTRY.with_resource("", root).resolver_with_root(root)
    stack = [(root, resolver)]
    seen: set[int] = set()
    while stack:
        resource, resolver = stack.pop()
        node = resource.contents
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        if "$schema" in node and _dialect(node["$schema"], what) == dialect:
            del node["$schema"]
        for pattern in node.get("patternProperties", ()):
            try:
                re.compile(pattern)
            except re.error:  # Draft 4 leaves them unchecked.
                raise ValueError(f"{what}: the pattern {pattern[:100]!r} is not a regular expression") from None
        for keyword in _REFERENCES & node.keys():
            try:
                found = resolver.lookup(node[keyword])
            except Exception:
                raise ValueError(
                    f"{what} refers to {node[keyword]!r}, which it does not hold; nothing is fetched"
                ) from None
            if not isinstance(found.contents, dict | bool):
                raise ValueError(f"{what} refers to {node[keyword]!r}, which is not a schema")
            if id(found.contents) in own:
                stack.append((specification.create_resource(found.contents), found.resolver))
        stack.extend((inner, resolver.in_subresource(inner)) for inner in resource.subresources())


_REFERENCES = frozenset(("$dynamicRef", "$recursiveRef", "$ref"))


@cache
def _validator_class(dialect: str) -> Any:
    """Return jsonschema's class for *dialect*, without what takes the square of the time."""
    import jsonschema

    extend: Any = jsonschema.validators.extend
    kind = getattr(jsonschema, _DIALECTS[dialect])
    keywords: dict[str, Any] = {"uniqueItems": _unique_items}
    for name in ("unevaluatedItems", "unevaluatedProperties"):
        if name in kind.VALIDATORS:
            keywords[name] = _bounded(name, kind.VALIDATORS[name])
    return extend(kind, keywords)


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if wanted and validator.is_type(instance, "array") and len(set(map(_identity, instance))) < len(instance):
        yield ValidationError("has elements that are equal")


def _identity(value: Any) -> Any:
    """Return what is equal for equal JSON values only: 1 is 1.0, but not true."""
    if isinstance(value, dict):
        return dict, frozenset((key, _identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, *map(_identity, value)
    if isinstance(value, int | float) and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER and value == value // 1:
        return hex(int(value))  # As numbers, large integers can be chosen to share one hash.
    return (bool, value) if isinstance(value, bool) else value


def _bounded(name: str, stock: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        if isinstance(instance, dict | list) and len(instance) > _MAX_UNEVALUATED:
            yield ValidationError(f"has more than {_MAX_UNEVALUATED} members, too many for {name}")
        else:
            yield from stock(validator, value, instance, schema) or ()

    return keyword


def _message(error: Any) -> str:
    """Describe an error without repeating a long value."""
    message: str = error.message
    if len(message) > 100:
        shown = repr(error.instance)
        if len(shown) > 100:
            message = message.replace(shown, f"{shown[:40]}...")
    return message[:300]
