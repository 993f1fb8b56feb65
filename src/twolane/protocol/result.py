"""Results in the shape of the era they are sent in (basic, "Results"; server/utilities/caching)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twolane.protocol.downconvert import downconvert
from twolane.protocol.envelope import SERVER_INFO, SUBSCRIPTION_ID
from twolane.protocol.message import RequestId, result_message

__all__ = ["discover_result", "initialize_result", "legacy_result", "listen_result", "modern_result"]


def modern_result(request_id: RequestId, result: dict[str, Any], server_info: Any) -> bytes:
    """
    Encode a result of 2026-07-28: with ``resultType`` and the server's identity in ``_meta`` (S-043, S-044).

    Args:
        request_id: the request's id.
        result: what dispatch returned; a ``resultType`` or identity in it is kept.
        server_info: the server's Implementation.

    Raises:
        EncodeError: the result has no JSON form.
    """
    meta = result.get("_meta")
    shaped = {"resultType": "complete", **result}
    shaped["_meta"] = {SERVER_INFO: server_info, **meta} if meta else {SERVER_INFO: server_info}
    return result_message(request_id, shaped)


def legacy_result(request_id: RequestId, method: str, result: dict[str, Any], revision: str) -> bytes:
    """Encode a result for a 2025-era client (raises :class:`~twolane.protocol.message.EncodeError`)."""
    return result_message(request_id, downconvert(method, result, revision))


def discover_result(
    capabilities: dict[str, Any], instructions: str | None, supported: Sequence[str], hint: tuple[int, str]
) -> dict[str, Any]:
    """Build the result of ``server/discover`` (S-080)."""
    result: dict[str, Any] = {"supportedVersions": list(supported), "capabilities": capabilities}
    if instructions is not None:
        result["instructions"] = instructions
    result["ttlMs"], result["cacheScope"] = hint
    return result


def initialize_result(
    revision: str, capabilities: dict[str, Any], info: dict[str, Any], instructions: str | None
) -> dict[str, Any]:
    """Build the result of the 2025 revisions' ``initialize`` (L-001)."""
    result: dict[str, Any] = {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info}
    if instructions is not None:
        result["instructions"] = instructions
    return result


def listen_result(subscription_id: RequestId, server_info: Any) -> bytes:
    """Encode the result that ends a subscription on the server's own account (S-130)."""
    return modern_result(subscription_id, {"_meta": {SUBSCRIPTION_ID: subscription_id}}, server_info)
