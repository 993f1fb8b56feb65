"""Whole answers and event frames."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.datastructures import Headers

from twolane.testing import Answer
from twolane.testing.answers import EventReader, messages_of


def answer(*messages: dict[str, Any], status: int = 200, body: bytes = b"{}") -> Answer:
    """Make an answer of *messages*."""
    return Answer(status, Headers({"content-type": "application/json"}), body, list(messages))


RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "a"}], "isError": True}}
ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}


class TestAnswer:
    """Reading an answer."""

    def test_a_result_is_found_behind_its_notifications(self) -> None:
        """The result is the response, whatever notifications came before it."""
        both = answer(NOTICE, RESULT)
        assert both.result is RESULT["result"]
        assert both.notifications == [NOTICE]
        assert (both.text, both.is_error, both.structured) == ("a", True, None)

    def test_an_error_is_found(self) -> None:
        """The error is the response's error object."""
        assert answer(ERROR).error == {"code": -32602, "message": "no"}

    def test_text_joins_the_text_blocks_only(self) -> None:
        """The text of a result is that of its text blocks, by lines."""
        content = [{"type": "text", "text": "a"}, {"type": "image", "data": ""}, {"type": "text", "text": "b"}]
        result = {"content": content, "structuredContent": {"x": 1}}
        made = answer({"jsonrpc": "2.0", "id": 1, "result": result})
        assert made.text == "a\nb"
        assert made.structured == {"x": 1}
        assert not made.is_error

    @pytest.mark.parametrize("messages", [[], [NOTICE], [ERROR]])
    def test_a_missing_result_shows_what_came(self, messages: list[dict[str, Any]]) -> None:
        """Asking for a result that is not there fails with the status and the body in the text."""
        made = answer(*messages, status=404, body=b"not here")
        with pytest.raises(AssertionError, match="expected a result, got HTTP 404: not here"):
            _ = made.result
        with pytest.raises(AssertionError, match="expected a result"):
            _ = made.text

    def test_a_missing_error_shows_what_came(self) -> None:
        """Asking for an error of a successful answer fails, and a long body is cut in the text."""
        with pytest.raises(AssertionError, match=r"expected an error, got HTTP 200: x{2000}\.\.\.$"):
            _ = answer(RESULT, body=b"x" * 5000).error


STREAM = (
    b": keepalive\n\n"
    b'event: message\r\nid: 7\r\ndata: {"jsonrpc": "2.0",\r\ndata: "text": "\xc3\xbc"}\r\n\r\n'
    b'retry: 500\rdata:{"jsonrpc":"2.0","id":2}\r\r'
    b"data\n\n"
    b'data: {"jsonrpc":"2.0","id":3}\n'
)


class TestEventReader:
    """Reading event streams."""

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
    def test_cuts_between_chunks_change_nothing(self, size: int) -> None:
        """All line ends, several data lines and UTF-8 are read the same however the bytes are cut."""
        reader = EventReader()
        messages = []
        for start in range(0, len(STREAM), size):
            messages += reader.feed(STREAM[start : start + size])
        assert messages == [{"jsonrpc": "2.0", "text": "ü"}, {"jsonrpc": "2.0", "id": 2}]
        assert (reader.comments, reader.ids, reader.retry) == (["keepalive"], ["7"], 500)

    def test_an_event_without_its_end_is_not_a_message(self) -> None:
        """An event counts once its empty line is there, as for every client."""
        reader = EventReader()
        assert reader.feed(b'data: {"id":3}\n') == []
        assert reader.feed(b"\n") == [{"id": 3}]


class TestMessagesOf:
    """Reading whole bodies."""

    def test_json_and_batches_are_read(self) -> None:
        """One object is one message, an array is several."""
        assert messages_of("application/json; charset=utf-8", json.dumps(ERROR).encode()) == [ERROR]
        assert messages_of("application/json", json.dumps([ERROR, NOTICE]).encode()) == [ERROR, NOTICE]

    @pytest.mark.parametrize("body", [b"", b"Not Found", b"7", b'{"detail":"Not Found"}', b"\xff"])
    def test_other_bodies_hold_no_message(self, body: bytes) -> None:
        """What is no JSON-RPC, such as another application's 404, has no messages instead of an error."""
        assert messages_of("application/json", body) == []

    def test_streams_are_read_by_their_type(self) -> None:
        """The content type decides how a body is read, whatever its parameters and case."""
        assert messages_of("Text/Event-Stream; charset=utf-8", b'data: {"id":1}\n\n') == [{"id": 1}]
