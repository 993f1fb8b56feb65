"""Host and Origin: who may address this endpoint from a browser."""

from __future__ import annotations

from typing import Any

import pytest

from twolane.errors import INVALID_REQUEST
from twolane.protocol.guard import Guard, is_loopback
from twolane.protocol.refusal import Refusal

LOCAL = "127.0.0.1"
PUBLIC = "10.0.0.7"
#: What a page under a rebound name sends: its own name, consistently.
REBOUND = ("evil.example:8000", "http://evil.example:8000")


def reason(verdict: Refusal | None) -> str | None:
    if verdict is None:
        return None
    assert (verdict.status, verdict.code, verdict.id) == (403, INVALID_REQUEST, None)
    assert verdict.data is not None
    return str(verdict.data["reason"])


def check(
    host: str | None = None,
    origin: str | None = None,
    server: str | None = LOCAL,
    hosts: Any = None,
    origins: Any = None,
) -> str | None:
    return reason(Guard(hosts, origins).check(host, origin, server))


@pytest.mark.obligation("S-005", "X-01")
@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("::ffff:127.0.0.1", True),
        ("::FFFF:7f00:1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("192.168.1.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1", False),
        ("example.com", False),
        ("/run/app.sock", False),
        ("127.0.0.1.evil.example", False),
        ("127.1", False),
        ("", False),
        (None, False),
    ],
)
def test_loopback_sockets(address: str | None, loopback: bool) -> None:
    """Loopback is told by the socket's address, in every way a socket reports it."""
    assert is_loopback(address) is loopback


