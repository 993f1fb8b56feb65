"""How a sealer reads its keys, and tokens that open once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.sealing import BINDING, KEY, OTHER, reason, sealer
from twolane.errors import SealError
from twolane.ports import Key
from twolane.seal import Sealer


class CountingRing:
    """A key ring that counts its readers and can be changed or broken."""

    def __init__(self, *keys: Key) -> None:
        self.current: Sequence[Key] = keys
        self.reads = 0
        self.spent: list[tuple[bytes, float]] = []
        self.broken = False

    async def keys(self) -> Sequence[Key]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.broken:
            raise ConnectionError("the store is down")
        return self.current

    async def spend(self, token_id: bytes, until: float) -> bool:
        known = any(token_id == token for token, _ in self.spent)
        self.spent.append((token_id, until))
        return not known


class Clock:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_keys_are_read_once() -> None:
    """Nothing is read at construction, and many callers at the first use read the ring once between them."""
    ring = CountingRing(KEY)
    seals = Sealer(ring)
    assert ring.reads == 0
    texts = await asyncio.gather(*(seals.seal(index, BINDING) for index in range(20)))
    assert [await seals.open(text, BINDING) for text in texts] == list(range(20))
    assert ring.reads == 1


async def test_each_loop_reads_for_itself() -> None:
    """A sealer that is used from a second event loop reads the ring there anew and opens the same texts."""
    ring = CountingRing(KEY)
    seals = Sealer(ring)
    text = await seals.seal(1, BINDING)
    assert await asyncio.to_thread(asyncio.run, seals.open(text, BINDING)) == 1
    assert ring.reads == 2


@pytest.mark.obligation("X-05")
async def test_unknown_keys_are_looked_for_now_and_then() -> None:
    """A text under a key that another worker added opens after one re-read, and junk cannot force a read each time."""
    ring, clock = CountingRing(KEY), Clock()
    seals = Sealer(ring, clock=clock)
    await seals.seal(1, BINDING)
    newer = await sealer(OTHER).seal(2, BINDING)
    assert await reason(seals.open(newer, BINDING)) == "unknown_key"
    assert ring.reads == 1
    ring.current = (OTHER, KEY)
    clock.now += Sealer.REREAD
    assert await seals.open(newer, BINDING) == 2
    assert ring.reads == 2
    unknown = await sealer(Key.of(b"z" * 32)).seal(3, BINDING)
    for _ in range(50):
        assert await reason(seals.open(unknown, BINDING)) == "unknown_key"
    assert ring.reads == 2


async def test_a_removed_key_stops_working() -> None:
    """A key that was taken off the ring no longer opens once the keys at hand are old."""
    ring, clock = CountingRing(OTHER, KEY), Clock()
    seals = Sealer(ring, clock=clock)
    text = await sealer(KEY).seal(1, BINDING)
    assert await seals.open(text, BINDING) == 1
    ring.current = (OTHER,)
    clock.now += Sealer.REFRESH
    assert await reason(seals.open(text, BINDING)) == "unknown_key"


async def test_the_store_may_go_away() -> None:
    """Keys that were read keep working while the store is down; without any, its failure is the caller's to see."""
    ring, clock = CountingRing(KEY), Clock()
    seals = Sealer(ring, clock=clock)
    text = await seals.seal(1, BINDING)
    ring.broken = True
    clock.now += Sealer.REFRESH
    for _ in range(5):
        assert await seals.open(text, BINDING) == 1
    assert ring.reads == 2
    with pytest.raises(ConnectionError):
        await Sealer(ring).seal(1, BINDING)
    ring.broken, ring.current = False, ()
    with pytest.raises(RuntimeError, match="empty"):
        await Sealer(ring).seal(1, BINDING)


@pytest.mark.obligation("S-117", "X-05")
async def test_single_use() -> None:
    """A text that is spent opens exactly once, among twenty at once; a text that does not open is not spent."""
    ring = CountingRing(KEY)
    seals = Sealer(ring)
    text = await seals.seal("once", BINDING)
    await reason(seals.open(text, replace(BINDING, name="other"), spend=True))
    assert not ring.spent
    results = await asyncio.gather(*(seals.open(text, BINDING, spend=True) for _ in range(20)), return_exceptions=True)
    assert results.count("once") == 1
    assert [item.reason for item in results if isinstance(item, SealError)] == ["spent"] * 19
    assert len({token for token, _ in ring.spent}) == 1


async def test_the_mark_outlives_the_text() -> None:
    """A spent mark is kept until after the last instant at which its text still opens."""
    ring = CountingRing(KEY)
    seals = Sealer(ring)
    text = await seals.seal(1, BINDING, 5, now=1000.0)
    await seals.open(text, BINDING, spend=True, now=1000.0)
    assert ring.spent[0][1] > 1005.0
