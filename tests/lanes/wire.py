"""A hand-driven ASGI connection: what the application sends is recorded, what it receives is fed by the test."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class Wire:
    """One HTTP connection as an application sees it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.arrived = asyncio.Event()
        self.blocked: asyncio.Event | None = None

    async def receive(self) -> dict[str, Any]:
        return await self.inbox.get()

    async def send(self, message: dict[str, Any]) -> None:
        if self.blocked is not None:
            await self.blocked.wait()
        self.sent.append(message)
        self.arrived.set()

    def disconnect(self) -> None:
        self.inbox.put_nowait({"type": "http.disconnect"})

    async def until(self, count: int) -> None:
        """Wait, for at most five seconds, until *count* messages were sent."""
        async with asyncio.timeout(5):
            while len(self.sent) < count:
                self.arrived.clear()
                await self.arrived.wait()

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    @property
    def ended(self) -> bool:
        return len(self.sent) > 1 and not self.sent[-1].get("more_body", False)

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages of the body, whichever way it came."""
        if self.headers.get("content-type") == "text/event-stream":
            lines = self.body.decode().split("\n")
            return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        return [json.loads(self.body)]
