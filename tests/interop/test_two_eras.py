"""Clients of both eras at one URL, at the same time."""

from __future__ import annotations

import signal

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged

from tests.support import parts

pytestmark = [pytest.mark.peers]


async def test_a_2025_client_changes_and_a_2026_client_hears(everything: parts.Served) -> None:
    """What a tool announces while it serves a 2025-era client reaches a 2026-07-28 client that listens."""
    with anyio.fail_after(30):
        async with (
            Client(everything.url, mode="legacy") as old,
            Client(everything.url, mode="2026-07-28") as new,
            new.listen(tools_list_changed=True) as stream,
        ):
            await old.call_tool("test_trigger_tool_change")
            assert await anext(stream) == ToolsListChanged()


async def test_every_kind_of_change_is_heard_by_whoever_asked(everything: parts.Served) -> None:
    """One stream hears of the resource it asked for and of the list; another, which asked for others, of neither."""
    watched, other = "test://watched-resource", "test://static-text"
    with anyio.fail_after(30):
        async with (
            Client(everything.url, mode="2026-07-28") as client,
            client.listen(resources_list_changed=True, resource_subscriptions=[watched]) as asked,
            client.listen(tools_list_changed=True, resource_subscriptions=[other]) as quiet,
        ):
            assert asked.honored.resource_subscriptions == [watched]
            await client.call_tool("test_trigger_resource_change", {"uri": watched})
            await client.call_tool("test_trigger_tool_change")
            heard = {await anext(asked), await anext(asked)}
            assert heard == {ResourcesListChanged(), ResourceUpdated(uri=watched)}
            assert await anext(quiet) == ToolsListChanged()


async def test_a_stopping_server_ends_a_stream_gracefully() -> None:
    """A listening client sees its stream end with the final result, not with a lost connection, on SIGTERM."""
    with parts.serve("examples/everything.py:create_server") as served, anyio.fail_after(30):
        async with (
            Client(served.url, mode="2026-07-28") as client,
            client.listen(tools_list_changed=True) as stream,
        ):
            served.process.terminate()
            assert [event async for event in stream] == []
            status = await anyio.to_thread.run_sync(served.process.wait, 3)
    assert status in (0, -signal.SIGTERM)


async def test_a_pushing_tool_fails_at_once_without_a_session(everything: parts.Served) -> None:
    """A tool that asks its client while it runs answers a 2025-era client with an error at once."""
    with anyio.fail_after(10):
        async with Client(everything.url, mode="legacy") as client:
            result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert result.is_error
