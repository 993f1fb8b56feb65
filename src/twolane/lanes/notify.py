"""Change notices: from the handler or a running tool to every open stream that asked for them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from twolane.ports import ChangeEvent

if TYPE_CHECKING:
    from twolane.ports import Bus

__all__ = ["HandlerNotify"]

_log = logging.getLogger("twolane.notify")


class HandlerNotify:
    """
    Publishes change notices on a :class:`~twolane.ports.Bus` (basic/patterns/subscriptions).

    The coroutine methods return once the bus has the event; with nobody listening they do nothing. The ``_soon``
    methods may be called from any thread: they hand the event to the event loop and return at once.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._tasks: set[asyncio.Task[Any]] = set()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Remember a loop that serves streams, for calls from other threads."""
        self._loops.add(loop)

    async def tools_changed(self) -> None:
        """Say that the list of tools changed."""
        await self._bus.publish(ChangeEvent("tools"))

    async def prompts_changed(self) -> None:
        """Say that the list of prompts changed."""
        await self._bus.publish(ChangeEvent("prompts"))

    async def resources_changed(self) -> None:
        """Say that the list of resources changed."""
        await self._bus.publish(ChangeEvent("resources"))

    async def resource_updated(self, uri: str) -> None:
        """Say that the resource *uri* changed."""
        await self._bus.publish(ChangeEvent("resource_updated", uri))

    def tools_changed_soon(self) -> None:
        """As :meth:`tools_changed`, from any thread and without waiting."""
        self._soon(ChangeEvent("tools"))

    def prompts_changed_soon(self) -> None:
        """As :meth:`prompts_changed`, from any thread and without waiting."""
        self._soon(ChangeEvent("prompts"))

    def resources_changed_soon(self) -> None:
        """As :meth:`resources_changed`, from any thread and without waiting."""
        self._soon(ChangeEvent("resources"))

    def resource_updated_soon(self, uri: str) -> None:
        """As :meth:`resource_updated`, from any thread and without waiting."""
        self._soon(ChangeEvent("resource_updated", uri))

    def _soon(self, event: ChangeEvent) -> None:
        try:
            self._start(asyncio.get_running_loop(), event)
            return
        except RuntimeError:
            pass
        # Another thread: any loop that serves streams will do, as the bus reaches all of them.
        for loop in tuple(self._loops):
            if not loop.is_closed():
                try:
                    loop.call_soon_threadsafe(self._start, loop, event)
                except RuntimeError:
                    continue
                return

    def _start(self, loop: asyncio.AbstractEventLoop, event: ChangeEvent) -> None:
        task = loop.create_task(self._bus.publish(event))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (exc := task.exception()) is not None:
            _log.error("a change notice could not be published", exc_info=exc)
