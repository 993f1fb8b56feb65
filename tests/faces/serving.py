"""A real uvicorn around one handler, through either face, in a thread of this process."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import uvicorn
from starlette.requests import Request

from twolane import StatelessMcpHandler

REVISION = "2026-07-28"
_META = "io.modelcontextprotocol/"
#: Clients by port, closed with their server.
_CLIENTS: dict[int, list[Client]] = {}


def fetch_face(handler: StatelessMcpHandler) -> Any:
    """An application that goes through ``handler.fetch``, as a framework's path operation does."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await handler(scope, receive, send)
            return
        response = await handler.fetch(Request(scope, receive))
        await response(scope, receive, send)

    return app


@contextmanager
def running(app: Any, http: str = "httptools", **settings: Any) -> Iterator[int]:
    """Serve *app* on a free loopback port and stop it at the end, both within bounds."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=http,
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=2,
            **settings,  # type: ignore[arg-type]
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield port
        finally:
            for client in _CLIENTS.pop(port, []):
                client.http.close()
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive(), "uvicorn did not stop"


class Answer:
    """An HTTP response with its JSON-RPC messages."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.content = response.content

    @property
    def streamed(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def messages(self) -> list[Any]:
        if not self.content:
            return []
        if self.streamed:
            lines = self.content.decode().split("\n")
            return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        value = json.loads(self.content)
        return value if isinstance(value, list) else [value]

    @property
    def last(self) -> Any:
        return self.messages[-1]

    @property
    def result(self) -> Any:
        assert "result" in self.last, self.last
        return self.last["result"]

    @property
    def error(self) -> Any:
        assert "error" in self.last, self.last
        return self.last["error"]

    @property
    def reason(self) -> Any:
        return self.error["data"]["reason"]


class Client:
    """Sends what a test says, and what a good client would send where the test says nothing."""

    def __init__(self, port: int, handler: StatelessMcpHandler | None = None) -> None:
        self.port = port
        self.handler = handler
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False)
        _CLIENTS.setdefault(port, []).append(self)

    def post(self, body: Any, headers: dict[str, str] | list[tuple[str, str]], path: str = "/mcp") -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Answer(self.http.post(path, content=content, headers=headers))

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        request_id: Any = 1,
        headers: dict[str, str | None] | None = None,
        meta: dict[str, Any] | None = None,
        capabilities: dict[str, Any] | None = None,
        path: str = "/mcp",
    ) -> Answer:
        """Send one modern request. A header or meta value of None is left out."""
        body = modern_body(method, params, request_id=request_id, meta=meta, capabilities=capabilities)
        return self.post(body, modern_headers(method, params, headers), path)

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Answer:
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}}, **options)

    def legacy(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        request_id: Any = 1,
        revision: str | None = "2025-11-25",
    ) -> Answer:
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if request_id is not None:
            body["id"] = request_id
        if params is not None:
            body["params"] = params
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if revision is not None:
            headers["mcp-protocol-version"] = revision
        return self.post(body, headers)

    def raw(self, data: bytes) -> socket.socket:
        """Open a socket and write *data* as it is."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection.sendall(data)
        return connection


def modern_body(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    request_id: Any = 1,
    meta: dict[str, Any] | None = None,
    capabilities: dict[str, Any] | None = None,
) -> dict[str, Any]:
    envelope: dict[str, Any] = {
        f"{_META}protocolVersion": REVISION,
        f"{_META}clientCapabilities": capabilities or {},
        f"{_META}clientInfo": {"name": "tests", "version": "1"},
        **(meta or {}),
    }
    envelope = {key: value for key, value in envelope.items() if value is not None}
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": {**(params or {}), "_meta": envelope}}
    if request_id is not None:
        body["id"] = request_id
    return body


def modern_headers(
    method: str, params: dict[str, Any] | None = None, headers: dict[str, str | None] | None = None
) -> dict[str, str]:
    sent: dict[str, str | None] = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": REVISION,
        "mcp-method": method,
    }
    name = (params or {}).get("uri" if method == "resources/read" else "name")
    if method in ("tools/call", "prompts/get", "resources/read"):
        sent["mcp-name"] = name
    sent.update(headers or {})
    return {key: value for key, value in sent.items() if value is not None}
