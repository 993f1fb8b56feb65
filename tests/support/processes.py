"""Server processes for tests that kill, stop and replace them, and plain sockets to talk to them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.parts import free_port

__all__ = ["Listener", "Running", "call", "children", "post", "running", "serving", "uvicorn_running", "write_server"]

_SOURCE = """
import asyncio
import os

from twolane import Context, McpServer, create_mcp_handler


def create_server() -> McpServer:
    server = McpServer("probe", version="1.0.0")

    @server.tool
    async def hello(name: str = "World") -> str:
        return f"Hello, {name}!"

    @server.tool
    async def slow(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    @server.tool
    async def pid() -> int:
        return os.getpid()

    @server.tool
    async def issue(ctx: Context) -> str:
        return await ctx.issue_handle({"made by": os.getpid()})

    @server.tool
    async def open_handle(handle: str, ctx: Context) -> list[int]:
        return [(await ctx.open_handle(handle))["made by"], os.getpid()]

    @server.resource("memo://one")
    def memo() -> str:
        return "memo"

    return server


app = create_mcp_handler(create_server)
"""

_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def write_server(folder: Path, name: str = "probe_server.py") -> Path:
    """Write a server file with a factory ``create_server`` and a handler ``app``."""
    path = folder / name
    path.write_text(_SOURCE, encoding="utf-8")
    return path


@dataclass
class Running:
    """A process, its port once that is known, and what it wrote."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0

    def output(self) -> str:
        """Return what the process has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self, number: int = signal.SIGTERM, within: float = 3.0) -> int:
        """
        Send a signal and wait for the end.

        Returns:
            The exit code.

        Raises:
            AssertionError: the process is still there after *within* seconds.
        """
        self.process.send_signal(number)
        return self.wait(within)

    def wait(self, within: float) -> int:
        """Wait for the end and return the exit code; raises as :meth:`stop`."""
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within} s:\n{self.output()}") from None

    def until(self, pattern: str, within: float = 20.0) -> re.Match[str]:
        """Wait until the output matches *pattern*."""
        deadline = time.monotonic() + within
        while True:
            found = re.search(pattern, self.output())
            if found is not None:
                return found
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} in the output:\n{self.output()}")
            time.sleep(0.01)


@contextlib.contextmanager
def running(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None, *, log: str = "output.log"
) -> Iterator[Running]:
    """Run *command* in *folder*; whatever is left of it is killed at the end."""
    path = folder / log
    with path.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            start_new_session=True,
        )
    try:
        yield Running(process, path)
    finally:
        # Workers that outlived their parent are in its process group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


@contextlib.contextmanager
def serving(folder: Path, target: str, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run ``twolane serve`` on a free port, and wait until it says where it serves."""
    with running(["twolane", "serve", target, "--port", "0", *args], folder, env) as served:
        served.port = int(served.until(r"at http://[^ ]*:(\d+)")[1])
        yield served


@contextlib.contextmanager
def uvicorn_running(folder: Path, target: str, *args: str) -> Iterator[Running]:
    """Run plain ``uvicorn`` on a free port, and wait until it accepts connections."""
    port = free_port()
    with running(["uvicorn", target, "--port", str(port), *args], folder) as served:
        served.port = port
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError):
                if call(port, "hello"):
                    break
            if served.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"uvicorn does not serve:\n{served.output()}")
            time.sleep(0.02)
        yield served


def children(pid: int) -> set[int]:
    """Return the processes that *pid* started and that still run, without Python's own helpers."""
    import psutil

    found = set()
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "resource_tracker" not in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def _request(method: str, params: dict[str, Any], request_id: int | str = 1) -> tuple[bytes, dict[str, str]]:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": _ENVELOPE}}
    ).encode()
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return body, headers


def post(port: int, method: str, params: dict[str, Any], *, path: str = "/mcp", within: float = 10.0) -> Any:
    """Send one request on a connection of its own and return the decoded JSON answer."""
    body, headers = _request(method, params)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    try:
        connection.request("POST", path, body, headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def call(port: int, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    """Call a tool and return its ``structuredContent["result"]``."""
    answer = post(port, "tools/call", {"name": tool, "arguments": arguments or {}}, **options)
    return answer["result"]["structuredContent"]["result"]


class Listener:
    """A subscription on a plain socket, so that a test sees each byte up to the end of the connection."""

    def __init__(
        self, port: int, request_id: int | str = 1, *, uris: Sequence[str] = (), receive_buffer: int | None = None
    ) -> None:
        wanted: dict[str, Any] = {"toolsListChanged": True}
        if uris:
            wanted["resourceSubscriptions"] = list(uris)
        body, headers = _request("subscriptions/listen", {"notifications": wanted}, request_id)
        self._socket = socket.socket()
        self._socket.settimeout(10)
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.connect(("127.0.0.1", port))
        lines = [f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n"]
        lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
        self._socket.sendall("".join(lines).encode() + b"\r\n" + body)
        self._received = b""

    def until(self, text: bytes) -> None:
        """Read until *text* has arrived."""
        while text not in self._received:
            chunk = self._socket.recv(65536)
            if not chunk:
                raise AssertionError(f"the connection ended before {text!r}: {self._received!r}")
            self._received += chunk

    def messages_to_the_end(self) -> list[dict[str, Any]]:
        """Read to the end of the connection; the response must be complete."""
        while chunk := self._socket.recv(65536):
            self._received += chunk
        if not self._received.endswith(b"\r\n0\r\n\r\n"):
            raise AssertionError(f"the response is torn: {self._received!r}")
        return [json.loads(line[6:]) for line in self._received.splitlines() if line.startswith(b"data: ")]

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