# -- Host --------------------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-005", "X-01")
@pytest.mark.parametrize("server", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.0.0.2"])
@pytest.mark.parametrize(
    ("host", "refusal"),
    [
        ("localhost", None),
        ("localhost:8000", None),
        ("LocalHost:8000", None),
        ("localhost.", None),
        ("localhost.:8000", None),
        ("127.0.0.1", None),
        ("127.0.0.1:65535", None),
        ("[::1]", None),
        ("[::1]:8000", None),
        ("evil.example", "host_not_allowed"),
        ("evil.example:8000", "host_not_allowed"),
        ("localhost.evil.example", "host_not_allowed"),
        ("evil.localhost", "host_not_allowed"),
        ("notlocalhost", "host_not_allowed"),
        ("127.0.0.1.evil.example", "host_not_allowed"),
        ("0.0.0.0:8000", "host_not_allowed"),
        ("127.1", "host_not_allowed"),
        ("2130706433", "host_not_allowed"),
        ("0x7f.0.0.1", "host_not_allowed"),
        ("[::ffff:127.0.0.1]", "host_not_allowed"),
        ("[::]", "host_not_allowed"),
        ("xn--lcalhost-n6a", "host_not_allowed"),
        (None, "invalid_host"),
        ("", "invalid_host"),
        (".", "invalid_host"),
        (":8000", "invalid_host"),
        ("localhost:", "invalid_host"),
        ("localhost:65536", "invalid_host"),
        ("localhost:99999", "invalid_host"),
        ("localhost:123456", "invalid_host"),
        ("localhost:-1", "invalid_host"),
        ("localhost:8000:8000", "invalid_host"),
        ("localhost:80a", "invalid_host"),
        ("localhost:\u0668", "invalid_host"),
        ("::1", "invalid_host"),
        ("[::1", "invalid_host"),
        ("[::1]x", "invalid_host"),
        ("[localhost]", "invalid_host"),
        ("[::1%25lo]", "invalid_host"),
        ("user@localhost", "invalid_host"),
        ("localhost@evil.example", "invalid_host"),
        ("localhost/", "invalid_host"),
        ("localhost#@evil.example", "invalid_host"),
        ("localhost\\evil.example", "invalid_host"),
        ("http://localhost", "invalid_host"),
        ("localhost, localhost", "invalid_host"),
        ("evil.example, localhost", "invalid_host"),
        (" localhost", "invalid_host"),
        ("localhost\t", "invalid_host"),
        ("localhost\n", "invalid_host"),
        ("local\x00host", "invalid_host"),
        ("localhöst", "invalid_host"),
        ("*", "invalid_host"),
    ],
)
def test_hosts_on_a_loopback_socket(host: str | None, refusal: str | None, server: str) -> None:
    """On a loopback socket only localhost names are served, so a rebound name is not; what is no host is refused."""
    assert check(host, server=server) == refusal


@pytest.mark.parametrize("server", [PUBLIC, None, "/run/app.sock"])
@pytest.mark.parametrize("host", ["mcp.example.com", "evil.example", "", None, "a b", "x, y"])
def test_hosts_elsewhere_are_not_checked(host: str | None, server: str | None) -> None:
    """On any other socket the names this server is reached by are unknown, so no Host is refused."""
    assert check(host, server=server) is None


@pytest.mark.obligation("X-01")
@pytest.mark.parametrize("server", [LOCAL, PUBLIC, None])
@pytest.mark.parametrize(
    ("host", "refusal"),
    [
        ("mcp.example.com", None),
        ("MCP.Example.com.:443", None),
        ("[2001:db8::1]:8443", None),
        ("[2001:DB8::1]", None),
        ("xn--bcher-kva.example", None),
        ("localhost", "host_not_allowed"),
        ("127.0.0.1", "host_not_allowed"),
        ("example.com", "host_not_allowed"),
        ("x.mcp.example.com", "host_not_allowed"),
        ("mcp.example.com.evil.example", "host_not_allowed"),
        (None, "invalid_host"),
    ],
)
def test_configured_hosts(host: str | None, refusal: str | None, server: str | None) -> None:
    """With a list exactly its names are served, on every socket, in any case and on any port."""
    assert check("[::1]", server=server, hosts=["::1"]) is check("[::1]:1", server=server, hosts=["[::1]"]) is None
    guard = Guard(["mcp.example.com", "2001:db8::1", "XN--bcher-kva.example."], None)
    assert guard.settles_hosts
    assert reason(guard.check(host, None, server)) == refusal


@pytest.mark.parametrize("host", ["evil.example", None, "a b"])
def test_any_host(host: str | None) -> None:
    """A star serves every Host, loopback or not."""
    guard = Guard("*", None)
    assert guard.settles_hosts
    assert guard.check(host, None, LOCAL) is None


def test_an_empty_list_serves_nobody() -> None:
    """An empty list is a list: no Host is on it."""
    assert check("localhost", hosts=[]) == "host_not_allowed"
    assert check(origin="http://localhost", server=PUBLIC, origins=[]) == "origin_not_allowed"


def test_a_host_refusal_names_the_option() -> None:
    """Whoever is refused learns which option would allow the request."""
    host = Guard(None, None).check("mcp.example.com", None, LOCAL)
    origin = Guard(None, None).check(None, "https://app.example.com", PUBLIC)
    assert host is not None
    assert "allowed_hostnames" in host.message
    assert origin is not None
    assert "allowed_origin_hostnames" in origin.message
    long = Guard(None, None).check("x" * 10_000, None, LOCAL)
    assert long is not None
    assert len(long.message) < 300


# -- Origin ------------------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-004")
@pytest.mark.parametrize("origin", [None, ""])
def test_no_origin(origin: str | None) -> None:
    """Without an Origin no browser is asking across origins, and nothing is refused."""
    assert check("localhost", origin) is None
    assert check("x", origin, PUBLIC, origins=["app.example.com"]) is None


@pytest.mark.obligation("S-003", "S-004", "X-02")
@pytest.mark.parametrize("server", [LOCAL, PUBLIC])
@pytest.mark.parametrize(
    ("origin", "refusal"),
    [
        ("http://localhost", None),
        ("http://localhost:5173", None),
        ("https://LOCALHOST:1", None),
        ("HTTP://localhost", None),
        ("http://127.0.0.1:6274", None),
        ("http://[::1]:6274", None),
        ("http://localhost.", None),
        ("http://localhost:0", None),
        ("http://localhost:65535", None),
        ("http://evil.example", "origin_not_allowed"),
        ("http://localhost.evil.example", "origin_not_allowed"),
        ("http://127.0.0.1.evil.example", "origin_not_allowed"),
        ("http://0.0.0.0", "origin_not_allowed"),
        ("http://[::ffff:127.0.0.1]", "origin_not_allowed"),
        ("null", "invalid_origin"),
        ("NULL", "invalid_origin"),
        ("localhost", "invalid_origin"),
        ("//localhost", "invalid_origin"),
        ("://localhost", "invalid_origin"),
        ("http:localhost", "invalid_origin"),
        ("http:/localhost", "invalid_origin"),
        ("http://", "invalid_origin"),
        ("http://.", "invalid_origin"),
        ("http://:80", "invalid_origin"),
        ("http://localhost/", "invalid_origin"),
        ("http://localhost?x", "invalid_origin"),
        ("http://localhost#x", "invalid_origin"),
        ("http://localhost@evil.example", "invalid_origin"),
        ("http://evil.example@localhost", "invalid_origin"),
        ("http://user:pass@localhost", "invalid_origin"),
        ("http://localhost\\@evil.example", "invalid_origin"),
        ("http://localhost:65536", "invalid_origin"),
        ("http://localhost:", "invalid_origin"),
        ("http://localhost:x", "invalid_origin"),
        ("http://localhost:80:80", "invalid_origin"),
        ("http://[::1", "invalid_origin"),
        ("http://[::1]]", "invalid_origin"),
        ("http://localhost http://evil.example", "invalid_origin"),
        ("http://localhost, http://localhost", "invalid_origin"),
        ("http://evil.example, http://localhost", "invalid_origin"),
        (" http://localhost", "invalid_origin"),
        ("http://localhost\t", "invalid_origin"),
        ("http://local\thost", "invalid_origin"),
        ("http://localhost\n", "invalid_origin"),
        ("http://localhost\r\nX: y", "invalid_origin"),
        ("http://localh\xf6st", "invalid_origin"),
        ("file://", "invalid_origin"),
        ("file://localhost", "invalid_origin"),
        ("data:text/html,x", "invalid_origin"),
        ("ws://localhost", "invalid_origin"),
        ("ftp://localhost", "invalid_origin"),
        ("chrome-extension://abcdefgh", "invalid_origin"),
        ("vscode-webview://localhost", "invalid_origin"),
        ("javascript://localhost", "invalid_origin"),
        ("httpx://localhost", "invalid_origin"),
        ("*", "invalid_origin"),
    ],
)
def test_origins_by_default(origin: str, refusal: str | None, server: str) -> None:
    """By default localhost origins pass; others are not allowed; null, opaque and malformed ones are refused."""
    assert check("localhost", origin, server) == refusal


@pytest.mark.obligation("X-02")
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://app.example.com", True),
        ("http://app.example.com:8080", True),
        ("https://APP.example.com.", True),
        ("https://exact.example:8443", True),
        ("HTTPS://Exact.Example:8443", True),
        ("https://exact.example", False),
        ("http://exact.example:8443", False),
        ("https://default.example", True),
        ("https://default.example:443", True),
        ("http://default.example", False),
        ("http://default.example:443", False),
        ("http://[2001:db8::1]:99", True),
        ("https://x.app.example.com", False),
        ("https://app.example.com.evil.example", False),
        ("http://localhost", False),
        ("http://127.0.0.1", False),
    ],
)
def test_configured_origins(origin: str, allowed: bool) -> None:
    """A bare name is any http or https origin of that host; an entry with a scheme is exactly that origin."""
    entries = ["App.Example.com", "https://exact.example:8443", "https://default.example", "2001:db8::1"]
    assert check("x", origin, PUBLIC, origins=entries) == (None if allowed else "origin_not_allowed")


