"""Event frames of ``text/event-stream`` (basic/transports/streamable-http). No ids: the modern era has no replay."""

from __future__ import annotations

__all__ = ["KEEP_ALIVE", "event"]

#: A comment line that proxies count as traffic and clients ignore (S-065).
KEEP_ALIVE = b": keepalive\n\n"


def event(message: bytes) -> bytes:
    """Wrap one encoded JSON-RPC message. Compact JSON holds no line break, so one data line is enough."""
    return b"event: message\ndata: " + message + b"\n\n"
