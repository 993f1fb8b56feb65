"""subscriptions/listen over real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.faces.serving import Client, modern_body, modern_headers

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@contextmanager
def listening(client: Client, wanted: dict[str, Any], request_id: Any = "listen:0") -> Iterator[Iterator[Any]]:
    body = modern_body("subscriptions/listen", {"notifications": wanted}, request_id=request_id)
    with client.http.stream("POST", "/mcp", json=body, headers=modern_headers("subscriptions/listen")) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        yield (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: "))


@pytest.mark.obligation("S-125", "S-126", "S-128", "S-129", "S-131")
def test_a_change_reaches_its_listeners(client: Client) -> None:
    """A tool that publishes a change reaches two open streams, each with its own id, after the acknowledgement."""
    with (
        listening(client, {"toolsListChanged": True}, 1) as first,
        listening(client, {"toolsListChanged": True}, "b") as second,
    ):
        for stream, request_id in ((first, 1), (second, "b")):
            acknowledged = next(stream)
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"] == {
                "notifications": {"toolsListChanged": True},
                "_meta": {SUBSCRIPTION: request_id},
            }
        client.call("change")
        for stream, request_id in ((first, 1), (second, "b")):
            notice = next(stream)
            assert notice["method"] == "notifications/tools/list_changed"
            assert notice["params"]["_meta"][SUBSCRIPTION] == request_id


def test_the_handler_notifies_too(client: Client) -> None:
    """handler.notify reaches the streams from any thread."""
    assert client.handler is not None
    with listening(client, {"resourceSubscriptions": ["faces://text"]}) as stream:
        next(stream)
        client.handler.notify.resource_updated_soon("faces://other")
        client.handler.notify.resource_updated_soon("faces://text")
        assert next(stream)["params"]["uri"] == "faces://text"


@pytest.mark.obligation("S-132")
def test_listen_needs_event_streams(client: Client) -> None:
    """A client that does not accept event streams gets 406, and is told what to accept."""
    answer = client.request(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, headers={"accept": "application/json"}
    )
    assert (answer.status, answer.reason, answer.last["id"]) == (406, "not_acceptable", 1)


def test_an_empty_filter_ends_at_once(client: Client) -> None:
    """Asking for nothing is acknowledged and ends with the result."""
    with listening(client, {}) as stream:
        messages = list(stream)
    assert [message.get("method", "result") for message in messages] == [
        "notifications/subscriptions/acknowledged",
        "result",
    ]


def test_closing_a_stream_frees_it(client: Client) -> None:
    """After a client leaves, its stream is forgotten."""
    assert client.handler is not None
    hub = client.handler._hub
    assert settled(client, hub) == 0  # Those of earlier tests.
    with listening(client, {"toolsListChanged": True}) as stream:
        next(stream)
        assert len(hub) == 1
    assert settled(client, hub) == 0


def settled(client: Client, hub: Any) -> int:
    """The number of open streams, once the server has had the time for a few hundred requests to notice leavers."""
    for _ in range(300):
        if not len(hub):
            break
        client.call("greet")
    return len(hub)
