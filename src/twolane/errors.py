"""
Every error of twolane, in one tree.

::

    TwolaneError
    ├── McpError                      a JSON-RPC error: code, message, data
    │   ├── InvalidParams             -32602  the client's arguments
    │   │   └── ResourceNotFound      -32602  (-32002 towards 2025-era clients)
    │   ├── MethodNotFound            -32601  HTTP 404
    │   ├── InternalError             -32603
    │   │   ├── ServerOutputError     -32603  the server produced something that cannot be sent
    │   │   ├── RequestCancelled      -32603  HTTP 500
    │   │   └── RequestTimedOut       -32603  HTTP 504
    │   └── MissingClientCapability   -32021  HTTP 400
    ├── ToolError                     text for the model, sent as an ``isError`` result
    ├── PushUnavailable               a pushed request that nothing can carry
    └── SealError                     sealed text that does not open

``McpError`` and ``ToolError`` are raised by handlers and travel to the client as they are. Anything else a
handler raises is the server's own affair: it is logged under a reference and the client sees only that reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "MISSING_CLIENT_CAPABILITY",
    "PARSE_ERROR",
    "RESOURCE_NOT_FOUND_2025",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "InternalError",
    "InvalidParams",
    "McpError",
    "MethodNotFound",
    "MissingClientCapability",
    "PushUnavailable",
    "RequestCancelled",
    "RequestTimedOut",
    "ResourceNotFound",
    "SealError",
    "ServerOutputError",
    "ToolError",
    "TwolaneError",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
#: "Resource not found" of the 2025 revisions; never sent on 2026-07-28 (S-027).
RESOURCE_NOT_FOUND_2025 = -32002


class TwolaneError(Exception):
    """Base class of every error defined here."""


class McpError(TwolaneError):
    """
    A JSON-RPC error. Raise it from a handler to answer the request with exactly this error.

    Args:
        code: the JSON-RPC error code, an integer. Codes of your own lie outside -32768..-32000.
        message: one concise sentence for whoever reads the error.
        data: any JSON value with details; omitted from the wire when None.
    """

    #: HTTP status used while no byte of the response has been sent.
    status = 200

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class InvalidParams(McpError):
    """The request's parameters are wrong (-32602)."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(INVALID_PARAMS, message, data)


class ResourceNotFound(InvalidParams):
    """
    No resource has this URI (server/resources, "Error Handling").

    Sent as -32602 with ``data.uri`` on 2026-07-28 and as -32002 to 2025-era clients.
    """

    def __init__(self, uri: str, message: str | None = None) -> None:
        super().__init__(message or f"Resource not found: {uri}", {"uri": uri})
        self.uri = uri


class MethodNotFound(McpError):
    """The server does not implement the method (-32601, HTTP 404 on 2026-07-28)."""

    status = 404

    def __init__(self, method: str) -> None:
        super().__init__(METHOD_NOT_FOUND, f"Method not found: {method}")
        self.method = method


class InternalError(McpError):
    """Something on the server's side failed (-32603)."""

    def __init__(self, message: str = "Internal server error", data: Any = None) -> None:
        super().__init__(INTERNAL_ERROR, message, data)


class ServerOutputError(InternalError):
    """A handler produced a result that breaks its own declaration or cannot be sent (-32603)."""


class RequestCancelled(InternalError):
    """The request's task was cancelled on the server's side (-32603, HTTP 500)."""

    status = 500

    def __init__(self) -> None:
        super().__init__("The request was cancelled on the server", {"reason": "cancelled"})


class RequestTimedOut(InternalError):
    """``request_timeout`` passed before the handler finished (-32603, HTTP 504)."""

    status = 504

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"The server did not finish this request within {seconds:g} seconds", {"reason": "request_timeout"}
        )


class MissingClientCapability(McpError):
    """
    The work needs a capability that this request did not declare (-32021, HTTP 400; basic, "Capabilities").

    Args:
        required: a ClientCapabilities object such as ``{"sampling": {}}``.
        message: what needs it.
    """

    status = 400

    def __init__(self, required: Mapping[str, Any], message: str | None = None) -> None:
        text = message or f"This request needs the client capability {', '.join(sorted(required))}"
        super().__init__(MISSING_CLIENT_CAPABILITY, text, {"requiredCapabilities": dict(required)})


class ToolError(TwolaneError):
    """
    A tool could not do its work, and the model should read why.

    The text is sent as the content of an ``isError`` result, so it must not hold secrets or internals.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class PushUnavailable(TwolaneError):
    """
    A handler tried to push a request to the client where nothing can carry it.

    Only a session has a way back to the client. Everywhere else, return ``input_required(...)`` and read the
    answers on the next round (basic/patterns/mrtr).
    """

    def __init__(self, method: str, lane: str) -> None:
        super().__init__(method, lane)
        self.method = method
        self.lane = lane

    def __str__(self) -> str:
        hint = "return input_required(...) instead"
        if self.lane == "compat":
            hint = (
                "a 2025-era client can only be asked within a session, on the sessionful lane, which this server "
                "does not have; take the answer as an argument instead"
            )
        return f"{self.method} cannot be asked of the client on the {self.lane} lane: {hint}"


class SealError(TwolaneError):
    """
    Sealed text does not open. ``reason`` is one of :attr:`REASONS` and is for the operator's log only:
    clients are told no more than that the text is invalid.
    """

    REASONS: Sequence[str] = ("malformed", "unknown_key", "altered", "expired", "spent")

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"sealed text does not open: {self.reason}"
