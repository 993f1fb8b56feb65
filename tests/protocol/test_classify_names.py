"""The ladder, cell by cell: ``Mcp-Name``, and notifications."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.posts import LEFT_OUT, V, enveloped, headers, message, mismatch, modern, modern_headers, refused

from twolane.errors import INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION
from twolane.protocol.classify import NAMED_METHODS, Legacy, Modern, ModernNotification, classify, header_mismatch
from twolane.protocol.envelope import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION
from twolane.protocol.headers import Headers
from twolane.protocol.message import Message
from twolane.protocol.revisions import LEGACY

FUTURE = "2030-01-01"


def b64(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def named(method: str, name: object, sent: Any) -> object:
    """Classifies a call of *method* for *name* under a whole set of headers with Mcp-Name *sent*."""
    source = NAMED_METHODS.get(method, "name")
    params = {} if name is LEFT_OUT else {source: name}
    return classify(modern(method, params), modern_headers(method, mcp_name=sent))


NAMED = pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])


@pytest.mark.obligation("S-036", "S-038", "S-039")
@NAMED
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("get_weather", "get_weather"),
        ("get_weather", "  get_weather\t"),
        ("get_weather", b64("get_weather")),
        ("a b\tc", "a b\tc"),
        ("file:///a%20b?c#d", "file:///a%20b?c#d"),
        ("résumé", b64("résumé")),
        (" x ", b64(" x ")),
        ("a\r\nb", b64("a\r\nb")),
        ("", ""),
        ("", "=?base64??="),
        # A name that is itself in the Base64 form has to be encoded; one that only resembles it has not.
        (b64("x"), b64(b64("x"))),
        ("=?base64?eA==", "=?base64?eA=="),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        ("=?base64?=", "=?base64?="),
    ],
)
def test_names_that_agree(method: str, name: str, sent: str) -> None:
    """Mcp-Name repeats the name or URI, as plain text or as Base64 of its UTF-8."""
    assert isinstance(named(method, name, sent), Modern)


@pytest.mark.obligation("S-036", "S-039", "S-040", "X-11")
@NAMED
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("x", "y"),
        ("x", "X"),
        ("x", ""),
        ("", "x"),
        ("x", "x, x"),
        ("x", b64("y")),
        ("x", "=?base64?eA?="),
        ("x", "=?base64?eA==="),
        ("x", "=?base64?!!!!?="),
        ("x", "=?BASE64?eA==?="),
        (b64("x"), b64("x")),
        ("résumé", "résumé"),
        ("RÃ©sumÃ©", "RÃ©sumÃ©"),
        ("a\x01b", "a\x01b"),
        ("x", "\x7f"),
        (" x ", " x "),
    ],
)
def test_names_that_differ(method: str, name: str, sent: str) -> None:
    """Another name, a broken Base64 form or raw characters outside visible ASCII are a mismatch."""
    mismatch(named(method, name, sent), "mcp-name", sent.strip(" \t"))


@pytest.mark.obligation("S-036")
@NAMED
def test_the_name_header_is_required(method: str) -> None:
    """A named call without Mcp-Name is a mismatch, even where the name is empty."""
    for name in ("x", "", "é"):
        mismatch(named(method, name, LEFT_OUT), "mcp-name", "(missing)")


@NAMED
@pytest.mark.parametrize("name", [LEFT_OUT, None, 5, True, ["x"], {}])
@pytest.mark.parametrize("sent", [LEFT_OUT, "x", "é"])
def test_names_that_are_no_text(method: str, name: object, sent: Any) -> None:
    """Without a textual name in the body there is nothing to repeat: the call's own validation tells the fault."""
    assert isinstance(named(method, name, sent), Modern)


@pytest.mark.parametrize("method", ["tools/list", "completion/complete", "x", "tasks/get"])
def test_other_methods_have_no_name(method: str) -> None:
    """Mcp-Name on any other method is not looked at."""
    for sent in (LEFT_OUT, "other", "=?base64?!?="):
        assert isinstance(named(method, "x", sent), Modern)


