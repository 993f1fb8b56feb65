"""
What a handler returns, as a tool result: content for the model, structured content for programs (server/tools).

A result that breaks the tool's own declaration is the server's fault, never the client's.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Never, NoReturn, Union, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import TypeAliasType

from twolane.errors import ServerOutputError
from twolane.protocol.inputs import InputRequired
from twolane.protocol.message import EncodeError, encode
from twolane.server.annotations import modern
from twolane.server.arguments import problems_of
from twolane.server.schema import SchemaValidator, validator_of
from twolane.server.typeschema import adapter_of, as_object_schema, json_schema_of

__all__ = ["Output", "ToolResult", "compile_output"]

_UNSET: Any = object()
_BLOCKS = frozenset(("TextContent", "ImageContent", "AudioContent", "EmbeddedResource", "ResourceLink"))
_RAW = frozenset((*_BLOCKS, "CallToolResult"))

Result = dict[str, Any]
#: The output schema, None without one, and the function that turns a value into a result.
Output = tuple[dict[str, Any] | None, Callable[[Any], Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """
    A tool result in full, for when a plain value does not say enough.

    Args:
        content: a text, a content block of ``mcp_types``, or a list of those.
        structured: structured content, a JSON value; left out when not given.
        is_error: the tool failed, and the content tells the model why.
        meta: sent as ``_meta``.
    """

    content: Any = ()
    structured: Any = _UNSET
    is_error: bool = False
    meta: Mapping[str, Any] | None = None


def compile_output(annotation: Any, output_schema: Any, structured: bool | None, where: str) -> Output:
    """
    Decide how the values of a tool become results.

    Args:
        annotation: the resolved return annotation; ``Any`` without one.
        output_schema: the ``output_schema`` option: a JSON Schema dict or a type.
        structured: the ``structured_output`` option: False for text only, True to insist on structured content.
        where: how to name the handler in an error.

    Raises:
        TypeError: the type cannot be described, or *structured* is True where nothing is declared.
        ValueError: the JSON Schema is not valid.
    """
    if isinstance(output_schema, Mapping):
        validator = validator_of(output_schema, f"{where}: output_schema")
        return validator.schema(), _checked(validator)
    declared = output_schema if output_schema is not None else _declared(annotation)
    if structured is False or declared is _UNSET or declared is NoneType or declared is None:
        if structured is True:
            raise TypeError(f"{where}: structured_output=True needs a return annotation or an output_schema")
        convert = _listed if _is_content_list(annotation) else _free
        return None, partial(_text_only, convert) if structured is False else convert
    if declared in (str, int, bool):
        schema = _wrapped({"type": _NAMES[declared]})
        return schema, _simple(declared, _conforming(schema))
    what = f"{where}: the return type"
    adapter = adapter_of(modern(declared), what)
    schema = json_schema_of(adapter, "serialization", what)
    as_object = as_object_schema(schema)
    schema = as_object or _wrapped(schema)
    return schema, _typed(adapter, as_object is None, _conforming(schema))


_NAMES = {str: "string", int: "integer", bool: "boolean"}


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe ``{"result": value}``: structured content of the 2025 revisions is always an object."""
    definitions = schema.pop("$defs", None)
    made: dict[str, Any] = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    if definitions:
        made["$defs"] = definitions
    return made


#: ``type X = ...`` makes typing's own from Python 3.12 on, where typing_extensions may have another.
_ALIASES = (TypeAliasType, getattr(typing, "TypeAliasType", TypeAliasType))


