"""
URI templates (RFC 6570, levels 1 to 3), read backwards: from a URI to the variables (server/resources).

Matching takes time proportional to the length of the URI times the number of expressions; it never backtracks. URIs
are compared as they are written, without normalisation, and the values are percent-decoded. What RFC 6570 leaves
open is decided like this:

- a variable outside the query must be there and not be empty; the earlier of two takes as much as it can;
- ``{x}`` and ``{/x}`` stop at ``/``, ``?`` and ``#``; ``{+x}`` and ``{#x}`` stop at nothing but what the template puts
  behind them;
- the parameters of ``{?x,y}``, ``{&x}`` and ``{;x}`` may come in any order and may be missing; one that the template
  does not name, or that comes twice, is no match;
- a value with a ``..`` path segment or a NUL matches nothing, however it is encoded, so that a handler which opens
  files is not led out of its directory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

__all__ = ["MAX_URI_LENGTH", "UriTemplate", "check_uri", "parse_template"]

#: Longer URIs match no template: the bound on the time a client can make the server spend here.
MAX_URI_LENGTH = 8192

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
# Literals of RFC 6570 section 2.1: no controls, spaces or delimiters, and "%" only in a triplet.
_BAD_LITERAL = re.compile(r"""[\x00-\x20\x7f"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})""")
_BAD_URI = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")
_TRAVERSAL = re.compile(r"(?:^|[/\\])\.\.(?:[/\\]|$)")
_RESERVED = ":/?#[]@!$&'()*+,;="
_LATER = "=,!@|"


class _Literal(NamedTuple):
    text: str


class _Variable(NamedTuple):
    name: str
    stops: str


class _Form(NamedTuple):
    lead: str
    names: tuple[str, ...]
    stops: str


_Item = _Literal | _Variable | _Form


class _Expression(NamedTuple):
    operator: str
    names: tuple[str, ...]


def check_uri(uri: object) -> str:
    """
    Return *uri* if it can name a resource: a scheme, and nothing that RFC 3986 forbids.

    Raises:
        ValueError: it cannot.
    """
    if not isinstance(uri, str) or _SCHEME.match(uri) is None or _BAD_URI.search(uri):
        raise ValueError(
            f"{uri!r} is not a URI: it starts with a scheme such as config://, and spaces are percent-encoded"
        )
    return uri


@lru_cache(maxsize=1024)
def parse_template(text: str) -> UriTemplate:
    """
    Parse *text*; the result is cached, since every fresh server registers the same templates again.

    Raises:
        ValueError: the template is malformed, uses level 4, or names a variable twice.
    """
    return UriTemplate(text)


class UriTemplate:
    """
    A parsed template.

    Attributes:
        text: the template as written.
        names: its variables, in order.
        optional: those that a matching URI may leave out (query and path-style parameters).
    """

    __slots__ = ("_items", "_parts", "_prefix", "names", "optional", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = tuple(_parse(text))
        expressions = [part for part in self._parts if isinstance(part, _Expression)]
        self.names = tuple(name for part in expressions for name in part.names)
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"URI template {text!r} names a variable twice; give each its own name")
        self._items = _compile(self._parts)
        self.optional = frozenset(name for item in self._items if isinstance(item, _Form) for name in item.names)
        first = self._items[0] if self._items else None
        self._prefix = first.text if isinstance(first, _Literal) else ""

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded variables of *uri*, or None when the template does not produce it."""
        if not uri.startswith(self._prefix) or len(uri) > MAX_URI_LENGTH or _BAD_URI.search(uri):
            return None
        reach = [bytearray(len(uri) + 1)]
        reach[0][len(uri)] = 1
        for item in reversed(self._items):
            reach.append(_before(item, uri, reach[-1]))
        if not reach.pop()[0]:
            return None
        values: dict[str, str] = {}
        position = 0
        for item in self._items:
            end = _longest(item, uri, position, reach.pop())
            if isinstance(item, _Variable):
                values[item.name] = uri[position:end]
            elif isinstance(item, _Form) and not _read_form(item, uri[position:end], values):
                return None
            position = end
        return _decoded(values)

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI for *values* (RFC 6570 section 3.2); a variable that is absent or None vanishes."""
        return "".join(part.text if isinstance(part, _Literal) else _expand(part, values) for part in self._parts)


def _parse(text: str) -> list[_Literal | _Expression]:
    parts: list[_Literal | _Expression] = []
    position = 0
    for found in _EXPRESSION.finditer(text):
        parts += _literal(text, position, found.start())
        parts.append(_expression(text, found[1]))
        position = found.end()
    return parts + _literal(text, position, len(text))


def _literal(text: str, start: int, end: int) -> list[_Literal | _Expression]:
    literal = text[start:end]
    bad = _BAD_LITERAL.search(literal)
    if bad:
        place = start + bad.start()
        raise ValueError(f"URI template {text!r} has a stray {text[place]!r} at position {place}")
    return [_Literal(literal)] if literal else []


