"""The backend of a single process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from twolane.backends.memory import MemoryBackend
from twolane.ports import ChangeEvent


def test_construction_opens_nothing() -> None:
    """A backend can be made without an event loop, and making it starts no thread."""
    before = threading.active_count()
    backend = MemoryBackend(namespace="shop")
    assert threading.active_count() == before
    assert backend.namespace == "shop"
    assert backend.subscriber_count == 0


async def test_delivered_when_publish_returns() -> None:
    """On its own loop a subscriber has the event when ``publish`` returns."""
    backend = MemoryBackend()
    got: list[ChangeEvent] = []
    backend.subscribe(got.append)
    await backend.publish(ChangeEvent("tools"))
    assert got == [ChangeEvent("tools")]


async def test_keys_differ_between_objects() -> None:
    """Two backends have two keys; one has the same as long as it lives, also after it was closed."""
    first, second = MemoryBackend(), MemoryBackend()
    assert await first.keys() != await second.keys()
    before = await first.keys()
    await first.aclose()
    assert await first.keys() == before


async def test_spent_limit() -> None:
    """The record of spent tokens is bounded: beyond the limit, tokens are refused."""
    backend = MemoryBackend(spent_limit=2)
    assert [await backend.spend(token, 1e12) for token in (b"a", b"b", b"c")] == [True, True, False]


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


async def test_loops_in_two_threads() -> None:
    """A subscriber on another thread's loop is called there, in order, and not any more once that loop is closed."""
    backend = MemoryBackend()
    got: list[tuple[int, ChangeEvent]] = []
    ready, done = threading.Event(), threading.Event()
    events = [ChangeEvent("resource_updated", str(number)) for number in range(100)]

    async def subscribe() -> None:
        finished = asyncio.Event()

        def listener(event: ChangeEvent) -> None:
            got.append((threading.get_ident(), event))
            if len(got) == len(events):
                finished.set()

        backend.subscribe(listener)
        ready.set()
        async with asyncio.timeout(10):
            await finished.wait()
        done.set()

    thread = in_thread(lambda: asyncio.run(subscribe()))
    await asyncio.to_thread(ready.wait, 10)
    for event in events:
        await backend.publish(event)
    assert await asyncio.to_thread(done.wait, 10)
    await asyncio.to_thread(thread.join, 10)
    assert [event for _, event in got] == events
    assert {ident for ident, _ in got} == {thread.ident}
    await backend.publish(ChangeEvent("tools"))
    assert len(got) == len(events)
    assert backend.subscriber_count == 0


async def test_ending_stops_what_is_on_its_way() -> None:
    """A subscription that ends before its loop took up a published event is not called with it."""
    backend = MemoryBackend()
    got: list[ChangeEvent] = []
    unsubscribe = backend.subscribe(got.append)

    def publish() -> None:
        asyncio.run(backend.publish(ChangeEvent("tools")))

    thread = in_thread(publish)
    # Not awaited: this loop must have no turn between the event and the end of the subscription.
    thread.join(10)
    unsubscribe()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert got == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork; several workers are served on POSIX only")
def test_forked_children_start_without_subscriptions() -> None:
    """A child does not call listeners of its parent's loop, and has the key that the parent had made."""
    script = """
import asyncio, os, sys
from twolane.backends.memory import MemoryBackend
from twolane.ports import ChangeEvent
backend, got = MemoryBackend(), []
async def prepare():
    backend.subscribe(got.append)
    return await backend.keys()
async def child():
    await backend.publish(ChangeEvent("tools"))
    return await backend.keys()
keys = asyncio.run(prepare())
if os.fork() == 0:
    same = asyncio.run(child()) == keys
    os._exit(0 if same and not got and backend.subscriber_count == 0 else 1)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


async def test_thousands_of_subscribers() -> None:
    """Subscribing and ending cost the same however many there are: ten thousand come and go, and none is left."""
    backend = MemoryBackend()
    count = 0

    def listener(event: ChangeEvent) -> None:
        nonlocal count
        count += 1

    ends = [backend.subscribe(listener) for _ in range(10_000)]
    await backend.publish(ChangeEvent("tools"))
    assert count == 10_000
    for end in ends:
        end()
    assert backend.subscriber_count == 0
