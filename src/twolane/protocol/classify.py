"""
The ladder: which era a POST belongs to, or why it is refused.

The body decides and the headers only cross-check it, with one exception: a version header of the modern era over a
body without an envelope is a modern request that forgot its envelope, never a legacy one (basic/versioning;
basic/transports/streamable-http). Rungs, first hit answers: shape, era, envelope, agreement of headers and body,
revision, required headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twolane.errors import HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, UNSUPPORTED_PROTOCOL_VERSION
from twolane.protocol.envelope import (
    CLIENT_CAPABILITIES,
    PROTOCOL_VERSION,
    Envelope,
    EnvelopeFault,
    read_envelope,
)
from twolane.protocol.headers import Headers, decode_value, has_foreign_characters
from twolane.protocol.message import (
    MAX_BATCH,
    DecodeError,
    Message,
    PostedResponse,
    RequestId,
    decode,
    frame,
    is_text,
)
from twolane.protocol.refusal import Refusal
from twolane.protocol.revisions import MODERN, is_modern_date

__all__ = [
    "NAMED_METHODS",
    "Legacy",
    "Modern",
    "ModernNotification",
    "Verdict",
    "classify",
    "header_mismatch",
    "id_of",
    "parse",
    "unsupported_version",
]

#: Methods whose ``Mcp-Name`` header repeats a parameter (S-036).
NAMED_METHODS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Modern(NamedTuple):
    """A request of the modern era that passed every rung."""

    id: RequestId
    method: str
    params: dict[str, Any]
    envelope: Envelope


class ModernNotification(NamedTuple):
    """A notification of the modern era. Core defines none over HTTP, so it is acknowledged and dropped."""

    method: str


class Legacy(NamedTuple):
    """Traffic of the legacy era. ``version`` is the version header as sent."""

    messages: tuple[Message | PostedResponse, ...]
    batch: bool
    version: str | None


Verdict = Modern | ModernNotification | Legacy | Refusal


def parse(body: bytes) -> Any:
    """Decode a body; a :class:`Refusal` stands for one that is not JSON (S-021)."""
    try:
        return decode(body)
    except DecodeError as exc:
        return Refusal(400, PARSE_ERROR, f"Parse error: {exc}", {"reason": "parse_error"})


def classify(value: Any, headers: Headers, supported: Sequence[str] = MODERN) -> Verdict:
    """
    Judge one decoded body.

    Args:
        value: the decoded body.
        headers: the request's headers.
        supported: the modern revisions served here, for -32022.
    """
    version_header = headers.get(b"mcp-protocol-version")
    if type(value) is list:
        return _classify_batch(value, version_header)
    message = frame(value)
    if isinstance(message, Refusal):
        return message
    header_is_modern = version_header is not None and is_modern_date(version_header)
    if isinstance(message, PostedResponse):
        if header_is_modern:
            return _invalid("posted_response", "Responses are never posted in 2026-07-28 and later")
        return Legacy((message,), False, version_header)
    params = message.params
    meta = params.get("_meta") if params is not None else None
    claimed = meta is not None and PROTOCOL_VERSION in meta
    if message.id is None:
        return _classify_notification(message, meta if claimed else None, headers, header_is_modern, supported)
    if not claimed:
        if not header_is_modern:
            return Legacy((message,), False, version_header)
        if message.method == "initialize":
            return _mismatch(
                message.id, "mcp-protocol-version", version_header, "initialize belongs to 2025-11-25 and earlier"
            )
        return _missing_envelope(message.id, meta, version_header)
    envelope = read_envelope(meta or {})
    if isinstance(envelope, EnvelopeFault):
        if message.method == "initialize" and not header_is_modern:
            return Legacy((message,), False, version_header)
        return _faulty_envelope(message.id, envelope)
    return _check_modern(message.id, message.method, params or {}, envelope, headers, supported)


def _check_modern(
    request_id: RequestId,
    method: str,
    params: dict[str, Any],
    envelope: Envelope,
    headers: Headers,
    supported: Sequence[str],
) -> Modern | Refusal:
    """The rungs of a request that claims the modern era and whose envelope is whole."""
    version_header = headers.get(b"mcp-protocol-version")
    method_header = headers.get(b"mcp-method")
    if version_header is not None and _differs(version_header, envelope.version):
        return _mismatch(request_id, "mcp-protocol-version", version_header, f"_meta names {envelope.version[:64]}")
    if method_header is not None and _differs(method_header, method):
        return _mismatch(request_id, "mcp-method", method_header, f"the body calls {method[:64]}")
    if envelope.version not in supported:
        return unsupported_version(request_id, envelope.version, supported)
    if version_header is None:
        return _mismatch(request_id, "mcp-protocol-version", None, f"_meta names {envelope.version}")
    if method_header is None:
        return _mismatch(request_id, "mcp-method", None, f"the body calls {method[:64]}")
    source = NAMED_METHODS.get(method)
    if source is not None and type(name := params.get(source)) is str:
        name_header = headers.get(b"mcp-name")
        if name_header is None:
            return _mismatch(request_id, "mcp-name", None, f"params.{source} is sent")
        # The plain comparison comes first: nearly every name needs no decoding.
        if name_header != name or name.startswith("=?base64?") or has_foreign_characters(name):
            if has_foreign_characters(name_header):
                return _mismatch(request_id, "mcp-name", name_header, "values outside visible ASCII travel as Base64")
            if decode_value(name_header) != name:
                return _mismatch(request_id, "mcp-name", name_header, f"it differs from params.{source}")
    return Modern(request_id, method, params, envelope)


def _classify_notification(
    message: Message,
    claim: dict[str, Any] | None,
    headers: Headers,
    header_is_modern: bool,
    supported: Sequence[str],
) -> ModernNotification | Legacy | Refusal:
    """Notifications need no headers and no whole envelope, but what they do send must agree."""
    version_header = headers.get(b"mcp-protocol-version")
    if claim is None and not header_is_modern:
        return Legacy((message,), False, version_header)
    version: Any = None
    if claim is not None:
        version = claim[PROTOCOL_VERSION]
        if not is_text(version):
            return _faulty_envelope(None, EnvelopeFault(PROTOCOL_VERSION, "must be a string"))
        if version_header is not None and _differs(version_header, version):
            return _mismatch(None, "mcp-protocol-version", version_header, f"_meta names {version[:64]}")
    method_header = headers.get(b"mcp-method")
    if method_header is not None and _differs(method_header, message.method):
        return _mismatch(None, "mcp-method", method_header, f"the body calls {message.method[:64]}")
    if version is not None and version not in supported:
        return unsupported_version(None, version, supported)
    return ModernNotification(message.method)


def _classify_batch(values: list[Any], version_header: str | None) -> Legacy | Refusal:
    """Batches exist in 2025-03-26 alone, so an element of the modern era makes the whole a mistake (S-020, S-146)."""
    if not values:
        return _invalid("empty_batch", "An empty batch asks for nothing")
    if version_header is not None and is_modern_date(version_header):
        return _invalid("modern_in_batch", "Requests of 2026-07-28 and later are sent one by one, never in a batch")
    if len(values) > MAX_BATCH:
        return _invalid("batch_too_large", f"A batch holds at most {MAX_BATCH} messages")
    messages: list[Message | PostedResponse] = []
    for value in values:
        params = value.get("params") if type(value) is dict else None
        meta = params.get("_meta") if type(params) is dict else None
        if type(meta) is dict and PROTOCOL_VERSION in meta:
            return _invalid("modern_in_batch", "Requests of 2026-07-28 and later are sent one by one, never in a batch")
        message = frame(value)
        if isinstance(message, Refusal):
            return message._replace(id=None)
        messages.append(message)
    return Legacy(tuple(messages), True, version_header)


def id_of(verdict: Verdict) -> RequestId | None:
    """Return the id of the one request that *verdict* is about, if there is one."""
    if isinstance(verdict, Modern | Refusal):
        return verdict.id
    if isinstance(verdict, Legacy) and not verdict.batch and isinstance(message := verdict.messages[0], Message):
        return message.id
    return None


def unsupported_version(
    request_id: RequestId | None, requested: str | None, supported: Sequence[str] = MODERN
) -> Refusal:
    """Build -32022: the revision is not served here (S-034). ``data`` names those that are."""
    data: dict[str, Any] = {"supported": list(supported)}
    if requested is None:
        message = "The request names no protocol version"
    else:
        # What another decoder let through is not always text that can be sent back.
        requested = requested if is_text(requested) else requested.encode("utf-8", "replace").decode()
        data["requested"] = requested
        message = f"Unsupported protocol version: {requested[:64]}"
    message = f"{message}; this endpoint serves {', '.join(supported)}"
    return Refusal(400, UNSUPPORTED_PROTOCOL_VERSION, message, data, request_id)


def _differs(received: str, expected: str) -> bool:
    """Tell whether a header fails to repeat the body: another value, or characters that no header may hold (S-040)."""
    return received != expected or has_foreign_characters(received)


def _mismatch(request_id: RequestId | None, header: str, received: str | None, detail: str) -> Refusal:
    shown = "(missing)" if received is None else received[:256]
    return header_mismatch(request_id, header, shown, f"the header {header} is {shown} and {detail}")


def header_mismatch(request_id: RequestId | None, header: str, received: str, detail: str) -> Refusal:
    """Build -32020: headers and body disagree (S-032 to S-040)."""
    data = {"mismatch": {"name": header, "header": received, "body": detail}}
    return Refusal(400, HEADER_MISMATCH, f"Headers and body disagree: {detail}", data, request_id)


def _missing_envelope(request_id: RequestId, meta: dict[str, Any] | None, version_header: str | None) -> Refusal:
    keys = (PROTOCOL_VERSION, CLIENT_CAPABILITIES)
    missing = ["_meta"] if meta is None else [key for key in keys if key not in meta]
    named = (version_header or "")[:64]
    message = f"The version header names {named}, but params._meta lacks {', '.join(missing)}"
    return Refusal(400, INVALID_PARAMS, message, {"envelope": {"missing": missing}}, request_id)


def _faulty_envelope(request_id: RequestId | None, fault: EnvelopeFault) -> Refusal:
    message = f"Invalid request metadata: params._meta {fault.key}: {fault.problem}"
    return Refusal(400, INVALID_PARAMS, message, {"envelope": {"key": fault.key, "problem": fault.problem}}, request_id)


def _invalid(reason: str, message: str) -> Refusal:
    return Refusal(400, INVALID_REQUEST, message, {"reason": reason})
