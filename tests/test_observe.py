"""Records, failures and log lines."""

from __future__ import annotations

import asyncio
import functools
import logging
from typing import Any

import pytest

from twolane.observe import ErrorContext, Observer, RequestRecord


def record(observer: Observer, **changes: Any) -> None:
    """Record one ordinary request, with *changes*."""
    fields: dict[str, Any] = {
        "lane": "stateless",
        "era": "modern",
        "method": "tools/call",
        "name": "hello",
        "client_info": {"name": "probe", "version": "1.0"},
        "revision": "2026-07-28",
        "status": 200,
        "code": None,
        "duration": 0.002,
    }
    observer.record(**(fields | changes))


class TestRecords:
    """``on_request`` and the logger ``twolane.request``."""

    def test_on_request_receives_one_frozen_record(self) -> None:
        """The callback gets every field of the request, and cannot change them."""
        seen: list[RequestRecord] = []
        observer = Observer(on_request=seen.append)
        record(observer, status=400, code=-32602)
        assert seen == [
            RequestRecord(
                lane="stateless",
                era="modern",
                method="tools/call",
                name="hello",
                client_name="probe",
                client_version="1.0",
                revision="2026-07-28",
                status=400,
                code=-32602,
                duration=0.002,
            )
        ]
        with pytest.raises(AttributeError):
            seen[0].status = 200  # type: ignore[misc]

    def test_long_texts_are_cut(self) -> None:
        """What a client chose takes at most 256 characters of a record, however long it is."""
        seen: list[RequestRecord] = []
        long = "x" * 10_000
        record(
            Observer(on_request=seen.append),
            method=long,
            name=long,
            revision=long,
            client_info={"name": long, "version": long},
        )
        texts = (seen[0].method, seen[0].name, seen[0].client_name, seen[0].client_version, seen[0].revision)
        assert [len(text or "") for text in texts] == [256] * 5

    @pytest.mark.parametrize("info", [None, {}, {"name": 3, "version": ["1"]}])
    def test_unknown_or_odd_clients_are_none(self, info: dict[str, Any] | None) -> None:
        """A client that says nothing of itself, or nothing usable, is recorded as None."""
        seen: list[RequestRecord] = []
        record(Observer(on_request=seen.append), client_info=info)
        assert (seen[0].client_name, seen[0].client_version) == (None, None)

    def test_debug_line_has_the_fields(self, caplog: pytest.LogCaptureFixture) -> None:
        """At DEBUG there is one line a request on ``twolane.request``, with the fields for structured logs."""
        caplog.set_level(logging.DEBUG, "twolane.request")
        record(Observer(), status=404, code=-32601)
        (line,) = caplog.records
        assert line.getMessage() == "stateless tools/call hello from probe -> 404 (-32601) in 2.0 ms"
        assert line.__dict__["mcp_method"] == "tools/call"
        assert line.__dict__["mcp_client_version"] == "1.0"
        assert (line.__dict__["http_status"], line.__dict__["mcp_code"]) == (404, -32601)

    def test_nothing_is_logged_above_debug(self, caplog: pytest.LogCaptureFixture) -> None:
        """Without DEBUG and without a callback a request leaves no trace, and the caller can tell beforehand."""
        caplog.set_level(logging.INFO, "twolane.request")
        observer = Observer()
        assert not observer.recording
        record(observer)
        assert caplog.records == []
        assert Observer(on_request=lambda record: None).recording

    @pytest.mark.obligation("X-16")
    def test_log_lines_cannot_be_forged(self, caplog: pytest.LogCaptureFixture) -> None:
        """Line ends, control characters and bidi marks of a client are escaped in every text that is logged."""
        caplog.set_level(logging.DEBUG, "twolane.request")
        evil = "a\nINFO fake\r\x1b[31m\u202e\u2028\x85\ud800"
        record(Observer(), method=evil, name=evil, client_info={"name": evil, "version": evil}, revision=evil)
        (line,) = caplog.records
        texts = [line.getMessage(), *(value for value in line.__dict__.values() if isinstance(value, str))]
        assert not [text for text in texts if not text.isprintable()]
        assert "a\\nINFO fake\\r\\x1b[31m\\u202e\\u2028\\x85\\ud800" in line.getMessage()

    def test_a_failing_callback_harms_nobody(self, caplog: pytest.LogCaptureFixture) -> None:
        """What a callback raises ends in the log ``twolane.observe``; the request goes on."""

        def broken(record: RequestRecord) -> None:
            raise ValueError("broken callback")

        record(Observer(on_request=broken))
        (line,) = caplog.records
        assert line.name == "twolane.observe"
        assert "on_request raised" in line.getMessage()

    def test_keyboard_interrupt_passes(self) -> None:
        """A callback does not swallow the interrupt of the operator."""

        def interrupted(record: RequestRecord) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            record(Observer(on_request=interrupted))


