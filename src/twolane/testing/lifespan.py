"""The lifespan of an application under test: started before the first request, ended after the last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message

__all__ = ["lifespan"]


@asynccontextmanager
async def lifespan(app: ASGIApp, patience: float) -> AsyncIterator[dict[str, Any]]:
    """
    Start *app*, yield the state that it keeps for its requests, and shut it down.

    An application that does not answer lifespan events is used without them, as servers do.

    Raises:
        RuntimeError: the application says that its startup or shutdown failed.
        TimeoutError: it does neither within *patience* seconds.
    """
    state: dict[str, Any] = {}
    inbox: asyncio.Queue[Message] = asyncio.Queue()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}

    async def run() -> None:
        try:
            await app(scope, inbox.get, outbox.put)
        finally:
            outbox.put_nowait({"type": "ended"})

    task = asyncio.create_task(run())
    try:
        inbox.put_nowait({"type": "lifespan.startup"})
        async with asyncio.timeout(patience):
            started = await outbox.get()
        _check(started)
        yield state
        if started["type"] == "lifespan.startup.complete":
            inbox.put_nowait({"type": "lifespan.shutdown"})
            async with asyncio.timeout(patience):
                _check(await outbox.get())
    finally:
        if not task.done():
            await asyncio.wait((task,), timeout=patience)
        task.cancel()
        # Its failure has been told, or means that it knows no lifespan.
        await asyncio.gather(task, return_exceptions=True)


def _check(message: Message) -> None:
    if message["type"].endswith(".failed"):
        raise RuntimeError(f"the application's {message['type']}: {message.get('message', '')}")
