"""Bad input gets a clear error and nothing else: no 500, no hang, and the next request is served."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from tests.faces.server import Seen
from tests.faces.serving import Client, modern_body, modern_headers

FUTURE = {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}


@pytest.fixture(autouse=True)
def no_factory_and_no_failure(client: Client, seen: Seen) -> Any:
    """After each of these tests: nothing of the application ran, nothing failed, and the server still serves."""
    yield
    assert seen.errors == []
    assert client.call("greet").status == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, -32700),
        (b"{", 400, -32700),
        (b"not json", 400, -32700),
        (b"\xff\xfe{}", 400, -32700),
        (b"\xef\xbb\xbf{}", 400, -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 400, -32700),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', 400, -32700),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, -32700),
        (b"[" * 30000, 400, -32700),
        (b"null", 400, -32600),
        (b'"text"', 400, -32600),
        (b"[]", 400, -32600),
        (b"{}", 400, -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":123456789012345678901,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","extra":1}', 400, -32600),
    ],
)
@pytest.mark.obligation("S-020", "S-021", "S-022", "S-024")
def test_bodies(client: Client, body: bytes, status: int, code: int) -> None:
    """A body that is not one strict JSON-RPC message is refused with the code that says how far it was understood."""
    answer = client.post(body, modern_headers("ping"))
    assert (answer.status, answer.error["code"]) == (status, code)
    assert isinstance(answer.error["message"], str)
    assert answer.last.get("id", 1) == 1


def test_too_large(client: Client) -> None:
    """A body over the limit is 413, by its declared length or as it is counted."""
    large = json.dumps(modern_body("tools/call", {"name": "greet", "arguments": {"name": "x" * 70_000}})).encode()
    headers = modern_headers("tools/call", {"name": "greet"})
    declared = client.post(large, headers)
    assert (declared.status, declared.reason) == (413, "body_too_large")
    chunked = client.http.post("/mcp", content=iter([large[:1000], large[1000:]]), headers=headers)
    assert chunked.status_code == 413


@pytest.mark.parametrize("media", ["text/plain", "application/jsonx", "application/vnd.api+json", ""])
def test_media_types(client: Client, media: str) -> None:
    """Anything but application/json is 415, before the body is looked at."""
    answer = client.post(b"{", {**modern_headers("ping"), "content-type": media})
    assert (answer.status, answer.reason) == (415, "unsupported_media_type")


def test_a_doubled_content_type(client: Client) -> None:
    """A Content-Type sent twice is 415."""
    headers = [*modern_headers("ping").items(), ("content-type", "application/json")]
    assert client.post(b"{}", headers).status == 415


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0, text/event-stream;q=0"])
def test_unacceptable(client: Client, accept: str) -> None:
    """An Accept header that excludes every answer is 406."""
    answer = client.call("greet", headers={"accept": accept})
    assert (answer.status, answer.reason) == (406, "not_acceptable")


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream", "application/*"])
def test_acceptable(client: Client, accept: str | None) -> None:
    """A missing Accept, wildcards, and either type alone are served, each with what it reads."""
    headers = {**modern_headers("tools/call", {"name": "greet"})}
    del headers["accept"]
    request = client.http.build_request(
        "POST", "/mcp", json=modern_body("tools/call", {"name": "greet"}), headers=headers
    )
    del request.headers["accept"]
    if accept is not None:
        request.headers["accept"] = accept
    response = client.http.send(request)
    assert response.status_code == 200
    streamed = response.headers["content-type"].startswith("text/event-stream")
    assert streamed == (accept == "text/event-stream")


@pytest.mark.obligation("S-007")
@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD"])
def test_methods(client: Client, method: str) -> None:
    """Every HTTP method but POST is 405 with Allow."""
    response = client.http.request(method, "/mcp")
    assert response.status_code == 405
    assert "POST" in response.headers["allow"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/mcp", 200),
        ("/mcp/", 200),
        ("/", 404),
        ("/mcp/mcp", 404),
        ("/other", 404),
        ("/.well-known/oauth-protected-resource", 404),
    ],
)
def test_paths(client: Client, path: str, status: int) -> None:
    """The route answers with and without a trailing slash, and nothing else does."""
    assert client.call("greet", path=path).status == status


@pytest.mark.obligation("S-002", "S-003", "S-004", "S-005", "X-01", "X-02")
@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        ({"host": "evil.example.com"}, 403, "host_not_allowed"),
        ({"host": "evil.example.com", "origin": "http://evil.example.com"}, 403, "host_not_allowed"),
        ({"origin": "https://evil.example.com"}, 403, "origin_not_allowed"),
        ({"origin": "null"}, 403, "invalid_origin"),
        ({"origin": "chrome-extension://localhost"}, 403, "invalid_origin"),
        ({"origin": "http://localhost:1234"}, 200, None),
        ({"host": "localhost:99"}, 200, None),
    ],
)
def test_host_and_origin(client: Client, headers: dict[str, str | None], status: int, reason: str | None) -> None:
    """On a loopback socket foreign hosts and origins are 403, readable by the page that sent them."""
    answer = client.call("greet", headers=headers)
    assert answer.status == status
    if reason is not None:
        assert answer.reason == reason
        assert answer.headers["access-control-allow-origin"] == "*"


def test_preflight(client: Client) -> None:
    """A preflight is 204 and allows what an MCP client in a browser sends, Mcp-Param-* and Last-Event-ID included."""
    response = client.http.options(
        "/mcp",
        headers={
            "origin": "http://localhost:5173",
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type, mcp-param-region, x-evil",
        },
    )
    assert response.status_code == 204
    allowed = response.headers["access-control-allow-headers"].lower().split(", ")
    for name in ("content-type", "authorization", "mcp-method", "mcp-name", "mcp-protocol-version", "last-event-id"):
        assert name in allowed
    assert "mcp-param-region" in allowed
    assert "x-evil" not in allowed
    assert "POST" in response.headers["access-control-allow-methods"]
    assert client.http.options("/mcp", headers={"origin": "https://evil.example.com"}).status_code == 403


def test_exposed_headers(client: Client) -> None:
    """A page may read the session id and the authentication challenge."""
    exposed = client.call("greet").headers["access-control-expose-headers"].lower()
    assert "mcp-session-id" in exposed
    assert "www-authenticate" in exposed


@pytest.mark.obligation("S-032", "S-033", "S-034", "S-035", "S-036", "S-037", "S-038")
@pytest.mark.parametrize(
    ("headers", "meta", "code"),
    [
        ({"mcp-protocol-version": None}, {}, -32020),
        ({"mcp-protocol-version": "2025-11-25"}, {}, -32020),
        ({"mcp-method": None}, {}, -32020),
        ({"mcp-method": "TOOLS/CALL"}, {}, -32020),
        ({"mcp-name": None}, {}, -32020),
        ({"mcp-name": "other"}, {}, -32020),
        ({"mcp-name": "=?base64?%%?="}, {}, -32020),
        ({}, FUTURE, -32020),
        ({"mcp-protocol-version": "2030-01-01"}, FUTURE, -32022),
        ({"mcp-protocol-version": None, "mcp-method": None}, FUTURE, -32022),
        ({}, {"io.modelcontextprotocol/protocolVersion": None}, -32602),
        ({}, {"io.modelcontextprotocol/clientCapabilities": None}, -32602),
        ({}, {"io.modelcontextprotocol/clientCapabilities": []}, -32602),
        ({}, {"io.modelcontextprotocol/logLevel": "loud"}, -32602),
    ],
)  # fmt: skip
def test_headers_and_envelope(
    client: Client, seen: Seen, headers: dict[str, str | None], meta: dict[str, Any], code: int
) -> None:
    """Each missing or disagreeing piece of metadata has its code, the request's id, and 400."""
    answer = client.call("greet", headers=headers, meta=meta, request_id="x")
    assert (answer.status, answer.error["code"], answer.last["id"]) == (400, code, "x")
    if code == -32022:
        assert answer.error["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}
    assert seen.factories == 0


@pytest.mark.obligation("X-11", "S-040")
def test_doubled_and_latin_1_headers(client: Client) -> None:
    """A routing header that is sent twice, or holds Latin-1, is a mismatch."""
    headers = modern_headers("tools/call", {"name": "greet"})
    body = modern_body("tools/call", {"name": "greet", "arguments": {}})
    doubled = client.post(body, [*headers.items(), ("mcp-name", "greet")])
    assert (doubled.status, doubled.error["code"]) == (400, -32020)
    latin = raw_exchange(client, body, {**headers, "mcp-name": "gr\xfcet"})
    assert b" 400 " in latin.split(b"\r\n", 1)[0]
    assert b"-32020" in latin


def raw_exchange(client: Client, body: Any, headers: dict[str, str], *, cut: int = 0) -> bytes:
    data = json.dumps(body).encode()
    lines = [
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{client.port}\r\ncontent-length: {len(data)}\r\nconnection: close\r\n"
    ]
    lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    with client.raw(("".join(lines) + "\r\n").encode("latin-1") + data[: len(data) - cut]) as connection:
        if cut:
            connection.shutdown(socket.SHUT_WR)
        chunks = []
        while chunk := connection.recv(65536):
            chunks.append(chunk)
        return b"".join(chunks)


def test_a_truncated_body(client: Client, seen: Seen) -> None:
    """A body that ends before its declared length runs nothing."""
    body = modern_body("tools/call", {"name": "greet", "arguments": {}})
    raw_exchange(client, body, modern_headers("tools/call", {"name": "greet"}), cut=10)
    assert seen.factories == 0


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "greet", "arguments": []}),
        ("prompts/get", {}),
        ("prompts/get", {"name": "hello", "arguments": {"name": 5}}),
        ("prompts/get", {"name": "hello"}),
        ("resources/read", {}),
        ("resources/read", {"uri": 5}),
        ("tools/list", {"cursor": "junk"}),
        ("tools/list", {"cursor": ""}),
        ("tools/list", {"cursor": 5}),
        ("subscriptions/listen", {}),
        ("subscriptions/listen", {"notifications": []}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": "yes"}}),
    ],
)
@pytest.mark.obligation("S-092", "S-108")
def test_params(client: Client, method: str, params: dict[str, Any]) -> None:
    """Parameters of the wrong shape are -32602 in one sentence, on every method alike."""
    headers: dict[str, str | None] = {}
    name = params.get("uri" if method == "resources/read" else "name")
    if not isinstance(name, str):
        headers["mcp-name"] = None
    answer = client.request(method, params, headers=headers)
    assert answer.error["code"] == -32602
    assert "\n" not in answer.error["message"]
