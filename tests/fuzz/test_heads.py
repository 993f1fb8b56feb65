"""Headers of any kind: the edge is total, and nothing gets past it by its spelling."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.strategies import FUZZ, JSON, TEXT, raw_headers
from twolane.edge import Edge
from twolane.errors import INVALID_REQUEST
from twolane.protocol.cors import Cors
from twolane.protocol.guard import Guard
from twolane.protocol.headers import (
    HeaderParam,
    Headers,
    check_params,
    decode_value,
    encode_value,
    has_foreign_characters,
    header_params,
)
from twolane.protocol.media import Accepts, accepts, is_json
from twolane.protocol.message import error_message
from twolane.protocol.refusal import Refusal

APP = "https://app.example.com"
LATIN = st.text(st.characters(max_codepoint=0xFF), max_size=30)
#: Pieces that parsers of URLs disagree about.
PIECES = st.sampled_from(
    [
        "localhost",
        "127.0.0.1",
        "[::1]",
        "evil.example",
        "http://",
        "https://",
        "HTTP://",
        "app.example.com",
        *'@:/\\?#.,;%"<>[]{}|^`',
        ":80",
        ":8000",
        ":0",
        ":65536",
        "%2e",
        "%00",
        "\t",
        "\n",
        "\r",
        "\x00",
        " ",
        "\xa0",
        "\xe9",
        "null",
        "0",
    ]
)
AUTHORITIES = st.lists(PIECES, max_size=6).map("".join) | LATIN
LOCAL = {"localhost", "127.0.0.1", "::1"}


def hostname(url: str) -> str | None:
    """The host name by the standard library's reading, without a trailing dot."""
    try:
        name = urlsplit(url).hostname
    except ValueError:
        return None
    return name.rstrip(".") if name else None


@pytest.mark.obligation("S-002", "S-003", "X-01", "X-02")
@FUZZ
@given(host=st.none() | AUTHORITIES, origin=st.none() | AUTHORITIES)
def test_the_guard(host: str | None, origin: str | None) -> None:
    """Whatever passes on a loopback socket names localhost by another parser's reading as well; all else is 403."""
    verdict = Guard(None, None).check(host, origin, "127.0.0.1")
    if verdict is None:
        assert host is not None
        assert hostname(f"//{host}") in LOCAL
        assert not set(host) & set("@/\\?#, \t\r\n\x00%")
        if origin:
            assert hostname(origin) in LOCAL
            assert urlsplit(origin).scheme in ("http", "https")
            assert not set(origin) & set("@\\?#, \t\r\n\x00%")
            assert origin.count("/") == 2
    else:
        assert verdict.status == 403
        error_message(None, verdict.code, verdict.message, verdict.data)


@pytest.mark.obligation("X-01", "X-02")
@FUZZ
@given(host=AUTHORITIES, origin=AUTHORITIES)
def test_the_guard_with_lists(host: str, origin: str) -> None:
    """With lists only what is on them passes, or the origin of the very host that was checked."""
    guard = Guard(["app.example.com"], [APP])
    if guard.check(host, origin, "10.0.0.1") is None:
        assert hostname(f"//{host}") == "app.example.com"
        assert not origin or hostname(origin) == "app.example.com"


@pytest.mark.obligation("X-11")
@FUZZ
@given(origin=st.none() | LATIN | st.just(APP), asked=LATIN | raw_headers().map(lambda raw: repr(raw)))
def test_cors_writes_headers_only(origin: str | None, asked: str) -> None:
    """Nothing that a page sends can end a CORS header or begin another."""
    for option in (None, {"allow_origins": [APP]}):
        cors = Cors(option)
        raw = [(b"access-control-request-headers", asked.encode("latin-1"))]
        if origin is not None:
            raw.append((b"origin", origin.encode("latin-1")))
        for name, value in (*cors.headers(origin), *cors.preflight_headers(Headers(raw))):
            assert re.fullmatch(rb"[a-z-]+", name)
            assert re.fullmatch(rb"[\x21-\x7e]+( [\x21-\x7e]+)*", value)
            if name == b"access-control-allow-origin":
                assert value.lower() in (b"*", APP.encode())


@FUZZ
@given(LATIN | st.lists(PIECES | st.sampled_from(["application/json", "*/*", "q=", "text/event-stream"])).map("".join))
def test_media_types(header: str) -> None:
    """Any Accept and Content-Type is read; what is taken for JSON begins with its name."""
    assert isinstance(accepts(header), Accepts)
    if is_json(header):
        assert re.fullmatch(r"(?si)[ \t]*application/json[ \t]*(;.*)?", header)
    assert accepts(f"{header}, ") == accepts(header)


