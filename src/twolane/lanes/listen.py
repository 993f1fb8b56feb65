"""
``subscriptions/listen``: long streams of change notices (basic/patterns/subscriptions).

A stream costs its ASGI task and no other: the task waits in ``receive()`` for the disconnect, and a writer runs only
while there is something to write. What waits to be written is a set, so a reader that stalls holds at most one notice
of each kind and one for each URI it asked for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from twolane.errors import INTERNAL_ERROR, INVALID_PARAMS
from twolane.lanes.exchange import SSE_HEADERS, RawHeaders
from twolane.lanes.signals import SignalChain
from twolane.protocol.envelope import SUBSCRIPTION_ID
from twolane.protocol.message import RequestId, encode
from twolane.protocol.refusal import Refusal
from twolane.protocol.result import listen_result
from twolane.protocol.sse import KEEP_ALIVE, event

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Send

    from twolane.auth.info import Principal
    from twolane.lanes.notify import HandlerNotify
    from twolane.ports import Bus, ChangeEvent

__all__ = ["MAX_URIS", "Filter", "ListenHub", "read_filter"]

#: Resources one subscription may name.
MAX_URIS = 1000
#: Seconds that :meth:`ListenHub.aclose` gives slow readers.
_CLOSE_TIMEOUT = 2.0

_KINDS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


class Filter(NamedTuple):
    """What a stream wants: kinds of list changes and resource URIs."""

    kinds: frozenset[str]
    uris: frozenset[str]

    def honour(self, capabilities: dict[str, Any]) -> Filter:
        """Keep what the server can deliver: what its capabilities declare (S-125)."""
        kinds = frozenset(kind for kind in self.kinds if (capabilities.get(kind) or {}).get("listChanged"))
        subscribe = (capabilities.get("resources") or {}).get("subscribe")
        return Filter(kinds, self.uris if subscribe else frozenset())

    def wire(self, asked: list[str]) -> dict[str, Any]:
        """Write the accepted subset, the URIs in the order they were asked for."""
        accepted: dict[str, Any] = {name: True for kind, name in _KINDS.items() if kind in self.kinds}
        if self.uris:
            accepted["resourceSubscriptions"] = [uri for uri in dict.fromkeys(asked) if uri in self.uris]
        return accepted


def read_filter(params: dict[str, Any]) -> Filter | str:
    """Read ``params.notifications``; the text of a problem stands for a malformed one. Unknown keys are ignored."""
    wanted = params.get("notifications")
    if type(wanted) is not dict:
        return "params.notifications must be an object"
    kinds = set()
    for kind, name in _KINDS.items():
        flag = wanted.get(name, False)
        if type(flag) is not bool:
            return f"params.notifications.{name} must be a boolean"
        if flag:
            kinds.add(kind)
    uris = wanted.get("resourceSubscriptions", [])
    if type(uris) is not list or not all(type(uri) is str for uri in uris):
        return "params.notifications.resourceSubscriptions must be a list of URIs"
    if len(uris) > MAX_URIS:
        return f"params.notifications.resourceSubscriptions holds more than {MAX_URIS} URIs"
    return Filter(frozenset(kinds), frozenset(uris))


class ListenHub:
    """
    All listen streams of one handler.

    Args:
        bus: where change notices come from.
        notify: told of the loops that serve streams.
        limit: streams at once, over all principals.
        limit_per_principal: streams at once for one principal, or None.
        keep_alive: seconds between comment frames, or None.
        handle_signals: end the streams at SIGTERM and SIGINT.
    """

    def __init__(
        self,
        bus: Bus,
        notify: HandlerNotify,
        *,
        limit: int,
        limit_per_principal: int | None,
        keep_alive: float | None,
        handle_signals: bool,
    ) -> None:
        self._bus = bus
        self._notify = notify
        self._limit = limit
        self._limit_per_principal = limit_per_principal
        self._keep_alive = keep_alive
        self._streams: set[_Stream] = set()
        self._principals: Counter[Principal] = Counter()
        self._unsubscribe: Callable[[], None] | None = None
        self._signals = SignalChain(self._end_all_threadsafe) if handle_signals else None

    def __len__(self) -> int:
        return len(self._streams)

    def refusal(self, request_id: RequestId, params: dict[str, Any], principal: Principal) -> Refusal | None:
        """Say why a listen request is not served. Both answers are in-band, as for any other method."""
        wanted = read_filter(params)
        if isinstance(wanted, str):
            return Refusal(200, INVALID_PARAMS, f"Invalid subscriptions/listen request: {wanted}", None, request_id)
        scope = None
        if len(self._streams) >= self._limit:
            scope = "on this server"
        elif self._limit_per_principal is not None and self._principals[principal] >= self._limit_per_principal:
            scope = "for this client"
        if scope is None:
            return None
        message = f"Subscription limit reached: too many streams are open {scope}; close one or try again later"
        return Refusal(200, INTERNAL_ERROR, message, {"reason": "subscription_limit"}, request_id)

    async def serve(
        self,
        request_id: RequestId,
        params: dict[str, Any],
        *,
        capabilities: dict[str, Any],
        server_info: dict[str, Any],
        principal: Principal,
        headers: RawHeaders,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve one stream from its acknowledgement to its end. :meth:`refusal` has said None."""
        wanted = read_filter(params)
        assert isinstance(wanted, Filter)
        honoured = wanted.honour(capabilities)
        asked = params["notifications"].get("resourceSubscriptions", [])
        stream = _Stream(request_id, honoured, listen_result(request_id, server_info), principal, send)
        self._open(stream)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *headers]})
            await stream.acknowledge(honoured.wire(asked), self._keep_alive)
            if not honoured.kinds and not honoured.uris:
                stream.end()
            await stream.wait(receive)
        finally:
            stream.close()
            self._close(stream)

    def end_all(self) -> None:
        """End every stream of the running loop with its final result. Writes happen on the loop, not here."""
        for stream in tuple(self._streams):
            stream.end_threadsafe()

    async def aclose(self) -> None:
        """End every stream and wait for them, a slow reader for at most two seconds."""
        self.end_all()
        loop = asyncio.get_running_loop()
        tasks = [stream.task for stream in self._streams if stream.loop is loop and not stream.task.done()]
        current = asyncio.current_task()
        tasks = [task for task in tasks if task is not current]
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT)
            for stream in tuple(self._streams):
                if stream.loop is loop and stream.task is not current:
                    stream.abandon()

    def _end_all_threadsafe(self) -> None:
        self.end_all()

    def _open(self, stream: _Stream) -> None:
        if not self._streams:
            self._unsubscribe = self._bus.subscribe(self._publish)
            if self._signals is not None:
                self._signals.install()
        self._streams.add(stream)
        self._principals[stream.principal] += 1
        self._notify.attach(stream.loop)

    def _close(self, stream: _Stream) -> None:
        self._streams.discard(stream)
        self._principals[stream.principal] -= 1
        if not self._principals[stream.principal]:
            del self._principals[stream.principal]
        if not self._streams:
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None
            if self._signals is not None:
                self._signals.restore()

    def _publish(self, change: ChangeEvent) -> None:
        for stream in tuple(self._streams):
            stream.offer(change)


