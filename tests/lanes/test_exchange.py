"""One request on one response: modes, the lazy watch, cancellation, and nothing after the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.lanes.wire import Wire
from twolane.errors import PushUnavailable
from twolane.lanes import exchange as module
from twolane.lanes.exchange import Answer, Exchange, StreamProfile
from twolane.protocol.inputs import list_roots
from twolane.protocol.media import Accepts

BOTH = Accepts(True, True)
JSON_ONLY = Accepts(True, False)
SSE_ONLY = Accepts(False, True)
CANCELLED = Answer(500, b'{"jsonrpc":"2.0","id":1,"error":{}}', -32603)
DONE = Answer(200, b'{"jsonrpc":"2.0","id":1,"result":{}}')

Work = Callable[[Exchange], Awaitable[Answer]]


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arm the watch at once, so that no test waits for it."""
    monkeypatch.setattr(module, "GRACE", 0.0)


async def run(
    wire: Wire, work: Work, *, profile: StreamProfile | None = None, accepts: Accepts = BOTH
) -> Answer | None:
    exchange = Exchange(
        wire.receive, wire.send, profile=profile or StreamProfile(), accepts=accepts, headers=(), lane="stateless"
    )
    async with asyncio.timeout(5):
        return await exchange.run(work(exchange), lambda: CANCELLED)


async def quick(exchange: Exchange) -> Answer:
    return DONE


async def telling(exchange: Exchange) -> Answer:
    await exchange.send_notification("notifications/progress", {"progress": 1})
    return DONE


async def test_a_quick_answer_is_one_json_body() -> None:
    """A handler that says nothing on the way is answered with plain JSON and its length."""
    wire = Wire()
    assert await run(wire, quick) == DONE
    assert wire.status == 200
    assert wire.headers == {"content-type": "application/json", "content-length": str(len(DONE.body))}
    assert wire.ended


@pytest.mark.obligation("S-060", "S-061", "S-063", "S-064")
async def test_a_notification_opens_the_stream() -> None:
    """In auto mode the first notification commits the response to a stream, which the final response ends."""
    wire = Wire()
    await run(wire, telling)
    assert wire.headers["content-type"] == "text/event-stream"
    assert wire.headers["x-accel-buffering"] == "no"
    assert "no-cache" in wire.headers["cache-control"]
    assert [message.get("method", "result") for message in wire.messages] == ["notifications/progress", "result"]
    assert wire.ended


async def test_json_mode_drops_notifications() -> None:
    """In json mode messages on the way are dropped and the answer is one JSON body."""
    wire = Wire()
    await run(wire, telling, profile=StreamProfile("json"))
    assert wire.headers["content-type"] == "application/json"


async def test_a_json_client_gets_json() -> None:
    """A client that accepts JSON only gets JSON in every mode."""
    for mode in ("auto", "json", "sse"):
        wire = Wire()
        await run(wire, telling, profile=StreamProfile(mode), accepts=JSON_ONLY)  # type: ignore[arg-type]
        assert wire.headers["content-type"] == "application/json"


async def test_a_stream_client_gets_a_stream() -> None:
    """A client that accepts event streams only gets its answer as one."""
    wire = Wire()
    await run(wire, quick, accepts=SSE_ONLY)
    assert wire.headers["content-type"] == "text/event-stream"
    assert wire.messages == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_sse_mode_always_streams() -> None:
    """In sse mode even a quick answer is a stream of one message."""
    wire = Wire()
    await run(wire, quick, profile=StreamProfile("sse"))
    assert wire.headers["content-type"] == "text/event-stream"
    assert wire.ended


@pytest.mark.obligation("S-066")
async def test_an_early_error_keeps_its_status() -> None:
    """An error before any message travels with its HTTP status, in sse mode too."""
    wire = Wire()

    async def fail(exchange: Exchange) -> Answer:
        return Answer(404, b'{"jsonrpc":"2.0","id":1,"error":{}}', -32601)

    await run(wire, fail, profile=StreamProfile("sse"))
    assert wire.status == 404
    assert wire.headers["content-type"] == "application/json"


async def test_silence_opens_the_stream() -> None:
    """After stream_after seconds without a message auto mode opens the stream with a comment."""
    wire = Wire()

    async def slow(exchange: Exchange) -> Answer:
        await wire.until(2)
        return DONE

    await run(wire, slow, profile=StreamProfile("auto", 15.0, 0.01))
    assert wire.headers["content-type"] == "text/event-stream"
    assert wire.sent[1]["body"].startswith(b":")
    assert len(wire.messages) == 1