def _expression(text: str, body: str) -> _Expression:
    operator, names = ("", body) if not body or body[0] not in "+#./;?&" else (body[0], body[1:])
    if body and body[0] in _LATER:
        raise ValueError(f"URI template {text!r}: {body[0]!r} is reserved by RFC 6570 for later extensions")
    split = tuple(names.split(","))
    for name in split:
        if name.endswith("*") or ":" in name:
            raise ValueError(
                f"URI template {text!r}: {name!r} is level 4 of RFC 6570, which is not supported; "
                "write {+path} for a value with slashes"
            )
        if not _NAME.fullmatch(name):
            raise ValueError(f"URI template {text!r}: {{{body}}} is not an expression such as {{name}} or {{?q,limit}}")
    return _Expression(operator, split)


def _compile(parts: tuple[_Literal | _Expression, ...]) -> tuple[_Item, ...]:
    items: list[_Item] = []
    in_query = False
    for index, part in enumerate(parts):
        if isinstance(part, _Literal):
            items.append(part)
            in_query = in_query or "?" in part.text
        elif part.operator in ("?", "&", ";"):
            in_query = in_query or part.operator != ";"
            previous = items[-1] if items else None
            if part.operator == "&" and isinstance(previous, _Form) and previous.lead != ";":
                # {?a}{&b} is one query whose parameters come in any order.
                items[-1] = previous._replace(names=previous.names + part.names)
            else:
                items.append(_Form(part.operator, part.names, "/?#" if part.operator == ";" else "#"))
        else:
            items += _values(part, _stops(part, parts[index + 1 :], in_query))
    return tuple(items)


def _stops(part: _Expression, rest: tuple[_Literal | _Expression, ...], in_query: bool) -> str:
    """Return the characters that end a value of *part*."""
    if part.operator in ("+", "#"):
        later = "".join(item.text if isinstance(item, _Literal) else item.operator for item in rest)
        stops = "".join(mark for mark in "?#" if mark in later)
    else:
        stops = "&#" if in_query else "/?#"
    if rest and isinstance(rest[0], _Expression) and rest[0].operator in ("?", "&", ";"):
        stops += rest[0].operator
    if len(part.names) > 1:
        stops += "." if part.operator == "." else ","
    return stops


def _values(part: _Expression, stops: str) -> list[_Item]:
    between = part.operator if part.operator in (".", "/") else ","
    items: list[_Item] = []
    for index, name in enumerate(part.names):
        lead = between if index else part.operator.replace("+", "")
        if lead:
            items.append(_Literal(lead))
        items.append(_Variable(name, stops))
    return items


def _before(item: _Item, uri: str, ends: bytearray) -> bytearray:
    """Mark every position from which *item* reaches one of *ends*."""
    starts = bytearray(len(ends))
    if isinstance(item, _Literal):
        text = item.text
        width = len(text)
        position = uri.find(text)
        while position >= 0:
            starts[position] = ends[position + width]
            position = uri.find(text, position + 1)
        return starts
    stops = item.stops
    reached = 0
    if isinstance(item, _Variable):
        for position in range(len(uri) - 1, -1, -1):
            reached = 0 if uri[position] in stops else reached | ends[position + 1]
            starts[position] = reached
        return starts
    starts[len(uri)] = ends[len(uri)]
    for position in range(len(uri) - 1, -1, -1):
        # `reached`: from position + 1, a run free of stops (perhaps an empty one) leads to an end.
        reached |= ends[position + 1]
        starts[position] = ends[position] | (reached if uri[position] == item.lead else 0)
        if uri[position] in stops:
            reached = 0
    return starts


def _longest(item: _Item, uri: str, position: int, ends: bytearray) -> int:
    """Return the furthest of *ends* that *item* reaches from *position*; there is one."""
    if isinstance(item, _Literal):
        return position + len(item.text)
    best = position
    index = position
    if isinstance(item, _Form):
        if uri[index : index + 1] != item.lead:
            return position
        index += 1
        best = index if ends[index] else position
    while index < len(uri) and uri[index] not in item.stops:
        index += 1
        if ends[index]:
            best = index
    return best


def _read_form(item: _Form, text: str, values: dict[str, str]) -> bool:
    if not text:
        return True
    for pair in text[1:].split(";" if item.lead == ";" else "&"):
        name, _, value = pair.partition("=")
        if name not in item.names or name in values:
            return False
        values[name] = value
    return True


def _decoded(values: dict[str, str]) -> dict[str, str] | None:
    for name, value in values.items():
        if "%" in value:
            try:
                value = unquote(value, errors="strict")
            except UnicodeDecodeError:
                return None
            values[name] = value
        if ".." in value and _TRAVERSAL.search(value):
            return None
        if "\0" in value:
            return None
    return values


def _expand(part: _Expression, values: Mapping[str, Any]) -> str:
    operator = part.operator
    pieces = []
    for name in part.names:
        if values.get(name) is None:
            continue
        value = _quote(str(values[name]), reserved=operator in ("+", "#"))
        if operator in ("?", "&"):
            value = f"{name}={value}"
        elif operator == ";":
            value = f"{name}={value}" if value else name
        pieces.append(value)
    if not pieces:
        return ""
    between = {".": ".", "/": "/", ";": ";", "?": "&", "&": "&"}.get(operator, ",")
    return operator.replace("+", "") + between.join(pieces)


def _quote(value: str, *, reserved: bool) -> str:
    if not reserved:
        return quote(value, safe="")
    # Reserved expansion keeps triplets that are there already (RFC 6570 section 3.2.1).
    return "".join(
        piece if index % 2 else quote(piece, safe=_RESERVED) for index, piece in enumerate(_TRIPLET.split(value))
    )
