"""
Traces after the OpenTelemetry conventions for MCP (open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md).

The library is used once the application itself has set a tracer provider, and is never imported before that.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from twolane.errors import McpError
from twolane.protocol.classify import NAMED_METHODS

if TYPE_CHECKING:
    from opentelemetry.context import Context as TraceContext
    from opentelemetry.trace import Tracer

__all__ = ["LIMIT", "NO_SPAN", "OpenTelemetrySpan", "Span", "Tracing", "printable", "trace_context"]

#: The longest text that a record, a log line or a span takes from a client.
LIMIT = 256


def printable(text: str) -> str:
    """Cut *text* and escape what could forge or garble a log line: control characters, line ends, bidi marks."""
    text = text[:LIMIT]
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_VISIBLE = re.compile(r"[\t\x20-\x7e]+")


def trace_context(meta: Mapping[str, Any]) -> dict[str, str]:
    """
    Return the well-formed W3C members of a request's ``_meta``: ``traceparent``, ``tracestate`` and ``baggage``.

    A ``tracestate`` means nothing without its ``traceparent`` (W3C Trace Context, 3.3); ``baggage`` stands alone.
    """
    found: dict[str, str] = {}
    parent = meta.get("traceparent")
    if isinstance(parent, str) and len(parent) <= LIMIT and _TRACEPARENT.fullmatch(parent):
        found["traceparent"] = parent
        state = meta.get("tracestate")
        if isinstance(state, str) and len(state) <= 512 and _VISIBLE.fullmatch(state):
            found["tracestate"] = state
    baggage = meta.get("baggage")
    if isinstance(baggage, str) and len(baggage) <= 8192 and _VISIBLE.fullmatch(baggage):
        found["baggage"] = baggage
    return found


class Span(Protocol):
    """What :meth:`Observer.span` returns. An exception that passes through it marks the span as failed."""

    def __enter__(self) -> Span:
        """Start, and become the current span."""

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""

    def fail(self, code: int, message: str) -> None:
        """Say that the request is answered with this JSON-RPC error."""

    def tool_error(self) -> None:
        """Say that the answer is a tool's ``isError`` result."""


class _NoSpan:
    __slots__ = ()

    def __enter__(self) -> _NoSpan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def fail(self, code: int, message: str) -> None:
        pass

    def tool_error(self) -> None:
        pass


#: The span of whoever does not trace.
NO_SPAN: Span = _NoSpan()


class Tracing:
    """Finds the application's tracer, and finds it again when the provider changes."""

    __slots__ = ("_provider", "_tracer")

    def __init__(self) -> None:
        self._provider: object = None
        self._tracer: Tracer | None = None
        if "OTEL_PYTHON_TRACER_PROVIDER" in os.environ:
            # The application leaves it to the library to load a provider on first use.
            try:
                from opentelemetry.trace import get_tracer_provider
            except ImportError:
                return
            get_tracer_provider()

    def tracer(self, trace: Any) -> Tracer | None:
        """
        Return the tracer to use now, or None while the application has set no provider.

        Args:
            trace: the module ``opentelemetry.trace``.
        """
        provider = trace.get_tracer_provider()
        if provider is not self._provider:
            unset = isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
            self._tracer = None if unset else provider.get_tracer("twolane")
            self._provider = provider
        return self._tracer


class OpenTelemetrySpan:
    """A server span. Its parent is the client's span; the transport's own span, if there is one, becomes a link."""

    __slots__ = ("_attributes", "_meta", "_span", "_title", "_token", "_tracer")

    def __init__(
        self,
        tracer: Tracer,
        method: str,
        name: str | None,
        lane: str,
        revision: str,
        request_id: int | str,
        meta: Mapping[str, Any],
    ) -> None:
        self._tracer = tracer
        self._meta = meta
        attributes = {
            "mcp.method.name": method[:LIMIT],
            "mcp.protocol.version": revision,
            "jsonrpc.request.id": str(request_id)[:LIMIT],
            "network.transport": "tcp",
            "twolane.lane": lane,
        }
        title = attributes["mcp.method.name"]
        if name is not None:
            name = name[:LIMIT]
            attributes[_NAME_ATTRIBUTES.get(method, "mcp.resource.uri")] = name
            if NAMED_METHODS.get(method) == "name":  # A URI would give as many span names as there are resources.
                title = f"{title} {name}"
        if method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
        self._title = title
        self._attributes = attributes

    def __enter__(self) -> OpenTelemetrySpan:
        from opentelemetry import context, trace

        ambient = trace.get_current_span().get_span_context()
        parent = _remote_parent(self._meta)
        links = None
        if parent is not None and ambient.is_valid and trace.get_current_span(parent).get_span_context() != ambient:
            links = [trace.Link(ambient)]
        span = self._tracer.start_span(
            self._title, parent, trace.SpanKind.SERVER, self._attributes, links, record_exception=False
        )
        self._span = span
        self._token = context.attach(trace.set_span_in_context(span, parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from opentelemetry import context

        context.detach(self._token)
        if isinstance(exc, McpError):
            self.fail(exc.code, exc.message)
        elif isinstance(exc, asyncio.CancelledError):
            self._span.set_attribute("twolane.cancelled", True)
        elif exc is not None:
            # The message of a foreign exception may quote what the client sent; the log has it.
            self._error(type(exc).__qualname__, None)
        self._span.end()

    def fail(self, code: int, message: str) -> None:
        self._span.set_attribute("rpc.response.status_code", str(code))
        self._error(str(code), printable(message))

    def tool_error(self) -> None:
        self._error("tool_error", None)

    def _error(self, kind: str, message: str | None) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("error.type", kind)
        self._span.set_status(Status(StatusCode.ERROR, message))


_NAME_ATTRIBUTES = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}


def _remote_parent(meta: Mapping[str, Any]) -> TraceContext | None:
    """Read the client's trace context with the propagators that the operator chose; None when there is none."""
    carrier = trace_context(meta) if meta else None
    if not carrier:
        return None
    from opentelemetry import context, propagate

    return propagate.extract(carrier, context.get_current())