@pytest.mark.obligation("X-02")
@pytest.mark.parametrize("origin", ["null", "https://evil.example", "garbage", "chrome-extension://x"])
def test_any_origin(origin: str) -> None:
    """A star checks no Origin at all; the Host is still checked."""
    assert check("localhost", origin, origins="*") is None
    assert check("evil.example", origin, origins="*") == "host_not_allowed"


@pytest.mark.obligation("X-01", "X-02")
def test_cors_origins_are_allowed_by_default() -> None:
    """Origins named for CORS may also send requests, unless a list of its own says otherwise."""
    guard = Guard(None, None, ["https://app.example.com"])
    assert guard.check("localhost", "https://app.example.com", LOCAL) is None
    assert guard.check("localhost", "http://localhost:1", LOCAL) is None
    assert reason(guard.check("localhost", "http://app.example.com", LOCAL)) == "origin_not_allowed"
    guard = Guard(None, ["other.example"], ["https://app.example.com"])
    assert reason(guard.check("localhost", "https://app.example.com", LOCAL)) == "origin_not_allowed"
    assert reason(Guard(None, None, ["null"]).check("localhost", "null", LOCAL)) == "invalid_origin"


@pytest.mark.obligation("S-003", "S-005", "X-01")
@pytest.mark.parametrize("server", [LOCAL, PUBLIC, None])
@pytest.mark.parametrize("hosts", [None, "*"])
def test_rebound_names_are_never_their_own_origin(server: str | None, hosts: Any) -> None:
    """Host and Origin that agree prove nothing without a list of hosts: that is what rebinding looks like."""
    assert check(*REBOUND, server=server, hosts=hosts) is not None


