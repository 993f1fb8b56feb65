"""The ladder, cell by cell: requests of the modern era, and what is refused on the way there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.posts import LEFT_OUT, V, enveloped, headers, message, mismatch, modern, modern_headers, refused

from twolane.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_PROTOCOL_VERSION
from twolane.protocol.classify import Modern, classify, parse, unsupported_version
from twolane.protocol.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION, Envelope
from twolane.protocol.headers import Headers
from twolane.protocol.revisions import LEGACY

FUTURE = "2030-01-01"
NO_HEADERS = headers()
MODERN_HEADERS = [headers(mcp_protocol_version=version) for version in (V, FUTURE)]


@pytest.mark.obligation("S-021")
@pytest.mark.parametrize("body", [b"", b"{", b'"\xff"', b"NaN", "\ufeff{}".encode(), b"[" * 1_000])
def test_bodies_that_are_no_json(body: bytes) -> None:
    """What cannot be decoded gets 400 and -32700 without an id."""
    assert refused(parse(body), PARSE_ERROR, None).data == {"reason": "parse_error"}


def test_json_is_parsed() -> None:
    """A body that can be decoded becomes its value."""
    assert parse(b'{"a": [1]}') == {"a": [1]}


@pytest.mark.obligation("S-140")
@pytest.mark.parametrize("request_id", [1, 0, "", "a", -5])
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "ping", "initialize", "no/such", "x", ""])
def test_modern_requests(method: str, request_id: int | str) -> None:
    """An envelope and headers that agree make a modern request, whether or not the method exists (S-143)."""
    verdict = classify(modern(method, id=request_id), modern_headers(method))
    envelope = Envelope(V, {}, None, None, {})
    assert verdict == Modern(request_id, method, {"_meta": enveloped()}, envelope)
    assert isinstance(verdict, Modern)
    assert type(verdict.id) is type(request_id)


@pytest.mark.obligation("S-042")
def test_client_info_changes_no_verdict() -> None:
    """Whoever claims to be calling, the verdict is the same."""
    verdicts = []
    for extra in ({}, {CLIENT_INFO: {"name": "editor", "version": "1"}}, {CLIENT_INFO: {"name": "", "version": "x"}}):
        verdict = classify(modern(params={"_meta": enveloped(**extra)}), modern_headers("tools/list"))
        assert isinstance(verdict, Modern)
        verdicts.append(verdict.envelope._replace(client_info=None))
    assert verdicts == [verdicts[0]] * 3


# -- shape -------------------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-020", "S-022", "S-023")
@pytest.mark.parametrize("sent", [NO_HEADERS, *MODERN_HEADERS])
@pytest.mark.parametrize(
    ("value", "request_id"),
    [
        (None, None),
        (5, None),
        ("x", None),
        (modern(jsonrpc="1.0"), 1),
        (modern(id=None), None),
        (modern(id=1.5), None),
        (modern(id=True), None),
        (modern(extra=1, id="a"), "a"),
        (modern(result={}), 1),
        (message(params=[]), 1),
        (message(params={"_meta": []}), 1),
        (modern(params={"_meta": enveloped(progressToken=True)}), 1),
    ],
)
def test_shape_comes_before_the_era(value: object, request_id: int | str | None, sent: Headers) -> None:
    """What is no JSON-RPC message is refused as such, whatever era it claims."""
    assert refused(classify(value, sent), INVALID_REQUEST, request_id).data == {"reason": "invalid_message"}


# -- modern requests ---------------------------------------------------------------------------------------------


@pytest.mark.obligation("S-030", "S-074")
@pytest.mark.parametrize(
    ("meta", "key", "problem"),
    [
        (enveloped(capabilities=LEFT_OUT), CLIENT_CAPABILITIES, "missing"),
        (enveloped(version=5), PROTOCOL_VERSION, "must be a string"),
        (enveloped(version=None), PROTOCOL_VERSION, "must be a string"),
        (enveloped(version="\ud800"), PROTOCOL_VERSION, "must be a string"),
        (enveloped(capabilities=[]), CLIENT_CAPABILITIES, "must be an object"),
        (enveloped(capabilities={"sampling": True}), f"{CLIENT_CAPABILITIES}.sampling", "must be an object"),
        (enveloped(**{CLIENT_INFO: {"name": "c"}}), f"{CLIENT_INFO}.version", "must be a string"),
        (enveloped(version=FUTURE, **{CLIENT_INFO: None}), CLIENT_INFO, "must be an object"),
        (
            enveloped(**{LOG_LEVEL: "loud"}),
            LOG_LEVEL,
            "must be one of debug, info, notice, warning, error, critical, alert, emergency",
        ),
    ],
)
@pytest.mark.parametrize(
    "sent",
    [
        NO_HEADERS,
        modern_headers("tools/list"),
        modern_headers("other"),
        headers(mcp_protocol_version="2025-11-25"),
        headers(mcp_protocol_version=FUTURE, mcp_method="other"),
    ],
)
def test_faulty_envelopes(meta: dict[str, Any], key: str, problem: str, sent: Headers) -> None:
    """A claim with a faulty envelope gets -32602 that names the key, before any header is looked at."""
    refusal = refused(classify(message(params={"_meta": meta}), sent), INVALID_PARAMS, 1)
    assert refusal.data == {"envelope": {"key": key, "problem": problem}}


@pytest.mark.obligation("S-033", "S-037", "X-11")
@pytest.mark.parametrize("method", [LEFT_OUT, "tools/list", "other"])
@pytest.mark.parametrize(
    ("claimed", "sent"),
    [
        (V, "2025-11-25"),
        (V, FUTURE),
        (V, "banana"),
        (V, ""),
        (V, f"{V}, {V}"),
        (V, "2026-07-28z"),
        (FUTURE, V),
        ("2025-11-25", V),
        ("banana", "Banana"),
        ("é", "é"),
    ],
)
def test_versions_that_differ(claimed: str, sent: str, method: Any) -> None:
    """A version header that is not the claim is a mismatch, before the method header and before -32022."""
    verdict = classify(
        modern(params={"_meta": enveloped(version=claimed)}), headers(mcp_protocol_version=sent, mcp_method=method)
    )
    mismatch(verdict, "mcp-protocol-version", sent)


@pytest.mark.obligation("S-035", "S-037", "S-040", "X-11")
@pytest.mark.parametrize("version", [V, FUTURE])
@pytest.mark.parametrize("repeats_version", [True, False])
@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("tools/list", "TOOLS/LIST"),
        ("tools/list", "tools/call"),
        ("tools/list", "tools/list, tools/list"),
        ("tools/list", ""),
        ("tools/list", "=?base64?dG9vbHMvbGlzdA==?="),
        ("résumé", "résumé"),
        ("résumé", "=?base64?csOpc3Vtw6k=?="),
        ("a\x01", "a\x01"),
    ],
)
def test_methods_that_differ(method: str, sent: str, version: str, repeats_version: bool) -> None:
    """A method header that is not the method is a mismatch, case and all, before -32022 and the missing version."""
    repeated = version if repeats_version else LEFT_OUT
    verdict = classify(
        modern(method, {"_meta": enveloped(version=version)}), headers(mcp_protocol_version=repeated, mcp_method=sent)
    )
    mismatch(verdict, "mcp-method", sent)


@pytest.mark.obligation("S-034", "S-145")
@pytest.mark.parametrize("version", [FUTURE, "2026-07-29", "banana", "", *LEGACY])
@pytest.mark.parametrize(("with_version", "with_method"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "initialize"])
def test_versions_not_served(version: str, method: str, with_version: bool, with_method: bool) -> None:
    """A claim of a version that is not served gets -32022 with what is, before any header that is missing."""
    sent = headers(
        mcp_protocol_version=version if with_version else LEFT_OUT, mcp_method=method if with_method else LEFT_OUT
    )
    verdict = classify(modern(method, {"name": "x", "_meta": enveloped(version=version)}), sent)
    refusal = refused(verdict, UNSUPPORTED_PROTOCOL_VERSION, 1)
    assert refusal.data == {"supported": [V], "requested": version}
    assert V in refusal.message


@pytest.mark.obligation("S-032")
@pytest.mark.parametrize("method", [LEFT_OUT, "tools/list"])
def test_the_version_header_is_required(method: Any) -> None:
    """A modern request without the version header is a mismatch, before the missing method."""
    mismatch(classify(modern(), headers(mcp_method=method)), "mcp-protocol-version", "(missing)")


@pytest.mark.obligation("S-035")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "initialize", "no/such"])
def test_the_method_header_is_required(method: str) -> None:
    """A modern request without Mcp-Method is a mismatch, before Mcp-Name and before the method is known."""
    verdict = classify(modern(method, {"name": "x"}), headers(mcp_protocol_version=V))
    mismatch(verdict, "mcp-method", "(missing)")


@pytest.mark.obligation("S-037", "S-038")
def test_names_ignore_case_and_values_whitespace() -> None:
    """Header names match in any case and values without the space around them."""
    raw = [(b"MCP-PROTOCOL-VERSION", f"\t{V} ".encode()), (b"mCP-mETHOD", b"  tools/list\t")]
    assert isinstance(classify(modern(), Headers(raw)), Modern)


@pytest.mark.obligation("S-034")
def test_the_versions_served_can_be_told() -> None:
    """The list of versions served decides and is sent as it is."""
    body = modern(params={"_meta": enveloped(version=FUTURE)})
    sent = modern_headers("tools/list", mcp_protocol_version=FUTURE)
    assert isinstance(classify(body, sent, (FUTURE, V)), Modern)
    refusal = refused(classify(modern(), NO_HEADERS, (FUTURE,)), UNSUPPORTED_PROTOCOL_VERSION, 1)
    assert refusal.data == {"supported": [FUTURE], "requested": V}


@pytest.mark.obligation("S-084")
def test_the_refusal_names_what_is_served() -> None:
    """-32022 names the versions in its text and its data, whether or not one was asked for."""
    refusal = unsupported_version("a", None)
    assert refusal.id == "a"
    assert refusal.data == {"supported": [V]}
    assert V in refusal.message
    assert unsupported_version(1, "x" * 1_000).data == {"supported": [V], "requested": "x" * 1_000}
    assert len(unsupported_version(1, "x" * 1_000).message) < 200
    assert unsupported_version(1, "\ud800").data == {"supported": [V], "requested": "?"}