class _Stream:
    """One open stream. All methods but the ``_threadsafe`` one and :meth:`offer` run on its loop."""

    __slots__ = (
        "_acknowledged",
        "_beat",
        "_ended",
        "_ending",
        "_filter",
        "_final",
        "_id",
        "_pending",
        "_send",
        "_writer",
        "loop",
        "principal",
        "task",
    )

    def __init__(self, request_id: RequestId, wanted: Filter, final: bytes, principal: Principal, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self.loop = asyncio.get_running_loop()
        self.principal = principal
        self._id = request_id
        self._filter = wanted
        self._final = final
        self._send = send
        # Ordered and without doubles: (kind, uri), or None for a keep-alive.
        self._pending: dict[tuple[str, str | None] | None, None] = {}
        self._writer: asyncio.Task[None] | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._acknowledged = False
        self._ending = False
        self._ended = False

    async def acknowledge(self, accepted: dict[str, Any], keep_alive: float | None) -> None:
        """Send the first frame; notices that came before it follow (S-125)."""
        frame = self._frame("notifications/subscriptions/acknowledged", {"notifications": accepted})
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})
        self._acknowledged = True
        self._wake()
        if keep_alive is not None:
            self._beat_in(keep_alive)

    async def wait(self, receive: Receive) -> None:
        """Return when the client has gone or the end has been written."""
        try:
            while not self._ended:
                if (await receive())["type"] == "http.disconnect" and not self._ending:
                    return
                if self._ending and self._writer is not None:
                    await asyncio.wait((self._writer,))
        except asyncio.CancelledError:
            if not self._ended:
                raise
            self.task.uncancel()

    def offer(self, change: ChangeEvent) -> None:
        """Queue a notice if this stream asked for it. Called on whichever loop published."""
        wanted = change.uri in self._filter.uris if change.uri is not None else change.kind in self._filter.kinds
        if not wanted:
            return
        try:
            here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            here = False
        if here:
            self._queue((change.kind, change.uri))
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._queue, (change.kind, change.uri))

    def end_threadsafe(self) -> None:
        """Ask for the graceful end from any thread or signal handler."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        """Write what is pending and the final result, then end the response."""
        self._ending = True
        self._wake()

    def abandon(self) -> None:
        """End without the final result: its reader does not read."""
        self._ended = True
        self.task.cancel()

    def close(self) -> None:
        """Forget the stream: nothing is written any more."""
        self._ended = True
        if self._beat is not None:
            self._beat.cancel()
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()

    def _queue(self, item: tuple[str, str | None] | None) -> None:
        self._pending[item] = None
        self._wake()

    def _wake(self) -> None:
        idle = self._writer is None or self._writer.done()
        if idle and self._acknowledged and not self._ended and (self._pending or self._ending):
            self._writer = self.loop.create_task(self._write_pending())

    async def _write_pending(self) -> None:
        try:
            while self._pending:
                item = next(iter(self._pending))
                del self._pending[item]
                await self._send({"type": "http.response.body", "body": self._render(item), "more_body": True})
            if self._ending:
                await self._send({"type": "http.response.body", "body": event(self._final), "more_body": False})
        except OSError:
            self._ending = True  # The client has gone, as ASGI 2.4 servers say it.
        if self._ending:
            self._ended = True
            self.task.cancel()

    def _render(self, item: tuple[str, str | None] | None) -> bytes:
        if item is None:
            return KEEP_ALIVE
        kind, uri = item
        if uri is not None:
            return self._frame("notifications/resources/updated", {"uri": uri})
        return self._frame(f"notifications/{kind}/list_changed", {})

    def _frame(self, method: str, params: dict[str, Any]) -> bytes:
        stamped = {**params, "_meta": {SUBSCRIPTION_ID: self._id}}
        return event(encode({"jsonrpc": "2.0", "method": method, "params": stamped}))

    def _beat_in(self, seconds: float) -> None:
        self._beat = self.loop.call_later(seconds, self._pulse, seconds)

    def _pulse(self, seconds: float) -> None:
        self._queue(None)
        self._beat_in(seconds)