@pytest.mark.obligation("X-11")
@pytest.mark.parametrize("name", [b"mcp-protocol-version", b"mcp-method", b"mcp-name"])
def test_doubled_headers_are_a_mismatch(name: bytes) -> None:
    """A standard header that is sent twice is refused, even when both copies are right."""
    raw = [(b"mcp-protocol-version", V.encode()), (b"mcp-method", b"tools/call"), (b"mcp-name", b"x")]
    assert isinstance(classify(modern("tools/call", {"name": "x"}), Headers(raw)), Modern)
    raw += [(name.upper(), dict(raw)[name])]
    value = dict(raw)[name].decode()
    mismatch(classify(modern("tools/call", {"name": "x"}), Headers(raw)), name.decode(), f"{value}, {value}")


def test_what_is_sent_back_is_bounded() -> None:
    """A refusal repeats the beginning of an overlong value only."""
    for body, sent in (
        (modern("x" * 10_000), modern_headers("y" * 10_000)),
        (modern(params={"_meta": enveloped(version="x" * 10_000)}), modern_headers("tools/list")),
        (message(), headers(mcp_protocol_version=V)),
        (modern("tools/call", {"name": "x"}), modern_headers("tools/call", mcp_name="y" * 10_000)),
    ):
        verdict = classify(body, sent)
        assert len(getattr(verdict, "message", "x" * 1_000)) < 600


@pytest.mark.obligation("S-023")
@pytest.mark.parametrize("request_id", [0, "", "1", 7])
def test_refusals_carry_the_id(request_id: int | str) -> None:
    """Every rung echoes the request's id with its type."""
    for body, sent in (
        (message(id=request_id, extra=1), headers()),
        (message(id=request_id), headers(mcp_protocol_version=V)),
        (message("initialize", id=request_id), headers(mcp_protocol_version=V)),
        (message(id=request_id, params={"_meta": enveloped(version=5)}), headers()),
        (modern(id=request_id), headers()),
        (modern(id=request_id), modern_headers("other")),
        (modern(id=request_id, params={"_meta": enveloped(version=FUTURE)}), headers()),
        (modern("tools/call", {"name": "x"}, id=request_id), modern_headers("tools/call")),
    ):
        echoed = getattr(classify(body, sent), "id", None)
        assert (echoed, type(echoed)) == (request_id, type(request_id))


def test_a_mismatch_told_by_a_lane() -> None:
    """A lane that finds a parameter header wrong builds the same refusal."""
    refusal = header_mismatch("a", "mcp-param", "x", "it differs")
    assert refusal.data == {"mismatch": {"name": "mcp-param", "header": "x", "body": "it differs"}}
    assert (refusal.status, refusal.code, refusal.id) == (400, -32020, "a")


# -- notifications -----------------------------------------------------------------------------------------------


def notification(method: str = "notifications/cancelled", **members: Any) -> dict[str, Any]:
    return message(method, id=LEFT_OUT, **members)


@pytest.mark.obligation("S-026")
@pytest.mark.parametrize(
    "sent",
    [
        headers(),
        headers(mcp_protocol_version=V),
        headers(mcp_method="notifications/cancelled"),
        modern_headers("notifications/cancelled"),
    ],
)
@pytest.mark.parametrize(
    "meta", [enveloped(), {PROTOCOL_VERSION: V}, {PROTOCOL_VERSION: V, CLIENT_CAPABILITIES: 5, LOG_LEVEL: 5}]
)
def test_notifications_with_a_claim(meta: dict[str, Any], sent: Headers) -> None:
    """A notification that claims the modern era is accepted; it needs no headers and no whole envelope."""
    assert classify(notification(params={"_meta": meta}), sent) == ModernNotification("notifications/cancelled")


