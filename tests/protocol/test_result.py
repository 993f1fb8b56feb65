"""Results in the shape of their era, and the frames they travel in."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from tests.support.posts import V

from twolane.protocol.envelope import SERVER_INFO, SUBSCRIPTION_ID
from twolane.protocol.message import EncodeError
from twolane.protocol.result import discover_result, initialize_result, legacy_result, listen_result, modern_result
from twolane.protocol.sse import KEEP_ALIVE, event

INFO = {"name": "s", "version": "1"}


@pytest.mark.obligation("S-023", "S-043", "S-044")
@pytest.mark.parametrize(
    ("result", "shaped"),
    [
        ({}, {"resultType": "complete", "_meta": {SERVER_INFO: INFO}}),
        ({"tools": []}, {"resultType": "complete", "tools": [], "_meta": {SERVER_INFO: INFO}}),
        ({"_meta": {"a": 1}}, {"resultType": "complete", "_meta": {SERVER_INFO: INFO, "a": 1}}),
        ({"_meta": {}}, {"resultType": "complete", "_meta": {SERVER_INFO: INFO}}),
        ({"_meta": None}, {"resultType": "complete", "_meta": {SERVER_INFO: INFO}}),
        ({"_meta": {SERVER_INFO: "mine"}}, {"resultType": "complete", "_meta": {SERVER_INFO: "mine"}}),
        ({"resultType": "input_required"}, {"resultType": "input_required", "_meta": {SERVER_INFO: INFO}}),
    ],
)
def test_modern_results(result: dict[str, Any], shaped: dict[str, Any]) -> None:
    """A modern result says its type and names the server; what dispatch set itself is kept."""
    before = dict(result)
    assert json.loads(modern_result("a", result, INFO)) == {"jsonrpc": "2.0", "id": "a", "result": shaped}
    assert result == before


def test_encoded_parts_are_spliced_in() -> None:
    """Parts that were encoded before, the server's identity among them, are sent as they are."""
    encoded = modern_result(0, {"tools": [orjson.Fragment(b'{"name":"t"}')]}, orjson.Fragment(b'{"name":"s"}'))
    answer = json.loads(encoded)
    assert answer["id"] == 0
    assert answer["result"]["tools"] == [{"name": "t"}]
    assert answer["result"]["_meta"] == {SERVER_INFO: {"name": "s"}}


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800", 2**64])
def test_results_without_a_json_form(value: object) -> None:
    """A result that JSON cannot say raises, whatever the era, so that the lane can answer with an error."""
    with pytest.raises(EncodeError):
        modern_result(1, {"content": value}, INFO)
    with pytest.raises(EncodeError):
        legacy_result(1, "completion/complete", {"content": value}, "2025-11-25")


@pytest.mark.obligation("L-014", "L-044")
def test_legacy_results() -> None:
    """A legacy result has nothing of the newer era, and is cut down to its revision."""
    result = {"tools": [{"name": "t", "icons": []}], "resultType": "complete", "ttlMs": 1, "cacheScope": "private"}
    answer = json.loads(legacy_result(7, "tools/list", result, "2025-06-18"))
    assert answer == {"jsonrpc": "2.0", "id": 7, "result": {"tools": [{"name": "t"}]}}


@pytest.mark.obligation("S-080")
@pytest.mark.parametrize("instructions", [None, "", "Use it."])
def test_discover(instructions: str | None) -> None:
    """server/discover tells versions, capabilities, cache hints and, where there are any, instructions."""
    result = discover_result({"tools": {}}, instructions, (V,), (5, "public"))
    expected = {"supportedVersions": [V], "capabilities": {"tools": {}}, "ttlMs": 5, "cacheScope": "public"}
    assert result == expected | ({} if instructions is None else {"instructions": instructions})


@pytest.mark.obligation("L-001")
@pytest.mark.parametrize("instructions", [None, "Use it."])
def test_initialize(instructions: str | None) -> None:
    """initialize tells the version, the capabilities, the server and, where there are any, instructions."""
    result = initialize_result("2025-11-25", {"tools": {}}, INFO, instructions)
    expected = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
    assert result == expected | ({} if instructions is None else {"instructions": instructions})


@pytest.mark.obligation("S-126", "S-130")
@pytest.mark.parametrize("subscription", [0, 5, "", "a"])
def test_the_end_of_a_subscription(subscription: int | str) -> None:
    """The result that ends a subscription carries its id twice, with its type, and the server's identity."""
    answer = json.loads(listen_result(subscription, INFO))
    meta = {SERVER_INFO: INFO, SUBSCRIPTION_ID: subscription}
    assert answer == {"jsonrpc": "2.0", "id": subscription, "result": {"resultType": "complete", "_meta": meta}}
    assert type(answer["result"]["_meta"][SUBSCRIPTION_ID]) is type(subscription)


@pytest.mark.obligation("S-009", "S-065")
def test_event_frames() -> None:
    """A frame is one message event without an id; line breaks in strings stay inside its one data line."""
    message = modern_result(1, {"text": "a\nb\r\nc\rd\u2028e\x85"}, INFO)
    frame = event(message)
    assert frame == b"event: message\ndata: " + message + b"\n\n"
    lines = frame.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [line.partition(":")[0] for line in lines] == ["event", "data", "", ""]
    assert json.loads(lines[1].removeprefix("data: "))["result"]["text"] == "a\nb\r\nc\rd\u2028e\x85"
    assert KEEP_ALIVE.startswith(b":")
    assert KEEP_ALIVE.endswith(b"\n\n")
