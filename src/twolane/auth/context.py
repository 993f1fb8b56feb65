"""The ambient auth context: readable in the factory, the handler and anything they call, while the body streams."""

from __future__ import annotations

from contextvars import ContextVar

from twolane.auth.info import McpAuthContext

__all__ = ["current", "get_mcp_auth_context"]

current: ContextVar[McpAuthContext | None] = ContextVar("twolane_auth_context", default=None)


def get_mcp_auth_context() -> McpAuthContext | None:
    """Return the auth context of the request being served, or None outside of one or when nobody set it."""
    return current.get()
