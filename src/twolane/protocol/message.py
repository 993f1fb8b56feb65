"""
JSON-RPC messages: bytes in, one checked message or a refusal out (basic, "Messages"; basic/transports/streamable-http).

Decoding is strict where decoders differ: UTF-8 only and no byte order mark, no NaN or Infinity, no integer that a
double would round, at most :data:`MAX_DEPTH` levels of nesting. A key that appears twice keeps its last value, as in
every widespread decoder.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeGuard

import orjson
from pydantic_core import from_json

from twolane.errors import INVALID_REQUEST
from twolane.protocol.refusal import Refusal

__all__ = [
    "MAX_BATCH",
    "MAX_DEPTH",
    "MAX_SAFE_INTEGER",
    "DecodeError",
    "EncodeError",
    "Message",
    "PostedResponse",
    "RequestId",
    "decode",
    "encode",
    "error_message",
    "frame",
    "is_text",
    "readable_id",
    "result_message",
]

#: Levels of arrays and objects a body may nest.
MAX_DEPTH = 200
#: Messages one batch may hold (2025-03-26 only).
MAX_BATCH = 100
#: The largest integer that a double holds without rounding; ids beyond it would come back changed from most peers.
MAX_SAFE_INTEGER = 2**53 - 1

RequestId = int | str

# Digits become 0 and opening brackets become [, so that two substring operations bound the depth and find integers
# that orjson would turn into a rounded float: 0.4 us for a call, against 1.2 us for parsing everything exactly.
_SHAPE = bytes.maketrans(b"123456789{", b"000000000[")
_WIDE_INTEGER = b"0" * 19


class DecodeError(ValueError):
    """The bytes are not JSON as this module accepts it. The text says why, without quoting the body."""


class EncodeError(ValueError):
    """The value cannot be written as JSON."""


class Message(NamedTuple):
    """A request, or a notification when ``id`` is None."""

    id: RequestId | None
    method: str
    params: dict[str, Any] | None


class PostedResponse(NamedTuple):
    """A JSON-RPC response that a client posted: ``result`` or ``error`` under ``id``."""

    id: RequestId | None
    value: dict[str, Any]


def decode(body: bytes) -> Any:
    """
    Decode *body*.

    Raises:
        DecodeError: the body is not strict JSON.
    """
    shape = body.translate(_SHAPE)
    if _WIDE_INTEGER in shape or shape.count(b"[") > MAX_DEPTH:
        return _decode_exactly(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise DecodeError(f"{exc.msg} at byte {exc.pos}") from None


def _decode_exactly(body: bytes) -> Any:
    try:
        # Refuses nesting beyond 200 levels and reads integers of any size exactly, but lets 1e999 become infinity.
        value = from_json(body, allow_inf_nan=False)
    except ValueError as exc:
        raise DecodeError(str(exc)) from None
    if _holds_nonfinite(value):
        raise DecodeError("a number is too large for a double")
    return value


def _holds_nonfinite(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return True
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
        # Two more kinds that orjson takes apart by itself.
        elif isinstance(item, Enum):
            stack.append(item.value)
        elif is_dataclass(item):
            stack.extend(getattr(item, field.name) for field in fields(item))
    return False


def encode(value: Any) -> bytes:
    """
    Encode *value* as compact JSON. ``orjson.Fragment`` values are spliced in as they are.

    Raises:
        EncodeError: something in the value has no JSON form: NaN, Infinity, an integer beyond 64 bits,
            a key that is not a string, a lone surrogate, a cycle, a foreign type.
    """
    try:
        encoded = orjson.dumps(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise EncodeError(str(exc)) from None
    # orjson writes NaN as null. Only a text that holds a null can hide one, so most results skip the walk.
    if b"null" in encoded and _holds_nonfinite(value):
        raise EncodeError("NaN and Infinity have no JSON form; send null or a string instead")
    return encoded


def result_message(request_id: RequestId, result: Any) -> bytes:
    """Encode a successful response (raises :class:`EncodeError`)."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_message(
    request_id: RequestId | None, code: int, message: str, data: Any = None, *, null_id: bool = False
) -> bytes:
    """
    Encode an error response. Without a readable id the member is left out, or null where *null_id* says so:
    2025-06-18 and older require it.
    """
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    response: dict[str, Any] = {"jsonrpc": "2.0"}
    if request_id is not None or null_id:
        response["id"] = request_id
    response["error"] = error
    return encode(response)


def is_text(value: Any) -> TypeGuard[str]:
    """
    Tell whether *value* is a string that can be written as UTF-8.

    This module's own decoder yields no lone surrogates; a body that another one decoded may hold them, and an answer
    that repeats one could not be sent.
    """
    if type(value) is not str:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def readable_id(value: Any) -> RequestId | None:
    """Return the id of a broken message when it is one that a response may carry."""
    if isinstance(value, dict) and isinstance(value.get("method"), str):
        request_id = value.get("id")
        if _is_id(request_id):
            return request_id
    return None


def frame(value: Any) -> Message | PostedResponse | Refusal:
    """
    Check the JSON-RPC shape of one decoded value that is not an array (basic, "Messages").

    An id is a string or an integer: null, booleans and floats are refused (S-022).
    """
    if type(value) is not dict:
        return _malformed(value, "a message is a JSON object")
    if value.get("jsonrpc") != "2.0":
        return _malformed(value, 'the member "jsonrpc" must be "2.0"')
    if "method" not in value:
        return _posted(value)
    method = value["method"]
    if not is_text(method):
        return _malformed(value, "method must be a string")
    params = value.get("params")
    if params is None:
        if "params" in value:
            return _malformed(value, "params must be an object")
    elif type(params) is not dict:
        return _malformed(value, "params must be an object")
    elif (meta := params.get("_meta")) is not None or "_meta" in params:
        if type(meta) is not dict:
            return _malformed(value, "params._meta must be an object")
        if "progressToken" in meta and not _is_id(meta["progressToken"]):
            return _malformed(value, "params._meta.progressToken must be a string or an integer")
    if "id" in value:
        request_id = value["id"]
        if not _is_id(request_id):
            return _malformed(value, f"id must be a string or an integer within {MAX_SAFE_INTEGER}")
        expected = 3 if params is None else 4
    else:
        request_id = None
        expected = 2 if params is None else 3
    if len(value) != expected:
        return _malformed(value, "unknown member: only jsonrpc, id, method and params are allowed")
    return Message(request_id, method, params)


def _posted(value: dict[str, Any]) -> PostedResponse | Refusal:
    if ("result" in value) == ("error" in value):
        return _malformed(value, "a message has a method, a result or an error")
    request_id = value.get("id")
    if not _is_id(request_id) and not (request_id is None and "error" in value):
        return _malformed(value, "a response carries the id of its request")
    if len(value) != (3 if "id" in value else 2):
        return _malformed(value, "unknown member: only jsonrpc, id and a result or an error are allowed")
    return PostedResponse(request_id, value)


def _is_id(value: Any) -> bool:
    if type(value) is not int:
        return is_text(value)
    return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _malformed(value: Any, problem: str) -> Refusal:
    return Refusal(
        400,
        INVALID_REQUEST,
        f"The request body is not a JSON-RPC message: {problem}",
        {"reason": "invalid_message"},
        readable_id(value),
    )
