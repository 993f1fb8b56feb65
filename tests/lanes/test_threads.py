"""Plain functions in worker threads: what they return and raise, their context, and the limit."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from twolane.lanes.threads import Threads

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


async def test_values_and_context_travel() -> None:
    """A function runs in another thread, sees the caller's context variables, and its value comes back."""
    tenant.set("acme")
    here = threading.get_ident()
    assert await Threads(1).run(lambda: (tenant.get(), threading.get_ident() != here)) == ("acme", True)


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_errors_travel(error: BaseException) -> None:
    """Whatever a function raises, SystemExit included, is raised to the caller and harms no thread."""

    def fail() -> None:
        raise error

    threads = Threads(1)
    with pytest.raises(type(error)):
        await threads.run(fail)
    assert await threads.run(lambda: 1) == 1


async def test_stop_iteration_does_not_hang() -> None:
    """StopIteration, which no future can carry, ends the call with an error."""
    with pytest.raises(RuntimeError):
        async with asyncio.timeout(5):
            await Threads(1).run(lambda: next(iter(())))


@pytest.mark.obligation("X-15")
async def test_abandoned_threads_keep_their_place() -> None:
    """A cancelled caller goes at once, but its thread counts against the limit until the function returns."""
    threads = Threads(1)
    started, finish = threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        finish.wait(5)

    first = asyncio.ensure_future(threads.run(block))
    await asyncio.to_thread(started.wait, 5)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.ensure_future(threads.run(lambda: "ran"))
    done, _ = await asyncio.wait((second,), timeout=0.1)
    assert not done
    finish.set()
    async with asyncio.timeout(5):
        assert await second == "ran"


async def test_a_caller_cancelled_while_waiting_gives_its_place_back() -> None:
    """Cancelling a caller that still waits for a place leaves the limit whole."""
    threads = Threads(1)
    started, finish = threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        finish.wait(5)

    first = asyncio.ensure_future(threads.run(block))
    await asyncio.to_thread(started.wait, 5)
    waiting = asyncio.ensure_future(threads.run(lambda: 1))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    finish.set()
    await first
    async with asyncio.timeout(5):
        assert await threads.run(lambda: 2) == 2
