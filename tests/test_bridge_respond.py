"""Driving ASGI applications inside the process: an application behind Starlette's request and response."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from tests.support.asgi import SCOPE, TYPE, Channel, chunk, echo, eventually, head, part, rendered, until_disconnect
from twolane.bridge import respond


def _once(message: Message) -> Callable[[], Awaitable[Message]]:
    async def receive() -> Message:
        return message

    return receive


class TestRespond:
    """``respond``: an application behind Starlette's request and response."""

    async def test_a_finished_answer_is_a_plain_response(self) -> None:
        """An answer that is there at once becomes a plain response with the same headers and its length."""
        response = await respond(
            echo,
            Request(
                SCOPE,
                Channel(
                    part(b"hello "),
                ),
            ),
            body=b"hello",
        )
        assert type(response) is Response
        assert response.raw_headers == [
            TYPE,
            (b"set-cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
            (b"content-length", b"5"),
        ]
        assert [message.get("body") for message in await rendered(response)] == [None, b"hello"]

    async def test_the_body_is_read_from_the_request(self) -> None:
        """Without a body given, the application reads the request's own, part by part, or what was read before."""
        request = Request(SCOPE, Channel(part(b"a", more=True), part(b"b")))
        assert (await respond(echo, request)).body == b"ab"
        request = Request(SCOPE, Channel(part(b"a", more=True), part(b"b")))
        await request.body()
        assert (await respond(echo, request)).body == b"ab"

    async def test_a_consumed_body_is_empty(self) -> None:
        """A body that somebody consumed without keeping it reads as empty instead of failing."""
        request = Request(SCOPE, Channel(part(b"a")))
        assert [data async for data in request.stream()] == [b"a", b""]
        assert (await respond(echo, request)).body == b""

    async def test_an_announced_length_is_waited_for(self) -> None:
        """A response that announces its length comes whole, although its body takes a while."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(TYPE, (b"Content-Length", b"2")))
            await asyncio.sleep(0.01)
            await send(chunk(b"o"))
            await asyncio.sleep(0.01)
            await send(chunk(b"k", more=False))

        response = await respond(app, Request(SCOPE, Channel()), body=b"")
        assert type(response) is Response
        assert response.body == b"ok"
        assert response.raw_headers == [TYPE, (b"Content-Length", b"2")]

    @pytest.mark.parametrize("status", [204, 304])
    async def test_no_length_where_no_body_may_be(self, status: int) -> None:
        """A status without a body gets no Content-Length."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(status=status))
            await send(chunk(b"", more=False))

        response = await respond(app, Request(SCOPE, Channel()), body=b"")
        assert (response.status_code, response.raw_headers) == (status, [])

    async def test_the_scope_is_extended(self) -> None:
        """The application sees the request's scope with the members that were added, and the request does not."""
        seen: list[Scope] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope)
            await echo(scope, receive, send)

        request = Request(SCOPE, Channel())
        await respond(app, request, {"extra": 1}, body=b"")
        assert seen[0]["extra"] == 1
        assert seen[0]["path"] == "/mcp"
        assert "extra" not in request.scope

    async def test_a_stream_is_a_streaming_response(self) -> None:
        """An answer that goes on becomes a streaming response; frame by frame, and its end is waited for."""
        log: list[str] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await send(head(TYPE))
            await send(chunk(b"a"))
            await asyncio.sleep(0)
            await send(chunk(b"b", more=False))
            await asyncio.sleep(0.01)
            log.append("ended")

        response = await respond(app, Request(SCOPE, Channel()), body=b"")
        assert isinstance(response, StreamingResponse)
        assert response.raw_headers == [TYPE]
        assert [message.get("body") for message in await rendered(response)] == [None, b"a", b"b", b""]
        assert log == ["ended"]

    async def test_a_disconnect_before_the_response_reaches_the_application(self) -> None:
        """A client that leaves while the handler works is reported to it; the answer for nobody is a 499."""
        log: list[str] = []
        channel = Channel()
        task = asyncio.create_task(respond(until_disconnect(log), Request(SCOPE, channel), body=b""))
        await eventually(lambda: channel.waiting)
        channel.leave()
        response = await task
        assert (response.status_code, response.body) == (499, b"")
        assert log == ["http.disconnect", "ended"]

    async def test_a_disconnect_within_the_body_reaches_the_application(self) -> None:
        """A client that leaves in the middle of its upload is a disconnect for the application, and a 499."""
        log: list[str] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            log.append((await receive())["type"])
            log.append((await receive())["type"])

        channel = Channel(part(b"a", more=True))
        channel.leave()
        response = await respond(app, Request(SCOPE, channel))
        assert response.status_code == 499
        assert log == ["http.request", "http.disconnect"]

    async def test_a_disconnect_within_an_announced_body_is_a_499(self) -> None:
        """A client that leaves before an announced body is whole gets no torn response."""
        log: list[str] = []
        channel = Channel()
        app = until_disconnect(log, head(TYPE, (b"content-length", b"9")), chunk(b"a"))
        task = asyncio.create_task(respond(app, Request(SCOPE, channel), body=b""))
        await eventually(lambda: channel.waiting)
        channel.leave()
        assert (await task).status_code == 499
        assert log == ["http.disconnect", "ended"]

    async def test_after_the_response_the_stream_alone_watches(self) -> None:
        """Once the response is returned, the application no longer reads the request's channel."""
        log: list[str] = []
        channel = Channel()
        release = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            watch = asyncio.ensure_future(until_disconnect(log)(scope, receive, send))
            await release.wait()
            await send(head(TYPE))
            await send(chunk(b"a"))
            await watch

        # Reading the body is over, so the second receive of `until_disconnect` waits for the channel.
        task = asyncio.create_task(respond(app, Request(SCOPE, channel), body=b""))
        await eventually(lambda: channel.waiting == 1)
        release.set()
        response = await task
        await eventually(lambda: channel.waiting == 0)
        channel.leave()
        sent = await rendered(response, channel)
        assert sent[0]["type"] == "http.response.start"
        await eventually(lambda: "http.disconnect" in log)

    async def test_a_cancelled_stream_ends_the_application(self) -> None:
        """A server that cancels the response ends the work behind it."""
        log: list[str] = []
        response = await respond(until_disconnect(log, head(TYPE), chunk(b"a")), Request(SCOPE, Channel()), body=b"")
        task = asyncio.create_task(rendered(response))
        for _ in range(10):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: log == ["http.disconnect", "ended"])

    async def test_a_server_that_raises_ends_the_application(self) -> None:
        """An ASGI 2.4 server tells of a client that has gone by raising; that ends the work too."""
        log: list[str] = []
        response = await respond(until_disconnect(log, head(TYPE), chunk(b"a")), Request(SCOPE, Channel()), body=b"")

        async def broken(message: Message) -> None:
            if message["type"] == "http.response.body":
                raise OSError("connection lost")

        with pytest.raises(ClientDisconnect):
            await response(SCOPE | {"asgi": {"version": "3.0", "spec_version": "2.4"}}, Channel(), broken)
        await eventually(lambda: log == ["http.disconnect", "ended"])

    async def test_a_dropped_response_ends_the_application(self) -> None:
        """A streaming response that middleware throws away does not leave its application waiting for ever."""
        log: list[str] = []
        response: Response | None = await respond(
            until_disconnect(log, head(TYPE), chunk(b"a")), Request(SCOPE, Channel()), body=b""
        )
        assert response is not None
        response = None
        gc.collect()
        await eventually(lambda: log == ["http.disconnect", "ended"])

    async def test_the_body_may_be_taken_from_the_response(self) -> None:
        """Middleware that keeps the body and drops the response gets every frame, and closing it ends the work."""
        log: list[str] = []
        response = await respond(until_disconnect(log, head(TYPE), chunk(b"a")), Request(SCOPE, Channel()), body=b"")
        assert isinstance(response, StreamingResponse)
        body: Any = response.body_iterator
        del response
        gc.collect()
        assert await anext(body) == b"a"
        assert log == []
        await body.aclose()
        assert log == ["http.disconnect", "ended"]

    async def test_failures_before_the_response_are_raised(self) -> None:
        """What the application raises before its response began is raised to the framework."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            raise LookupError("broken")

        with pytest.raises(LookupError, match="broken"):
            await respond(app, Request(SCOPE, Channel()), body=b"")

    async def test_failures_after_the_response_are_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        """What fails once the answer is complete harms no client, and is in the log."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await echo(scope, receive, send)
            await asyncio.sleep(0)
            raise LookupError("too late")

        caplog.set_level(logging.ERROR, "twolane.bridge")
        assert (await respond(app, Request(SCOPE, Channel()), body=b"ok")).body == b"ok"
        await eventually(lambda: "too late" in caplog.text)

    async def test_a_request_without_a_channel_is_served(self) -> None:
        """A request made by hand, whose channel cannot be read, is answered all the same."""
        log: list[str] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            watch = asyncio.ensure_future(until_disconnect(log)(scope, receive, send))
            await asyncio.sleep(0.01)
            watch.cancel()
            await echo(scope, _once(part(b"ok")), send)

        assert (await respond(app, Request(SCOPE), body=b"")).body == b"ok"
        assert log == []
