"""Small ASGI applications and channels, for tests of what drives or wraps them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SCOPE", "TYPE", "Channel", "chunk", "echo", "eventually", "head", "part", "rendered", "until_disconnect"]

SCOPE: dict[str, Any] = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": "POST",
    "scheme": "http",
    "path": "/mcp",
    "raw_path": b"/mcp",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"localhost")],
    "client": ("127.0.0.1", 1),
    "server": ("127.0.0.1", 8000),
}

TYPE = (b"content-type", b"text/plain")


def head(*headers: tuple[bytes, bytes], status: int = 200) -> Message:
    """Make the start of a response."""
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def chunk(body: bytes, *, more: bool = True) -> Message:
    """Make a part of a response's body."""
    return {"type": "http.response.body", "body": body, "more_body": more}


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request's body."""
    body = b""
    more = True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await send(head(TYPE, (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), status=201))
    await send(chunk(body, more=False))


class Channel:
    """A request's ``receive``: a body, then silence until the client leaves."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self._left = asyncio.Event()
        self.waiting = 0

    def leave(self) -> None:
        """The client goes away."""
        self._left.set()

    async def __call__(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        self.waiting += 1
        try:
            await self._left.wait()
        finally:
            self.waiting -= 1
        return {"type": "http.disconnect"}


def part(body: bytes, *, more: bool = False) -> Message:
    """Make a part of a request's body."""
    return {"type": "http.request", "body": body, "more_body": more}


async def rendered(response: Response, channel: Channel | None = None) -> list[Message]:
    """Send *response* to a list, as an ASGI server would to its client."""
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(dict(message))

    await response(SCOPE, channel or Channel(), keep)
    return sent


def until_disconnect(log: list[str], *first: Message) -> ASGIApp:
    """Make an application that sends *first*, waits for the disconnect and notes it."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        while message.get("more_body"):
            message = await receive()
        for item in first:
            await send(item)
        log.append((await receive())["type"])
        await send(chunk(b"too late"))
        log.append("ended")

    return app


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until *condition* holds, at most five seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0)
