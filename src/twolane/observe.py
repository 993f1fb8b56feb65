"""
What a handler tells its operator: loggers, one record per request, failures, and traces.

Loggers are named ``twolane.*``; nothing is configured and nothing is printed unless the application does so.
``twolane.request`` has one line per request at DEBUG, ``twolane.error`` one per failure with its traceback,
``twolane.observe`` what a callback of the application did wrong.

No record, log line or span holds an argument, a body or a token. What a client chose itself (method, names, URIs,
client information) is cut, and escaped where it becomes text (X-16).
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twolane.protocol.revisions import Era
from twolane.traces import LIMIT, NO_SPAN, OpenTelemetrySpan, Span, Tracing, printable

__all__ = ["ErrorContext", "Observer", "RequestRecord"]

_requests = logging.getLogger("twolane.request")
_errors = logging.getLogger("twolane.error")
_log = logging.getLogger("twolane.observe")
_modules = sys.modules


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """
    One request, refused ones included, as ``on_request`` receives it.

    Args:
        lane: ``"stateless"``, ``"compat"``, or ``"none"`` for what was refused before a lane was chosen.
        era: ``"modern"``, ``"legacy"``, or None where it could not be told.
        method: the JSON-RPC method, None where it could not be read.
        name: the tool, the prompt or the resource URI that the request names.
        client_name: what the client calls itself. It is a claim.
        client_version: the client's version, a claim as well.
        revision: the protocol revision it was served under.
        status: the HTTP status of the answer.
        code: the JSON-RPC error code of the answer, None for a result. A failed tool is a result.
        duration: seconds from the head of the request to the end of its answer.
    """

    lane: str
    era: Era | None
    method: str | None
    name: str | None
    client_name: str | None
    client_version: str | None
    revision: str | None
    status: int
    code: int | None
    duration: float


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """Which request a failure belongs to: the second argument of ``on_error``. All None outside of any request."""

    lane: str | None = None
    method: str | None = None
    name: str | None = None
    request_id: int | str | None = None
    client_name: str | None = None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= LIMIT else text[:LIMIT]


def _shown(text: str | None) -> str:
    return "-" if text is None else printable(text)


class Observer:
    """
    The callbacks of one handler, and its way into the logs and traces. Built once, used by every request.

    Args:
        on_request: receives a :class:`RequestRecord` after each request.
        on_error: receives each failure and its :class:`ErrorContext`.

    Raises:
        TypeError: a callback is not callable or is a coroutine function. Callbacks run inside the request, so they
            are plain functions that return at once; a slow one hands its work to a queue of its own.
    """

    __slots__ = ("_on_error", "_on_request", "_tracing")

    def __init__(
        self,
        on_request: Callable[[RequestRecord], object] | None = None,
        on_error: Callable[[BaseException, ErrorContext], object] | None = None,
    ) -> None:
        self._on_request = _plain(on_request, "on_request")
        self._on_error = _plain(on_error, "on_error")
        self._tracing = Tracing()

    @property
    def recording(self) -> bool:
        """Whether anyone wants records; where nobody does, the caller may skip reading the clock."""
        return self._on_request is not None or _requests.isEnabledFor(logging.DEBUG)

    def record(
        self,
        *,
        lane: str,
        era: Era | None,
        method: str | None,
        name: str | None,
        client_info: Mapping[str, Any] | None,
        revision: str | None,
        status: int,
        code: int | None,
        duration: float,
    ) -> None:
        """Tell the application and the log of one finished request. Never raises."""
        callback = self._on_request
        logged = _requests.isEnabledFor(logging.DEBUG)
        if callback is None and not logged:
            return
        record = RequestRecord(
            lane=lane,
            era=era,
            method=_cut(method),
            name=_cut(name),
            client_name=_claim(client_info, "name"),
            client_version=_claim(client_info, "version"),
            revision=_cut(revision),
            status=status,
            code=code,
            duration=duration,
        )
        if logged:
            _write(record)
        if callback is not None:
            self._call(callback, "on_request", record)

    def report(self, exc: BaseException, context: ErrorContext, *, logged: bool = False) -> None:
        """
        Tell the application and the log of a failure. Never raises.

        Args:
            exc: what went wrong.
            context: where.
            logged: the failure is in the log already, under a reference that the client was given.
        """
        if not logged:
            _errors.error(
                "%s failed in %s (lane %s)",
                _shown(context.method),
                _shown(context.name),
                context.lane or "-",
                exc_info=exc,
                extra={
                    "mcp_lane": context.lane,
                    "mcp_method": _shown(context.method),
                    "mcp_name": _shown(context.name),
                },
            )
        if self._on_error is not None:
            self._call(self._on_error, "on_error", exc, context)

    def span(
        self, method: str, name: str | None, lane: str, revision: str, request_id: int | str, meta: Mapping[str, Any]
    ) -> Span:
        """
        Return a context manager for the part of a request that runs the application's code.

        Where the application uses OpenTelemetry it is a server span, the child of the client's span that the trace
        context of *meta* names (S-048). Everywhere else it does nothing, at the price of a dictionary look-up.
        """
        trace = _modules.get("opentelemetry.trace")
        # The variable is what the library's own proxies read. Its public function looks into the environment each time
        # while no provider is set, which costs more than a request may spend on this.
        if trace is None or getattr(trace, "_TRACER_PROVIDER", trace) is None:
            return NO_SPAN
        tracer = self._tracing.tracer(trace)
        if tracer is None:
            return NO_SPAN
        return OpenTelemetrySpan(tracer, method, name, lane, revision, request_id, meta)

    def _call(self, callback: Callable[..., object], option: str, *args: object) -> None:
        try:
            outcome = callback(*args)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:
            _log.exception("The callback %s raised; the request went on without it", option)
            return
        if inspect.iscoroutine(outcome):
            outcome.close()
            _log.error("The callback %s returned a coroutine, which nothing awaits: make it a plain function", option)


def _plain(callback: Any, option: str) -> Any:
    if callback is None:
        return None
    if not callable(callback):
        raise TypeError(f"{option} must be a function, not {type(callback).__name__}")
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(getattr(callback, "__call__", None)):  # noqa: B004
        raise TypeError(
            f"{option} must be a plain function: it is called inside the request and nothing awaits it. "
            "Start a task from it, or put what it receives into a queue"
        )
    return callback


def _claim(client_info: Mapping[str, Any] | None, key: str) -> str | None:
    value = client_info.get(key) if client_info is not None else None
    return value[:LIMIT] if isinstance(value, str) else None


def _write(record: RequestRecord) -> None:
    fields = {
        "mcp_lane": record.lane,
        "mcp_era": record.era,
        "mcp_method": _shown(record.method),
        "mcp_name": _shown(record.name),
        "mcp_client_name": _shown(record.client_name),
        "mcp_client_version": _shown(record.client_version),
        "mcp_revision": _shown(record.revision),
        "http_status": record.status,
        "mcp_code": record.code,
        "duration": record.duration,
    }
    _requests.debug(
        "%s %s %s from %s -> %d%s in %.1f ms",
        record.lane,
        fields["mcp_method"],
        fields["mcp_name"],
        fields["mcp_client_name"],
        record.status,
        "" if record.code is None else f" ({record.code})",
        record.duration * 1000,
        extra=fields,
    )
