"""The per-request metadata of the modern era."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.posts import LEFT_OUT, V, enveloped

from twolane.protocol.envelope import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    LOG_LEVELS,
    PROTOCOL_VERSION,
    Envelope,
    EnvelopeFault,
    read_envelope,
)

CLIENT = {"name": "c", "version": "1"}


def test_the_least_envelope() -> None:
    """Version and capabilities are enough."""
    assert read_envelope(enveloped()) == Envelope(V, {}, None, None, {})


@pytest.mark.obligation("S-031")
def test_client_info_is_optional() -> None:
    """Without clientInfo the envelope is whole; with it, it is kept as sent, further members included."""
    assert isinstance(read_envelope(enveloped()), Envelope)
    info = {**CLIENT, "title": "C", "x": [1]}
    envelope = read_envelope(enveloped(**{CLIENT_INFO: info}))
    assert isinstance(envelope, Envelope)
    assert envelope.client_info == info


def test_everything_at_once() -> None:
    """Each reserved key has its place, and the rest of _meta keeps its own."""
    capabilities = {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "roots": {},
        "extensions": {"x.y/z": {}},
        "experimental": {},
        "unheard-of": 5,
    }
    others = {"progressToken": 7, "traceparent": "00-1-2-01", "io.modelcontextprotocol/unheard-of": None}
    meta = enveloped(capabilities=capabilities, **{CLIENT_INFO: CLIENT, LOG_LEVEL: "info"}, **others)
    assert read_envelope(meta) == Envelope(V, capabilities, CLIENT, "info", others)


def test_the_version_is_not_judged_here() -> None:
    """Any text is a version; whether it is served is asked on a later rung."""
    for version in ("2030-01-01", "banana", "", "é"):
        assert read_envelope(enveloped(version=version)) == Envelope(version, {}, None, None, {})


@pytest.mark.obligation("S-074")
def test_log_levels() -> None:
    """The eight syslog levels are known, and rank in their order."""
    levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert sorted(LOG_LEVELS, key=LOG_LEVELS.__getitem__) == levels
    for level in levels:
        envelope = read_envelope(enveloped(**{LOG_LEVEL: level}))
        assert isinstance(envelope, Envelope)
        assert envelope.log_level == level


@pytest.mark.obligation("S-030")
@pytest.mark.parametrize(
    ("meta", "key"),
    [
        ({}, PROTOCOL_VERSION),
        ({"protocolVersion": V, "clientCapabilities": {}}, PROTOCOL_VERSION),
        (enveloped(version=LEFT_OUT), PROTOCOL_VERSION),
        (enveloped(capabilities=LEFT_OUT), CLIENT_CAPABILITIES),
        (enveloped(version=5, capabilities=LEFT_OUT), CLIENT_CAPABILITIES),
        (enveloped(capabilities=LEFT_OUT, **{CLIENT_INFO: 5, LOG_LEVEL: 5}), CLIENT_CAPABILITIES),
    ],
)
def test_missing_keys_come_first(meta: dict[str, Any], key: str) -> None:
    """A required key that is missing is told before any value of the wrong type, the version before the rest."""
    assert read_envelope(meta) == EnvelopeFault(key, "missing")


@pytest.mark.obligation("S-030")
@pytest.mark.parametrize("value", [None, True, 5, 2026.0728, [], {}, [V], "\ud800"])
def test_versions_that_are_no_text(value: object) -> None:
    """A version is a string, and one that could be sent back."""
    assert read_envelope(enveloped(version=value)) == EnvelopeFault(PROTOCOL_VERSION, "must be a string")


@pytest.mark.obligation("S-030")
@pytest.mark.parametrize("value", [None, True, 5, "sampling", [], ["sampling"]])
def test_capabilities_that_are_no_object(value: object) -> None:
    """Capabilities are an object, and so is each known one."""
    assert read_envelope(enveloped(capabilities=value)) == EnvelopeFault(CLIENT_CAPABILITIES, "must be an object")
    for name in ("elicitation", "experimental", "extensions", "roots", "sampling"):
        fault = EnvelopeFault(f"{CLIENT_CAPABILITIES}.{name}", "must be an object")
        assert read_envelope(enveloped(capabilities={"unheard-of": value, name: value})) == fault


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (None, CLIENT_INFO),
        ("c", CLIENT_INFO),
        ([], CLIENT_INFO),
        ({}, f"{CLIENT_INFO}.name"),
        ({"version": "1"}, f"{CLIENT_INFO}.name"),
        ({"name": None, "version": "1"}, f"{CLIENT_INFO}.name"),
        ({"name": "c"}, f"{CLIENT_INFO}.version"),
        ({"name": "c", "version": 1}, f"{CLIENT_INFO}.version"),
    ],
)
def test_client_info_that_is_none(value: object, key: str) -> None:
    """Whoever sends clientInfo sends an object with name and version."""
    fault = read_envelope(enveloped(**{CLIENT_INFO: value}))
    assert isinstance(fault, EnvelopeFault)
    assert fault.key == key


@pytest.mark.obligation("S-074")
@pytest.mark.parametrize("value", [None, "", "verbose", "INFO", "warn", 3, True, ["info"], {}])
def test_unknown_log_levels(value: object) -> None:
    """A log level is one of the eight names, in lower case."""
    fault = read_envelope(enveloped(**{LOG_LEVEL: value}))
    assert isinstance(fault, EnvelopeFault)
    assert fault.key == LOG_LEVEL


def test_the_input_is_not_changed() -> None:
    """Reading an envelope leaves _meta as it was."""
    meta = enveloped(**{LOG_LEVEL: "info", "progressToken": 1})
    before = dict(meta)
    read_envelope(meta)
    assert meta == before
