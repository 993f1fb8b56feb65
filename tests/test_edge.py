"""The checks on the head of a request, and their order."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.support.posts import LEFT_OUT, headers
from twolane.edge import Edge
from twolane.errors import INVALID_REQUEST
from twolane.protocol.cors import Cors
from twolane.protocol.guard import Guard
from twolane.protocol.headers import MAX_HEADER_SIZE, Headers
from twolane.protocol.media import Accepts
from twolane.protocol.refusal import Refusal

BOTH = Accepts(True, True)
PATHS = frozenset(("/mcp", "/mcp/"))
#: Each is wrong on its own; together the first one that is checked answers.
WRONG_BODY = {"content_type": "text/plain", "accept": "text/html", "content_length": "99999"}


def edge(
    paths: frozenset[str] | None = PATHS,
    *,
    hosts: Any = None,
    origins: Any = None,
    cors: Any = None,
    limit: int = 1_000,
    mode: str = "auto",
) -> Edge:
    options = Cors(cors)
    guard = Guard(hosts, origins, options.concrete_origins)
    return Edge(paths, guard, options, max_body_size=limit, response_mode=mode)


def scope(
    method: str = "POST", path: str = "/mcp", root: str = "", server: Any = ("127.0.0.1", 8000)
) -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "root_path": root, "server": server}


def sent(**changes: Any) -> Headers:
    return headers(**{"host": "localhost:8000", "content_type": "application/json", **changes})


def refused(verdict: object, status: int, reason: str) -> Refusal:
    assert isinstance(verdict, Refusal), verdict
    assert (verdict.status, verdict.code, verdict.id) == (status, INVALID_REQUEST, None)
    assert verdict.data is not None
    assert verdict.data["reason"] == reason
    return verdict


def test_a_good_request() -> None:
    """A POST with a JSON body is let in, with what its client accepts."""
    assert edge().check(scope(), sent()) == BOTH
    assert edge().check(scope(), sent(accept="application/json")) == Accepts(True, False)
    assert edge().check(scope(), sent(accept="text/event-stream")) == Accepts(False, True)


@pytest.mark.parametrize(
    ("path", "root", "found"),
    [
        ("/mcp", "", True),
        ("/mcp/", "", True),
        ("/", "", False),
        ("", "", False),
        ("/mcp/x", "", False),
        ("/MCP", "", False),
        ("/mcpx", "", False),
        ("//mcp", "", False),
        # A root path that the server puts in front of the path, and one that it leaves out.
        ("/api/mcp", "/api", True),
        ("/api/mcp/", "/api", True),
        ("/mcp", "/api", True),
        ("/api", "/api", True),
        ("/api/", "/api", True),
        ("/api/x", "/api", False),
        ("/apimcp", "/api", False),
        ("/api/api/mcp", "/api", False),
        ("/mcp", "/mcp", True),
        ("/mcp/", "/mcp", True),
        ("/mcp/mcp", "/mcp", True),
        ("/mcp", "/m", True),
        ("/mcp", "/mc", True),
        # One that ends with a slash, as it stands and as uvicorn prepends it.
        ("/api/mcp", "/api/", True),
        ("/api//mcp", "/api/", True),
        ("/mcp", "/", True),
        ("//mcp", "/", True),
        ("/x", "/", False),
    ],
)
def test_paths(path: str, root: str, found: bool) -> None:
    """The route answers with and without its slash, under a root path too; a mount's own path is the endpoint."""
    verdict = edge().check(scope(path=path, root=root), sent())
    if found:
        assert verdict == BOTH
    else:
        assert f"{root}/mcp" in refused(verdict, 404, "not_found").message


def test_any_path() -> None:
    """Without a route every path is the endpoint."""
    for path in ("", "/", "/mcp", "/x/y"):
        assert edge(None).check(scope(path=path), sent()) == BOTH


def test_a_scope_with_less_in_it() -> None:
    """Neither root path nor server need to be in the scope."""
    assert edge().check({"type": "http", "method": "POST", "path": "/mcp"}, sent(host=LEFT_OUT)) == BOTH
    assert edge().check(scope(server=None), sent(host="anything")) == BOTH


