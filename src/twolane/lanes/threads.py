"""Plain functions in worker threads, within a limit that holds even for those whose request has gone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from anyio import CapacityLimiter, to_thread

__all__ = ["Threads"]


class Threads:
    """
    At most *limit* functions at once on each event loop; further ones wait.

    A thread cannot be interrupted. When its request is cancelled the request ends at once, and the thread keeps its
    place until the function returns, so that clients who leave cannot multiply threads.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, CapacityLimiter] = WeakKeyDictionary()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run *function* in a thread with the caller's context variables; return or raise what it does."""
        loop = asyncio.get_running_loop()
        places = self._places.get(loop)
        if places is None:
            places = self._places[loop] = CapacityLimiter(self._limit)
        place = _Place(places, loop, function)
        await places.acquire_on_behalf_of(place)
        try:
            value, error = await to_thread.run_sync(
                place.work, abandon_on_cancel=True, limiter=CapacityLimiter(math.inf)
            )
        finally:
            if not place.started:
                place.release()
        if error is not None:
            raise error
        return value


class _Place:
    """One function and its place in the limit, given back when the function has ended and not before."""

    __slots__ = ("_function", "_loop", "_places", "_released", "started")

    def __init__(self, places: CapacityLimiter, loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> None:
        self._places = places
        self._loop = loop
        self._function = function
        self._released = False
        self.started = False

    def work(self) -> tuple[Any, BaseException | None]:
        self.started = True
        try:
            return self._function(), None
        except BaseException as exc:
            # As a value: a future cannot carry StopIteration, and SystemExit would end the worker thread.
            return None, exc
        finally:
            try:
                self._loop.call_soon_threadsafe(self.release)
            except RuntimeError:
                pass  # The loop is closed and the limit went with it.

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._places.release_on_behalf_of(self)
