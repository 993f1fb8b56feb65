"""What comes back: whole answers, and the event frames that streams are made of."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

__all__ = ["Answer", "EventReader", "messages_of"]

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Answer:
    """
    One answer of the server.

    Args:
        status: the HTTP status.
        headers: the response headers; names ignore case, and ``headers.getlist(name)`` has repeated ones.
        body: the bytes of the body.
        messages: the JSON-RPC messages in it, in order: for a stream each event, for JSON the one object. Empty where
            the body holds none, as in a 202 or an answer of another application.
    """

    status: int
    headers: Headers
    body: bytes
    messages: list[dict[str, Any]]

    @property
    def result(self) -> dict[str, Any]:
        """
        The result of the request.

        Raises:
            AssertionError: the answer is an error or holds no response. The text shows what came instead.
        """
        response = self._response
        if response is None or "result" not in response:
            raise AssertionError(f"expected a result, got {self._shown()}")
        result: dict[str, Any] = response["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """
        The JSON-RPC error of the request: ``code``, ``message`` and perhaps ``data``.

        Raises:
            AssertionError: the answer is a result or holds no response.
        """
        response = self._response
        if response is None or "error" not in response:
            raise AssertionError(f"expected an error, got {self._shown()}")
        error: dict[str, Any] = response["error"]
        return error

    @property
    def notifications(self) -> list[dict[str, Any]]:
        """The messages that came before the response, such as progress."""
        return [message for message in self.messages if "method" in message]

    @property
    def text(self) -> str:
        """The text blocks of a tool's result, joined by line ends. Raises as :attr:`result` does."""
        blocks = self.result.get("content", [])
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text")

    @property
    def structured(self) -> Any:
        """The ``structuredContent`` of a tool's result, None where there is none. Raises as :attr:`result` does."""
        return self.result.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether the tool says of itself that it failed. Raises as :attr:`result` does."""
        return self.result.get("isError") is True

    @property
    def _response(self) -> dict[str, Any] | None:
        found = [message for message in self.messages if "result" in message or "error" in message]
        return found[-1] if found else None

    def _shown(self) -> str:
        body = self.body if len(self.body) <= 2000 else self.body[:2000] + b"..."
        return f"HTTP {self.status}: {body.decode('utf-8', 'replace')}"


def messages_of(content_type: str, body: bytes) -> list[dict[str, Any]]:
    """Read the JSON-RPC messages of a whole body."""
    if content_type.partition(";")[0].strip().lower() == "text/event-stream":
        return EventReader().feed(body)
    try:
        value = json.loads(body)
    except ValueError:
        return []
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, dict) and "jsonrpc" in item]


class EventReader:
    """
    Reads ``text/event-stream`` as it comes, whatever the cuts between two chunks (HTML Standard, "Server-sent events").

    ``comments`` holds the comment lines so far (keep-alives are such), ``ids`` the ids of events, ``retry`` the last
    reconnection time that the server asked for, in milliseconds.
    """

    def __init__(self) -> None:
        self.comments: list[str] = []
        self.ids: list[str] = []
        self.retry: int | None = None
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Take more bytes and return the messages that are complete with them."""
        text = self._rest + chunk
        messages: list[dict[str, Any]] = []
        start = 0
        for end in _LINE_END.finditer(text):
            if end.group() == b"\r" and end.end() == len(text):
                break  # Its line feed may be in the next chunk.
            self._line(text[start : end.start()].decode(), messages)
            start = end.end()
        self._rest = text[start:]
        return messages

    def _line(self, line: str, messages: list[dict[str, Any]]) -> None:
        if not line:
            data = "\n".join(self._data)
            self._data.clear()
            if data:
                messages.append(json.loads(data))
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not name:
            self.comments.append(value)
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self.ids.append(value)
        elif name == "retry" and value.isdecimal():
            self.retry = int(value)
