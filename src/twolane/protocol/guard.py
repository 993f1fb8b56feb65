"""
Host and Origin: who may address this endpoint from a browser (basic/transports/streamable-http, "Security").

A page that rebinds its DNS name to a local address sends its own name as Host and Origin. So a server on a loopback
socket takes localhost names only, and the request's own host proves an Origin harmless only where that Host itself
was checked against a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from twolane.protocol.refusal import Refusal, refuse

__all__ = ["Guard", "is_loopback"]

_LOCALHOST = frozenset(("localhost", "127.0.0.1", "[::1]"))
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ANY = "*"


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int


@lru_cache(maxsize=64)
def is_loopback(address: str | None) -> bool:
    """
    Tell whether a socket address (``scope["server"][0]``) is a loopback one.

    A dual-stack socket reports its IPv4 connections as ``::ffff:127.0.0.1``.
    """
    if address is None:
        return False
    if address == "localhost":
        return True
    try:
        ip = ip_address(address)
        return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback
    except ValueError:
        return False


class Guard:
    """
    The decision on Host and Origin, resolved from the options once.

    Args:
        allowed_hostnames: host names (no port) that may be addressed; ``"*"`` for any; None for the default: localhost
            names on loopback sockets, any name elsewhere.
        allowed_origins: bare host names (any http or https origin of that host) or full origins
            (``https://app.example.com``, exactly that); ``"*"`` to check nothing; None for the default: localhost
            names and *cors_origins*.
        cors_origins: the concrete origins of the CORS option; allowed as well where *allowed_origins* is None.

    Raises:
        ValueError: an entry is not a host name or an origin.
    """

    def __init__(
        self,
        allowed_hostnames: Iterable[str] | str | None,
        allowed_origins: Iterable[str] | str | None,
        cors_origins: Iterable[str] = (),
    ) -> None:
        if allowed_hostnames is not None and not isinstance(allowed_hostnames, str):
            allowed_hostnames = tuple(allowed_hostnames)
        if allowed_origins is not None and not isinstance(allowed_origins, str):
            allowed_origins = tuple(allowed_origins)
        self._any_host = _is_any(allowed_hostnames)
        self._any_origin = _is_any(allowed_origins)
        self._hosts: frozenset[str] | None = None
        if allowed_hostnames is not None and not self._any_host:
            self._hosts = frozenset(_hostname(entry) for entry in _entries("allowed_hostnames", allowed_hostnames))
        names: set[str] = set()
        exact: set[_Origin] = set()
        entries: list[str] = []
        if allowed_origins is None:
            names.update(_LOCALHOST)
            entries.extend(cors_origins)
        elif not self._any_origin:
            entries.extend(_entries("allowed_origin_hostnames", allowed_origins))
        for entry in entries:
            if "://" in entry:
                origin = _parse_origin(entry)
                if origin is None:
                    raise ValueError(f"{entry!r} is not an http or https origin such as 'https://app.example.com'")
                exact.add(origin)
            else:
                names.add(_hostname(entry))
        self._origin_names = frozenset(names)
        self._origins = frozenset(exact)

    @property
    def settles_hosts(self) -> bool:
        """Whether somebody decided which hosts are served, on loopback sockets and elsewhere."""
        return self._hosts is not None or self._any_host

    def check(self, host: str | None, origin: str | None, server: str | None) -> Refusal | None:
        """
        Decide.

        Args:
            host: the Host header.
            origin: the Origin header.
            server: the address of the socket the request came in on.
        """
        checked = False
        name: str | None = None
        hosts = self._hosts
        if hosts is None and not self._any_host and is_loopback(server):
            hosts = _LOCALHOST
        if hosts is not None:
            name = _host_of(host)
            if name is None:
                shown = "missing" if host is None else f"not a valid host: {host[:100]!r}"
                return refuse(403, "invalid_host", f"The Host header is {shown}")
            if name not in hosts:
                return refuse(
                    403,
                    "host_not_allowed",
                    f"Host {name[:100]!r} is not served here; the server's option allowed_hostnames would allow it",
                )
            checked = True
        if not origin or self._any_origin:
            return None
        parsed = _parse_origin(origin)
        if parsed is None:
            return refuse(403, "invalid_origin", f"The Origin header is not an http or https origin: {origin[:100]!r}")
        if parsed.host in self._origin_names or parsed in self._origins or (checked and _is_own(parsed, host)):
            return None
        return refuse(
            403,
            "origin_not_allowed",
            f"Origin {origin[:200]!r} is not allowed; the server's option allowed_origin_hostnames would allow it",
        )


def _is_any(option: Sequence[str] | str | None) -> bool:
    """Tell whether the option is ``"*"``, alone or in a list as a command line gives it."""
    return option is not None and _ANY in option if not isinstance(option, str) else option == _ANY


def _entries(option: str, value: Iterable[str] | str) -> Iterable[str]:
    if isinstance(value, str):
        raise ValueError(f'{option} takes a list of names or "*", not the text {value!r}')
    return value


def _hostname(entry: str) -> str:
    """Normalise a configured host name."""
    text = entry.strip().lower()
    if ":" in text and not text.startswith("["):
        text = f"[{text}]" if text.count(":") > 1 else text
    match = _AUTHORITY.fullmatch(text)
    name = match[1].rstrip(".") if match is not None and match[2] is None else ""
    if not name:
        raise ValueError(f"{entry!r} is not a host name; write it without scheme and port, such as 'mcp.example.com'")
    return name


def _host_of(header: str | None) -> str | None:
    match = _AUTHORITY.fullmatch(header) if header else None
    if match is None or (match[2] is not None and int(match[2]) > 65535):
        return None
    return match[1].lower().rstrip(".") or None


def _parse_origin(text: str) -> _Origin | None:
    scheme, separator, authority = text.partition("://")
    scheme = scheme.lower()
    match = _AUTHORITY.fullmatch(authority)
    if not separator or scheme not in _DEFAULT_PORTS or match is None:
        return None
    port = int(match[2]) if match[2] is not None else _DEFAULT_PORTS[scheme]
    host = match[1].lower().rstrip(".")
    return _Origin(scheme, host, port) if host and port <= 65535 else None


def _is_own(origin: _Origin, host: str | None) -> bool:
    """Same host and port as the checked Host header; a header without a port means the scheme's own."""
    match = _AUTHORITY.fullmatch(host or "")
    if match is None:
        return False
    port = int(match[2]) if match[2] is not None else _DEFAULT_PORTS[origin.scheme]
    return match[1].lower().rstrip(".") == origin.host and port == origin.port
