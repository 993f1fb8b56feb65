"""Trace context, server spans, and text that is safe to log."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twolane.errors import InvalidParams
from twolane.observe import Observer
from twolane.traces import NO_SPAN, Span, printable, trace_context

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def span(observer: Observer, **changes: Any) -> Span:
    """Open the span of one ordinary request, with *changes*."""
    fields: dict[str, Any] = {
        "method": "tools/call",
        "name": "hello",
        "lane": "stateless",
        "revision": "2026-07-28",
        "request_id": 7,
        "meta": {},
    }
    return observer.span(**(fields | changes))


class TestTraceContext:
    """Reading ``traceparent``, ``tracestate`` and ``baggage`` from ``_meta``."""

    @pytest.mark.obligation("S-048")
    def test_well_formed_members_are_read(self) -> None:
        """The three W3C members are taken without a prefix, and other keys are left alone."""
        meta = {"traceparent": PARENT, "tracestate": "a=1,b=2", "baggage": "user=alice", "progressToken": 1}
        assert trace_context(meta) == {"traceparent": PARENT, "tracestate": "a=1,b=2", "baggage": "user=alice"}

    @pytest.mark.parametrize(
        "parent",
        [
            None,
            7,
            "",
            "nonsense",
            PARENT.upper(),
            PARENT.replace(TRACE, "0" * 32),
            PARENT.replace("00f067aa0ba902b7", "0" * 16),
            "ff" + PARENT[2:],
            PARENT + "\n",
            PARENT + "-" + "x" * 300,
        ],
    )
    def test_malformed_parents_are_dropped_with_their_state(self, parent: object) -> None:
        """A ``traceparent`` that is not W3C text counts as absent, and its ``tracestate`` with it."""
        assert trace_context({"traceparent": parent, "tracestate": "a=1"}) == {}

    @pytest.mark.parametrize("value", [None, ["a=1"], "a=1\r\nb=2", "é=1", "x" * 9000, ""])
    def test_malformed_state_and_baggage_are_dropped(self, value: object) -> None:
        """State and baggage are taken only as visible ASCII of bounded length."""
        meta = {"traceparent": PARENT, "tracestate": value, "baggage": value}
        assert trace_context(meta) == {"traceparent": PARENT}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A tracer provider that keeps finished spans in memory, set for one test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    """Return the one finished span."""
    (finished,) = exporter.get_finished_spans()
    return finished


class TestSpans:
    """Server spans where the application traces, and nothing where it does not."""

    def test_without_a_provider_there_is_no_span(self) -> None:
        """While the application set no tracer provider, every request shares one object that does nothing."""
        observer = Observer()
        with span(observer) as current:
            current.fail(-32602, "bad")
            current.tool_error()
        assert current is NO_SPAN

    def test_a_provider_that_does_nothing_costs_no_span(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A provider that drops everything is treated like none."""
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", trace.NoOpTracerProvider())
        assert span(Observer()) is NO_SPAN

    def test_the_library_is_not_imported_for_us(self) -> None:
        """Building an observer and opening spans imports no part of OpenTelemetry."""
        program = (
            "import sys; from twolane.observe import Observer\n"
            "with Observer().span('tools/call', 'x', 'stateless', '2026-07-28', 1, {}): pass\n"
            "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
        assert done.returncode == 0

    def test_a_provider_that_the_environment_names_is_loaded(self) -> None:
        """Where the environment names the provider, it is there for the first request."""
        program = (
            "import sys; from twolane.observe import Observer; from twolane.traces import NO_SPAN\n"
            "sys.exit(Observer().span('tools/call', 'x', 'stateless', '2026-07-28', 1, {}) is NO_SPAN)"
        )
        environment = os.environ | {"OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider"}
        done = subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=60)
        assert done.returncode == 0

    def test_a_provider_set_late_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A provider that the application sets after the handler was built is used from then on."""
        observer = Observer()
        assert span(observer) is NO_SPAN
        exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        with span(observer):
            pass
        assert only(exporter).name == "tools/call hello"
        provider.shutdown()

    def test_a_tool_call_has_the_conventional_attributes(self, spans: InMemorySpanExporter) -> None:
        """A call is a server span that names the method, the tool, the revision, the request and the lane."""
        with span(Observer()):
            assert trace.get_current_span().is_recording()
        done = only(spans)
        assert (done.name, done.kind) == ("tools/call hello", trace.SpanKind.SERVER)
        assert dict(done.attributes or {}) == {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": "2026-07-28",
            "jsonrpc.request.id": "7",
            "network.transport": "tcp",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "hello",
            "twolane.lane": "stateless",
        }
        assert done.status.is_unset
        assert done.parent is None

    @pytest.mark.parametrize(
        ("method", "name", "title", "attribute"),
        [
            ("prompts/get", "review", "prompts/get review", "gen_ai.prompt.name"),
            ("resources/read", "file:///a", "resources/read", "mcp.resource.uri"),
            ("tools/list", None, "tools/list", None),
        ],
    )
    def test_other_methods_are_named(
        self, spans: InMemorySpanExporter, method: str, name: str | None, title: str, attribute: str | None
    ) -> None:
        """Prompts name the span; URIs do not, because there may be too many of them."""
        with span(Observer(), method=method, name=name):
            pass
        done = only(spans)
        attributes = dict(done.attributes or {})
        assert done.name == title
        assert "gen_ai.operation.name" not in attributes
        if attribute is not None:
            assert attributes[attribute] == name

    @pytest.mark.obligation("S-048")
    def test_the_client_span_is_the_parent(self, spans: InMemorySpanExporter) -> None:
        """The span continues the client's trace, with its baggage, and both are current inside."""
        meta = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "tenant=blue"}
        with span(Observer(), meta=meta):
            assert baggage.get_baggage("tenant") == "blue"
        assert baggage.get_baggage("tenant") is None
        done = only(spans)
        assert done.parent is not None
        assert done.context is not None
        assert (f"{done.parent.trace_id:032x}", f"{done.parent.span_id:016x}") == (TRACE, "00f067aa0ba902b7")
        assert done.parent.is_remote
        assert done.context.trace_state["vendor"] == "1"
        assert done.links == ()

    def test_the_transport_span_becomes_a_link(self, spans: InMemorySpanExporter) -> None:
        """A span of the HTTP layer is linked where the client names a parent, and is the parent where it does not."""
        with trace.get_tracer("http").start_as_current_span("POST /mcp") as http:
            with span(Observer(), meta={"traceparent": PARENT}):
                pass
            with span(Observer(), meta={"traceparent": "nonsense"}):
                pass
            assert trace.get_current_span() is http
        linked, child, _ = spans.get_finished_spans()
        assert [link.context for link in linked.links] == [http.get_span_context()]
        assert child.parent == http.get_span_context()
        assert child.links == ()

    def test_a_json_rpc_error_marks_the_span(self, spans: InMemorySpanExporter) -> None:
        """An error answer sets its code and message, whether it is raised through the span or told to it."""
        with pytest.raises(InvalidParams), span(Observer()):
            raise InvalidParams("no\nsuch tool")
        with span(Observer()) as current:
            current.fail(-32602, "no\nsuch tool")
        for done in spans.get_finished_spans():
            assert (done.attributes or {})["error.type"] == "-32602"
            assert (done.attributes or {})["rpc.response.status_code"] == "-32602"
            assert done.status.status_code is trace.StatusCode.ERROR
            assert done.status.description == "no\\nsuch tool"

    def test_a_failed_tool_marks_the_span(self, spans: InMemorySpanExporter) -> None:
        """An ``isError`` result is an error of the type ``tool_error``."""
        with span(Observer()) as current:
            current.tool_error()
        done = only(spans)
        assert (done.attributes or {})["error.type"] == "tool_error"
        assert done.status.status_code is trace.StatusCode.ERROR

    def test_foreign_exceptions_leave_their_type_only(self, spans: InMemorySpanExporter) -> None:
        """The text of a foreign exception may quote arguments, so a span has its type and nothing else."""
        with pytest.raises(ValueError, match="secret"), span(Observer()):
            raise ValueError("secret")
        done = only(spans)
        assert (done.attributes or {})["error.type"] == "ValueError"
        assert "secret" not in done.to_json()

    def test_a_cancelled_request_is_no_error(self, spans: InMemorySpanExporter) -> None:
        """A client that left is noted on the span, which is not marked as failed."""
        with pytest.raises(asyncio.CancelledError), span(Observer()):
            raise asyncio.CancelledError
        done = only(spans)
        assert (done.attributes or {})["twolane.cancelled"] is True
        assert done.status.is_unset


def test_printable_keeps_ordinary_text() -> None:
    """Letters of every script stay as they are; only what could garble a line is escaped."""
    assert printable("Füße 日本 a b") == "Füße 日本 a b"
    assert printable("a\tb") == "a\\tb"
    assert len(printable("x" * 1000)) == 256
