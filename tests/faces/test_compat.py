"""2025-era clients without a session, over both faces and both HTTP implementations."""

from __future__ import annotations

import pytest

from tests.faces.server import Seen, make_factory
from tests.faces.serving import Client, running
from twolane import create_mcp_handler

ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.mark.obligation("L-001", "L-002", "S-140", "S-148")
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ],
)
def test_initialize(client: Client, asked: str, given: str) -> None:
    """The handshake gives the revision asked for or the latest of the era, no session, and no word of the new era."""
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    answer = client.legacy("initialize", params, revision=None)
    assert answer.status == 200
    assert answer.result["protocolVersion"] == given
    assert answer.result["serverInfo"]["name"] == "faces"
    assert "mcp-session-id" not in answer.headers
    assert not {"resultType", "ttlMs", "cacheScope"} & set(answer.result)
    assert not answer.result["capabilities"]["tools"].get("listChanged")


def test_calls_need_no_handshake(client: Client) -> None:
    """Lists, calls, prompts and resources are served without initialize, in the shape of the era."""
    assert client.legacy("tools/list").result["tools"][0]["name"] == "greet"
    result = client.legacy("tools/call", {"name": "greet", "arguments": {}}).result
    assert result == {
        "content": [{"type": "text", "text": "Hello, World!"}],
        "structuredContent": {"result": "Hello, World!"},
    }
    assert client.legacy("prompts/get", {"name": "hello", "arguments": {"name": "Ada"}}).result["messages"]
    assert client.legacy("resources/read", {"uri": "faces://text"}).result["contents"][0]["text"] == "some text"
    missing = client.legacy("resources/read", {"uri": "faces://none"})
    assert (missing.status, missing.error["code"]) == (200, -32002)


@pytest.mark.obligation("L-043", "S-141")
def test_older_revisions_get_older_shapes(client: Client) -> None:
    """Fields a revision does not know are left out; without a version header it is 2025-03-26."""
    for revision in (None, "2025-03-26"):
        assert "structuredContent" not in client.legacy("tools/call", {"name": "greet"}, revision=revision).result
        assert "outputSchema" not in client.legacy("tools/list", revision=revision).result["tools"][0]
    assert "outputSchema" in client.legacy("tools/list", revision="2025-06-18").result["tools"][0]


@pytest.mark.obligation("L-015", "L-018")
def test_housekeeping(client: Client) -> None:
    """ping, a log level and subscriptions are answered with an empty result; a bad level is -32602."""
    assert client.legacy("ping").result == {}
    assert client.legacy("logging/setLevel", {"level": "debug"}).result == {}
    for level in ("loud", [], None):
        assert client.legacy("logging/setLevel", {"level": level}).error["code"] == -32602
    assert client.legacy("resources/subscribe", {"uri": "faces://text"}).result == {}
    assert client.legacy("resources/unsubscribe", {"uri": "faces://text"}).result == {}
    unknown = client.legacy("no/such")
    assert (unknown.status, unknown.error["code"]) == (200, -32601)
    assert client.legacy("subscriptions/listen", {"notifications": {}}).error["code"] == -32601


@pytest.mark.obligation("L-006", "L-017")
def test_messages_on_the_way(client: Client) -> None:
    """Progress and logs ride the POST's own stream, before the response."""
    counted = client.legacy("tools/call", {"name": "count", "arguments": {}, "_meta": {"progressToken": 5}})
    assert counted.streamed
    assert [message["params"]["progress"] for message in counted.messages[:-1]] == [1, 2, 3]
    assert len(client.legacy("tools/call", {"name": "speak", "arguments": {}}).messages) == 3


@pytest.mark.obligation("L-037")
@pytest.mark.parametrize("tool", ["push", "ask"])
def test_questions_are_refused_at_once(client: Client, tool: str) -> None:
    """A handler that asks the client something is refused in a sentence that names the sessionful lane."""
    result = client.legacy("tools/call", {"name": tool, "arguments": {}}).result
    assert result["isError"] is True
    assert "sessionful lane" in result["content"][0]["text"]