@pytest.mark.obligation("S-002", "S-003", "X-01")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD", "TRACE", "post"])
def test_host_and_origin_come_before_the_method(method: str) -> None:
    """Host and Origin are checked on every HTTP method, preflights included, and before all that follows."""
    for cors in (None, False):
        verdict = edge(cors=cors).check(scope(method), sent(host="evil.example", **WRONG_BODY))
        refused(verdict, 403, "host_not_allowed")
        verdict = edge(cors=cors).check(scope(method), sent(origin="https://evil.example", **WRONG_BODY))
        refused(verdict, 403, "origin_not_allowed")
        verdict = edge(cors=cors).check(scope(method), sent(origin="null"))
        refused(verdict, 403, "invalid_origin")


@pytest.mark.obligation("S-005", "X-01")
def test_foreign_pairs_on_a_loopback_socket() -> None:
    """A foreign Host with the Origin that goes with it is refused; the local pair is served."""
    pair = {"host": "evil.example:8000", "origin": "http://evil.example:8000"}
    for server in (("127.0.0.1", 8000), ("::1", 8000, 0, 0), ("::ffff:127.0.0.1", 8000, 0, 0)):
        refused(edge().check(scope(server=server), sent(**pair)), 403, "host_not_allowed")
        assert edge().check(scope(server=server), sent(origin="http://localhost:8000")) == BOTH
    refused(edge().check(scope(server=("10.0.0.1", 80)), sent(**pair)), 403, "origin_not_allowed")


def test_the_path_comes_first() -> None:
    """What is not at the endpoint is not found, whoever asks."""
    refused(edge().check(scope("GET", "/x"), sent(host="evil.example")), 404, "not_found")


@pytest.mark.obligation("X-11")
def test_doubled_hosts_and_origins_are_refused() -> None:
    """Two Host or Origin headers are one that is malformed, even when both are right."""
    raw = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"origin", b"http://localhost")]
    assert edge().check(scope(), Headers(raw)) == BOTH
    refused(edge().check(scope(), Headers([*raw, (b"host", b"localhost")])), 403, "invalid_host")
    refused(edge().check(scope(), Headers([*raw, (b"Origin", b"http://localhost")])), 403, "invalid_origin")


@pytest.mark.obligation("S-007", "L-008")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "TRACE", "post", "X" * 1_000])
def test_other_methods(method: str) -> None:
    """Only POST is served; the refusal says so in Allow, whatever the other headers are."""
    verdict = refused(edge().check(scope(method), sent(**WRONG_BODY)), 405, "method_not_allowed")
    assert verdict.headers == ((b"allow", b"POST, OPTIONS"),)
    assert len(verdict.message) < 200
    verdict = refused(edge(cors=False).check(scope(method), sent()), 405, "method_not_allowed")
    assert verdict.headers == ((b"allow", b"POST"),)


def test_preflights() -> None:
    """An OPTIONS request is a preflight while CORS is on, and a wrong method otherwise."""
    asking = {"origin": "http://localhost:5173", "access_control_request_method": "POST"}
    assert edge().check(scope("OPTIONS"), sent(content_type=LEFT_OUT, **asking)) is None
    assert edge().check(scope("OPTIONS"), sent()) is None
    refused(edge(cors=False).check(scope("OPTIONS"), sent(**asking)), 405, "method_not_allowed")


def test_preflights_from_configured_origins() -> None:
    """A preflight from an origin that CORS names passes the Origin check; any other does not."""
    one = edge(cors={"allow_origins": ["https://app.example.com"]})
    assert one.check(scope("OPTIONS"), sent(origin="https://app.example.com")) is None
    refused(one.check(scope("OPTIONS"), sent(origin="https://evil.example")), 403, "origin_not_allowed")


@pytest.mark.parametrize(
    "content_type", [LEFT_OUT, "", "text/plain", "application/jsonx", "application/json, application/json"]
)
def test_media_types(content_type: Any) -> None:
    """A body that is not JSON gets 415, before Accept and length are looked at."""
    verdict = edge().check(scope(), sent(accept="text/html", content_length="99999", content_type=content_type))
    refused(verdict, 415, "unsupported_media_type")


