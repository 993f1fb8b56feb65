"""What the fuzz tests draw from: JSON values, requests that are nearly right, and raw headers."""

from __future__ import annotations

import copy
import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from tests.support.posts import V, enveloped
from twolane.protocol.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from twolane.protocol.headers import Headers, encode_value

__all__ = ["FUZZ", "JSON", "SCALARS", "TEXT", "WILD", "bodies", "headers", "raw_headers"]

#: Cases vary in cost, and machines in speed: no deadline for a single one. More examples for a long look by hand.
FUZZ = settings(deadline=None, max_examples=int(os.environ.get("TWOLANE_FUZZ_EXAMPLES", "300")))

VERSIONS = st.sampled_from([V, "2025-11-25", "2025-03-26", "2024-11-05", "2030-01-01", "banana", "", "é"])
METHODS = st.sampled_from(
    ["tools/call", "tools/list", "prompts/get", "resources/read", "initialize", "server/discover", "n/x", "", "é"]
)
KEYS = st.sampled_from(
    [
        "jsonrpc",
        "id",
        "method",
        "params",
        "result",
        "error",
        "_meta",
        "name",
        "uri",
        "arguments",
        "progressToken",
        PROTOCOL_VERSION,
        CLIENT_CAPABILITIES,
        CLIENT_INFO,
        LOG_LEVEL,
    ]
)
TEXT = st.text(max_size=12)
INTEGERS = st.one_of(
    st.integers(),
    st.sampled_from([2**53 - 1, 2**53, -(2**53), 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**25, 10**400]),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXT, VERSIONS, METHODS)

#: Any JSON value, with the protocol's own names more often than chance would have them.
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TEXT), inner, max_size=5)),
    max_leaves=20,
)

#: What a lenient decoder may hand over as a parsed body: lone surrogates, NaN and Infinity as well.
WILD = st.recursive(
    st.one_of(SCALARS, st.floats(), st.text(st.characters(categories=["Cs", "L"]), max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(KEYS, st.text(st.characters(categories=["Cs", "L"]), max_size=5)), inner, max_size=5),
    ),
    max_leaves=20,
)


@st.composite
def bodies(draw: st.DrawFn, junk: st.SearchStrategy[Any] = JSON) -> Any:
    """A right request of either era, with up to two of its members left out or replaced by *junk*."""
    method = draw(METHODS)
    params: dict[str, Any] = {"name": draw(TEXT), "uri": "x:y", "arguments": {"a": draw(SCALARS)}}
    meta: dict[str, Any] = {"progressToken": 1}
    if draw(st.integers(0, 3)):
        meta |= enveloped(version=draw(st.just(V) | VERSIONS), capabilities={"sampling": {}, "elicitation": {}})
        meta |= {CLIENT_INFO: {"name": "c", "version": "1"}, LOG_LEVEL: "info"}
    params["_meta"] = meta
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": draw(st.integers(-5, 5) | TEXT), "method": method, "params": params}
    places: list[dict[str, Any]] = [
        body,
        params,
        meta,
        meta,
        *(item for item in meta.values() if isinstance(item, dict)),
    ]
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        place = draw(st.sampled_from(places))
        key = draw(st.sampled_from([*place, "extra"]))
        if draw(st.booleans()):
            place.pop(key, None)
        else:
            place[key] = draw(junk)
    if draw(st.integers(0, 9)) == 0:
        return [copy.deepcopy(body) for _ in range(draw(st.integers(0, 3)))]
    return body


_NAMES = st.sampled_from(
    [
        b"mcp-protocol-version",
        b"MCP-Protocol-Version",
        b"mcp-method",
        b"mcp-name",
        b"Mcp-Param-Region",
        b"mcp-param-a",
        b"host",
        b"origin",
        b"accept",
        b"content-type",
        b"content-length",
        b"access-control-request-headers",
        b"mcp-session-id",
        b"x-other",
    ]
)
_VALUES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [
            b"localhost",
            b"http://localhost:5173",
            b"null",
            b"application/json",
            b"text/event-stream, */*;q=0",
            b"=?base64?eA==?=",
            b"=?base64?!?=",
            b"12",
            b"mcp-param-a, mcp-param-\r\nx",
        ]
    ),
    VERSIONS.map(lambda text: text.encode("latin-1")),
    METHODS.map(lambda text: text.encode("latin-1")),
)


def raw_headers() -> st.SearchStrategy[list[tuple[bytes, bytes]]]:
    """Any raw headers."""
    return st.lists(st.tuples(_NAMES, _VALUES), max_size=8)


def headers(body: Any) -> st.SearchStrategy[Headers]:
    """Headers for *body*: those that it calls for, with some left out and others in their place."""
    right: list[tuple[bytes, bytes]] = []
    params = body.get("params") if isinstance(body, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    for name, source, key in (
        (b"mcp-protocol-version", meta, PROTOCOL_VERSION),
        (b"mcp-method", body, "method"),
        (b"mcp-name", params, "uri" if isinstance(body, dict) and body.get("method") == "resources/read" else "name"),
    ):
        value = source.get(key) if isinstance(source, dict) else None
        if isinstance(value, str):
            try:
                right.append((name, encode_value(value).encode() if name == b"mcp-name" else value.encode("latin-1")))
            except UnicodeEncodeError:
                continue
    chosen = st.just(right) | st.lists(st.sampled_from(right), max_size=3, unique=True) if right else st.just([])
    return st.builds(lambda some, more: Headers([*some, *more]), chosen, st.just([]) | raw_headers())