@pytest.mark.obligation("S-039", "S-040")
@FUZZ
@given(st.text(max_size=30) | st.text(alphabet="=?base64 A\t\n", max_size=30))
def test_values_survive_their_header(value: str) -> None:
    """Any text comes back from the header value it was written as, over the wire's Latin-1 and stripping too."""
    encoded = encode_value(value)
    assert not has_foreign_characters(encoded)
    received = Headers([(b"mcp-name", b" " + encoded.encode("ascii") + b"\t")]).get(b"mcp-name")
    assert received == encoded
    assert decode_value(received) == value


@FUZZ
@given(LATIN | LATIN.map(lambda text: f"=?base64?{text}?="))
def test_any_value_is_decoded_or_refused(value: str) -> None:
    """Any header value is literal text, decoded text or refused."""
    decoded = decode_value(value)
    if value.startswith("=?base64?") and value.endswith("?=") and len(value) > 10:
        payload = value[9:-2]
        assert decoded is None or base64.b64encode(decoded.encode()).decode() == payload
    else:
        assert decoded == value


PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple)


@pytest.mark.obligation("S-052", "S-053", "S-054", "S-056")
@FUZZ
@given(paths=st.lists(PATHS, max_size=3), arguments=st.dictionaries(st.sampled_from("abc"), JSON), raw=raw_headers())
def test_any_arguments_against_any_headers(
    paths: list[tuple[str, ...]], arguments: dict[str, Any], raw: list[tuple[bytes, bytes]]
) -> None:
    """Any arguments agree with their headers or the difference is told in a sentence that can be sent."""
    declared = [HeaderParam(f"mcp-param-{path[-1]}", path, "string") for path in paths]
    detail = check_params(declared, arguments, Headers(raw))
    if detail is not None:
        error_message(1, -32020, detail)
        assert declared


@pytest.mark.obligation("S-053", "S-055")
@FUZZ
@given(TEXT | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1))
def test_arguments_agree_with_the_headers_a_client_sends(value: str | bool | int) -> None:
    """What a client writes for a string, an integer or a boolean always agrees, and never with another value."""
    text = value if isinstance(value, str) else str(value).lower()
    headers = Headers([(b"mcp-param-a", encode_value(text).encode())])
    declared = [HeaderParam("mcp-param-a", ("a",), "string")]
    assert check_params(declared, {"a": value}, headers) is None
    other = value + "x" if isinstance(value, str) else not value if isinstance(value, bool) else value + 1
    assert check_params(declared, {"a": other}, headers) is not None


SCHEMA_KEYS = st.sampled_from(
    ["properties", "type", "x-mcp-header", "items", "anyOf", "$defs", "default", "a", "b", "if", "dependencies"]
)
SCHEMAS = st.recursive(
    st.sampled_from(["string", "integer", "number", "A", "B", "", 5, None, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCHEMA_KEYS, inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.obligation("S-050")
@FUZZ
@given(st.dictionaries(SCHEMA_KEYS, SCHEMAS, max_size=4))
def test_any_schema(schema: dict[str, Any]) -> None:
    """Any schema yields declarations that keep the rules, or a ValueError with a sentence."""
    try:
        found = header_params(schema)
    except ValueError as exc:
        complaint = str(exc)
    else:
        complaint = None
    if complaint is not None:
        assert complaint.startswith("x-mcp-header")
        return
    assert len({one.header for one in found}) == len(found)
    for one in found:
        node: Any = schema
        for step in one.path:
            node = node["properties"][step]
        assert one.header == f"mcp-param-{node['x-mcp-header'].lower()}"
        assert node["type"] == one.type
        assert one.type in ("string", "integer", "boolean")


@pytest.mark.obligation("S-002", "S-028")
@FUZZ
@given(
    raw=raw_headers(),
    method=st.sampled_from(["POST", "GET", "OPTIONS", "DELETE", "X"]) | TEXT,
    path=st.sampled_from(["/mcp", "/mcp/", "/", ""]) | TEXT,
    root=st.sampled_from(["", "/", "/mcp", "/m"]) | TEXT,
    server=st.sampled_from([None, ("127.0.0.1", 1), ("::1", 1), ("10.0.0.1", 1), ("/run/x", None)]),
)
def test_the_edge(raw: list[tuple[bytes, bytes]], method: str, path: str, root: str, server: Any) -> None:
    """Any head of a request is let in, is a preflight, or gets a refusal of the transport that can be sent."""
    cors = Cors({"allow_origins": [APP]})
    edge = Edge(frozenset(("/mcp", "/mcp/")), Guard(None, None), cors, max_body_size=10, response_mode="auto")
    scope = {"type": "http", "method": method, "path": path, "root_path": root, "server": server}
    verdict = edge.check(scope, Headers(raw))
    if isinstance(verdict, Refusal):
        assert verdict.status in (400, 403, 404, 405, 406, 413, 415, 431)
        assert verdict.code == INVALID_REQUEST
        assert verdict.data
        assert verdict.data["reason"]
        error_message(None, verdict.code, verdict.message, verdict.data)
    elif verdict is None:
        assert method == "OPTIONS"
    else:
        assert method == "POST"
        assert verdict.json or verdict.sse
