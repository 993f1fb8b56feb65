"""
Driving an ASGI application inside this process.

:func:`start` runs the application in a task of its own and hands back its response as it grows; :func:`respond` turns
that into a Starlette response. The application sees what it would see under a server: a body, then silence, then
``http.disconnect`` once the response is complete or whoever reads it has gone.

Status and headers, every frame and every clean-up happen in the one task, so what the application puts into context
variables holds from its first line to its last.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from types import TracebackType
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Exchange", "RawHeaders", "respond", "start"]

_log = logging.getLogger("twolane.bridge")

RawHeaders = list[tuple[bytes, bytes]]

#: Chunks of a response that wait for their reader before the application has to.
_QUEUE = 8
#: Seconds that an application has to end after its reader has gone, and again after it was cancelled.
_PATIENCE = 5.0
#: Keeps running applications from being collected: the event loop alone holds its tasks weakly.
_tasks: set[asyncio.Task[Any]] = set()


async def start(
    app: ASGIApp, scope: Scope, body: bytes | AsyncIterable[bytes] = b"", *, patience: float = _PATIENCE
) -> Exchange:
    """
    Run *app* on one request and return as soon as its status and headers are known.

    Args:
        app: an ASGI 3 application.
        scope: the connection scope, of type ``http``.
        body: the request's body.
        patience: seconds the application has to end once its reader has gone.

    Returns:
        The response; read it, and close it.

    Raises:
        RuntimeError: the application ended without a response, or broke the order of messages.
        Exception: whatever the application raised before its response began.
    """
    exchange = Exchange(app, scope, body, patience=patience)
    try:
        await exchange.started()
    except BaseException:
        exchange.abandon()
        raise
    return exchange


class Exchange:
    """
    One request on its way through an application, and the response as it comes.

    Iterating yields the chunks of the body. Use it as an async context manager, or call :meth:`aclose`: leaving before
    the end tells the application that the client has gone, and waits for it.
    """

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        body: bytes | AsyncIterable[bytes] = b"",
        *,
        patience: float = _PATIENCE,
        upstream: Receive | None = None,
    ) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self._patience = patience
        self._upstream = upstream
        self._body = body if isinstance(body, bytes) else aiter(body)
        self._body_done = False
        self._gone = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._chunks: deque[bytes] = deque()
        self._changed = asyncio.Event()  # Something came from the application.
        self._drained = asyncio.Event()  # The reader made room.
        self._started = False
        self._complete = False
        self._failure_told = False
        self._task = asyncio.get_running_loop().create_task(self._run(app, scope))
        _tasks.add(self._task)
        self._task.add_done_callback(self._ended)

    # -- the application's side --------------------------------------------------------------------------------

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        await app(scope, self._receive, self._send)

    def _ended(self, task: asyncio.Task[None]) -> None:
        _tasks.discard(task)
        self._changed.set()
        if self._watch is not None:
            self._watch.cancel()

    async def _receive(self) -> Message:
        if not self._body_done and not self._gone.is_set():
            body = self._body
            if isinstance(body, bytes):
                self._body_done = True
                return {"type": "http.request", "body": body, "more_body": False}
            try:
                return {"type": "http.request", "body": await anext(body), "more_body": True}
            except StopAsyncIteration:
                self._body_done = True
                return {"type": "http.request", "body": b"", "more_body": False}
            except ClientDisconnect:
                self.disconnect()
        if self._upstream is not None and self._watch is None and not self._gone.is_set():
            self._watch = asyncio.get_running_loop().create_task(self._watch_upstream(self._upstream))
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _watch_upstream(self, upstream: Receive) -> None:
        try:
            while (await upstream())["type"] != "http.disconnect":
                pass
        except Exception as exc:
            # A request without a channel of its own, or one that somebody else has drained: nothing to watch.
            _log.debug("the request's own disconnect cannot be watched: %s", exc)
            return
        self.disconnect()

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        if self._complete:
            raise RuntimeError(f"The application sent {kind} after the end of its response")
        if kind == "http.response.start":
            if self._started:
                raise RuntimeError("The application started its response twice")
            if self._gone.is_set():
                return  # Nobody reads it. Servers drop it in silence too.
            self._started = True
            self.status = message["status"]
            self.headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        elif kind == "http.response.body":
            if self._gone.is_set():
                return
            if not self._started:
                raise RuntimeError("The application sent a body before the start of its response")
            if chunk := message.get("body", b""):
                self._chunks.append(bytes(chunk))
            if not message.get("more_body", False):
                self._complete = True
                # As under a server: the completed response is a disconnect for whoever still asks.
                self._gone.set()
        else:
            raise RuntimeError(f"The application sent an unexpected message: {kind}")
        self._changed.set()
        while len(self._chunks) >= _QUEUE and not self._gone.is_set():
            self._drained.clear()
            await self._drained.wait()

    # -- the reader's side -------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether the application has sent the last of its body; some of it may still wait to be read."""
        return self._complete

    def release(self) -> None:
        """Stop watching the request's own channel: from here on the reader says when the client has gone."""
        self._upstream = None
        if self._watch is not None:
            self._watch.cancel()

    def disconnect(self) -> None:
        """Tell the application that the client has gone. It is not waited for."""
        self._gone.set()
        self._drained.set()
        self._changed.set()

    def abandon(self) -> None:
        """Disconnect, and see to the application's end in the background. Its failure goes to the log."""
        self.disconnect()
        if self._task.done():
            self._log_failure()
            return
        reaper = asyncio.get_running_loop().create_task(self._reap())
        _tasks.add(reaper)
        reaper.add_done_callback(_tasks.discard)

    async def _reap(self) -> None:
        await self._join()
        self._log_failure()

    def _log_failure(self) -> None:
        try:
            self._raise_failure()
        except Exception:
            _log.exception("the application failed after its response was complete or its client had gone")

    async def started(self) -> bool:
        """
        Wait for status and headers.

        Returns:
            False when the request's own client left first and the application ended without a response.

        Raises:
            RuntimeError: the application ended without a response.
            Exception: what the application raised instead.
        """
        while not self._started and not self._task.done() and not self._gone.is_set():
            await self._news()
        if self._started:
            return True
        if self._gone.is_set():
            await self._join()
            self._raise_failure()
            return False
        self._raise_failure()
        raise RuntimeError("The application ended without sending a response")

    async def _news(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._complete or self._gone.is_set():
                raise StopAsyncIteration
            if self._task.done():
                self._raise_failure()
                raise RuntimeError("The application ended in the middle of its response")
            await self._news()
        chunk = self._chunks.popleft()
        self._drained.set()
        return chunk

    async def aclose(self) -> None:
        """
        End the exchange: an unfinished response is a client that has gone. Waits for the application to end.

        Raises:
            Exception: what the application raised, unless it was raised from here before.
        """
        self.disconnect()
        await self._join()
        self._raise_failure()

    async def _join(self) -> None:
        if not self._task.done():
            await asyncio.wait((self._task,), timeout=self._patience)
        if not self._task.done():
            _log.warning("the application is still at work %g s after its client left; cancelling it", self._patience)
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=self._patience)

    def _raise_failure(self) -> None:
        if not self._task.done() or self._failure_told:
            return
        self._failure_told = True
        if self._task.cancelled():
            if not self._gone.is_set():
                raise RuntimeError("The application cancelled itself")
        elif (failure := self._task.exception()) is not None:
            raise failure

    async def __aenter__(self) -> Exchange:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.aclose()
        except Exception:
            if exc is None:
                raise
            _log.exception("the application failed while it was being closed")


