"""The options of a handler: checked and resolved once, so that the request path has no ``if option``."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from twolane.auth.info import McpAuthContext
from twolane.keyring import configured_ring
from twolane.seal import Sealer

if TYPE_CHECKING:
    from starlette.requests import Request

    from twolane.observe import ErrorContext, RequestRecord
    from twolane.ports import Backend

__all__ = ["HandlerOptions", "choice", "positive_count", "reject_unknown", "route_paths", "seconds_or_none"]


class HandlerOptions(TypedDict, total=False):
    """The keyword arguments of :func:`twolane.create_mcp_handler`, which documents them."""

    route: str | None
    cors: Mapping[str, Any] | Literal[False] | None
    allowed_hostnames: Iterable[str] | Literal["*"] | None
    allowed_origin_hostnames: Iterable[str] | Literal["*"] | None
    auth_context: McpAuthContext | Callable[[Request], McpAuthContext | None] | None
    legacy: Literal["stateless", "reject"]
    response_mode: Literal["auto", "json", "sse"]
    on_error: Callable[[BaseException, ErrorContext], object] | None
    on_request: Callable[[RequestRecord], object] | None
    max_subscriptions: int
    max_subscriptions_per_principal: int | None
    keep_alive: float | None
    stream_after: float | None
    request_timeout: float | None
    max_body_size: int
    page_size: int | None
    max_worker_threads: int
    state_keys: Iterable[str | bytes] | None
    state_ttl: float
    single_use_state: bool
    backend: str | Backend | None
    handle_signals: bool


#: What people pass out of habit, and what to use here.
_ELSEWHERE = {
    "allowed_hosts": "use allowed_hostnames, a list of host names without ports",
    "allowed_origins": "use allowed_origin_hostnames, a list of host names or whole origins",
    "allowedHosts": "use allowed_hostnames, a list of host names without ports",
    "allowedHostnames": "use allowed_hostnames",
    "allowedOrigins": "use allowed_origin_hostnames",
    "allowedOriginHostnames": "use allowed_origin_hostnames",
    "authContext": "use auth_context",
    "bus": "use backend, which carries change notices between workers",
    "corsOptions": "use cors, a mapping with allow_origins, allow_headers, allow_methods, expose_headers, max_age",
    "cors_options": "use cors, a mapping with allow_origins, allow_headers, allow_methods, expose_headers, max_age",
    "enableDnsRebindingProtection": "Host and Origin are always checked; use allowed_hostnames",
    "enableJsonResponse": 'use response_mode="json"',
    "json_response": 'use response_mode="json"',
    "eventStore": "this lane has no replay; sessions and their events belong to the sessionful lane",
    "event_store": "this lane has no replay; sessions and their events belong to the sessionful lane",
    "host": "a handler opens no socket; give the address to the server that runs it",
    "port": "a handler opens no socket; give the address to the server that runs it",
    "keepAliveMs": "use keep_alive, in seconds",
    "keepalive": "use keep_alive, in seconds",
    "maxRequestBodySize": "use max_body_size, in bytes",
    "max_request_body_size": "use max_body_size, in bytes",
    "maxSubscriptions": "use max_subscriptions",
    "onerror": "use on_error",
    "onsessionclosed": "this lane has no sessions; they belong to the sessionful lane",
    "onsessioninitialized": "this lane has no sessions; they belong to the sessionful lane",
    "path": "use route",
    "responseMode": "use response_mode",
    "retryInterval": "this lane has no replay, so there is nothing to come back for",
    "retry_interval": "this lane has no replay, so there is nothing to come back for",
    "sessionIdGenerator": "this lane has no sessions; they belong to the sessionful lane",
    "session_id_generator": "this lane has no sessions; they belong to the sessionful lane",
    "stateless_http": "this handler is stateless by nature; leave the option out",
    "storage": "this lane keeps nothing between requests; hand out ctx.issue_handle(...) for application data",
    "streamable_http_path": "use route",
    "transport": "this handler is the transport; leave the option out",
    "transport_security": "use allowed_hostnames and allowed_origin_hostnames",
}


def reject_unknown(function: str, given: Iterable[str], known: Collection[str]) -> None:
    """
    Refuse an option that does not exist.

    Raises:
        TypeError: there is one. The text says what to use instead.
    """
    for name in given:
        if name in known:
            continue
        hint = _ELSEWHERE.get(name)
        if hint is None:
            from difflib import get_close_matches

            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(known)}"
        raise TypeError(f"{function}() has no option {name!r}: {hint}")


def choice(option: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """Return *value* if it is one of *allowed*; raises :class:`ValueError`."""
    if value not in allowed:
        raise ValueError(f"{option} takes {' or '.join(repr(item) for item in allowed)}, not {value!r}")
    return value


def positive_count(option: str, value: Any, *, none: bool = False) -> Any:
    """Return *value* if it is an integer from 1 up, or None where *none* allows that; raises :class:`ValueError`."""
    if none and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{option} takes a whole number from 1 up{' or None' if none else ''}, not {value!r}")
    return value


def seconds_or_none(option: str, value: Any, *, off: bool = False) -> float | None:
    """
    Return a duration in seconds, None for none.

    Args:
        option: its name, for the error.
        value: a finite number above 0, or None.
        off: 0 means none as well.

    Raises:
        ValueError: it is neither.
    """
    if value is None or (off and value == 0 and not isinstance(value, bool)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{option} takes seconds above 0, or None{' or 0' if off else ''} for none; not {value!r}")
    return float(value)


def route_paths(route: str | None) -> frozenset[str] | None:
    """
    Return the paths that *route* answers, with and without the trailing slash; None for every path.

    Raises:
        ValueError: it does not start with a slash.
    """
    if route is None:
        return None
    if route and not route.startswith("/"):
        raise ValueError(f"route takes a path such as '/mcp', or None for every path; not {route!r}")
    bare = route.rstrip("/")
    return frozenset((bare, f"{bare}/"))


def check_factory(factory: Any) -> None:
    """
    Check what was passed as the factory.

    Raises:
        TypeError: it is a constructed server, or cannot be called. The text shows the fix.
    """
    kind = type(factory)
    # Known by its module, so that neither package is imported. A class may itself be a factory.
    foreign = kind.__module__.partition(".")[0] in ("mcp", "fastmcp")
    if foreign or (hasattr(factory, "dispatch") and not isinstance(factory, type)):
        raise TypeError(
            f"create_mcp_handler() takes the function that builds a server, not a constructed {kind.__name__}: every "
            "request gets a fresh server. Move the construction into a function and pass that, "
            "create_mcp_handler(create_server)"
        )
    if not callable(factory):
        raise TypeError(
            f"create_mcp_handler() takes the function that builds a server, not {type(factory).__name__}; "
            "write create_mcp_handler(create_server)"
        )


def make_sealer(options: HandlerOptions, backend: Backend) -> Sealer:
    """
    Build the sealer: with the keys of ``state_keys``, else those of the environment, else those of the backend.

    Raises:
        ValueError: a key is too short.
    """
    ttl = seconds_or_none("state_ttl", options.get("state_ttl", 600))
    if ttl is None:
        raise ValueError("state_ttl takes seconds above 0")
    ring = configured_ring(options.get("state_keys"), backend)
    # Workers behind one address share route and namespace, and differ in host and port.
    audience = options.get("route", "/mcp") or ""
    return Sealer(ring or backend, namespace=backend.namespace, audience=audience, ttl=ttl)
