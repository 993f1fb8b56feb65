"""The backend of a single process: nothing is stored, nothing is connected."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from twolane.keyring import SpentSet
from twolane.ports import ChangeEvent, Key

__all__ = ["MemoryBackend"]

_log = logging.getLogger("twolane.backends.memory")


class _Subscription:
    __slots__ = ("active", "listener", "loop", "pid")

    def __init__(self, listener: Callable[[ChangeEvent], None], loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        self.loop = loop
        self.pid = os.getpid()
        self.active = True

    def deliver(self, event: ChangeEvent) -> None:
        # Checked here as well: on another loop the delivery waits for its turn, and the subscription may end first.
        if not self.active:
            return
        try:
            self.listener(event)
        except Exception:
            _log.exception("a listener of change notices failed")


class MemoryBackend:
    """
    Serves the ports within this process. Constructing it opens nothing and needs no event loop.

    Any thread and any loop may use one object at a time or at once. A notice published on a subscriber's own loop has
    reached it when ``publish`` returns; a subscriber on another loop gets it at that loop's next turn. In a forked
    child the subscriptions of the parent are gone, and a key that the parent had made by then stays.

    Args:
        namespace: tells apart services that share keys set by ``TWOLANE_STATE_KEYS``.
        spent_limit: the most single-use tokens to remember at once; further ones are refused until some expire.
    """

    def __init__(self, namespace: str = "", *, spent_limit: int = 250_000) -> None:
        self._namespace = namespace
        self._subscriptions: dict[_Subscription, None] = {}
        self._key: Key | None = None
        self._spent = SpentSet(spent_limit)
        self._lock = threading.Lock()

    @property
    def namespace(self) -> str:
        """Tells apart services that share one store."""
        return self._namespace

    async def publish(self, event: ChangeEvent) -> None:
        """Hand *event* to every subscriber of this process."""
        here = asyncio.get_running_loop()
        with self._lock:
            subscriptions = list(self._subscriptions)
        pid = os.getpid()
        for subscription in subscriptions:
            if subscription.pid != pid:
                self._drop(subscription)
            elif subscription.loop is here:
                subscription.deliver(event)
            else:
                try:
                    subscription.loop.call_soon_threadsafe(subscription.deliver, event)
                except RuntimeError:
                    # Its loop has been closed.
                    self._drop(subscription)

    def subscribe(self, listener: Callable[[ChangeEvent], None]) -> Callable[[], None]:
        """Call *listener* on the running loop for every event from now on, see :meth:`twolane.ports.Bus.subscribe`."""
        subscription = _Subscription(listener, asyncio.get_running_loop())
        with self._lock:
            self._subscriptions[subscription] = None
        return lambda: self._drop(subscription)

    def _drop(self, subscription: _Subscription) -> None:
        subscription.active = False
        with self._lock:
            self._subscriptions.pop(subscription, None)

    @property
    def subscriber_count(self) -> int:
        """How many subscriptions are alive."""
        return len(self._subscriptions)

    async def keys(self) -> Sequence[Key]:
        """Return the one key of this object, made of the system's randomness at the first call."""
        with self._lock:
            if self._key is None:
                self._key = Key.of(os.urandom(32))
            return (self._key,)

    async def spend(self, token_id: bytes, until: float) -> bool:
        """Mark a token as used, see :meth:`twolane.ports.KeyRing.spend`."""
        return self._spent.spend(token_id, until, time.time())

    async def aclose(self) -> None:
        """End every subscription. The key stays, so that what was sealed still opens where the object is used on."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            self._drop(subscription)