@pytest.mark.obligation("L-005")
def test_notifications_and_responses(client: Client, seen: Seen) -> None:
    """Notifications and posted responses are 202 without a body, and run no factory."""
    assert client.legacy("notifications/initialized", request_id=None).status == 202
    answer = client.post({"jsonrpc": "2.0", "id": 1, "result": {}}, ACCEPT)
    assert (answer.status, answer.content) == (202, b"")
    assert seen.factories == 0


@pytest.mark.obligation("L-041", "L-042", "S-020")
def test_batches(client: Client) -> None:
    """2025-03-26 has batches, answered as one array in order; later ones have none, and initialize is never in one."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    batch = [
        ping,
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {**ping, "id": "2"},
        {**ping, "id": 3, "method": "no/such"},
    ]
    answer = client.post(batch, {**ACCEPT, "mcp-protocol-version": "2025-03-26"})
    assert [message["id"] for message in answer.messages] == [1, "2", 3]
    assert answer.messages[2]["error"]["code"] == -32601
    assert client.post([batch[1]], ACCEPT).status == 202
    for body, version in (
        (batch, "2025-06-18"),
        (batch, "2026-07-28"),
        ([], None),
        ([{**ping, "method": "initialize"}], None),
        ([ping] * 101, None),
    ):
        headers = dict(ACCEPT) if version is None else {**ACCEPT, "mcp-protocol-version": version}
        refused = client.post(body, headers)
        assert (refused.status, refused.error["code"]) == (400, -32600)


@pytest.mark.obligation("L-013")
def test_an_unknown_version_header(client: Client, seen: Seen) -> None:
    """A version header that names no revision is 400, whatever it sorts like."""
    for version in ("banana", "2025-01-01", "2025-11-25, 2025-11-25"):
        answer = client.legacy("tools/list", revision=version)
        assert (answer.status, answer.reason) == (400, "unsupported_protocol_version")
    assert seen.factories == 0


@pytest.mark.obligation("L-040")
def test_accept(client: Client) -> None:
    """A JSON-only client of the older era gets JSON, even from a tool that reports progress."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "count", "_meta": {"progressToken": 1}},
    }
    answer = client.post(body, {"content-type": "application/json", "accept": "application/json"})
    assert not answer.streamed
    assert len(answer.messages) == 1


def test_one_record_a_request(client: Client, seen: Seen) -> None:
    """on_request tells the lane, the era and the revision of an older client."""
    client.legacy("tools/call", {"name": "greet"})
    (record,) = seen.records
    assert (record.lane, record.era, record.revision, record.name) == ("compat", "legacy", "2025-11-25", "greet")


@pytest.mark.obligation("S-034", "S-084", "S-146")
def test_the_strict_posture() -> None:
    """With legacy="reject" requests get -32022 and the revisions served; notifications are dropped, all else is 400."""
    seen = Seen()
    handler = create_mcp_handler(make_factory(seen), legacy="reject")
    with running(handler) as port:
        client = Client(port)
        refused = client.legacy("initialize", {"protocolVersion": "2025-06-18"}, revision=None, request_id=3)
        assert (refused.status, refused.error["code"], refused.last["id"]) == (400, -32022, 3)
        assert refused.error["data"] == {"supported": ["2026-07-28"], "requested": "2025-06-18"}
        assert "requested" not in client.legacy("tools/list", revision=None).error["data"]
        assert client.legacy("notifications/initialized", request_id=None).status == 202
        assert client.post({"jsonrpc": "2.0", "id": 1, "result": {}}, ACCEPT).error["code"] == -32600
        assert client.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], ACCEPT).error["code"] == -32600
        assert client.call("greet").status == 200
        assert seen.factories == 1