@pytest.mark.obligation("S-026")
@pytest.mark.parametrize("params", [LEFT_OUT, {}, {"_meta": {}}])
@pytest.mark.parametrize("version", [V, FUTURE])
def test_notifications_under_a_modern_header(version: str, params: Any) -> None:
    """A modern header makes a notification modern too: it is not refused for the envelope it lacks."""
    sent = headers(mcp_protocol_version=version)
    assert classify(notification(params=params), sent) == ModernNotification("notifications/cancelled")


@pytest.mark.obligation("S-146")
@pytest.mark.parametrize("version", [LEFT_OUT, *LEGACY, "banana"])
@pytest.mark.parametrize("method", [LEFT_OUT, "other"])
def test_legacy_notifications(version: Any, method: Any) -> None:
    """Without claim and modern header a notification is legacy, whatever Mcp-Method says."""
    sent = headers(mcp_protocol_version=version, mcp_method=method)
    verdict = classify(notification(), sent)
    kept = None if version is LEFT_OUT else version
    assert verdict == Legacy((Message(None, "notifications/cancelled", None),), False, kept)


def test_a_request_without_an_id_is_a_notification() -> None:
    """A tools/call without an id is never a call: nobody could be answered."""
    body = modern("tools/call", {"name": "x"}, id=LEFT_OUT)
    assert classify(body, modern_headers("tools/call")) == ModernNotification("tools/call")


@pytest.mark.obligation("S-026")
@pytest.mark.parametrize("version", [None, 5, True, [], {}, "\ud800"])
@pytest.mark.parametrize("sent", [headers(), headers(mcp_protocol_version=V), modern_headers("other")])
def test_notifications_with_a_claim_that_is_no_text(version: object, sent: Headers) -> None:
    """A claim that is not a string is a bad envelope, and the refusal has no id."""
    data = refused(
        classify(notification(params={"_meta": {PROTOCOL_VERSION: version}}), sent), INVALID_PARAMS, None
    ).data
    assert data == {"envelope": {"key": PROTOCOL_VERSION, "problem": "must be a string"}}


@pytest.mark.obligation("S-026", "S-033")
@pytest.mark.parametrize(("claimed", "sent"), [(V, "2025-11-25"), (V, FUTURE), (FUTURE, V), ("2025-11-25", V), (V, "")])
def test_notifications_whose_versions_differ(claimed: str, sent: str) -> None:
    """What a notification does send has to agree: the version, before the method and before -32022."""
    body = notification(params={"_meta": enveloped(version=claimed)})
    mismatch(classify(body, headers(mcp_protocol_version=sent, mcp_method="other")), "mcp-protocol-version", sent, None)


@pytest.mark.obligation("S-026", "S-035")
@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (notification(params={"_meta": enveloped()}), headers(mcp_method="other")),
        (notification(params={"_meta": enveloped(version=FUTURE)}), headers(mcp_method="other")),
        (notification(), headers(mcp_protocol_version=V, mcp_method="other")),
        (notification(), headers(mcp_protocol_version=FUTURE, mcp_method="other")),
    ],
)
def test_notifications_whose_methods_differ(body: dict[str, Any], sent: Headers) -> None:
    """A modern notification with another method in its header is a mismatch without an id."""
    mismatch(classify(body, sent), "mcp-method", "other", None)


@pytest.mark.obligation("S-026", "S-034")
@pytest.mark.parametrize("version", [FUTURE, "banana", "", *LEGACY])
def test_notifications_of_versions_not_served(version: str) -> None:
    """A notification that claims a version not served gets -32022, not an acknowledgement."""
    for sent in (headers(), headers(mcp_protocol_version=version)):
        verdict = classify(notification(params={"_meta": enveloped(version=version)}), sent)
        assert refused(verdict, UNSUPPORTED_PROTOCOL_VERSION, None).data == {"supported": [V], "requested": version}


def test_malformed_notifications() -> None:
    """A malformed notification is refused for its shape, without an id."""
    for body in (notification(params=[]), notification(extra=1), notification(params={"_meta": 5})):
        refused(classify(body, modern_headers("notifications/cancelled")), INVALID_REQUEST, None)