@pytest.mark.obligation("X-01")
@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("mcp.example.com", "https://mcp.example.com", True),
        ("mcp.example.com", "http://mcp.example.com", True),
        ("mcp.example.com:8443", "https://mcp.example.com:8443", True),
        ("MCP.example.com.:8443", "https://mcp.example.com:8443", True),
        ("mcp.example.com:443", "https://mcp.example.com", True),
        ("mcp.example.com", "https://mcp.example.com:443", True),
        ("mcp.example.com:80", "http://mcp.example.com", True),
        ("mcp.example.com", "https://mcp.example.com:8443", False),
        ("mcp.example.com:8443", "https://mcp.example.com", False),
        ("mcp.example.com:80", "https://mcp.example.com", False),
        ("mcp.example.com", "https://other.example.com", False),
    ],
)
def test_the_own_origin_behind_a_checked_host(host: str, origin: str, allowed: bool) -> None:
    """Where the Host was checked against a list, the origin of that very host and port is the server's own."""
    verdict = check(host, origin, PUBLIC, hosts=["mcp.example.com"])
    assert verdict == (None if allowed else "origin_not_allowed")


# -- options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        "",
        " ",
        ".",
        "a b",
        "localhost:8000",
        "[::1]:80",
        "http://localhost",
        "a/b",
        "user@host",
        "b\xfccher.example",
    ],
)
def test_host_entries_are_names(entry: str) -> None:
    """What is no host name is refused when the options are read, not silently never matched."""
    with pytest.raises(ValueError, match="is not a host name"):
        Guard([entry], None)


@pytest.mark.parametrize(
    "entry",
    ["https://app.example.com/", "https://", "ftp://x", "https://*.example.com", "https://user@x", "https://x:70000"],
)
def test_origin_entries_are_origins(entry: str) -> None:
    """An entry with a scheme is an http or https origin and nothing more, for CORS too."""
    with pytest.raises(ValueError, match="is not an http or https origin"):
        Guard(None, [entry])
    with pytest.raises(ValueError, match="is not an http or https origin"):
        Guard(None, None, [entry])


def test_lists_are_lists() -> None:
    """A text where a list belongs would allow its letters, so it is refused."""
    with pytest.raises(ValueError, match="allowed_hostnames takes a list"):
        Guard("localhost", None)
    with pytest.raises(ValueError, match="allowed_origin_hostnames takes a list"):
        Guard(None, "https://app.example.com")
