"""
One MCP server behind one URL, for every client there is.

A factory builds the server; :func:`create_mcp_handler` serves each request by a fresh one. The names below are the
public face; they are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twolane.asgi import StatelessMcpHandler, create_mcp_handler
    from twolane.auth.context import get_mcp_auth_context
    from twolane.auth.info import AuthInfo, McpAuthContext
    from twolane.backends.memory import MemoryBackend
    from twolane.body import is_legacy_request
    from twolane.errors import (
        InternalError,
        InvalidParams,
        McpError,
        MethodNotFound,
        MissingClientCapability,
        PushUnavailable,
        RequestTimedOut,
        ResourceNotFound,
        SealError,
        ServerOutputError,
        ToolError,
        TwolaneError,
    )
    from twolane.observe import ErrorContext, RequestRecord
    from twolane.protocol.inputs import (
        InputRequest,
        InputRequired,
        InputResponse,
        accepted_content,
        elicit,
        elicit_url,
        input_required,
        input_response,
        list_roots,
        sample,
    )
    from twolane.seal import RequestStateCodec
    from twolane.server.caching import CacheHint
    from twolane.server.completable import completable
    from twolane.server.context import Context, McpRequestContext
    from twolane.server.output import ToolResult
    from twolane.server.reading import ResourceContent
    from twolane.server.resources import ResourceTemplate
    from twolane.server.server import McpServer

__all__ = [
    "AuthInfo",
    "CacheHint",
    "Context",
    "ErrorContext",
    "InputRequest",
    "InputRequired",
    "InputResponse",
    "InternalError",
    "InvalidParams",
    "McpAuthContext",
    "McpError",
    "McpRequestContext",
    "McpServer",
    "MemoryBackend",
    "MethodNotFound",
    "MissingClientCapability",
    "PushUnavailable",
    "RequestRecord",
    "RequestStateCodec",
    "RequestTimedOut",
    "ResourceContent",
    "ResourceNotFound",
    "ResourceTemplate",
    "SealError",
    "ServerOutputError",
    "StatelessMcpHandler",
    "ToolError",
    "ToolResult",
    "TwolaneError",
    "__version__",
    "accepted_content",
    "completable",
    "create_mcp_handler",
    "elicit",
    "elicit_url",
    "get_mcp_auth_context",
    "input_required",
    "input_response",
    "is_legacy_request",
    "list_roots",
    "sample",
]

__version__ = "0.1.0"

_HOMES = {
    "twolane.asgi": ("StatelessMcpHandler", "create_mcp_handler"),
    "twolane.auth.context": ("get_mcp_auth_context",),
    "twolane.auth.info": ("AuthInfo", "McpAuthContext"),
    "twolane.backends.memory": ("MemoryBackend",),
    "twolane.body": ("is_legacy_request",),
    "twolane.errors": (
        "InternalError",
        "InvalidParams",
        "McpError",
        "MethodNotFound",
        "MissingClientCapability",
        "PushUnavailable",
        "RequestTimedOut",
        "ResourceNotFound",
        "SealError",
        "ServerOutputError",
        "ToolError",
        "TwolaneError",
    ),
    "twolane.observe": ("ErrorContext", "RequestRecord"),
    "twolane.protocol.inputs": (
        "InputRequest",
        "InputRequired",
        "InputResponse",
        "accepted_content",
        "elicit",
        "elicit_url",
        "input_required",
        "input_response",
        "list_roots",
        "sample",
    ),
    "twolane.seal": ("RequestStateCodec",),
    "twolane.server.caching": ("CacheHint",),
    "twolane.server.completable": ("completable",),
    "twolane.server.context": ("Context", "McpRequestContext"),
    "twolane.server.output": ("ToolResult",),
    "twolane.server.reading": ("ResourceContent",),
    "twolane.server.resources": ("ResourceTemplate",),
    "twolane.server.server": ("McpServer",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'twolane' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
