"""Streams of the client for users' tests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from twolane import Context, McpServer, StatelessMcpHandler, create_mcp_handler
from twolane.protocol.envelope import SUBSCRIPTION_ID
from twolane.testing import McpTestClient


def make_app(cancelled: asyncio.Event | None = None, **options: Any) -> StatelessMcpHandler:
    """Make a handler whose tool says each step and then waits to be cancelled."""

    def create_server() -> McpServer:
        server = McpServer("probe", version="1.0.0")

        @server.tool
        async def steps(ctx: Context) -> str:
            """Say two steps, then wait for ever."""
            await ctx.progress(1)
            await ctx.progress(2)
            try:
                await asyncio.Event().wait()
            finally:
                if cancelled is not None:
                    cancelled.set()
            return "never"

        @server.tool
        async def quick() -> str:
            """Answer at once."""
            return "quick"

        @server.resource("memo://one")
        def memo() -> str:
            """A memo."""
            return "memo"

        return server

    return create_mcp_handler(create_server, **options)


class TestMessageStream:
    """``client.stream``."""

    async def test_messages_come_one_by_one_and_leaving_cancels(self) -> None:
        """Each message is there before the tool ends, and leaving the stream cancels the tool."""
        cancelled = asyncio.Event()
        async with McpTestClient(make_app(cancelled)) as client:
            async with client.stream("tools/call", {"name": "steps"}, meta={"progressToken": 1}) as stream:
                assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
                assert (await stream.next())["params"]["progress"] == 1
                assert (await stream.next())["params"]["progress"] == 2
                with pytest.raises(TimeoutError, match=r"no message within 0\.01 s; 2 came before"):
                    await stream.next(timeout=0.01)
            async with asyncio.timeout(5):
                await cancelled.wait()

    async def test_plain_json_is_a_stream_of_one(self) -> None:
        """An answer in JSON yields its one message and ends."""
        async with McpTestClient(make_app()) as client, client.stream("tools/call", {"name": "quick"}) as stream:
            messages = [message async for message in stream]
            assert [message["result"]["content"][0]["text"] for message in messages] == ["quick"]
            assert (await stream.answer()).text == "quick"

    async def test_the_rest_becomes_an_answer(self) -> None:
        """What was read before is part of the answer."""
        app = make_app(response_mode="sse")
        async with McpTestClient(app) as client, client.stream("tools/call", {"name": "quick"}) as stream:
            first = await stream.next()
            assert (await stream.answer()).messages == [first]

    async def test_comments_are_kept(self) -> None:
        """Keep-alive comments are no messages, and a test can see them."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
            await send(head)
            await send({"type": "http.response.body", "body": b": alive\n\n", "more_body": True})
            await send({"type": "http.response.body", "body": b'data: {"id":1}\n\n'})

        async with McpTestClient(app, run_lifespan=False).stream("x/y") as stream:
            assert [message async for message in stream] == [{"id": 1}]
            assert stream.comments == ["alive"]


class TestListenStream:
    """``client.listen``."""

    async def test_notices_arrive_until_the_server_ends(self) -> None:
        """A subscription is acknowledged with its filter, yields notices, and ends with the final result."""
        app = make_app()
        async with (
            McpTestClient(app) as client,
            client.listen(
                tools_changed=True, prompts_changed=True, resource_uris=["memo://one"], request_id="sub"
            ) as stream,
        ):
            assert stream.id == "sub"
            assert stream.accepted["toolsListChanged"] is True
            assert stream.accepted["resourceSubscriptions"] == ["memo://one"]
            assert stream.headers["content-type"] == "text/event-stream"
            await app.notify.tools_changed()
            await app.notify.resource_updated("memo://one")
            await app.notify.resource_updated("memo://other")
            assert (await stream.next())["method"] == "notifications/tools/list_changed"
            updated = await stream.next()
            assert updated["params"]["uri"] == "memo://one"
            with pytest.raises(TimeoutError):
                await stream.next(timeout=0.01)
            app.close_streams()
            result = await stream.ended()
            assert result["resultType"] == "complete"
            assert result["_meta"][SUBSCRIPTION_ID] == "sub"
            assert stream.result is result

    async def test_iterating_ends_with_the_subscription(self) -> None:
        """A loop over the notices ends when the server ends the subscription."""
        app = make_app()
        async with McpTestClient(app) as client, client.listen(tools_changed=True) as stream:
            await app.notify.tools_changed()
            methods = []
            async for notice in stream:
                methods.append(notice["method"])
                app.close_streams()
            assert methods == ["notifications/tools/list_changed"]

    async def test_leaving_unsubscribes(self) -> None:
        """Leaving the block is a client that disconnects, and several subscriptions do not disturb one another."""
        app = make_app(max_subscriptions=2)
        async with McpTestClient(app) as client:
            for _ in range(3):
                async with client.listen(tools_changed=True), client.listen(tools_changed=True) as second:
                    await app.notify.tools_changed()
                    await second.next()

    async def test_a_refusal_is_shown(self) -> None:
        """A subscription that is refused fails with the answer in the text."""
        app = make_app(max_subscriptions=1)
        async with McpTestClient(app) as client, client.listen(tools_changed=True):
            with pytest.raises(AssertionError, match=r"not acknowledged, got HTTP 200.*Subscription limit"):
                async with client.listen(tools_changed=True):
                    pass
        async with McpTestClient(app, path="/nowhere") as client:
            with pytest.raises(AssertionError, match="not acknowledged, got HTTP 404"):
                async with client.listen(tools_changed=True):
                    pass

    async def test_foreign_messages_are_an_error(self) -> None:
        """A message without the stamp of the subscription fails the test."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
            await send(head)
            frames = (
                b'data: {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}\n\n'
                b'data: {"method":"notifications/message","params":{}}\n\n'
            )
            await send({"type": "http.response.body", "body": frames})

        client = McpTestClient(app, run_lifespan=False)
        async with client.listen(tools_changed=True) as stream:
            with pytest.raises(AssertionError, match="does not belong"):
                await stream.next()
        async with client.listen(tools_changed=True) as stream:
            stream.id = 99
            with pytest.raises(AssertionError, match="does not belong"):
                await stream.ended()
