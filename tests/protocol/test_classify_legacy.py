"""The ladder, cell by cell: batches, responses and requests that claim nothing, and where they end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.posts import LEFT_OUT, V, enveloped, headers, message, mismatch, modern, modern_headers, refused

from twolane.errors import INVALID_PARAMS, INVALID_REQUEST
from twolane.protocol.classify import Legacy, Modern, classify
from twolane.protocol.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION
from twolane.protocol.headers import Headers
from twolane.protocol.message import MAX_BATCH, Message, PostedResponse
from twolane.protocol.revisions import LEGACY

FUTURE = "2030-01-01"
NO_HEADERS = headers()
LEGACY_HEADERS = [NO_HEADERS, *(headers(mcp_protocol_version=version) for version in (*LEGACY, "banana", "", "2026"))]
MODERN_HEADERS = [headers(mcp_protocol_version=version) for version in (V, FUTURE)]


# -- arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-020", "S-146")
@pytest.mark.parametrize("sent", [*LEGACY_HEADERS, *MODERN_HEADERS])
def test_empty_batches(sent: Headers) -> None:
    """An empty array is refused on every lane."""
    assert refused(classify([], sent), INVALID_REQUEST, None).data == {"reason": "empty_batch"}


@pytest.mark.obligation("S-020", "S-146")
@pytest.mark.parametrize("sent", LEGACY_HEADERS)
@pytest.mark.parametrize(
    "element",
    [
        modern(),
        modern(id=LEFT_OUT),
        message(params={"_meta": enveloped(version=5)}),
        message(params={"_meta": {PROTOCOL_VERSION: None}}),
        {"params": {"_meta": {PROTOCOL_VERSION: V}}},
    ],
)
def test_batches_with_a_claim(element: dict[str, Any], sent: Headers) -> None:
    """A batch with an element that claims the modern era is refused, wherever it stands and whatever the claim."""
    for values in ([element], [message(), element], [element, message()], [element, 5]):
        assert refused(classify(values, sent), INVALID_REQUEST, None).data == {"reason": "modern_in_batch"}


@pytest.mark.obligation("S-020")
@pytest.mark.parametrize("sent", MODERN_HEADERS)
def test_batches_under_a_modern_header(sent: Headers) -> None:
    """A modern header allows no batch at all, of requests, notifications or responses."""
    for values in ([message()], [message(id=LEFT_OUT)], [{"jsonrpc": "2.0", "id": 1, "result": {}}], [5]):
        assert refused(classify(values, sent), INVALID_REQUEST, None).data == {"reason": "modern_in_batch"}


@pytest.mark.obligation("S-020", "S-023")
@pytest.mark.parametrize("element", [5, None, "x", [], [message()], {}, message(id=None), message(id=7, jsonrpc="1.0")])
def test_batches_with_something_else(element: object) -> None:
    """An element that is no message spoils the batch, and the answer carries the id of none of them."""
    for values in ([element], [message(), element], [element, modern()]):
        assert refused(classify(values, NO_HEADERS), INVALID_REQUEST, None).data == {"reason": "invalid_message"}


@pytest.mark.obligation("S-146", "L-041")
@pytest.mark.parametrize("sent", LEGACY_HEADERS)
def test_legacy_batches(sent: Headers) -> None:
    """A batch of legacy messages is legacy traffic, in its order and with its header."""
    response = {"jsonrpc": "2.0", "id": 9, "result": {}}
    verdict = classify([message(), message("n", id=LEFT_OUT), response], sent)
    messages = (Message(1, "tools/list", None), Message(None, "n", None), PostedResponse(9, response))
    assert verdict == Legacy(messages, True, sent.get(b"mcp-protocol-version"))


def test_batches_are_bounded() -> None:
    """A batch may hold the limit and not one more."""
    assert isinstance(classify([message(id=n) for n in range(MAX_BATCH)], NO_HEADERS), Legacy)
    refusal = refused(classify([message(id=n) for n in range(MAX_BATCH + 1)], NO_HEADERS), INVALID_REQUEST, None)
    assert refusal.data == {"reason": "batch_too_large"}


# -- responses ---------------------------------------------------------------------------------------------------

RESPONSES = [
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "id": "a", "error": {"code": -1, "message": "no"}},
]


@pytest.mark.obligation("S-020")
@pytest.mark.parametrize("sent", MODERN_HEADERS)
@pytest.mark.parametrize("value", RESPONSES)
def test_responses_are_never_posted_to_the_modern_era(value: dict[str, Any], sent: Headers) -> None:
    """A response under a modern header gets 400 and -32600; its id is not that of a request, so none is sent back."""
    assert refused(classify(value, sent), INVALID_REQUEST, None).data == {"reason": "posted_response"}


@pytest.mark.obligation("S-146")
@pytest.mark.parametrize("sent", LEGACY_HEADERS)
@pytest.mark.parametrize("value", RESPONSES)
def test_posted_responses_are_legacy(value: dict[str, Any], sent: Headers) -> None:
    """A posted response without a modern header is legacy traffic."""
    verdict = classify(value, sent)
    assert verdict == Legacy((PostedResponse(value["id"], value),), False, sent.get(b"mcp-protocol-version"))


# -- legacy requests ---------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-140", "S-141", "S-146")
@pytest.mark.parametrize("sent", LEGACY_HEADERS)
@pytest.mark.parametrize(
    "params",
    [
        LEFT_OUT,
        {},
        {"_meta": {}},
        {"_meta": {CLIENT_CAPABILITIES: {}, LOG_LEVEL: "x"}},
        {"_meta": {"progressToken": 1}},
    ],
)
@pytest.mark.parametrize("method", ["tools/list", "initialize", "server/discover", "x"])
def test_requests_without_a_claim_are_legacy(method: str, params: Any, sent: Headers) -> None:
    """Without a claim in the body or a modern date in the header a request is legacy; "banana" is no modern date."""
    verdict = classify(message(method, params=params), sent)
    kept = None if params is LEFT_OUT else params
    assert verdict == Legacy((Message(1, method, kept),), False, sent.get(b"mcp-protocol-version"))


@pytest.mark.obligation("S-146")
def test_the_version_header_is_handed_on_as_sent() -> None:
    """Legacy traffic keeps its version header as it came: it is the lane that judges it (L-013)."""
    for sent, version in ((b"2025-06-18", "2025-06-18"), (b" 1999 ", "1999"), (b"\xff", "\xff"), (b"", "")):
        verdict = classify(message(), headers(mcp_protocol_version=sent))
        assert isinstance(verdict, Legacy)
        assert verdict.version == version


def test_other_standard_headers_mean_nothing_to_legacy_requests() -> None:
    """Mcp-Method and Mcp-Name are of the modern era: a legacy request is not held to them."""
    sent = headers(mcp_method="tools/list", mcp_name="other", mcp_protocol_version="2025-11-25")
    assert isinstance(classify(message("tools/call", params={"name": "x"}), sent), Legacy)


@pytest.mark.obligation("S-030", "S-142")
@pytest.mark.parametrize("version", [V, FUTURE, "2026-07-29"])
@pytest.mark.parametrize(
    ("params", "missing"),
    [
        (LEFT_OUT, ["_meta"]),
        ({}, ["_meta"]),
        ({"_meta": {}}, [PROTOCOL_VERSION, CLIENT_CAPABILITIES]),
        ({"_meta": {"progressToken": 1}}, [PROTOCOL_VERSION, CLIENT_CAPABILITIES]),
        ({"_meta": {CLIENT_CAPABILITIES: {}}}, [PROTOCOL_VERSION]),
        ({"_meta": {CLIENT_CAPABILITIES: 5, CLIENT_INFO: 5}}, [PROTOCOL_VERSION]),
    ],
)
def test_a_modern_header_without_an_envelope(params: Any, missing: list[str], version: str) -> None:
    """A modern header over a body without a claim is a forgotten envelope, never a legacy request."""
    sent = modern_headers("tools/list", mcp_protocol_version=version)
    refusal = refused(classify(message(params=params), sent), INVALID_PARAMS, 1)
    assert refusal.data == {"envelope": {"missing": missing}}
    assert version in refusal.message


# -- initialize --------------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-144")
@pytest.mark.parametrize("params", [LEFT_OUT, {}, {"_meta": {}}, {"_meta": {CLIENT_CAPABILITIES: {}}}])
@pytest.mark.parametrize("version", [V, FUTURE])
def test_initialize_under_a_modern_header(version: str, params: Any) -> None:
    """initialize without a claim under a modern header is a mismatch."""
    verdict = classify(message("initialize", params=params), modern_headers("initialize", mcp_protocol_version=version))
    mismatch(verdict, "mcp-protocol-version", version)


@pytest.mark.obligation("S-140", "S-146")
@pytest.mark.parametrize("sent", LEGACY_HEADERS)
@pytest.mark.parametrize(
    "meta", [enveloped(capabilities=LEFT_OUT), enveloped(version=5), enveloped(**{LOG_LEVEL: "loud"})]
)
def test_initialize_with_a_broken_claim(meta: dict[str, Any], sent: Headers) -> None:
    """A broken claim on initialize without a modern header is still the handshake of the older era."""
    verdict = classify(message("initialize", params={"_meta": meta}), sent)
    assert verdict == Legacy((Message(1, "initialize", {"_meta": meta}),), False, sent.get(b"mcp-protocol-version"))


@pytest.mark.obligation("S-030", "S-142")
def test_initialize_with_a_broken_claim_under_a_modern_header() -> None:
    """Under a modern header a broken claim is a bad envelope, on initialize as on every method."""
    for meta, key in (
        (enveloped(capabilities=LEFT_OUT), CLIENT_CAPABILITIES),
        (enveloped(version=5), PROTOCOL_VERSION),
    ):
        verdict = classify(message("initialize", params={"_meta": meta}), modern_headers("initialize"))
        data = refused(verdict, INVALID_PARAMS, 1).data
        assert data is not None
        assert data["envelope"]["key"] == key


@pytest.mark.obligation("S-143")
def test_initialize_with_a_whole_envelope() -> None:
    """initialize in a whole envelope is a modern request, for an unknown method; without headers it lacks them."""
    assert isinstance(classify(modern("initialize"), modern_headers("initialize")), Modern)
    mismatch(classify(modern("initialize"), NO_HEADERS), "mcp-protocol-version", "(missing)")
