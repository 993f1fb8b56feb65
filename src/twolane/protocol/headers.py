"""
The request's headers: one pass over the raw list, the ``Mcp-*`` value codec and ``x-mcp-header`` declarations
(basic/transports/streamable-http, "Standard headers" and "Custom headers").

The body is the source of truth; headers only repeat it for intermediaries, so a header that disagrees is refused.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from twolane.protocol.message import MAX_SAFE_INTEGER

__all__ = [
    "MAX_HEADER_SIZE",
    "HeaderParam",
    "Headers",
    "check_params",
    "decode_value",
    "encode_value",
    "has_foreign_characters",
    "header_params",
]

#: Bytes that the values of all headers read here may have together (S-059). Servers in front allow about as much.
MAX_HEADER_SIZE = 64 * 1024

_PREFIX = "=?base64?"
_SUFFIX = "?="
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
#: What a header value may hold: visible ASCII, space and tab (S-040).
_FOREIGN = re.compile(r"[^\t\x20-\x7e]")
_KEPT = frozenset(
    (
        b"accept",
        b"access-control-request-headers",
        b"access-control-request-method",
        b"content-length",
        b"content-type",
        b"host",
        b"last-event-id",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
    )
)
_PARAM = b"mcp-param-"


class Headers:
    """
    The headers this library reads, by lower-case name.

    Values are decoded as Latin-1 and stripped of optional whitespace (S-038). A header sent twice is joined by ", ",
    so that it never equals a single value. ``size`` is the length of all values together.
    """

    __slots__ = ("_values", "size")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        values: dict[bytes, str] = {}
        repeated: dict[bytes, list[str]] = {}
        size = 0
        for name, value in raw:
            # ASGI says names are lower-case; not every in-process caller obeys.
            key = name if name in _KEPT else name.lower()
            if key in _KEPT or key.startswith(_PARAM):
                size += len(value)
                text = value.decode("latin-1").strip(" \t")
                if key in values:
                    repeated.setdefault(key, [values[key]]).append(text)
                else:
                    values[key] = text
        for key, texts in repeated.items():
            values[key] = ", ".join(texts)
        self._values = values
        self.size = size

    def get(self, name: bytes) -> str | None:
        """Return the value of the header *name* (lower-case bytes), or None."""
        return self._values.get(name)

    def params(self) -> Iterator[tuple[bytes, str]]:
        """Yield every ``Mcp-Param-*`` header as (lower-case name, value)."""
        return ((name, value) for name, value in self._values.items() if name.startswith(_PARAM))


def has_foreign_characters(value: str) -> bool:
    """Tell whether *value* holds anything but visible ASCII, space and tab."""
    # The first two are far cheaper and settle nearly every value.
    return not (value.isascii() and value.isprintable()) and _FOREIGN.search(value) is not None


def decode_value(value: str) -> str | None:
    """
    Undo the Base64 sentinel of an ``Mcp-Name`` or ``Mcp-Param-*`` value.

    A value without the exact form ``=?base64?...?=`` is literal text. None means that the form is there and the
    content is not canonical Base64 of UTF-8.
    """
    if not value.startswith(_PREFIX) or not value.endswith(_SUFFIX) or len(value) < len(_PREFIX) + len(_SUFFIX):
        return value
    payload = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        raw = binascii.a2b_base64(payload.encode("ascii"), strict_mode=True) if payload else b""
        if binascii.b2a_base64(raw, newline=False).decode() != payload:
            return None
        return raw.decode("utf-8")
    except (binascii.Error, UnicodeError):
        return None


def encode_value(value: str) -> str:
    """Write *value* for an ``Mcp-Name`` or ``Mcp-Param-*`` header, as Base64 where plain text would not survive."""
    literal = value and value == value.strip(" \t") and not has_foreign_characters(value)
    if literal and not (value.startswith(_PREFIX) and value.endswith(_SUFFIX)):
        return value
    return f"{_PREFIX}{binascii.b2a_base64(value.encode(), newline=False).decode()}{_SUFFIX}"


class HeaderParam(NamedTuple):
    """One ``x-mcp-header`` declaration: the lower-case header name, where its value stands, and its JSON type."""

    header: str
    path: tuple[str, ...]
    type: str


def header_params(input_schema: Mapping[str, Any]) -> tuple[HeaderParam, ...]:
    """
    Collect the ``x-mcp-header`` declarations of a tool's input schema.

    Raises:
        ValueError: a declaration breaks the rules (server/tools, "x-mcp-header"): a non-empty HTTP token, unique
            ignoring case, on a string, integer or boolean that is reached through ``properties`` alone.
    """
    found: list[HeaderParam] = []
    names: set[str] = set()
    for schema, path, reachable in _schemas(input_schema):
        if "x-mcp-header" not in schema:
            continue
        name = schema["x-mcp-header"]
        where = ".".join(path) or "the root"
        if not reachable:
            raise ValueError(f"x-mcp-header at {where} must be reached through 'properties' alone")
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ValueError(f"x-mcp-header at {where} must be a non-empty HTTP token, not {name!r}")
        if name.lower() in names:
            raise ValueError(f"x-mcp-header {name!r} is declared twice (names are compared ignoring case)")
        kind = schema.get("type")
        if kind not in ("string", "integer", "boolean"):
            raise ValueError(f"x-mcp-header at {where} needs the type string, integer or boolean, not {kind!r}")
        names.add(name.lower())
        found.append(HeaderParam(f"mcp-param-{name.lower()}", path, kind))
    return tuple(found)


def _schemas(root: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], tuple[str, ...], bool]]:
    """Yield every subschema with its path and whether only ``properties`` led there."""
    stack: list[tuple[Any, tuple[str, ...], bool, bool]] = [(root, (), True, False)]
    while stack:
        node, path, reachable, is_map = stack.pop()
        if isinstance(node, Mapping):
            if not is_map:
                yield node, path, reachable and bool(path)
            for key, value in node.items():
                if is_map:
                    stack.append((value, (*path, str(key)), reachable, False))
                elif key == "properties":
                    stack.append((value, path, reachable, True))
                elif key in _DATA_KEYWORDS:
                    continue
                else:
                    stack.append((value, (*path, str(key)), False, key in _MAP_KEYWORDS))
        elif isinstance(node, list | tuple):
            stack.extend((item, (*path, str(index)), False, False) for index, item in enumerate(node))


_MAP_KEYWORDS = frozenset(
    ("$defs", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "patternProperties")
)
_DATA_KEYWORDS = frozenset(("const", "default", "enum", "examples"))


def check_params(declared: Iterable[HeaderParam], arguments: Mapping[str, Any], headers: Headers) -> str | None:
    """
    Compare the ``Mcp-Param-*`` headers with the arguments.

    Returns:
        What disagrees, or None. A header whose argument is absent or null is a mismatch: an intermediary has acted
        on a value that the server never sees.
    """
    for param in declared:
        received = headers.get(param.header.encode())
        value: Any = arguments
        for key in param.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if received is not None and has_foreign_characters(received):
            return f"{param.header} holds characters outside visible ASCII; encode it as Base64"
        if value is None:
            if received is not None:
                return f"{param.header} is sent, but the argument {'.'.join(param.path)} is not"
            continue
        if not isinstance(value, str | int | bool | float):
            continue  # The argument has the wrong type, which its own validation reports.
        if not isinstance(value, str | bool) and abs(value) > MAX_SAFE_INTEGER:
            return f"the argument {'.'.join(param.path)} is outside the range an annotated integer may have"
        if received is None:
            return f"{param.header} is missing, but the argument {'.'.join(param.path)} is sent"
        decoded = decode_value(received)
        if decoded is None:
            return f"{param.header} is not valid Base64 of UTF-8"
        if not _same(decoded, value):
            return f"{param.header} differs from the argument {'.'.join(param.path)}"
    return None


def _same(text: str, value: str | int | float) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, str):
        return text == value
    # Numbers compare numerically (S-053): 42 equals 42.0, exactly, whatever their size.
    if not _DECIMAL.fullmatch(text) or len(text) > 400:
        return False
    whole, _, fraction = text.partition(".")
    if isinstance(value, float) and not value.is_integer():
        return float(text) == value
    return not fraction.strip("0") and int(whole) == int(value)
