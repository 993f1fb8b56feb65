"""Telling a server process to end while clients listen: real processes, real sockets, real signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Listener, Running, call, serving, uvicorn_running, write_server

Start = Callable[[Path], AbstractContextManager[Running]]


def _serve(*args: str) -> Start:
    @contextmanager
    def start(folder: Path) -> Iterator[Running]:
        write_server(folder)
        with serving(folder, "probe_server.py", *args) as served:
            yield served

    return start


def _uvicorn(*args: str) -> Start:
    @contextmanager
    def start(folder: Path) -> Iterator[Running]:
        write_server(folder)
        with uvicorn_running(folder, "probe_server:app", *args) as served:
            yield served

    return start


SERVERS = {
    "twolane serve": _serve(),
    "twolane serve --workers 2": _serve("--workers", "2"),
    "uvicorn": _uvicorn(),
    "uvicorn h11 asyncio": _uvicorn("--http", "h11", "--loop", "asyncio"),
    "uvicorn --workers 2": _uvicorn("--workers", "2"),
}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.obligation("S-130")
def test_listen_streams_end_with_their_result(tmp_path: Path, server: str, number: int) -> None:
    """A process that is told to end is gone within three seconds, and each open stream gets its final result first."""
    with SERVERS[server](tmp_path) as served:
        listeners = [Listener(served.port, f"sub-{index}") for index in range(6)]
        for listener in listeners:
            listener.until(b"subscriptions/acknowledged")
        code = served.stop(number)
        for index, listener in enumerate(listeners):
            with listener:
                messages = listener.messages_to_the_end()
            assert messages[-1]["id"] == f"sub-{index}"
            assert messages[-1]["result"]["resultType"] == "complete"
        assert "Traceback" not in served.output()
        assert "ERROR" not in served.output()
        # uvicorn raises the signal again once it is done; `twolane serve` calls a graceful end a success.
        assert code in ((0,) if server.startswith("twolane") else (0, -number, 128 + number))


@pytest.mark.parametrize("server", ["twolane serve", "twolane serve --workers 2", "uvicorn"])
def test_an_idle_server_ends_at_once(tmp_path: Path, server: str) -> None:
    """Without open streams the end is as quick, with the handlers of the signals as they were before."""
    with SERVERS[server](tmp_path) as served:
        with Listener(served.port) as listener:
            listener.until(b"subscriptions/acknowledged")
        assert call(served.port, "hello") == "Hello, World!"
        served.stop()
        assert "Traceback" not in served.output()


@pytest.mark.parametrize("server", ["twolane serve", "twolane serve --workers 2"])
def test_a_reader_that_stopped_reading_does_not_hold_the_process(tmp_path: Path, server: str) -> None:
    """A stream whose client reads nothing is given up, so that the process is gone in time all the same."""
    with SERVERS[server](tmp_path) as served:
        # The acknowledgement repeats the URIs, and is larger than all the buffers on the way.
        uris = [f"memo://{index}/{'x' * 4000}" for index in range(900)]
        with Listener(served.port, uris=uris, receive_buffer=4096) as listener:
            listener.until(b"HTTP/1.1 200")
            served.stop()
        assert "Traceback" not in served.output()


def _calling(port: int, seconds: float) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call(port, "slow", {"seconds": seconds})))
    thread.start()
    return thread, answers


@pytest.mark.parametrize("server", ["twolane serve", "twolane serve --workers 2"])
def test_calls_at_work_are_finished(tmp_path: Path, server: str) -> None:
    """A call that is being served when the signal comes is answered, while nothing new is accepted."""
    with SERVERS[server](tmp_path) as served:
        for _ in range(3):  # Whichever worker gets it, the loop is warm.
            call(served.port, "hello")
        thread, answers = _calling(served.port, 1.0)
        with Listener(served.port) as listener:
            listener.until(b"subscriptions/acknowledged")
            assert served.stop() == 0
            thread.join(5)
            assert answers == ["slept"]
            listener.messages_to_the_end()


def test_calls_that_take_too_long_are_cut(tmp_path: Path) -> None:
    """``--shutdown-timeout`` bounds the wait for calls at work."""
    with _serve("--shutdown-timeout", "1")(tmp_path) as served:
        before = threading.Thread(target=lambda: _swallow(lambda: call(served.port, "slow", {"seconds": 60})))
        before.start()
        with Listener(served.port) as listener:
            listener.until(b"subscriptions/acknowledged")
        served.stop()
        before.join(5)
        assert not before.is_alive()


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    """Ctrl-C twice ends the process although a call is at work."""
    with _serve()(tmp_path) as served:
        thread = threading.Thread(target=lambda: _swallow(lambda: call(served.port, "slow", {"seconds": 60})))
        thread.start()
        with Listener(served.port) as listener:
            listener.until(b"subscriptions/acknowledged")
            served.process.send_signal(signal.SIGINT)
            listener.messages_to_the_end()
        served.stop(signal.SIGINT)
        thread.join(5)
        assert not thread.is_alive()


def _swallow(action: Callable[[], object]) -> None:
    try:
        action()
    except Exception:
        return