@pytest.mark.obligation("S-065")
async def test_an_open_stream_is_kept_alive() -> None:
    """An open stream gets a comment every keep_alive seconds until it ends, and none after."""
    wire = Wire()

    async def slow(exchange: Exchange) -> Answer:
        await exchange.send_notification("notifications/progress", {"progress": 1})
        await wire.until(5)
        return DONE

    await run(wire, slow, profile=StreamProfile("auto", 0.01, 0.01))
    count = len(wire.sent)
    assert wire.ended
    await asyncio.sleep(0.05)
    assert len(wire.sent) == count


@pytest.mark.obligation("S-067")
@pytest.mark.parametrize("mode", ["auto", "json", "sse"])
async def test_disconnect_cancels_in_every_mode(mode: str) -> None:
    """A client that leaves cancels the handler, whatever the response mode, and the task survives unharmed."""
    wire = Wire()
    cancelled = False

    async def endless(exchange: Exchange) -> Answer:
        nonlocal cancelled
        wire.disconnect()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled = exchange.cancelled
            raise
        return DONE

    assert await run(wire, endless, profile=StreamProfile(mode)) is None  # type: ignore[arg-type]
    assert cancelled
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    if mode != "sse":  # There the stream may have opened before.
        assert wire.status == 499


async def test_nothing_more_is_sent_after_a_disconnect() -> None:
    """What a handler still says after its client has gone is not sent."""
    wire = Wire()

    async def stubborn(exchange: Exchange) -> Answer:
        wire.disconnect()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await exchange.send_notification("notifications/progress", {"progress": 1})
        return DONE

    assert await run(wire, stubborn) is None
    assert [message["type"] for message in wire.sent] == ["http.response.start", "http.response.body"]
    assert wire.status == 499


async def test_our_own_end_is_no_disconnect() -> None:
    """The disconnect that servers report when a response is complete cancels nothing: the watch is off by then."""
    wire = Wire()
    original = wire.send

    async def send(message: dict[str, object]) -> None:
        wire.disconnect()
        await original(message)

    wire.send = send  # type: ignore[method-assign]

    async def slow(exchange: Exchange) -> Answer:
        await asyncio.sleep(0.01)
        return DONE

    assert await run(wire, slow) == DONE
    await asyncio.sleep(0)


async def test_a_foreign_cancellation_passes() -> None:
    """A cancellation by whoever runs the application is answered and passed on, not taken for a disconnect."""
    wire = Wire()

    async def endless(exchange: Exchange) -> Answer:
        await asyncio.Event().wait()
        return DONE

    task = asyncio.ensure_future(run(wire, endless))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wire.status == 500
    assert wire.ended


async def test_a_broken_pipe_is_a_disconnect() -> None:
    """A send that raises OSError, as ASGI 2.4 servers do, counts as the client having gone."""
    wire = Wire()

    async def broken(message: dict[str, object]) -> None:
        raise BrokenPipeError

    async def chatty(exchange: Exchange) -> Answer:
        await exchange.send_notification("notifications/progress", {"progress": 1})
        await asyncio.Event().wait()
        return DONE

    exchange = Exchange(wire.receive, broken, profile=StreamProfile(), accepts=BOTH, headers=(), lane="stateless")
    async with asyncio.timeout(5):
        assert await exchange.run(chatty(exchange), lambda: CANCELLED) is None
    assert exchange.cancelled


async def test_late_messages_do_not_travel() -> None:
    """A message sent after the final response, by a task the handler left behind, goes nowhere."""
    wire = Wire()
    kept: list[Exchange] = []

    async def leaving(exchange: Exchange) -> Answer:
        kept.append(exchange)
        return DONE

    await run(wire, leaving)
    count = len(wire.sent)
    await kept[0].send_notification("notifications/progress", {"progress": 1})
    assert len(wire.sent) == count


async def test_the_end_waits_for_a_write_under_way() -> None:
    """An answer that is ready while a frame is stuck in the socket follows that frame on the same stream."""
    wire = Wire()
    wire.blocked = asyncio.Event()

    async def spawning(exchange: Exchange) -> Answer:
        background.append(asyncio.ensure_future(exchange.send_notification("notifications/progress", {"progress": 1})))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, wire.blocked.set)  # type: ignore[union-attr]
        return DONE

    background: list[asyncio.Future[None]] = []
    await run(wire, spawning)
    assert [message.get("method", "result") for message in wire.messages] == ["notifications/progress", "result"]


@pytest.mark.obligation("S-062")
async def test_nothing_is_pushed() -> None:
    """A request to the client is refused at once with an error that names input_required."""
    exchange = Exchange(
        Wire().receive, Wire().send, profile=StreamProfile(), accepts=BOTH, headers=(), lane="stateless"
    )
    with pytest.raises(PushUnavailable, match="input_required"):
        await exchange.push(list_roots())
    await exchange.close_stream(1.0)
