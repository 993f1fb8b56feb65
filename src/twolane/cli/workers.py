"""
Several server processes on the same sockets, and a parent that starts, replaces and ends them.

Each worker imports the target anew. A worker that loses its parent ends by itself, so nothing is left behind.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from twolane.cli.serving import Settings, configure_logging, serve
from twolane.cli.target import CliError

__all__ = ["Supervisor"]

_log = logging.getLogger("twolane.workers")

#: Seconds a worker has to live for its successor to start at once.
_HEALTHY = 5.0
#: Seconds beyond ``shutdown_timeout`` after which a worker is killed.
_PATIENCE = 5.0


class _Worker:
    """One worker process. Its pipe says that it is ready, and tells it that the parent has gone."""

    def __init__(self, settings: Settings, sockets: list[socket.socket]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(settings, sockets, theirs), name="twolane-worker")
        self.process.start()
        theirs.close()
        self.ready = False
        self.born = time.monotonic()

    def signal(self, number: int) -> None:
        if self.process.pid is not None and self.process.exitcode is None:
            os.kill(self.process.pid, number)


class Supervisor:
    """
    Keeps a number of workers running until a signal comes.

    Args:
        settings: what each worker serves.
        sockets: where; all workers accept from the same ones.
        count: how many workers.
        ready: called once all of them answer requests.
    """

    def __init__(self, settings: Settings, sockets: list[socket.socket], count: int, ready: Callable[[], None]) -> None:
        self._settings = settings
        self._sockets = sockets
        self._count = count
        self._ready: Callable[[], None] | None = ready
        self._workers: list[_Worker] = []
        self._signals: list[int] = []
        self._spawn_after = 0.0

    def run(self) -> int:
        """Serve, and return the exit code: 0 after a signal, 1 where a worker could not start."""
        woken, wake = socket.socketpair()
        wake.setblocking(False)
        # The interpreter writes each signal's number here, so that waiting below ends at once.
        previous_fd = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        handled = (signal.SIGTERM, signal.SIGINT)
        previous = {number: signal.signal(number, self._note) for number in handled}
        try:
            return self._supervise(woken)
        finally:
            self._stop(woken)
            for number, handler in previous.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(previous_fd)
            woken.close()
            wake.close()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signals.append(number)

    def _supervise(self, woken: socket.socket) -> int:
        while not self._signals:
            pause = self._spawn_after - time.monotonic()
            while pause <= 0 and len(self._workers) < self._count:
                self._workers.append(_Worker(self._settings, self._sockets))
            pipes = [worker.pipe for worker in self._workers if not worker.ready]
            sentinels = [worker.process.sentinel for worker in self._workers]
            missing = len(self._workers) < self._count
            waited: list[Any] = [woken, *pipes, *sentinels]
            heard = wait(waited, timeout=max(pause, 0.0) if missing else None)
            for worker in list(self._workers):
                if worker.pipe in heard:
                    worker.ready = _says_ready(worker.pipe)
                if worker.process.sentinel in heard:
                    worker.process.join(1.0)
                if worker.process.exitcode is not None and not self._signals and not self._replace(worker):
                    return 1
            if self._ready is not None and sum(worker.ready for worker in self._workers) == self._count:
                self._ready()
                self._ready = None
        return 0

    def _replace(self, dead: _Worker) -> bool:
        """Make room for a new worker; False where none could ever start."""
        code = dead.process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        self._workers.remove(dead)
        dead.pipe.close()
        if not dead.ready and code is not None and code > 0:
            _log.error("worker %s %s before it could serve; stopping", dead.process.pid, how)
            return False
        _log.warning("worker %s %s; starting another one", dead.process.pid, how)
        now = time.monotonic()
        self._spawn_after = now if now - dead.born > _HEALTHY else now + 1.0
        return True

    def _stop(self, woken: socket.socket) -> None:
        """End all workers: gracefully, at once after a second Ctrl-C, and by force when they take too long."""
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        deadline = time.monotonic() + self._settings.shutdown_timeout + _PATIENCE
        seen = len(self._signals)
        while alive := {worker.process.sentinel: worker for worker in self._workers if worker.process.exitcode is None}:
            left = deadline - time.monotonic()
            if left <= 0:
                _log.error("a worker does not end; killing it")
                for worker in alive.values():
                    worker.signal(signal.SIGKILL)
                break
            sources: list[Any] = wait([woken, *alive], timeout=left)
            for source in sources:
                if source is woken:
                    woken.recv(64)
                else:
                    # Its end of the pipe closes a moment before it can be waited for.
                    alive[source].process.join(1.0)
            if len(self._signals) > seen and self._signals[-1] == signal.SIGINT:
                seen = len(self._signals)
                for worker in alive.values():
                    worker.signal(signal.SIGINT)
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()
        for listener in self._sockets:
            listener.close()


def _says_ready(pipe: Connection[Any, Any]) -> bool:
    try:
        return bool(pipe.recv())
    except EOFError:
        return False


def _work(settings: Settings, sockets: list[socket.socket], pipe: Connection[Any, Any]) -> None:
    """The life of one worker process."""
    # A Ctrl-C reaches every process of the terminal. The parent answers it for all; the server takes over later.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_outlive_nobody, args=(pipe,), daemon=True, name="twolane-parent-watch").start()
    try:
        configure_logging(settings.log_level)
        handler = settings.load()
    except CliError as exc:
        sys.stderr.write(f"Error: {exc}\n")
        sys.exit(2)
    serve(handler, settings, sockets, lambda: pipe.send(True))


def _outlive_nobody(pipe: Connection[Any, Any]) -> None:
    """End this process gracefully when its parent is gone, however that ended."""
    try:
        pipe.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)
