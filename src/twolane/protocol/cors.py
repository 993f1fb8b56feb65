"""
Cross-origin headers: on every answer, refusals included, so that a page can read why it was refused.

They grant reading, not access: the Origin check of :mod:`twolane.protocol.guard` decides who is served.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from twolane.protocol.headers import Headers

__all__ = ["Cors"]

_RawHeaders = tuple[tuple[bytes, bytes], ...]

_DEFAULTS: dict[str, Any] = {
    "allow_origins": ("*",),
    "allow_methods": ("GET", "POST", "DELETE", "OPTIONS"),
    "allow_headers": (
        "Accept",
        "Authorization",
        "Content-Type",
        "Last-Event-ID",
        "Mcp-Method",
        "Mcp-Name",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
    ),
    "expose_headers": ("Mcp-Session-Id", "WWW-Authenticate"),
    "max_age": 86400,
}
# A wildcard cannot cover a prefix, so the Mcp-Param-* names that a preflight asks for are echoed one by one.
_PARAM = re.compile(r"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+")


class Cors:
    """
    The CORS answer, resolved from the ``cors`` option once.

    Args:
        option: False for no CORS headers at all; None or a mapping over the defaults.

    Raises:
        TypeError: the option is neither, or holds an unknown key.
    """

    def __init__(self, option: Mapping[str, Any] | bool | None) -> None:
        self.enabled = option is not False
        if option is None or option is True or option is False:
            option = {}
        if not isinstance(option, Mapping):
            raise TypeError(f"cors takes False or a mapping with {', '.join(_DEFAULTS)}; not {option!r}")
        unknown = sorted(set(option) - set(_DEFAULTS))
        if unknown:
            raise TypeError(f"cors has no key {unknown[0]!r}; it takes {', '.join(_DEFAULTS)}")
        settings = {**_DEFAULTS, **option}
        for key in ("allow_origins", "allow_methods", "allow_headers", "expose_headers"):
            if isinstance(settings[key], str):
                settings[key] = (settings[key],)
            if not isinstance(settings[key], Sequence) or not all(isinstance(item, str) for item in settings[key]):
                raise TypeError(f"cors[{key!r}] takes a list of texts")
        self._origins = frozenset(origin.lower() for origin in settings["allow_origins"])
        self._any = "*" in self._origins
        self._allow_headers: tuple[str, ...] = tuple(settings["allow_headers"])
        exposed = ", ".join(settings["expose_headers"]).encode()
        self._exposed: _RawHeaders = ((b"access-control-expose-headers", exposed),) if exposed else ()
        self._static: _RawHeaders = ((b"access-control-allow-origin", b"*"), *self._exposed)
        self._methods = ", ".join(settings["allow_methods"]).encode()
        self._max_age = str(int(settings["max_age"])).encode()

    @property
    def concrete_origins(self) -> tuple[str, ...]:
        """The origins that are named, without ``"*"``."""
        return tuple(sorted(self._origins - {"*"}))

    def headers(self, origin: str | None) -> _RawHeaders:
        """Return the headers for an ordinary answer to a request from *origin*."""
        if not self.enabled:
            return ()
        if self._any:
            return self._static
        vary = ((b"vary", b"Origin"),)
        if origin is None or origin.lower() not in self._origins:
            return vary
        return ((b"access-control-allow-origin", origin.encode("latin-1")), *vary, *self._exposed)

    def is_preflight(self, method: str, headers: Headers) -> bool:
        """Tell whether a request is a preflight to be answered here. Any OPTIONS is, while CORS is on."""
        return self.enabled and method == "OPTIONS"

    def preflight_headers(self, headers: Headers) -> _RawHeaders:
        """Return the headers of a 204 to a preflight."""
        asked = headers.get(b"access-control-request-headers") or ""
        names = [name.strip().lower() for name in asked.split(",")]
        params = [name for name in names if _PARAM.fullmatch(name)]
        allowed = ", ".join((*self._allow_headers, *params)).encode()
        origin = headers.get(b"origin")
        varying = b"Access-Control-Request-Headers" if self._any else b"Origin, Access-Control-Request-Headers"
        granted = tuple(pair for pair in self.headers(origin) if pair[0] == b"access-control-allow-origin")
        return (
            *granted,
            (b"access-control-allow-methods", self._methods),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", self._max_age),
            (b"vary", varying),
        )
