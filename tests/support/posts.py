"""Bodies and headers of single POSTs, as the pure protocol layer sees them."""

from __future__ import annotations

from typing import Any

from twolane.errors import HEADER_MISMATCH
from twolane.protocol.envelope import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from twolane.protocol.headers import Headers
from twolane.protocol.refusal import Refusal

__all__ = ["LEFT_OUT", "V", "enveloped", "headers", "message", "mismatch", "modern", "modern_headers", "refused"]

V = "2026-07-28"

#: In place of a value: the member or header is not there at all.
LEFT_OUT: Any = object()


def _present(members: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not LEFT_OUT}


def headers(**values: str | bytes | Any) -> Headers:
    """Headers by Python name: ``mcp_method="tools/list"`` is ``Mcp-Method``. Text is sent as Latin-1."""
    raw = []
    for name, value in _present(values).items():
        raw.append((name.replace("_", "-").encode(), value if isinstance(value, bytes) else value.encode("latin-1")))
    return Headers(raw)


def modern_headers(method: str, **changes: Any) -> Headers:
    """The headers of a modern request for *method*; keyword arguments replace, add or leave out."""
    return headers(**{"mcp_protocol_version": V, "mcp_method": method, **changes})


def enveloped(**changes: Any) -> dict[str, Any]:
    """A ``_meta`` with a whole envelope; ``version``, ``capabilities`` and others by full key replace members."""
    version = changes.pop("version", V)
    capabilities = changes.pop("capabilities", {})
    return _present({PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: capabilities, **changes})


def message(method: str = "tools/list", **members: Any) -> dict[str, Any]:
    """A request with id 1 and no params; keyword arguments replace, add or leave out members."""
    return _present({"jsonrpc": "2.0", "id": 1, "method": method, **members})


def modern(method: str = "tools/list", params: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """A request with a whole envelope; *params* may hold a ``_meta`` of its own."""
    return message(method, params={"_meta": enveloped(), **(params or {})}, **members)


def refused(verdict: object, code: int, request_id: int | str | None) -> Refusal:
    """Asserts a refusal of the ladder, with status 400, *code* and *request_id*, and returns it."""
    assert isinstance(verdict, Refusal), verdict
    assert (verdict.status, verdict.code, verdict.id) == (400, code, request_id)
    assert verdict.message
    return verdict


def mismatch(verdict: object, header: str, received: str, request_id: int | str | None = 1) -> None:
    """Asserts a -32020 that names *header* and what was received."""
    data = refused(verdict, HEADER_MISMATCH, request_id).data
    assert data is not None
    assert data["mismatch"]["name"] == header
    assert data["mismatch"]["header"] == received
    assert data["mismatch"]["body"]
