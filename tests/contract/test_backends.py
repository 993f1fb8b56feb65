"""What every backend promises, whichever technology is behind it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from twolane.backends import open_backend
from twolane.ports import Backend, ChangeEvent
from twolane.seal import Binding, Sealer

#: One URL for each technology that is served.
URLS = ["memory://"]


@pytest.fixture(params=URLS)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """A fresh backend of each kind."""
    opened = open_backend(request.param)
    yield opened
    await opened.aclose()


async def published(*events: ChangeEvent, backend: Backend) -> list[ChangeEvent]:
    """Publish *events* and return what a subscriber got of them."""
    got: list[ChangeEvent] = []
    done = asyncio.Event()

    def listener(event: ChangeEvent) -> None:
        got.append(event)
        if len(got) == len(events):
            done.set()

    unsubscribe = backend.subscribe(listener)
    for event in events:
        await backend.publish(event)
    async with asyncio.timeout(5):
        await done.wait()
    unsubscribe()
    return got


async def test_publish_without_subscribers(backend: Backend) -> None:
    """Publishing with nobody subscribed does nothing."""
    await backend.publish(ChangeEvent("tools"))


async def test_order_and_content(backend: Backend) -> None:
    """A subscriber gets every event, unchanged, once, and in the order of publishing."""
    events = [
        ChangeEvent("tools"),
        ChangeEvent("prompts"),
        ChangeEvent("resources"),
        *(ChangeEvent("resource_updated", f"note://{number}?ä=\u2603") for number in range(50)),
    ]
    assert await published(*events, backend=backend) == events


async def test_every_subscriber(backend: Backend) -> None:
    """Every subscriber gets every event, on the loop it subscribed on."""
    loop = asyncio.get_running_loop()
    loops: list[object] = []
    done = asyncio.Event()

    def listener(event: ChangeEvent) -> None:
        loops.append(asyncio.get_running_loop())
        if len(loops) == 10:
            done.set()

    for _ in range(10):
        backend.subscribe(listener)
    await backend.publish(ChangeEvent("tools"))
    async with asyncio.timeout(5):
        await done.wait()
    assert loops == [loop] * 10


async def test_unsubscribe(backend: Backend) -> None:
    """After its end, ended twice at that, a subscription gets nothing, and others go on."""
    got: list[ChangeEvent] = []
    unsubscribe = backend.subscribe(got.append)
    unsubscribe()
    unsubscribe()
    await published(ChangeEvent("tools"), backend=backend)
    assert got == []


async def test_a_listener_may_unsubscribe_others(backend: Backend) -> None:
    """A subscription that an earlier listener ends is not called with that very event any more."""
    calls: list[str] = []

    def first(event: ChangeEvent) -> None:
        calls.append("first")
        end_second()

    def second(event: ChangeEvent) -> None:
        calls.append("second")

    backend.subscribe(first)
    end_second = backend.subscribe(second)
    await published(ChangeEvent("tools"), ChangeEvent("tools"), backend=backend)
    assert calls == ["first", "first"]


async def test_a_raising_listener_is_isolated(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    """What a listener raises reaches neither the publisher nor other listeners; it is logged."""

    def listener(event: ChangeEvent) -> None:
        raise ValueError("broken listener")

    backend.subscribe(listener)
    assert await published(ChangeEvent("tools"), ChangeEvent("prompts"), backend=backend) == [
        ChangeEvent("tools"),
        ChangeEvent("prompts"),
    ]
    assert "broken listener" in caplog.text


async def test_past_events_are_gone(backend: Backend) -> None:
    """A subscriber gets nothing of what was published before it came."""
    await backend.publish(ChangeEvent("tools"))
    assert await published(ChangeEvent("prompts"), backend=backend) == [ChangeEvent("prompts")]


async def test_keys_are_stable(backend: Backend) -> None:
    """There is always a key, made of enough secret bytes, and many callers at the first use see the same one."""
    rings = await asyncio.gather(*(backend.keys() for _ in range(10)))
    assert len({tuple(ring) for ring in rings}) == 1
    assert len(rings[0][0].secret) >= 32
    assert list(await backend.keys()) == list(rings[0])


@pytest.mark.obligation("S-117")
async def test_spend_exactly_once(backend: Backend) -> None:
    """Of many that spend one token at once, one succeeds; another token is another matter."""
    until = time.time() + 60
    results = await asyncio.gather(*(backend.spend(b"\x00token\xff", until) for _ in range(25)))
    assert results.count(True) == 1
    assert not await backend.spend(b"\x00token\xff", until)
    assert await backend.spend(b"another", until)


@pytest.mark.obligation("S-011")
async def test_two_sealers_share_it(backend: Backend) -> None:
    """What one sealer of a backend seals, another one opens, so a second handler can serve the next round."""
    binding = Binding("state", ("anonymous",), "tools/call", "t")
    assert await Sealer(backend).open(await Sealer(backend).seal({"n": 1}, binding), binding) == {"n": 1}


async def test_close_twice(backend: Backend) -> None:
    """Closing ends subscriptions, and closing again does nothing."""
    got: list[ChangeEvent] = []
    backend.subscribe(got.append)
    await backend.aclose()
    await backend.aclose()
    assert got == []
