"""Content-Type and Accept."""

from __future__ import annotations

import pytest

from twolane.protocol.media import accepts, is_json


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json ; a=b; c=d",
        "application/json;",
        "Application/JSON",
        "application/json;;",
        " application/json\t",
    ],
)
def test_json_bodies(content_type: str) -> None:
    """JSON is JSON whatever the case, the parameters and the space around them."""
    assert is_json(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "text/plain; a=application/json",
        "text/plain;application/json",
        "application/jsonx",
        "application/json2",
        "application/vnd.api+json",
        "application/json-rpc",
        "text/json",
        "json",
        "*/*",
        "application/*",
        "application /json",
        "application/json, application/json",
        "application/json,text/plain",
        "application/json\xa0",
        "application/json\x1f",
        "application/json\x00",
        "multipart/form-data; boundary=application/json",
        "application/x-www-form-urlencoded",
    ],
)
def test_other_bodies(content_type: str | None) -> None:
    """Anything else is not JSON: what a form can send across origins, what only looks alike, a doubled header."""
    assert not is_json(content_type)


@pytest.mark.obligation("L-040")
@pytest.mark.parametrize(
    ("header", "json", "sse"),
    [
        (None, True, True),
        ("", True, True),
        (",", True, True),
        (", ,", True, True),
        ("*/*", True, True),
        ("application/json, text/event-stream", True, True),
        ("text/event-stream,application/json", True, True),
        ("Application/JSON, TEXT/Event-Stream", True, True),
        ("application/json", True, False),
        ("application/*", True, False),
        ("text/event-stream", False, True),
        ("text/*", False, True),
        ("text/html", False, False),
        ("text/html, */*;q=0.8", True, True),
        ("text/html;q=0.9, image/png, *; q=.2, */*; q=.2", True, True),
        ("application/json;charset=utf-8, text/event-stream;q=0.5", True, True),
        ("application/json ; q=0.001", True, False),
        # Zero quality means "not this"; the more specific range decides.
        ("*/*;q=0", False, False),
        ("*/*, text/event-stream;q=0", True, False),
        ("text/event-stream;q=0.0, */*", True, False),
        ("application/json;Q=0, */*", False, True),
        ("application/json;q=0.000, application/*", False, False),
        ("application/*;q=0, */*", False, True),
        ("text/event-stream, */*;q=0", False, True),
        ("application/*;q=0, application/json", True, False),
        # Not ranges, or of something else.
        ("application/jsonx", False, False),
        ("application", False, False),
        ("*", False, False),
        ("garbage;;;", False, False),
        (";q=0", True, True),
        ("application/json;q=abc", True, False),
        ("application/json;q=", True, False),
        ("application/json;q=nan", True, False),
        ("application/json;quality=0", True, False),
        (", application/json,", True, False),
    ],
)
def test_accept(header: str | None, json: bool, sse: bool) -> None:
    """Types, wildcards and zero qualities are read as RFC 9110 means them; nothing said means anything goes."""
    assert accepts(header) == (json, sse)


def test_long_accept_headers() -> None:
    """A header of any length is read, and leaves nothing behind."""
    header = ", ".join(f"text/x{number}" for number in range(5_000))
    assert accepts(header) == (False, False)
    assert accepts(f"{header}, application/json;q=0.{'1' * 50_000}") == (True, False)
    assert accepts("text/event-stream" + ";a=b" * 20_000) == (False, True)
