"""
What a handler returns, as a tool result: content for the model, structured content for programs (server/tools).

A result that breaks the tool's own declaration is the server's fault, never the client's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from twolane.errors import ServerOutputError
from twolane.protocol.inputs import InputRequired
from twolane.protocol.message import EncodeError, encode
from twolane.server.annotations import modern
from twolane.server.arguments import problems_of
from twolane.server.schema import validator_of
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
        return dict(output_schema), _checked(output_schema, where)
    declared = output_schema if output_schema is not None else _declared(annotation)
    if structured is False or declared is _UNSET or declared is NoneType or declared is None:
        if structured is True:
            raise TypeError(f"{where}: structured_output=True needs a return annotation or an output_schema")
        return None, _free if structured is not False else _text_only
    if declared in (str, int, bool):
        return _wrapped({"type": _NAMES[declared]}), _simple(declared)
    what = f"{where}: the return type"
    adapter = adapter_of(modern(declared), what)
    schema = json_schema_of(adapter, "serialization", what)
    as_object = as_object_schema(schema)
    return (as_object or _wrapped(schema)), _typed(adapter, as_object is None)


_NAMES = {str: "string", int: "integer", bool: "boolean"}


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe ``{"result": value}``: structured content of the 2025 revisions is always an object."""
    definitions = schema.pop("$defs", None)
    made: dict[str, Any] = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    if definitions:
        made["$defs"] = definitions
    return made


def _declared(annotation: Any) -> Any:
    """Return the part of a return annotation that describes data; ``_UNSET`` where it describes content or anything."""
    if annotation is Any or annotation is object:
        return _UNSET
    if get_origin(annotation) in (Union, UnionType):
        kept = tuple(arg for arg in get_args(annotation) if arg is not InputRequired)
        if any(_is_content(arg) for arg in kept):
            return _UNSET
        return Union[kept] if kept else _UNSET  # noqa: UP007 - built from a tuple
    return _UNSET if annotation is InputRequired or _is_content(annotation) else annotation


def _is_content(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_content(get_args(annotation)[0])
    if origin is not None:
        return origin in (list, tuple, Union, UnionType, Sequence) and any(map(_is_content, get_args(annotation)))
    if annotation is ToolResult:
        return True
    return isinstance(annotation, type) and annotation.__name__ in _RAW and _is_wire(annotation)


def _is_wire(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("mcp_types", "mcp")


def _block(value: Any) -> bool:
    # Without the module no value can be one of its classes.
    return "mcp_types" in sys.modules and type(value).__name__ in _BLOCKS and _is_wire(type(value))


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
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as exc:
        raise ServerOutputError(f"The tool returned a value without a JSON form: {type(value).__name__}") from exc


def _content(value: Any) -> list[dict[str, Any]]:
    """Return content: of a text, of a block, or of a list that mixes them."""
    if isinstance(value, str):
        return [_text(value)]
    if _block(value):
        return [value.model_dump(by_alias=True, exclude_none=True, mode="json")]
    if isinstance(value, list | tuple):
        return [block for item in value for block in _content(item)]
    return [_text(_json(_plain(value)))]


def _free(value: Any) -> Result:
    """Turn a value that nothing was declared for into a result."""
    if isinstance(value, str):
        return {"content": [_text(value)]}
    if value is None:
        return {"content": []}
    if isinstance(value, ToolResult):
        return _full(value)
    if "mcp_types" in sys.modules and type(value).__name__ == "CallToolResult" and _is_wire(type(value)):
        return value.model_dump(by_alias=True, exclude_none=True, mode="json")  # type: ignore[no-any-return]
    if _block(value) or (isinstance(value, list | tuple) and any(map(_block, value))):
        return {"content": _content(value)}
    plain = _plain(value)
    result: Result = {"content": [_text(_json(plain))]}
    if type(plain) is dict:
        result["structuredContent"] = plain
    return result


def _text_only(value: Any) -> Result:
    result = _free(value)
    if not isinstance(value, ToolResult):
        result.pop("structuredContent", None)
    return result


def _full(value: ToolResult) -> Result:
    result: Result = {"content": _content(value.content)}
    if value.structured is not _UNSET:
        result["structuredContent"] = _plain(value.structured)
        if not result["content"]:
            result["content"] = [_text(_json(result["structuredContent"]))]
    if value.is_error:
        result["isError"] = True
    if value.meta is not None:
        result["_meta"] = _plain(dict(value.meta))
    return result


def _full_or_none(value: Any) -> Result | None:
    """Return the result of a value that is one already, whatever was declared."""
    if isinstance(value, ToolResult):
        return _full(value)
    if type(value).__name__ == "CallToolResult" and _is_wire(type(value)):
        return _free(value)
    return None


def _simple(kind: type) -> Callable[[Any], Result]:
    def convert(value: Any) -> Result:
        if type(value) is not kind:
            if (full := _full_or_none(value)) is not None:
                return full
            if not isinstance(value, kind) or isinstance(value, bool):
                raise _mismatch(f"a value of type {type(value).__name__}, but {kind.__name__} is declared")
            value = str.__str__(value) if kind is str else int(cast("int", value))  # a subclass, such as an enum
        text = value if kind is str else _json(value)
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": value}}

    return convert


def _typed(adapter: Any, wrap: bool) -> Callable[[Any], Result]:
    validate = adapter.validator.validate_python
    dump = adapter.serializer.to_python

    def convert(value: Any) -> Result:
        if (full := _full_or_none(value)) is not None:
            return full
        try:
            plain = dump(validate(value), mode="json", by_alias=True, warnings="error")
        except ValidationError as exc:
            path, message = problems_of(exc)[0]
            raise _mismatch(f"a value that breaks its declared type: {path + ': ' if path else ''}{message}") from exc
        except (PydanticSerializationError, ValueError, TypeError, RecursionError) as exc:
            raise _mismatch("a value that cannot be serialised as its declared type") from exc
        text = plain if isinstance(plain, str) else _json(plain)
        return {"content": [_text(text)], "structuredContent": {"result": plain} if wrap else plain}

    return convert


def _checked(schema: Mapping[str, Any], where: str) -> Callable[[Any], Result]:
    validator = validator_of(schema, f"{where}: output_schema")

    def convert(value: Any) -> Result:
        result = _full_or_none(value)
        if result is None:
            plain = _plain(value)
            result = {"content": [_text(plain if isinstance(plain, str) else _json(plain))], "structuredContent": plain}
        if result.get("isError"):
            return result
        if "structuredContent" not in result:
            raise _mismatch("no structured content, but an output schema is declared")
        problems = validator.problems(result["structuredContent"])
        if problems:
            path, message = problems[0]
            raise _mismatch(f"structured content that breaks the output schema: {path + ': ' if path else ''}{message}")
        return result

    return convert


def _mismatch(problem: str) -> ServerOutputError:
    return ServerOutputError(f"The tool returned {problem}")