@pytest.mark.obligation("L-040")
@pytest.mark.parametrize(
    ("accept", "mode", "refusal"),
    [
        (LEFT_OUT, "auto", False),
        ("*/*", "json", False),
        ("application/json", "sse", False),
        ("text/event-stream", "auto", False),
        ("text/event-stream", "sse", False),
        ("text/event-stream", "json", True),
        ("text/html", "auto", True),
        ("text/html", "sse", True),
        ("application/json;q=0", "auto", True),
        ("*/*;q=0", "auto", True),
        ("application/json;q=0, */*", "auto", False),
        ("application/json;q=0, */*", "json", True),
    ],
)
def test_accept(accept: Any, mode: str, refusal: bool) -> None:
    """An Accept that excludes every answer there can be gets 406, before the length; nothing said is fine."""
    if refusal:
        refused(edge(mode=mode).check(scope(), sent(accept=accept, content_length="99999")), 406, "not_acceptable")
    else:
        assert isinstance(edge(mode=mode).check(scope(), sent(accept=accept)), Accepts)


@pytest.mark.obligation("X-15")
@pytest.mark.parametrize(
    ("length", "status"),
    [
        (LEFT_OUT, None),
        ("0", None),
        ("1000", None),
        ("0001000", None),
        ("1001", 413),
        ("9" * 18, 413),
        ("9" * 19, 400),
        ("9" * 5_000, 400),
        ("", 400),
        ("-1", 400),
        ("+5", 400),
        ("5.0", 400),
        ("1e3", 400),
        ("0x10", 400),
        ("5 5", 400),
        ("5, 5", 400),
        ("5_0", 400),
        ("five", 400),
        ("\xb2", 400),
        ("\xbd", 400),
    ],
)
def test_lengths(length: Any, status: int | None) -> None:
    """An announced length is a number and within the limit, or the body is not read at all."""
    verdict = edge().check(scope(), sent(content_length=length))
    if status is None:
        assert verdict == BOTH
    elif status == 413:
        assert refused(verdict, 413, "body_too_large").data == {"reason": "body_too_large", "limit": 1_000}
    else:
        refused(verdict, 400, "invalid_content_length")


@pytest.mark.obligation("S-059", "X-15")
def test_header_sizes() -> None:
    """Headers beyond the limit get 431 before anything in them is decoded, spread over many lines or in one."""
    room = MAX_HEADER_SIZE - len("localhost:8000") - len("application/json")
    fits = sent(mcp_param_a="=?base64?" + "A" * (room - 11) + "?=")
    assert fits.size == MAX_HEADER_SIZE
    assert edge().check(scope(), fits) == BOTH
    refused(edge().check(scope(), sent(mcp_param_a="x" * (room + 1), **WRONG_BODY)), 431, "headers_too_large")
    lines = [(b"host", b"localhost"), *[(b"mcp-param-%d" % number, b"x" * 64) for number in range(1_024)]]
    refused(edge().check(scope(), Headers(lines)), 431, "headers_too_large")


def test_too_large() -> None:
    """A body found too large while it is read gets the same refusal as an announced one."""
    assert edge().too_large() == edge().check(scope(), sent(content_length="1001"))


@pytest.mark.parametrize(
    ("hosts", "server", "warnings"),
    [
        (None, ("127.0.0.1", 8000), 0),
        (None, ("::ffff:127.0.0.1", 8000), 0),
        (None, ("10.0.0.1", 80), 1),
        (None, None, 1),
        ("*", ("10.0.0.1", 80), 0),
        (["*"], ("10.0.0.1", 80), 0),
        (["mcp.example.com"], ("10.0.0.1", 80), 0),
    ],
)
def test_one_warning(hosts: Any, server: Any, warnings: int, caplog: pytest.LogCaptureFixture) -> None:
    """A server on the network whose Host nobody checks warns once in its life, not at every request."""
    one = edge(hosts=hosts)
    with caplog.at_level(logging.WARNING, logger="twolane.security"):
        for _ in range(3):
            one.check(scope(server=server), sent(host="mcp.example.com"))
    assert len(caplog.records) == warnings
