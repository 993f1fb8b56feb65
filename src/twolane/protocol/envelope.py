"""The per-request metadata of the modern era: the reserved keys of ``params._meta`` (basic, "Per-request metadata")."""

from __future__ import annotations

from typing import Any, NamedTuple

from twolane.protocol.message import is_text

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "LOG_LEVELS",
    "PROTOCOL_VERSION",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "Envelope",
    "EnvelopeFault",
    "read_envelope",
]

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

#: The syslog severities, by rising urgency (server/utilities/logging).
LOG_LEVELS: dict[str, int] = {
    level: rank
    for rank, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"),
    )
}

_KEYS = frozenset((PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL))
_OBJECT_CAPABILITIES = ("elicitation", "experimental", "extensions", "roots", "sampling")


class Envelope(NamedTuple):
    """What a modern request says of itself. ``meta`` holds the keys of ``_meta`` that are not reserved."""

    version: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any] | None
    log_level: str | None
    meta: dict[str, Any]


class EnvelopeFault(NamedTuple):
    """What is wrong with an envelope: the dotted key and the problem."""

    key: str
    problem: str


def read_envelope(meta: dict[str, Any]) -> Envelope | EnvelopeFault:
    """Check the envelope in *meta* (S-030, S-031, S-074): required keys first, then each value's type."""
    if PROTOCOL_VERSION not in meta:
        return EnvelopeFault(PROTOCOL_VERSION, "missing")
    if CLIENT_CAPABILITIES not in meta:
        return EnvelopeFault(CLIENT_CAPABILITIES, "missing")
    version = meta[PROTOCOL_VERSION]
    if not is_text(version):
        return EnvelopeFault(PROTOCOL_VERSION, "must be a string")
    capabilities = meta[CLIENT_CAPABILITIES]
    if type(capabilities) is not dict:
        return EnvelopeFault(CLIENT_CAPABILITIES, "must be an object")
    if capabilities:
        for name in _OBJECT_CAPABILITIES:
            if name in capabilities and type(capabilities[name]) is not dict:
                return EnvelopeFault(f"{CLIENT_CAPABILITIES}.{name}", "must be an object")
    client_info = meta.get(CLIENT_INFO)
    if client_info is not None or CLIENT_INFO in meta:
        if type(client_info) is not dict:
            return EnvelopeFault(CLIENT_INFO, "must be an object")
        for name in ("name", "version"):
            if type(client_info.get(name)) is not str:
                return EnvelopeFault(f"{CLIENT_INFO}.{name}", "must be a string")
    log_level = meta.get(LOG_LEVEL)
    if (log_level is not None or LOG_LEVEL in meta) and (type(log_level) is not str or log_level not in LOG_LEVELS):
        return EnvelopeFault(LOG_LEVEL, f"must be one of {', '.join(LOG_LEVELS)}")
    rest = {key: value for key, value in meta.items() if key not in _KEYS} if len(meta) > 2 else {}
    return Envelope(version, capabilities, client_info, log_level, rest)