class _AsyncCallable:
    async def __call__(self, *args: object) -> None:
        """Take anything."""


async def _async_callback(*args: object) -> None:
    """Take anything."""


class TestCallbacks:
    """What may be a callback."""

    @pytest.mark.parametrize("option", ["on_request", "on_error"])
    @pytest.mark.parametrize(
        "callback",
        [_async_callback, functools.partial(_async_callback, 1), _AsyncCallable()],
        ids=["def", "partial", "object"],
    )
    def test_coroutine_functions_are_refused(self, option: str, callback: Any) -> None:
        """Nothing would await a coroutine function, so it is a TypeError that says what to do instead."""
        with pytest.raises(TypeError, match=f"{option} must be a plain function.*nothing awaits it"):
            Observer(**{option: callback})

    @pytest.mark.parametrize("option", ["on_request", "on_error"])
    def test_what_cannot_be_called_is_refused(self, option: str) -> None:
        """A value that is no function is a TypeError at construction."""
        with pytest.raises(TypeError, match=f"{option} must be a function, not str"):
            Observer(**{option: "print"})  # type: ignore[arg-type]

    def test_a_coroutine_in_disguise_is_closed_and_named(self, caplog: pytest.LogCaptureFixture) -> None:
        """A plain function that returns a coroutine gives an error in the log, and no warning of the interpreter."""
        record(Observer(on_request=lambda record: _async_callback(record)))
        assert "on_request returned a coroutine" in caplog.text


class TestFailures:
    """``on_error`` and the logger ``twolane.error``."""

    CONTEXT = ErrorContext(lane="stateless", method="tools/call", name="hello", request_id=7, client_name="probe")

    def test_on_error_receives_the_exception_and_its_request(self) -> None:
        """The callback gets the exception itself and the request it belongs to."""
        seen: list[tuple[BaseException, ErrorContext]] = []
        failure = ValueError("boom")
        Observer(on_error=lambda exc, context: seen.append((exc, context))).report(failure, self.CONTEXT)
        assert seen == [(failure, self.CONTEXT)]

    def test_failures_are_logged_with_their_traceback(self, caplog: pytest.LogCaptureFixture) -> None:
        """Without a callback a failure is still in the log, with its traceback."""
        Observer().report(ValueError("boom"), self.CONTEXT)
        (line,) = caplog.records
        assert (line.name, line.levelno) == ("twolane.error", logging.ERROR)
        assert line.getMessage() == "tools/call failed in hello (lane stateless)"
        assert line.exc_info is not None
        assert line.exc_info[0] is ValueError

    def test_what_is_logged_already_is_not_logged_twice(self, caplog: pytest.LogCaptureFixture) -> None:
        """A failure that stands in the log under its reference goes to the callback alone."""
        seen: list[BaseException] = []
        Observer(on_error=lambda exc, context: seen.append(exc)).report(ValueError("boom"), self.CONTEXT, logged=True)
        assert len(seen) == 1
        assert caplog.records == []

    def test_a_failing_on_error_is_swallowed(self, caplog: pytest.LogCaptureFixture) -> None:
        """An ``on_error`` that fails itself, even with a cancellation, changes nothing for the request."""

        def broken(exc: BaseException, context: ErrorContext) -> None:
            raise asyncio.CancelledError

        Observer(on_error=broken).report(ValueError("boom"), ErrorContext(), logged=True)
        assert "on_error raised" in caplog.text
