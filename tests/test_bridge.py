"""Driving ASGI applications inside the process: the exchange."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.support.asgi import SCOPE, TYPE, chunk, echo, eventually, head, until_disconnect
from twolane.bridge import Exchange, start


class TestExchange:
    """``start``: the response as it grows."""

    async def test_the_response_comes_with_its_status_headers_and_body(self) -> None:
        """Status, every header and the whole body arrive, whether the request's body comes whole or in parts."""

        async def parts() -> AsyncIterator[bytes]:
            yield b"hello "
            yield b"world"

        for body in (b"hello world", parts()):
            async with await start(echo, SCOPE, body) as exchange:
                assert exchange.status == 201
                assert exchange.headers == [TYPE, (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2")]
                assert b"".join([data async for data in exchange]) == b"hello world"

    async def test_the_head_is_there_before_the_body(self) -> None:
        """Status and headers are known as soon as they are sent, however long the body takes."""
        go = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(TYPE))
            await go.wait()
            await send(chunk(b"late", more=False))

        async with asyncio.timeout(5), await start(app, SCOPE) as exchange:
            assert exchange.status == 200
            assert not exchange.complete
            go.set()
            assert [data async for data in exchange] == [b"late"]

    async def test_a_slow_reader_holds_the_application_back(self) -> None:
        """An application that writes faster than anyone reads waits instead of filling the memory."""
        written = 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal written
            await send(head(TYPE))
            for _ in range(1000):
                await send(chunk(b"x"))
                written += 1
            await send(chunk(b"", more=False))

        async with await start(app, SCOPE) as exchange:
            for _ in range(50):
                await asyncio.sleep(0)
            assert written < 20
            assert len([data async for data in exchange]) == 1000

    async def test_closing_is_a_disconnect(self) -> None:
        """Closing before the end reaches the application as ``http.disconnect``, and it is waited for."""
        log: list[str] = []
        exchange = await start(until_disconnect(log, head(TYPE), chunk(b"a")), SCOPE)
        assert await anext(exchange) == b"a"
        await exchange.aclose()
        assert log == ["http.disconnect", "ended"]

    async def test_closing_frees_an_application_that_waits_for_its_reader(self) -> None:
        """An application that is held back by its reader goes on when that reader leaves."""
        log: list[str] = []
        app = until_disconnect(log, head(TYPE), *(chunk(b"x") for _ in range(100)))
        async with asyncio.timeout(5):
            exchange = await start(app, SCOPE)
            await exchange.aclose()
        assert log == ["http.disconnect", "ended"]

    async def test_an_application_that_does_not_end_is_cancelled(self, caplog: pytest.LogCaptureFixture) -> None:
        """Whoever ignores the disconnect is cancelled after the patience given, with a line in the log."""
        cancelled = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(TYPE))
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        exchange = await start(app, SCOPE, patience=0.01)
        async with asyncio.timeout(5):
            await exchange.aclose()
        assert cancelled.is_set()
        assert "still at work" in caplog.text

    async def test_the_completed_response_is_a_disconnect(self) -> None:
        """As under a server, whoever still asks after the last chunk is told that the connection is over."""
        log: list[str] = []
        exchange = await start(until_disconnect(log, head(TYPE), chunk(b"a", more=False)), SCOPE)
        assert [data async for data in exchange] == [b"a"]
        with pytest.raises(RuntimeError, match="after the end of its response"):
            await exchange.aclose()
        assert log == ["http.disconnect"]

    @pytest.mark.parametrize(
        ("messages", "problem"),
        [
            ([], "without sending a response"),
            ([chunk(b"a")], "body before the start"),
            ([{"type": "http.response.push"}], "unexpected message: http.response.push"),
        ],
    )
    async def test_an_application_that_breaks_the_rules_is_named(self, messages: list[Message], problem: str) -> None:
        """No response, or messages out of order, give an error that says what was wrong."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            for message in messages:
                await send(message)

        with pytest.raises(RuntimeError, match=problem):
            await start(app, SCOPE)

    @pytest.mark.parametrize(
        ("messages", "problem"),
        [
            ([head(TYPE), chunk(b"a")], "in the middle of its response"),
            ([head(TYPE), head(TYPE)], "started its response twice"),
        ],
    )
    async def test_a_response_that_breaks_off_is_named(self, messages: list[Message], problem: str) -> None:
        """A response that ends in the middle or starts anew gives its error to the reader."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            for message in messages:
                await send(message)

        exchange = await start(app, SCOPE)
        with pytest.raises(RuntimeError, match=problem):
            async for _ in exchange:
                pass
        await exchange.aclose()

    async def test_failures_reach_the_caller(self) -> None:
        """What the application raises reaches the caller: before the head, in the body, or at the end; once each."""

        async def before(scope: Scope, receive: Receive, send: Send) -> None:
            raise LookupError("before")

        async def within(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(TYPE))
            await send(chunk(b"a"))
            raise LookupError("within")

        async def after(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(TYPE))
            await send(chunk(b"a", more=False))
            raise LookupError("after")

        with pytest.raises(LookupError, match="before"):
            await start(before, SCOPE)
        exchange = await start(within, SCOPE)
        assert await anext(exchange) == b"a"
        with pytest.raises(LookupError, match="within"):
            await anext(exchange)
        await exchange.aclose()
        exchange = await start(after, SCOPE)
        assert [data async for data in exchange] == [b"a"]
        with pytest.raises(LookupError, match="after"):
            await exchange.aclose()

    async def test_an_application_that_cancels_itself_is_an_error(self) -> None:
        """A ``CancelledError`` out of nowhere is the application's failure, and does not cancel the caller."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="cancelled itself"):
            await start(app, SCOPE)

    async def test_a_cancelled_caller_lets_the_application_know(self) -> None:
        """Whoever stops waiting for the head is a client that has gone."""
        log: list[str] = []
        task = asyncio.create_task(start(until_disconnect(log), SCOPE))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: log == ["http.disconnect", "ended"])

    async def test_context_variables_hold_for_the_whole_response(self) -> None:
        """What the application sets before its first frame is still set at its last, and never outside."""
        variable: ContextVar[str] = ContextVar("variable", default="unset")

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            variable.set("mine")
            await send(head(TYPE))
            for _ in range(3):
                await send(chunk(variable.get().encode()))
            await send(chunk(b"", more=False))

        async with await start(app, SCOPE) as exchange:
            assert [data async for data in exchange] == [b"mine"] * 3
        assert variable.get() == "unset"


async def test_an_exchange_keeps_its_application_alive() -> None:
    """A running application is not collected although nobody but the event loop knows it."""
    log: list[str] = []
    exchange: Exchange | None = await start(until_disconnect(log, head(TYPE)), SCOPE)
    assert exchange is not None
    exchange.abandon()
    exchange = None
    gc.collect()
    await eventually(lambda: log == ["http.disconnect", "ended"])
