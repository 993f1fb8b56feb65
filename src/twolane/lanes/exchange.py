"""
One request on one response: plain JSON, or a stream that opens when a message must travel.

The handler runs in the ASGI task itself. Only if it is still at work after :data:`GRACE` is a watch armed, which reads
``receive()`` for a disconnect and keeps the stream alive; a quick answer pays for one timer and nothing else.

Rules of this file: every write goes through one lock and one flag, so nothing follows the end; the watch is disarmed
before the last write, because servers report the completed response as a disconnect too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from twolane.errors import PushUnavailable
from twolane.protocol.message import encode
from twolane.protocol.sse import KEEP_ALIVE, event

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from twolane.protocol.inputs import InputRequest
    from twolane.protocol.media import Accepts

__all__ = [
    "GRACE",
    "SSE_HEADERS",
    "Answer",
    "Exchange",
    "RawHeaders",
    "ResponseMode",
    "StreamProfile",
    "send_answer",
    "send_empty",
]

#: Seconds a handler runs before its connection is watched.
GRACE = 0.05
#: Seconds that the answer to a cancelled request may take to leave.
_LAST_WORD = 1.0

_Result = TypeVar("_Result")

ResponseMode = Literal["auto", "json", "sse"]
RawHeaders = tuple[tuple[bytes, bytes], ...]

_JSON = (b"content-type", b"application/json")
SSE_HEADERS: RawHeaders = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    # nginx buffers responses unless told not to (S-064).
    (b"x-accel-buffering", b"no"),
)


class Answer(NamedTuple):
    """The end of a request: HTTP status and one encoded JSON-RPC response; ``code`` is its error code, if any."""

    status: int
    body: bytes
    code: int | None = None


@dataclass(frozen=True, slots=True)
class StreamProfile:
    """
    How responses are delivered, resolved from the options once.

    Args:
        mode: ``auto`` opens a stream when a message must travel; ``json`` never does; ``sse`` always does.
        keep_alive: seconds between comment frames on an open stream, or None.
        stream_after: seconds of silence after which ``auto`` opens the stream, or None.
    """

    mode: ResponseMode = "auto"
    keep_alive: float | None = 15.0
    stream_after: float | None = 15.0


async def send_answer(send: Send, status: int, body: bytes, headers: RawHeaders, kind: bytes | None = None) -> None:
    """Send a whole response in one go."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", kind) if kind else _JSON,
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_empty(send: Send, status: int, headers: RawHeaders) -> None:
    """Send a response without a body."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": b""})


class Exchange:
    """One request on its response. It is the :class:`~twolane.server.context.Outlet` of the call it serves."""

    __slots__ = (
        "_ended",
        "_headers",
        "_lock",
        "_profile",
        "_pulse",
        "_pulse_task",
        "_receive",
        "_send",
        "_started",
        "_streams",
        "_task",
        "_timer",
        "_watch",
        "cancelled",
        "lane",
        "plain_json",
    )

    def __init__(
        self,
        receive: Receive,
        send: Send,
        *,
        profile: StreamProfile,
        accepts: Accepts,
        headers: RawHeaders,
        lane: str,
    ) -> None:
        self._receive = receive
        self._send = send
        self._profile = profile
        self._headers = headers
        self.lane = lane
        #: True once the client has gone.
        self.cancelled = False
        # A client that reads JSON only gets JSON, whatever the mode.
        self._streams = profile.mode != "json" and accepts.sse
        #: Whether the response must be a stream: by mode, or because the client reads nothing else.
        self.plain_json = accepts.json and not (self._streams and profile.mode == "sse")
        self._started = False
        self._ended = False
        self._lock: asyncio.Lock | None = None
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pulse: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None
        self._pulse_task: asyncio.Task[None] | None = None

    # -- the request's life ------------------------------------------------------------------------------------

    async def run(self, work: Awaitable[Answer], if_cancelled: Callable[[], Answer]) -> Answer | None:
        """
        Run *work* to its answer and send that.

        Args:
            work: serves the request.
            if_cancelled: the answer when somebody other than the client cancels the task: the handler itself, or
                whoever runs the application. It is sent, if that can be done at once, and the cancellation goes on.

        Returns:
            The answer, or None when the client left first: the work was cancelled and nothing more is sent.
        """
        try:
            answer = await self.watched(work)
        except asyncio.CancelledError:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_LAST_WORD):
                    await self._finish(if_cancelled())
            raise
        if answer is None:
            return None
        try:
            await self._finish(answer)
        except OSError:
            return None  # The client left with the last word on its way.
        return answer

    async def watched(self, work: Awaitable[_Result]) -> _Result | None:
        """
        Run *work* and return what it does, while the connection is watched.

        Returns:
            None when the client left: the work was cancelled, and the response is over.
        """
        self._task = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(GRACE, self._arm)
        result: _Result | None = None
        try:
            result = await work
        except asyncio.CancelledError:
            if not self.cancelled:
                raise
        finally:
            self._disarm()
        if not self.cancelled:
            return result
        assert self._task is not None
        if self._task.uncancel():
            raise asyncio.CancelledError  # Somebody else cancels the task as well.
        if not self._started:
            # Nobody reads it, but middleware that waits for a response start is not left waiting.
            with suppress(OSError):
                await send_empty(self._send, 499, self._headers)
        return None

    def _arm(self) -> None:
        self._watch = asyncio.ensure_future(self._watch_disconnect())
        if self._streams and self._pulse is None:
            wait = 0.0 if self._profile.mode == "sse" else self._profile.stream_after
            if wait is not None:
                self._beat_in(wait)

    def _disarm(self) -> None:
        for timer in (self._timer, self._pulse):
            if timer is not None:
                timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    async def _watch_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        """The client has gone: nobody will read the result, so the work is cancelled (S-067)."""
        if not self.cancelled and not self._ended and self._task is not None:
            self.cancelled = True
            self._task.cancel()

    def _beat_in(self, seconds: float) -> None:
        self._pulse = asyncio.get_running_loop().call_later(seconds, self._beat)

    def _beat(self) -> None:
        self._pulse_task = asyncio.ensure_future(self._write(KEEP_ALIVE))
        if self._profile.keep_alive is not None:
            self._beat_in(self._profile.keep_alive)

    # -- writing -----------------------------------------------------------------------------------------------

    async def _write(self, chunk: bytes) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if not self._ended and not self.cancelled:
                await self._write_frame(chunk)

    async def _write_frame(self, chunk: bytes, *, end: bool = False) -> None:
        """Write one frame, the stream's head before the first one. Called with the lock held."""
        try:
            if not self._started:
                await self._send(
                    {"type": "http.response.start", "status": 200, "headers": [*SSE_HEADERS, *self._headers]}
                )
                self._started = True
                if not end and self._pulse is None and self._profile.keep_alive is not None:
                    self._beat_in(self._profile.keep_alive)
            await self._send({"type": "http.response.body", "body": chunk, "more_body": not end})
        except OSError:
            # How ASGI 2.4 servers report a client that has gone.
            self._leave()

    async def _finish(self, answer: Answer) -> None:
        whole = self.plain_json or answer.status != 200
        if whole and self._lock is None:  # Nothing was ever written: the usual case, without a lock.
            self._ended = True
            await send_answer(self._send, answer.status, answer.body, self._headers)
            return
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            self._ended = True
            if whole and not self._started:
                await send_answer(self._send, answer.status, answer.body, self._headers)
            else:
                await self._write_frame(event(answer.body), end=True)
            if self._pulse is not None:
                self._pulse.cancel()

    # -- Outlet ------------------------------------------------------------------------------------------------

    async def send_notification(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on this response, opening its stream if need be."""
        if self._streams and not self._ended:
            await self._write(event(encode({"jsonrpc": "2.0", "method": method, "params": params})))

    async def push(self, request: InputRequest) -> dict[str, Any]:
        """Refuse at once: without a session there is no way back to the client (S-062)."""
        raise PushUnavailable(request.method, self.lane)

    async def close_stream(self, retry: float | None) -> None:
        """Do nothing: a stream that cannot be resumed must stay open."""
