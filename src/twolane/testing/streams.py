"""Streams that are read message by message."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from starlette.datastructures import Headers

from twolane.bridge import Exchange
from twolane.protocol.envelope import SUBSCRIPTION_ID
from twolane.testing.answers import Answer, EventReader, messages_of

__all__ = ["ListenStream", "MessageStream"]


class MessageStream:
    """
    The messages of one response as they come. Made by :meth:`McpTestClient.stream`.

    Iterating yields each JSON-RPC message, the final response included, and ends with the response body. Each message
    is waited for a bounded time.
    """

    def __init__(self, exchange: Exchange, timeout: float) -> None:
        #: The HTTP status.
        self.status = exchange.status
        #: The response headers.
        self.headers = Headers(raw=exchange.headers)
        self._exchange = exchange
        self._timeout = timeout
        self._reader = EventReader()
        self._is_stream = self.headers.get("content-type", "").startswith("text/event-stream")
        self._body = b""
        self._ready: deque[dict[str, Any]] = deque()
        self._seen: list[dict[str, Any]] = []
        self._over = False

    @property
    def comments(self) -> list[str]:
        """The comment lines read so far. Servers send them to keep a quiet stream alive."""
        return self._reader.comments

    async def next(self, timeout: float | None = None) -> dict[str, Any]:
        """
        Return the next message.

        Args:
            timeout: seconds to wait; the client's own by default. Nothing is lost by giving up: a later call goes on
                where this one stopped.

        Raises:
            TimeoutError: no message came in time.
            StopAsyncIteration: the response has ended.
        """
        seconds = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                while not self._ready:
                    await self._read()
        except TimeoutError:
            raise TimeoutError(f"no message within {seconds:g} s; {len(self._seen)} came before") from None
        message = self._ready.popleft()
        self._seen.append(message)
        return message

    async def _read(self) -> None:
        if self._over:
            raise StopAsyncIteration
        try:
            chunk = await anext(self._exchange)
        except StopAsyncIteration:
            self._over = True
            if not self._is_stream:
                self._ready.extend(messages_of("application/json", self._body))
            return
        self._body += chunk
        if self._is_stream:
            self._ready.extend(self._reader.feed(chunk))

    async def answer(self) -> Answer:
        """Read to the end and return everything as one :class:`Answer`, messages that were read before included."""
        while True:
            try:
                await self.next()
            except StopAsyncIteration:
                return Answer(self.status, self.headers, self._body, list(self._seen))

    def __aiter__(self) -> MessageStream:
        return self

    async def __anext__(self) -> dict[str, Any]:
        return await self.next()


class ListenStream:
    """
    An open subscription (basic/patterns/subscriptions). Made by :meth:`McpTestClient.listen`.

    Iterating yields the change notices and ends when the server ends the subscription.
    """

    def __init__(self, stream: MessageStream, request_id: int | str, acknowledgement: dict[str, Any]) -> None:
        #: The id of the subscription: that of the listen request.
        self.id = request_id
        #: What the server agreed to send: the filter of its acknowledgement.
        self.accepted: dict[str, Any] = acknowledgement["params"]["notifications"]
        #: The final result once the server has ended the subscription, None before.
        self.result: dict[str, Any] | None = None
        self._stream = stream

    @property
    def headers(self) -> Headers:
        """The response headers."""
        return self._stream.headers

    @property
    def comments(self) -> list[str]:
        """The comment lines read so far, keep-alives for example."""
        return self._stream.comments

    async def next(self, timeout: float | None = None) -> dict[str, Any]:
        """
        Return the next change notice: ``{"method": "notifications/tools/list_changed", "params": {...}}``.

        Args:
            timeout: seconds to wait; the client's own by default. To check that nothing comes, expect the
                ``TimeoutError`` of a short one.

        Raises:
            TimeoutError: no notice came in time.
            StopAsyncIteration: the server has ended the subscription; :attr:`result` holds its final result.
            AssertionError: a message does not belong on this stream.
        """
        message = await self._stream.next(timeout)
        if "result" in message and message.get("id") == self.id:
            self.result = message["result"]
            raise StopAsyncIteration
        stamp = (message.get("params") or {}).get("_meta", {}).get(SUBSCRIPTION_ID)
        if "method" not in message or "id" in message or stamp != self.id:
            raise AssertionError(f"a message that does not belong on the subscription {self.id!r}: {message}")
        return message

    async def ended(self) -> dict[str, Any]:
        """
        Wait until the server ends the subscription and return its final result; notices before it are passed over.

        Raises:
            AssertionError: the response ended without one.
        """
        async for _ in self:
            pass
        if self.result is None:
            raise AssertionError("the stream ended without the final result of its subscription")
        return self.result

    def __aiter__(self) -> ListenStream:
        return self

    async def __anext__(self) -> dict[str, Any]:
        return await self.next()
