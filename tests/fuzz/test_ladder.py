"""The ladder is total: every value under every set of headers is served, or refused with an answer that can be sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fuzz.strategies import FUZZ, JSON, WILD, bodies, headers, raw_headers
from tests.support.posts import V
from twolane.protocol.classify import (
    NAMED_METHODS,
    Legacy,
    Modern,
    ModernNotification,
    classify,
    parse,
    unsupported_version,
)
from twolane.protocol.envelope import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from twolane.protocol.headers import Headers, decode_value, has_foreign_characters
from twolane.protocol.message import MAX_SAFE_INTEGER, Message, PostedResponse, error_message, frame
from twolane.protocol.refusal import Refusal
from twolane.protocol.result import legacy_result, modern_result
from twolane.protocol.revisions import is_modern_date

#: The codes that the ladder may answer with, and the status of each.
CODES = {-32700: 400, -32600: 400, -32602: 400, -32020: 400, -32022: 400}


def proper_id(value: object) -> bool:
    if type(value) is int:
        return abs(value) <= MAX_SAFE_INTEGER
    return type(value) is str


def check_refusal(refusal: Refusal, value: Any) -> None:
    """A refusal has a status, a code, one sentence, data that can be sent, and the request's id or none."""
    assert CODES[refusal.code] == refusal.status
    assert refusal.data
    for null_id in (False, True):
        answer = json.loads(error_message(refusal.id, refusal.code, refusal.message, refusal.data, null_id=null_id))
        assert answer["jsonrpc"] == "2.0"
        assert answer["error"]["code"] == refusal.code
        assert 0 < len(answer["error"]["message"]) < 2_000
        if refusal.id is None:
            assert answer.get("id", None if null_id else "none") == (None if null_id else "none")
        else:
            assert answer["id"] == value["id"]
            assert type(answer["id"]) is type(value["id"])
            assert proper_id(refusal.id)


def meta_of(value: Any) -> dict[str, Any]:
    params = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def check_message(message: Message | PostedResponse, value: Any) -> None:
    """What is taken for a message is one, and can be answered."""
    assert value["jsonrpc"] == "2.0"
    if isinstance(message, PostedResponse):
        assert ("result" in value) != ("error" in value)
        return
    assert message.method == value["method"]
    assert message.params == value.get("params")
    if message.id is None:
        assert "id" not in value
    else:
        assert proper_id(message.id)
        assert message.id == value["id"]
        modern_result(message.id, {}, {})
        legacy_result(message.id, "ping", {}, "2025-11-25")


def check_verdict(verdict: object, value: Any, sent: Headers) -> None:
    version = sent.get(b"mcp-protocol-version")
    header_is_modern = version is not None and is_modern_date(version)
    if isinstance(verdict, Refusal):
        check_refusal(verdict, value)
    elif isinstance(verdict, Modern):
        meta = meta_of(value)
        check_message(Message(verdict.id, verdict.method, verdict.params), value)
        assert version == meta[PROTOCOL_VERSION] == verdict.envelope.version == V
        assert meta[CLIENT_CAPABILITIES] == verdict.envelope.capabilities
        assert sent.get(b"mcp-method") == verdict.method
        assert not has_foreign_characters(verdict.method)
        name = verdict.params.get(NAMED_METHODS.get(verdict.method, ""))
        if isinstance(name, str):
            received = sent.get(b"mcp-name")
            assert received is not None
            assert decode_value(received) == name
            assert not has_foreign_characters(received)
    elif isinstance(verdict, ModernNotification):
        assert "id" not in value
        assert header_is_modern or PROTOCOL_VERSION in meta_of(value)
    else:
        assert isinstance(verdict, Legacy)
        assert verdict.version == version
        assert not header_is_modern
        assert verdict.batch is isinstance(value, list)
        elements = value if verdict.batch else [value]
        assert len(elements) == len(verdict.messages) > 0
        for message, element in zip(verdict.messages, elements, strict=True):
            check_message(message, element)
            method = element.get("method")
            assert PROTOCOL_VERSION not in meta_of(element) or (method == "initialize" and not verdict.batch)


@pytest.mark.obligation("S-020", "S-023", "S-024", "S-027", "S-028")
@FUZZ
@given(value=JSON | WILD, raw=raw_headers())
def test_any_value_under_any_headers(value: Any, raw: list[tuple[bytes, bytes]]) -> None:
    """Any value under any headers gets a verdict, and a refusal is a proper JSON-RPC error that can be sent."""
    sent = Headers(raw)
    check_verdict(classify(value, sent), value, sent)


@pytest.mark.obligation("S-023", "S-027", "S-028", "S-140")
@FUZZ
@given(st.data())
def test_nearly_right_requests(data: st.DataObject) -> None:
    """A request with a member or a header wrong is refused, or the verdict follows from what it says."""
    value = data.draw(bodies() | bodies(WILD))
    sent = data.draw(headers(value))
    before = json.dumps(value, default=str)
    verdict = classify(value, sent)
    check_verdict(verdict, value, sent)
    assert json.dumps(value, default=str) == before


@FUZZ
@given(value=bodies(), edits=st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=2)), max_size=3))
def test_from_bytes(value: Any, edits: list[tuple[int, bytes]]) -> None:
    """From bytes to verdict nothing but refusals stands in the way."""
    body = json.dumps(value).encode()
    for place, insert in edits:
        place %= len(body) + 1
        body = body[:place] + insert + body[place + 1 :]
    parsed = parse(body)
    if isinstance(parsed, Refusal):
        check_refusal(parsed, None)
    else:
        sent = Headers([(b"mcp-protocol-version", V.encode())])
        check_verdict(classify(parsed, sent), parsed, sent)


@FUZZ
@given(JSON | WILD)
def test_framing(value: Any) -> None:
    """Any value is a message, a posted response or a refusal."""
    assume(not isinstance(value, list))
    framed = frame(value)
    if isinstance(framed, Refusal):
        check_refusal(framed, value)
    else:
        check_message(framed, value)


@FUZZ
@given(st.text(st.characters(categories=["Cs", "L", "N"])), st.none() | st.text(max_size=3) | st.integers(-5, 5))
def test_versions_that_are_refused(version: str, request_id: int | str | None) -> None:
    """Whatever version is asked for, the refusal can be sent."""
    check_refusal(unsupported_version(request_id, version), {"id": request_id})
