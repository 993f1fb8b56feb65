"""Listen streams: acknowledgement first, honoured filters, stamped frames, bounds and a graceful end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.lanes.wire import Wire
from twolane.lanes.listen import MAX_URIS, ListenHub, read_filter
from twolane.lanes.notify import HandlerNotify
from twolane.ports import ChangeEvent
from twolane.protocol.envelope import SUBSCRIPTION_ID

ALL = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
ANYONE = ("anonymous",)


class LocalBus:
    """The smallest bus there is: every listener, at once."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[ChangeEvent], None]] = []

    async def publish(self, event: ChangeEvent) -> None:
        for listener in list(self.listeners):
            listener(event)

    def subscribe(self, listener: Callable[[ChangeEvent], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None


class Open:
    """An open stream and its wire."""

    def __init__(self, hub: ListenHub, wanted: dict[str, Any], request_id: int | str, principal: Any) -> None:
        self.wire = Wire()
        self.task = asyncio.ensure_future(
            hub.serve(
                request_id,
                {"notifications": wanted},
                capabilities=ALL,
                server_info={"name": "test", "version": "1"},
                principal=principal,
                headers=(),
                receive=self.wire.receive,
                send=self.wire.send,
            )
        )

    async def finished(self) -> None:
        async with asyncio.timeout(5):
            await self.task


def make_hub(bus: LocalBus, **options: Any) -> ListenHub:
    settings = {"limit": 10, "limit_per_principal": None, "keep_alive": None, "handle_signals": False, **options}
    return ListenHub(bus, HandlerNotify(bus), **settings)


async def open_stream(
    hub: ListenHub, wanted: dict[str, Any], request_id: int | str = 1, principal: Any = ANYONE
) -> Open:
    stream = Open(hub, wanted, request_id, principal)
    await stream.wire.until(2)
    return stream


@pytest.mark.obligation("S-125", "S-126", "S-127", "S-128")
async def test_acknowledged_first_then_what_was_asked() -> None:
    """The first frame names the honoured filter; then come the kinds and URIs asked for, all stamped, and no others."""
    bus = LocalBus()
    hub = make_hub(bus)
    stream = await open_stream(hub, {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}, "listen:0")
    for event in (
        ChangeEvent("prompts"),
        ChangeEvent("tools"),
        ChangeEvent("resource_updated", "a:c"),
        ChangeEvent("resource_updated", "a:b"),
    ):
        await bus.publish(event)
    await stream.wire.until(4)
    acknowledged, *notices = stream.wire.messages
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}
    assert [notice["method"] for notice in notices] == [
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ]
    assert notices[1]["params"]["uri"] == "a:b"
    assert all(m["params"]["_meta"] == {SUBSCRIPTION_ID: "listen:0"} for m in stream.wire.messages)
    stream.wire.disconnect()
    await stream.finished()
    assert len(hub) == 0
    assert bus.listeners == []


@pytest.mark.obligation("S-130")
async def test_the_graceful_end() -> None:
    """Closing sends what is pending, then the stamped result, and nothing after it."""
    bus = LocalBus()
    hub = make_hub(bus)
    stream = await open_stream(hub, {"toolsListChanged": True}, 7)
    await bus.publish(ChangeEvent("tools"))
    await hub.aclose()
    await stream.finished()
    last = stream.wire.messages[-1]
    assert last["id"] == 7
    assert last["result"]["resultType"] == "complete"
    assert last["result"]["_meta"][SUBSCRIPTION_ID] == 7
    assert stream.wire.messages[1]["method"] == "notifications/tools/list_changed"
    assert stream.wire.ended
    assert len(hub) == 0


async def test_an_empty_subscription_ends_at_once() -> None:
    """A stream on which nothing could ever travel is acknowledged and ended."""
    hub = make_hub(LocalBus())
    stream = Open(hub, {}, 1, ANYONE)
    await stream.finished()
    assert [("result" in message) for message in stream.wire.messages] == [False, True]
    assert stream.wire.ended


@pytest.mark.obligation("X-15")
async def test_a_stalled_reader_holds_one_notice_of_each_kind() -> None:
    """While a reader is stalled identical notices become one, so nothing grows with the number of events."""
    bus = LocalBus()
    hub = make_hub(bus)
    stream = await open_stream(hub, {"toolsListChanged": True, "promptsListChanged": True})
    stream.wire.blocked = asyncio.Event()
    for _ in range(10_000):
        await bus.publish(ChangeEvent("tools"))
        await bus.publish(ChangeEvent("prompts"))
    (held,) = hub._streams
    assert len(held._pending) <= 2
    stream.wire.blocked.set()
    stream.wire.blocked = None
    await hub.aclose()
    await stream.finished()
    methods = [message.get("method") for message in stream.wire.messages]
    assert methods.count("notifications/tools/list_changed") <= 2
    assert methods.count("notifications/prompts/list_changed") <= 2


async def test_a_notice_before_the_acknowledgement_waits_for_it() -> None:
    """An event published while the acknowledgement is on its way follows it and is not lost."""
    bus = LocalBus()
    hub = make_hub(bus)
    stream = Open(hub, {"toolsListChanged": True}, 1, ANYONE)
    stream.wire.blocked = asyncio.Event()
    await asyncio.sleep(0)
    await bus.publish(ChangeEvent("tools"))
    stream.wire.blocked.set()
    await stream.wire.until(3)
    assert [message["method"] for message in stream.wire.messages] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    stream.wire.disconnect()
    await stream.finished()


async def test_keep_alive_comments() -> None:
    """A quiet stream gets a comment every keep_alive seconds."""
    hub = make_hub(LocalBus(), keep_alive=0.01)
    stream = await open_stream(hub, {"toolsListChanged": True})
    await stream.wire.until(5)
    assert all(message["body"].startswith(b":") for message in stream.wire.sent[2:])
    stream.wire.disconnect()
    await stream.finished()


async def test_capacity() -> None:
    """Beyond the limit of the handler, or of one principal, a further stream is refused in-band and named so."""
    hub = make_hub(LocalBus(), limit=2, limit_per_principal=1)
    params = {"notifications": {"toolsListChanged": True}}
    first = await open_stream(hub, params["notifications"], principal=("user", "a"))
    refusal = hub.refusal(2, params, ("user", "a"))
    assert refusal is not None
    assert (refusal.status, refusal.code, refusal.data) == (200, -32603, {"reason": "subscription_limit"})
    assert hub.refusal(2, params, ("user", "b")) is None
    second = await open_stream(hub, params["notifications"], principal=("user", "b"))
    assert hub.refusal(2, params, ("user", "c")) is not None
    first.wire.disconnect()
    await first.finished()
    assert hub.refusal(2, params, ("user", "a")) is None
    await hub.aclose()
    await second.finished()


async def test_a_reader_that_never_reads_cannot_stop_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing waits for a stalled reader a bounded time and then lets it go."""
    monkeypatch.setattr("twolane.lanes.listen._CLOSE_TIMEOUT", 0.05)
    bus = LocalBus()
    hub = make_hub(bus)
    stream = await open_stream(hub, {"toolsListChanged": True})
    stream.wire.blocked = asyncio.Event()
    async with asyncio.timeout(5):
        await hub.aclose()
        await asyncio.wait((stream.task,))
    assert len(hub) == 0


async def test_notices_from_other_threads() -> None:
    """The _soon methods reach streams from any thread and return at once."""
    bus = LocalBus()
    notify = HandlerNotify(bus)
    hub = ListenHub(bus, notify, limit=10, limit_per_principal=None, keep_alive=None, handle_signals=False)
    stream = await open_stream(hub, {"resourceSubscriptions": ["a:b"], "resourcesListChanged": True})
    await asyncio.to_thread(notify.resources_changed_soon)
    await stream.wire.until(3)
    notify.resource_updated_soon("a:b")
    await stream.wire.until(4)
    stream.wire.disconnect()
    await stream.finished()


@pytest.mark.parametrize(
    "wanted",
    [None, [], {"toolsListChanged": 1}, {"resourceSubscriptions": "a:b"}, {"resourceSubscriptions": [1]},
     {"resourceSubscriptions": ["a:b"] * (MAX_URIS + 1)}],
)  # fmt: skip
def test_malformed_filters(wanted: Any) -> None:
    """A filter of the wrong shape is described in a sentence; unknown keys are ignored."""
    assert isinstance(read_filter({"notifications": wanted}), str)
    assert not isinstance(read_filter({"notifications": {"future": 1}}), str)
