"""2026-07-28 requests over both faces and both HTTP implementations: the promises a client sees on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.faces.server import Seen
from tests.faces.serving import REVISION, Client, modern_body, modern_headers

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@pytest.mark.obligation("S-001", "S-023", "S-043", "S-044")
def test_a_call_is_answered_in_json(client: Client) -> None:
    """A quick tool call is one JSON body with result type, server identity and the request's own id."""
    answer = client.call("greet", {"name": "Ada"}, request_id="a-1")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.last["id"] == "a-1"
    assert answer.result["resultType"] == "complete"
    assert answer.result["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    assert answer.result["structuredContent"] == {"result": "Hello, Ada!"}
    assert answer.result["_meta"][SERVER_INFO]["name"] == "faces"
    assert "mcp-session-id" not in answer.headers


@pytest.mark.obligation("S-008", "S-009")
def test_session_headers_mean_nothing(client: Client) -> None:
    """A session id and a Last-Event-ID are ignored and nothing of them comes back."""
    answer = client.call("greet", headers={"mcp-session-id": "x", "last-event-id": "1"})
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


def test_plain_functions_run_too(client: Client) -> None:
    """A tool written as a plain def is served from a worker thread."""
    assert client.call("greet_in_thread", {"name": "Ada"}).result["content"][0]["text"] == "Hello, Ada, from a thread!"


@pytest.mark.obligation("S-080", "S-081", "S-084")
def test_discover(client: Client) -> None:
    """server/discover names the revision, what is registered, the instructions and a cache hint."""
    result = client.request("server/discover").result
    assert result["supportedVersions"] == [REVISION]
    assert set(result["capabilities"]) >= {"tools", "prompts", "resources"}
    assert result["capabilities"]["tools"]["listChanged"] is True
    assert result["instructions"] == "Use the tools."
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
    refused = client.request("initialize")
    assert refused.status == 404
    assert REVISION in refused.error["message"]


@pytest.mark.obligation("S-093")
@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_lists(client: Client, method: str) -> None:
    """Every list carries its entries and cache hints, in the same order each time."""
    first, second = client.request(method).result, client.request(method).result
    assert first == second
    assert first["ttlMs"] == 0
    assert first["cacheScope"] == "private"


@pytest.mark.obligation("S-046", "S-047")
@pytest.mark.parametrize(
    "method", ["ping", "logging/setLevel", "resources/subscribe", "no/such", "completion/complete"]
)
def test_unknown_methods(client: Client, method: str) -> None:
    """A method this revision or this server does not have is 404 and -32601 with the request's id."""
    answer = client.request(method, request_id=9)
    assert (answer.status, answer.error["code"], answer.last["id"]) == (404, -32601, 9)


@pytest.mark.obligation("S-101")
def test_an_unknown_tool(client: Client) -> None:
    """An unknown tool is the client's mistake, answered in-band."""
    answer = client.call("nope")
    assert (answer.status, answer.error["code"]) == (200, -32602)


@pytest.mark.obligation("S-102")
def test_bad_arguments_are_for_the_model(client: Client) -> None:
    """Arguments that do not fit are an isError result, not a protocol error."""
    result = client.call("count", {"to": "many"}).result
    assert result["isError"] is True
    assert "to" in result["content"][0]["text"]


@pytest.mark.obligation("S-070", "S-071")
def test_progress_rides_the_stream(client: Client) -> None:
    """Progress with the client's token precedes the final response on one stream; without a token there is none."""
    answer = client.call("count", {"to": 3}, meta={"progressToken": "p"})
    assert answer.streamed
    progress = [message["params"] for message in answer.messages[:-1]]
    assert [item["progress"] for item in progress] == [1, 2, 3]
    assert {item["progressToken"] for item in progress} == {"p"}
    assert not client.call("count", {"to": 3}).streamed


@pytest.mark.obligation("S-072", "S-073")
def test_logs_are_asked_for(client: Client) -> None:
    """Log messages travel only where the request names a level, and from that level up."""
    assert not client.call("speak").streamed
    answer = client.call("speak", meta={"io.modelcontextprotocol/logLevel": "error"})
    assert [message["params"]["data"] for message in answer.messages[:-1]] == ["loud"]


@pytest.mark.obligation("S-010", "S-031")
def test_nothing_is_carried_over(client: Client) -> None:
    """Capabilities and identity declared on one request do not exist on the next, even on one connection."""
    asked = client.call("ask", capabilities={"elicitation": {}})
    assert asked.result["resultType"] == "input_required"
    refused = client.call("ask", meta={"io.modelcontextprotocol/clientInfo": None})
    assert (refused.status, refused.error["code"]) == (400, -32021)


@pytest.mark.obligation("S-041", "S-114")
def test_a_missing_capability(client: Client) -> None:
    """Asking for what the client cannot do is 400 and -32021 with the capability object that is missing."""
    answer = client.call("ask")
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert answer.error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}


