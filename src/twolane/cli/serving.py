"""One server process: its sockets, its log, and an end that does not wait for listen streams."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging.config
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn

from twolane.asgi import StatelessMcpHandler
from twolane.cli.target import CliError, load_handler

__all__ = ["Server", "Settings", "address_of", "bind", "configure_logging", "say", "serve"]

_BACKLOG = 2048
#: At the end, seconds between two looks at what a connection has still to send, and how many may find the same.
_LOOK = 0.4
_STALLED_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """What one server process has to know; it travels to worker processes."""

    target: str
    options: Mapping[str, Any]
    flags: Mapping[str, str]
    log_level: str = "info"
    root_path: str = ""
    #: Addresses of proxies whose X-Forwarded-* headers count; None for none.
    forwarded_allow_ips: str | None = None
    #: Seconds that requests at work have to finish.
    shutdown_timeout: int = 10

    def load(self) -> StatelessMcpHandler:
        """Import the target and build its handler; raises :class:`CliError`."""
        return load_handler(self.target, self.options, self.flags)


def say(text: str) -> None:
    """Tell the operator. Standard output stays free."""
    sys.stderr.write(f"twolane: {text}\n")
    sys.stderr.flush()


def bind(host: str, port: int) -> list[socket.socket]:
    """
    Listen on every address of *host*; port 0 picks a free one for all of them.

    Raises:
        CliError: the host is unknown, or the port is taken or not allowed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as exc:
        raise CliError(f"The host {host!r} is unknown: {exc}.") from None
    sockets: list[socket.socket] = []
    with contextlib.ExitStack() as undo:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, protocol)
            undo.callback(listener.close)
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                listener.bind((address[0], port, *address[2:]))
                listener.listen(_BACKLOG)
            except OSError as exc:
                if sockets and exc.errno == errno.EADDRNOTAVAIL:
                    continue  # "localhost" names an IPv6 address on hosts that have none.
                raise CliError(_bind_problem(host, port, exc)) from None
            port = listener.getsockname()[1]
            sockets.append(listener)
        undo.pop_all()
    return sockets


def _bind_problem(host: str, port: int, exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by another process. Stop that, or choose another port with --port; "
            "--port 0 picks a free one."
        )
    if exc.errno == errno.EACCES:
        return f"This user may not listen on port {port} of {host}; choose one above 1023 with --port."
    if exc.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this machine; 0.0.0.0 stands for all that it has."
    return f"Port {port} of {host} cannot be opened: {exc.strerror or exc}."


def address_of(host: str, sockets: list[socket.socket]) -> str:
    """Return the base URL that clients use."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{sockets[0].getsockname()[1]}"


def configure_logging(level: str) -> None:
    """
    Send the loggers of twolane and uvicorn to standard error.

    The root logger stays as it is: it belongs to the application, which may configure it on import.
    """
    name = level.upper()
    # uvicorn's own "started" lines would say what the one line of this command says.
    chatty = "WARNING" if name == "INFO" else name
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
            },
            "loggers": {
                "twolane": {"handlers": ["stderr"], "level": name, "propagate": False},
                "uvicorn": {"handlers": ["stderr"], "level": chatty, "propagate": False},
            },
        }
    )


class Server(uvicorn.Server):
    """
    uvicorn's server with another end: at the first signal the listen streams get their final result.

    uvicorn alone waits for open connections first, and tells the application afterwards.
    """

    def __init__(self, config: uvicorn.Config, handler: StatelessMcpHandler, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._handler = handler
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the end at the first signal; a second Ctrl-C does not wait for anything."""
        # uvicorn would raise the signal again once all is done. A graceful end is a success, so the exit code is 0.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True
        self._handler.close_streams()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close down, and end the streams that were opened since the signal."""
        tasks = [asyncio.create_task(self._handler.aclose()), asyncio.create_task(self._cut_stalled())]
        try:
            await super().shutdown(sockets)
        finally:
            for task in tasks:
                task.cancel()

    async def _cut_stalled(self) -> None:
        """Cut connections whose client has stopped reading: what they are sent would never be through."""
        stalled: dict[Any, tuple[int, int]] = {}
        while True:
            for connection in list(self.server_state.connections):
                transport: Any = connection.transport
                left = transport.get_write_buffer_size()
                before, looks = stalled.get(connection, (0, 0))
                looks = looks + 1 if left and left == before else 0
                stalled[connection] = left, looks
                if looks == _STALLED_LOOKS:
                    transport.abort()
            await asyncio.sleep(_LOOK)


def serve(
    handler: StatelessMcpHandler, settings: Settings, sockets: list[socket.socket], ready: Callable[[], None]
) -> None:
    """
    Serve until a signal comes.

    Args:
        handler: what to serve.
        settings: how.
        sockets: where.
        ready: called once requests are answered.
    """
    config = uvicorn.Config(
        handler,
        # Set up above. An access log would hold query strings and cost throughput; `twolane.request` is the better one.
        log_config=None,
        access_log=False,
        # The handler refuses WebSocket; this way no library for it is loaded.
        ws="none",
        root_path=settings.root_path,
        proxy_headers=settings.forwarded_allow_ips is not None,
        forwarded_allow_ips=settings.forwarded_allow_ips,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )
    Server(config, handler, ready).run(sockets)