def _bare(annotation: Any) -> Any:
    """Look through ``Annotated``, named aliases, and what a plain function returns to be awaited."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin in (Awaitable, Coroutine):
            annotation = get_args(annotation)[-1]
        elif isinstance(annotation, _ALIASES):
            annotation = annotation.__value__
        else:
            return annotation


def _declared(annotation: Any) -> Any:
    """Return the part of a return annotation that describes data; ``_UNSET`` where it describes content or anything."""
    if get_origin(annotation) in (Awaitable, Coroutine):
        return _declared(get_args(annotation)[-1])
    bare = _bare(annotation)
    if bare is Any or bare is object or bare is NoReturn or bare is Never:
        return _UNSET
    if get_origin(bare) in (Union, UnionType):
        kept = tuple(arg for arg in get_args(bare) if _bare(arg) is not InputRequired)
        if any(_is_content(arg) for arg in kept):
            return _UNSET
        if len(kept) != len(get_args(bare)):
            return Union[kept] if kept else _UNSET  # noqa: UP007 - built from a tuple
    return _UNSET if bare is InputRequired or _is_content(bare) else annotation


def _is_content(annotation: Any, depth: int = 0) -> bool:
    annotation = _bare(annotation)
    if depth > 10:  # An alias that refers to itself describes data.
        return False
    origin = get_origin(annotation)
    if origin is not None:
        return origin in _CONTAINERS and any(_is_content(arg, depth + 1) for arg in get_args(annotation))
    return isinstance(annotation, type) and (issubclass(annotation, ToolResult) or _wire_name(annotation) is not None)


def _is_content_list(annotation: Any) -> bool:
    """Tell whether a list that is returned is content, item by item, even one without a block in it."""
    annotation = _bare(annotation)
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return any(map(_is_content_list, get_args(annotation)))
    return origin in (list, tuple, Sequence) and _is_content(annotation)


_CONTAINERS = (list, tuple, Sequence, Union, UnionType)


def _wire_name(kind: type) -> str | None:
    """Return the name of the ``mcp_types`` result or block that *kind* is, or is derived from."""
    for base in kind.__mro__:
        if base.__name__ in _RAW and base.__module__.partition(".")[0] in ("mcp_types", "mcp"):
            return base.__name__
    return None


def _wire_kind(value: Any) -> str | None:
    kind = type(value)
    # Without the module no value can be one of its classes.
    return _wire_name(kind) if kind.__module__ != "builtins" and "mcp_types" in sys.modules else None


def _block(value: Any) -> bool:
    return _wire_kind(value) in _BLOCKS


def _dump(value: Any) -> dict[str, Any]:
    """Write a result or a block of ``mcp_types`` as JSON values."""
    try:
        dumped: dict[str, Any] = value.model_dump(by_alias=True, exclude_none=True, mode="json", warnings="error")
    except Exception as exc:
        raise ServerOutputError(f"The tool returned a {type(value).__name__} without a JSON form") from exc
    return dumped


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _json(value: Any) -> str:
    try:
        return encode(value).decode()
    except EncodeError as exc:
        raise ServerOutputError(f"The tool returned a value without a JSON form: {exc}") from None


def _plain(value: Any) -> Any:
    try:
        return to_jsonable_python(value, by_alias=True)
    except Exception as exc:
        raise ServerOutputError(f"The tool returned a value without a JSON form: {type(value).__name__}") from exc


def _shown(plain: Any) -> str:
    """Return the text of a JSON value: a string as it is, anything else as JSON."""
    return plain if isinstance(plain, str) else _json(plain)


def _content(value: Any) -> list[dict[str, Any]]:
    """Return content: of a text, of a block, or of a list that mixes them."""
    try:
        return list(_blocks(value))
    except RecursionError as exc:
        raise ServerOutputError("The tool returned content that nests without end") from exc


def _blocks(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, str):
        yield _text(value)
    elif _block(value):
        yield _dump(value)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _blocks(item)
    else:
        yield _text(_shown(_plain(value)))


def _free(value: Any) -> Result:
    """Turn a value that nothing was declared for into a result."""
    if isinstance(value, str):
        return {"content": [_text(value)]}
    if value is None:
        return {"content": []}
    full = _full(value)
    if full is not None:
        return full
    if _block(value) or (isinstance(value, list | tuple) and any(map(_block, value))):
        return {"content": _content(value)}
    plain = _plain(value)
    result: Result = {"content": [_text(_shown(plain))]}
    if type(plain) is dict:
        result["structuredContent"] = plain
    return result


def _listed(value: Any) -> Result:
    """Turn a value whose lists are declared to be content into a result."""
    return {"content": _content(value)} if isinstance(value, list | tuple) else _free(value)


def _text_only(convert: Callable[[Any], Result], value: Any) -> Result:
    """Leave out the structured content, unless the value is a result that has it by itself."""
    result = _full(value)
    if result is None:
        result = convert(value)
        result.pop("structuredContent", None)
    return result


def _full(value: Any) -> Result | None:
    """Return the result of a value that is one already, whatever was declared; else None."""
    if not isinstance(value, ToolResult):
        if _wire_kind(value) != "CallToolResult":
            return None
        dumped = _dump(value)
        dumped.pop("resultType", None)
        return dumped
    result: Result = {"content": [] if value.content is None else _content(value.content)}
    if value.structured is not _UNSET:
        result["structuredContent"] = _plain(value.structured)
        if not result["content"]:
            result["content"] = [_text(_shown(result["structuredContent"]))]
    if value.is_error:
        result["isError"] = True
    if value.meta is not None:
        if not isinstance(value.meta, Mapping):
            raise ServerOutputError("The tool returned a result whose meta is not a mapping")
        result["_meta"] = _plain(dict(value.meta))
    return result


def _conforming(schema: dict[str, Any] | SchemaValidator) -> Callable[[Result], Result]:
    """Return the check of results that come whole: their structured content fits the output schema (S-103)."""

    def check(result: Result) -> Result:
        if result.get("isError"):
            return result
        if "structuredContent" not in result:
            raise _mismatch("no structured content, but an output schema is declared")
        try:
            validator = validator_of(schema, "The output schema") if isinstance(schema, dict) else schema
        except ValueError as exc:
            raise _mismatch(f"structured content that cannot be checked: {exc}") from exc
        problems = validator.problems(result["structuredContent"])
        if problems:
            path, message = problems[0]
            raise _mismatch(f"structured content that breaks the output schema: {path + ': ' if path else ''}{message}")
        return result

    return check


def _simple(kind: type, check: Callable[[Result], Result]) -> Callable[[Any], Result]:
    def convert(value: Any) -> Result:
        if type(value) is not kind:
            if (full := _full(value)) is not None:
                return check(full)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise _mismatch(f"a value of type {type(value).__name__}, but {kind.__name__} is declared")
            value = str.__str__(value) if kind is str else int(cast("int", value))  # a subclass, such as an enum
        text = value if kind is str else _json(value)
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": value}}

    return convert


def _typed(adapter: Any, wrap: bool, check: Callable[[Result], Result]) -> Callable[[Any], Result]:
    validate = adapter.validator.validate_python
    dump = adapter.serializer.to_python

    def convert(value: Any) -> Result:
        if (full := _full(value)) is not None:
            return check(full)
        try:
            plain = dump(validate(value), mode="json", by_alias=True, warnings="error")
        except ValidationError as exc:
            path, message = problems_of(exc)[0]
            raise _mismatch(f"a value that breaks its declared type: {path + ': ' if path else ''}{message}") from exc
        except Exception as exc:
            raise _mismatch("a value that cannot be serialised as its declared type") from exc
        return {"content": [_text(_shown(plain))], "structuredContent": {"result": plain} if wrap else plain}

    return convert


def _checked(validator: SchemaValidator) -> Callable[[Any], Result]:
    check = _conforming(validator)

    def convert(value: Any) -> Result:
        result = _full(value)
        if result is None:
            plain = _plain(value)
            result = {"content": [_text(_shown(plain))], "structuredContent": plain}
        return check(result)

    return convert


def _mismatch(problem: str) -> ServerOutputError:
    return ServerOutputError(f"The tool returned {problem}")
