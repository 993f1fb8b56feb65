"""Cross-origin headers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.posts import LEFT_OUT, headers

from twolane.protocol.cors import Cors

APP = "https://app.example.com"
EXPOSED = (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate")
VARY = (b"vary", b"Origin")


def preflight(cors: Cors, asked: str | bytes | Any = LEFT_OUT, origin: Any = APP) -> dict[bytes, bytes]:
    sent = headers(origin=origin, access_control_request_headers=asked, access_control_request_method="POST")
    pairs = cors.preflight_headers(sent)
    assert len(dict(pairs)) == len(pairs)
    for name, value in pairs:
        assert not set(name + value) & set(range(0x20)), "control characters"
    return dict(pairs)


@pytest.mark.parametrize("option", [None, True, {}, {"allow_origins": "*"}, {"allow_origins": ["*", APP]}])
@pytest.mark.parametrize("origin", [None, APP, "null", "garbage\xff"])
def test_any_origin_may_read_by_default(option: Any, origin: str | None) -> None:
    """By default every page may read every answer, and the answer does not depend on who asks."""
    assert Cors(option).headers(origin) == ((b"access-control-allow-origin", b"*"), EXPOSED)


@pytest.mark.obligation("X-01")
def test_several_origins() -> None:
    """Of several configured origins the one that asks is reflected; caches are told so; others get nothing."""
    cors = Cors({"allow_origins": [APP, "http://LOCALHOST:5173"]})
    assert cors.headers(APP) == ((b"access-control-allow-origin", APP.encode()), VARY, EXPOSED)
    assert cors.headers("HTTPS://App.example.com")[0] == (b"access-control-allow-origin", b"HTTPS://App.example.com")
    assert cors.headers("http://localhost:5173")[0] == (b"access-control-allow-origin", b"http://localhost:5173")
    for origin in (None, "https://evil.example", f"{APP}:443", f"{APP}.evil.example", f"{APP}, {APP}", "null", "*", ""):
        assert cors.headers(origin) == (VARY,)


@pytest.mark.obligation("X-01", "X-11")
@pytest.mark.parametrize("extra", ["\r\nset-cookie: a=b", "\n", "\x00", "\t", " ", "\xff", "\u212a"])
def test_an_origin_with_something_else_in_it_is_not_reflected(extra: str) -> None:
    """Only a configured origin is ever written into an answer, so nothing can be smuggled in with it."""
    cors = Cors({"allow_origins": [APP]})
    for origin in (APP + extra, extra + APP):
        assert cors.headers(origin) == (VARY,)
        assert Cors(None).headers(origin)[0] == (b"access-control-allow-origin", b"*")


def test_cors_can_be_off() -> None:
    """Switched off, no answer has a CORS header and OPTIONS is a method like any other."""
    cors = Cors(False)
    assert not cors.enabled
    assert cors.headers(APP) == ()
    assert not cors.is_preflight("OPTIONS", headers(access_control_request_method="POST"))
    assert cors.concrete_origins == ()


def test_options_is_answered() -> None:
    """While CORS is on OPTIONS is a preflight, and nothing else is."""
    assert Cors(None).is_preflight("OPTIONS", headers())
    for method in ("POST", "GET", "options", "DELETE"):
        assert not Cors(None).is_preflight(method, headers(access_control_request_method="POST"))


def test_a_preflight() -> None:
    """A preflight is told the methods, the headers of the protocol, and how long that holds."""
    assert preflight(Cors(None)) == {
        b"access-control-allow-origin": b"*",
        b"access-control-allow-methods": b"GET, POST, DELETE, OPTIONS",
        b"access-control-allow-headers": b"Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, "
        b"MCP-Protocol-Version, Mcp-Session-Id",
        b"access-control-max-age": b"86400",
        b"vary": b"Access-Control-Request-Headers",
    }


def test_a_preflight_from_one_of_several_origins() -> None:
    """With configured origins the answer varies with the origin, and only those are granted anything."""
    cors = Cors({"allow_origins": [APP]})
    granted = preflight(cors)
    assert granted[b"access-control-allow-origin"] == APP.encode()
    assert granted[b"vary"] == b"Origin, Access-Control-Request-Headers"
    for origin in ("https://evil.example", LEFT_OUT):
        refused = preflight(cors, origin=origin)
        assert b"access-control-allow-origin" not in refused
        assert refused[b"vary"] == b"Origin, Access-Control-Request-Headers"


@pytest.mark.obligation("X-11")
@pytest.mark.parametrize(
    ("asked", "echoed"),
    [
        ("mcp-param-region", ["mcp-param-region"]),
        ("Mcp-Param-Region,content-type,\tMCP-PARAM-b ", ["mcp-param-region", "mcp-param-b"]),
        ("mcp-param-!#$%&'*+.^_`|~", ["mcp-param-!#$%&'*+.^_`|~"]),
        ("", []),
        (",,", []),
        ("x-other, cookie, *", []),
        ("mcp-param-", []),
        ("x-mcp-param-a", []),
        ("mcp-param-a b", []),
        ("mcp-param-a\r\nset-cookie: x=y", []),
        ("mcp-param-a\x00", []),
        ("mcp-param-\xe9", []),
        (b"mcp-param-a\x7f, mcp-param-ok", ["mcp-param-ok"]),
        ("mcp-param-a:b, mcp-param-a/b, mcp-param-(a)", []),
    ],
)
def test_parameter_headers_are_granted_by_name(asked: str | bytes, echoed: list[str]) -> None:
    """Mcp-Param-* headers that are asked for are granted one by one, where they are header names and nothing else."""
    granted = preflight(Cors({"allow_headers": ["X-Mine"]}), asked)[b"access-control-allow-headers"]
    assert granted.decode().split(", ") == ["X-Mine", *echoed]


def test_settings_replace_the_defaults() -> None:
    """Each setting replaces its default; nothing exposed means no such header."""
    cors = Cors({"allow_methods": "POST", "allow_headers": ("A", "B"), "expose_headers": [], "max_age": 5})
    granted = preflight(cors)
    assert granted[b"access-control-allow-methods"] == b"POST"
    assert granted[b"access-control-allow-headers"] == b"A, B"
    assert granted[b"access-control-max-age"] == b"5"
    assert cors.headers(APP) == ((b"access-control-allow-origin", b"*"),)


def test_concrete_origins() -> None:
    """The named origins are told without the star, for the Origin check to allow them too."""
    assert Cors(None).concrete_origins == ()
    assert Cors({"allow_origins": ["*", "https://B.example", APP]}).concrete_origins == (APP, "https://b.example")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("*", "cors takes False or a mapping"),
        (5, "cors takes False or a mapping"),
        (["*"], "cors takes False or a mapping"),
        ({"origins": ["*"]}, "cors has no key 'origins'"),
        ({"allowOrigins": ["*"]}, "cors has no key 'allowOrigins'"),
        ({"allow_origins": None}, "takes a list of texts"),
        ({"allow_origins": [5]}, "takes a list of texts"),
        ({"allow_headers": b"x"}, "takes a list of texts"),
        ({"expose_headers": 5}, "takes a list of texts"),
    ],
)
def test_wrong_options(option: Any, message: str) -> None:
    """An option that is not one is a TypeError that names the setting."""
    with pytest.raises(TypeError, match=message):
        Cors(option)