@pytest.mark.obligation("S-011", "S-012", "S-112", "S-113", "S-119")
def test_an_input_round(client: Client) -> None:
    """A tool asks, the client answers with the state it was given, and the tool goes on."""
    capabilities = {"elicitation": {"form": {}}}
    asked = client.call("ask", capabilities=capabilities).result
    assert asked["inputRequests"]["who"]["method"] == "elicitation/create"
    retry = {
        "name": "ask",
        "arguments": {},
        "inputResponses": {"who": {"action": "accept", "content": {"name": "Ada"}}, "extra": {"action": "cancel"}},
        "requestState": asked["requestState"],
    }
    done = client.request("tools/call", retry, capabilities=capabilities, request_id=2).result
    assert done["content"][0]["text"] == "Hello, Ada; state {'asked': True}"
    declined = {**retry, "inputResponses": {"who": {"action": "decline"}}}
    assert client.request("tools/call", declined, capabilities=capabilities).result["resultType"] == "input_required"


@pytest.mark.obligation("S-115", "S-116", "X-05")
@pytest.mark.parametrize("change", ["altered", "arguments", "tool", "type"])
def test_foreign_state(client: Client, change: str) -> None:
    """State that was altered, or is brought to another tool or other arguments, is refused without saying why."""
    state: Any = client.call("ask", capabilities={"elicitation": {}}).result["requestState"]
    retry: dict[str, Any] = {"name": "ask", "arguments": {}, "requestState": state, "inputResponses": {}}
    if change == "altered":
        retry["requestState"] = state[:-4] + ("AAAA" if not state.endswith("AAAA") else "BBBB")
    elif change == "arguments":
        retry["arguments"] = {"x": 1}
    elif change == "tool":
        retry["name"] = "greet"
    else:
        retry["requestState"] = 5
    answer = client.request("tools/call", retry, capabilities={"elicitation": {}})
    assert answer.error["code"] == -32602
    assert answer.reason == "invalid_request_state"


def test_a_pushed_request_is_refused_at_once(client: Client) -> None:
    """A handler that pushes a request gets an error that names input_required, and the model reads it."""
    result = client.call("push", capabilities={"elicitation": {}}).result
    assert result["isError"] is True
    assert "input_required" in result["content"][0]["text"]


@pytest.mark.obligation("S-052", "S-053", "S-054", "S-056", "S-058")
@pytest.mark.parametrize(
    ("argument", "header", "status"),
    [
        ("eu", "eu", 200),
        ("eu", "=?base64?ZXU=?=", 200),
        ("eu", None, 400),
        ("eu", "us", 400),
        ("eu", "=?base64?ZXU?=", 400),
        (None, None, 200),
        (None, "eu", 400),
    ],
)
def test_param_headers(client: Client, argument: str | None, header: str | None, status: int) -> None:
    """A header that repeats an argument must agree with it, and must not stand for one that is absent."""
    arguments = {} if argument is None else {"region": argument}
    answer = client.call("region", arguments, headers={"mcp-param-region": header, "mcp-param-unknown": "x"})
    assert answer.status == status
    if status == 400:
        assert answer.error["code"] == -32020


@pytest.mark.obligation("S-025", "S-026", "S-069")
def test_notifications_are_acknowledged(client: Client, seen: Seen) -> None:
    """A notification is 202 without a body, cancels nothing, and runs no factory; a tools/call without id neither."""
    for method, params in (("notifications/cancelled", {"requestId": 1}), ("tools/call", {"name": "greet"})):
        answer = client.request(method, params, request_id=None)
        assert (answer.status, answer.content) == (202, b"")
    assert seen.factories == 0


def test_the_factory_runs_once_a_request_and_not_for_refusals(client: Client, seen: Seen) -> None:
    """The factory is called for what is served and for nothing that is refused before."""
    client.call("greet")
    assert seen.factories == 1
    for answer in (
        client.call("greet", headers={"mcp-method": "tools/list"}),
        client.call("greet", meta={"io.modelcontextprotocol/protocolVersion": "2030-01-01"}),
        client.request("ping"),
        client.post(b"{", modern_headers("ping")),
    ):
        assert answer.status >= 400
    assert seen.factories == 1


def test_the_request_body_can_be_read_again(client: Client) -> None:
    """A handler may read the body that was already decoded."""
    body = modern_body("tools/call", {"name": "body_again", "arguments": {}})
    answer = client.post(body, modern_headers("tools/call", {"name": "body_again"}))
    assert answer.result["structuredContent"] == {"result": len(json.dumps(body))}


def test_one_record_a_request(client: Client, seen: Seen) -> None:
    """on_request gets one record for each request, the refused ones included."""
    client.call("greet")
    client.call("fail", {"how": "value"})
    client.post(b"{", modern_headers("ping"))
    records = [(r.lane, r.era, r.method, r.name, r.client_name, r.status, r.code) for r in seen.records]
    assert records == [
        ("stateless", "modern", "tools/call", "greet", "tests", 200, None),
        ("stateless", "modern", "tools/call", "fail", "tests", 200, None),
        ("none", None, None, None, None, 400, -32700),
    ]
    assert all(record.duration >= 0 for record in seen.records)


def test_prompts_and_resources(client: Client) -> None:
    """Prompts and resources are served as tools are."""
    prompt = client.request("prompts/get", {"name": "hello", "arguments": {"name": "Ada"}}).result
    assert prompt["messages"][0]["content"]["text"] == "Say hello to Ada."
    read = client.request("resources/read", {"uri": "faces://text"}).result
    assert read["contents"][0]["text"] == "some text"
    missing = client.request("resources/read", {"uri": "faces://none"})
    assert (missing.status, missing.error["code"], missing.error["data"]) == (200, -32602, {"uri": "faces://none"})