async def respond(
    app: ASGIApp, request: Request, extra_scope: Mapping[str, Any] | None = None, *, body: bytes | None = None
) -> Response:
    """
    Answer a Starlette request with *app*.

    Until the response is returned, the request's own disconnect reaches the application. After that the response does:
    a stream that is cancelled, closed or dropped ends the application's work.

    Args:
        app: an ASGI 3 application.
        request: the request. A body that was consumed before reads as empty.
        extra_scope: further members of the scope that the application sees.
        body: the body, where the caller has it already.

    Returns:
        A plain response where the whole body was there or its length was announced, a streaming one elsewhere, and an
        empty 499 where the client left before the response began.
    """
    exchange = Exchange(
        app,
        {**request.scope, **(extra_scope or {})},
        _unread(request) if body is None else body,
        upstream=request.receive,
    )
    try:
        if not await exchange.started():
            return Response(status_code=499)
        if exchange.complete or any(name.lower() == b"content-length" for name, _ in exchange.headers):
            content = b"".join([chunk async for chunk in exchange])
            if not exchange.complete:
                await exchange.aclose()
                return Response(status_code=499)
            exchange.abandon()
            return _whole(exchange.status, exchange.headers, content)
        exchange.release()
        return _BridgedStream(exchange)
    except BaseException:
        exchange.abandon()
        raise


async def _unread(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except RuntimeError:
        return  # Consumed by somebody who handed its value on in the scope.


def _whole(status: int, headers: RawHeaders, content: bytes) -> Response:
    response = Response(content, status)
    announced = any(name.lower() == b"content-length" for name, _ in headers)
    if not announced and status >= 200 and status not in (204, 304):
        headers = [*headers, (b"content-length", str(len(content)).encode())]
    response.raw_headers = headers
    return response


class _Body:
    """The rest of a body, for one reader. Closing or dropping it ends the application's work."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._exchange)

    async def aclose(self) -> None:
        self._closed = True
        await self._exchange.aclose()

    def abandon(self) -> None:
        if not self._closed:
            self._closed = True
            self._exchange.abandon()

    def __del__(self) -> None:
        # Never sent: middleware answered with something else.
        if not self._closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._exchange.abandon)


class _BridgedStream(StreamingResponse):
    """The response of an application that is still at work."""

    def __init__(self, exchange: Exchange) -> None:
        self._rest = _Body(exchange)
        super().__init__(self._rest, exchange.status)
        self.raw_headers = exchange.headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except BaseException:
            self._rest.abandon()
            raise
        await self._rest.aclose()
