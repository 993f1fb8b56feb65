"""
JSON Schemas that users write: checked at registration, then used to validate (basic, "JSON Schema usage").

Dialects: 2020-12 (the default), 2019-09, draft-07, draft-06 and draft-04. References stay inside the schema: nothing is
ever fetched (S-098). Depth and size are bounded (S-099); what a pattern costs is up to whoever wrote it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson

__all__ = ["MAX_DEPTH", "MAX_SUBSCHEMAS", "SchemaValidator", "validator_of"]

MAX_DEPTH = 64
MAX_SUBSCHEMAS = 10_000
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

    __slots__ = ("_validator",)

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def problems(self, value: Any) -> list[tuple[str, str]]:
        """Return what is wrong with *value*, as (path, message) pairs; at most ten."""
        found: list[tuple[str, str]] = []
        for error in self._validator.iter_errors(value):
            path = ".".join(map(str, error.absolute_path))
            found.append((path, _message(error)))
            if len(found) == _MAX_PROBLEMS:
                break
        return found


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
        key = orjson.dumps(schema)
    except (TypeError, RecursionError) as exc:
        raise ValueError(f"{what} has no JSON form: {exc}") from None
    known = _CACHE.get(key)
    if known is not None:
        return known
    made = SchemaValidator(_compile(orjson.loads(key), what))
    _CACHE[key] = made
    while len(_CACHE) > _MAX_CACHED:
        _CACHE.popitem(last=False)
    return made


def _compile(schema: Any, what: str) -> Any:
    import jsonschema
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable

    if type(schema) is not dict:
        raise ValueError(f"{what} must be an object")
    references = _walk(schema, what)
    dialect = schema.get("$schema", _DEFAULT_DIALECT)
    name = _DIALECTS.get(dialect.rstrip("#")) if isinstance(dialect, str) else None
    if name is None:
        raise ValueError(f"{what} names the dialect {dialect!r}; supported are {', '.join(_DIALECTS)}")
    kind = getattr(jsonschema, name)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as exc:
        where = ".".join(map(str, exc.absolute_path))
        raise ValueError(f"{what} is not a valid JSON Schema at {where or 'its root'}: {exc.message[:200]}") from None
    # A registry without a retrieve function knows this schema and nothing else.
    resource: Any = Resource.from_contents(schema, default_specification=_specification(dialect))
    resolver = Registry().with_resource("", resource).resolver_with_root(resource)
    for reference in references:
        try:
            resolver.lookup(reference)
        except (Unresolvable, ValueError, LookupError):
            raise ValueError(f"{what} refers to {reference!r}, which it does not hold; nothing is fetched") from None
    return kind(schema, registry=Registry())


def _specification(dialect: str) -> Any:
    from referencing.jsonschema import specification_with

    return specification_with(dialect)


def _walk(schema: dict[str, Any], what: str) -> set[str]:
    """Check the bounds of *schema* and return the references in it."""
    references: set[str] = set()
    stack: list[tuple[Any, int]] = [(schema, 1)]
    count = 0
    while stack:
        node, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise ValueError(f"{what} nests more than {MAX_DEPTH} levels")
        if isinstance(node, dict):
            count += 1
            if count > MAX_SUBSCHEMAS:
                raise ValueError(f"{what} holds more than {MAX_SUBSCHEMAS} objects")
            for key, value in node.items():
                if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
                    references.add(value)
                elif key not in ("const", "default", "enum", "examples"):
                    stack.append((value, depth + 1))
        elif isinstance(node, list):
            stack.extend((item, depth + 1) for item in node)
    return references


def _message(error: Any) -> str:
    """Describe an error without repeating a long value."""
    shown = repr(error.instance)
    message: str = error.message
    if len(shown) > 100:
        message = message.replace(shown, f"{shown[:40]}...")
    return message[:300]
