"""The command line: options in, one served handler out."""

from __future__ import annotations

import base64
import os
import re
import sys
from importlib.metadata import version
from typing import Any

import click

from twolane.cli.serving import Settings, address_of, bind, configure_logging, say, serve
from twolane.cli.target import CliError
from twolane.cli.workers import Supervisor
from twolane.keyring import KEYS_VARIABLE

__all__ = ["cli"]

#: Options that become keyword arguments of ``create_mcp_handler``, by the name click gives them.
_HANDLER_OPTIONS = {
    "route": "route",
    "legacy": "legacy",
    "allow_host": "allowed_hostnames",
    "allow_origin": "allowed_origin_hostnames",
    "response_mode": "response_mode",
    "max_body_size": "max_body_size",
    "request_timeout": "request_timeout",
    "keep_alive": "keep_alive",
}


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15}) *([kmg]?)(?:ib|b)?", text.strip().lower())
    if match is None:
        raise click.BadParameter(f"{text!r} is no size; write bytes, or a number with KiB, MiB or GiB")
    unit: int = 1024 ** " kmg".index(match[2] or " ")
    return int(match[1]) * unit


class _Problem(click.ClickException):
    """An error of the target or the machine, not of the usage."""

    exit_code = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("twolane"), message="twolane %(version)s")
def cli() -> None:
    """One MCP server behind one URL for every client there is."""


@cli.command("serve")
@click.argument("target")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 picks a free port.")
@click.option("--route", metavar="PATH", help="Path of the MCP endpoint.  [default: /mcp]")
@click.option("--legacy", type=click.Choice(["stateless", "reject"]), help="2025-era clients.  [default: stateless]")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Server processes.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Host name served, without port. Repeatable.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="Origin or its host name served. Repeatable.")
@click.option("--cors-origin", multiple=True, metavar="ORIGIN", help="Origin that browsers may read from. Repeatable.")
@click.option("--no-cors", is_flag=True, help="Send no CORS headers at all.")
@click.option("--response-mode", type=click.Choice(["auto", "json", "sse"]), help="[default: auto]")
@click.option("--max-body-size", type=_size, metavar="SIZE", help="Largest request body.  [default: 4MiB]")
@click.option("--request-timeout", type=float, metavar="SECONDS", help="For factory and handler.  [default: none]")
@click.option("--keep-alive", type=float, metavar="SECONDS", help="Between comments on streams.  [default: 15]")
@click.option(
    "--shutdown-timeout",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="For requests at work when the process is told to end.",
)
@click.option("--proxy-headers", is_flag=True, help="Believe X-Forwarded-* headers of a proxy on this machine.")
@click.option("--forwarded-allow-ips", metavar="IPS", help="Believe them of these proxies; implies --proxy-headers.")
@click.option("--root-path", default="", metavar="PATH", help="What a proxy in front cuts off the path.")
@click.option(
    "--log-level",
    type=click.Choice(["critical", "error", "warning", "info", "debug"]),
    default="info",
    show_default=True,
    help="debug has a line for each request.",
)
def serve_command(target: str, host: str, port: int, workers: int, **given: Any) -> None:
    """
    Serve TARGET over HTTP: module:function or file.py:function, relative to this directory.

    The function builds the server of one request; `create_server` is taken where none is named. A handler made by
    create_mcp_handler is served as it is.

    \b
    Examples:
      twolane serve hello.py
      twolane serve shop.mcp:create_server --host 0.0.0.0 --port 9000 --allow-host shop.example
    """
    if workers > 1 and sys.platform == "win32":
        raise _Problem("Windows cannot share a listening socket among processes; serve with --workers 1.")
    settings = Settings(
        target=target,
        options=_handler_options(given),
        flags=_flags(),
        log_level=given["log_level"],
        root_path=given["root_path"].rstrip("/"),
        forwarded_allow_ips=given["forwarded_allow_ips"] or ("127.0.0.1,::1" if given["proxy_headers"] else None),
        shutdown_timeout=given["shutdown_timeout"],
    )
    try:
        sys.exit(_run(settings, host, port, workers))
    except CliError as exc:
        raise _Problem(str(exc)) from None


def _run(settings: Settings, host: str, port: int, workers: int) -> int:
    if workers > 1 and not os.environ.get(KEYS_VARIABLE, "").strip():
        # One key for all workers, so that each opens what another has sealed. Before the target reads it on import.
        os.environ[KEYS_VARIABLE] = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    configure_logging(settings.log_level)
    handler = settings.load()
    sockets = bind(host, port)
    where = f"{address_of(host, sockets)}{_route(settings, handler)}"
    if workers == 1:
        serve(handler, settings, sockets, lambda: say(f"serving {settings.target} at {where} (stop with Ctrl-C)"))
        return 0

    def ready() -> None:
        say(f"serving {settings.target} at {where} with {workers} workers (stop with Ctrl-C)")
        say("change notices stay within the worker they come from, because the workers share no backend")

    return Supervisor(settings, sockets, workers, ready).run()


def _route(settings: Settings, handler: Any) -> str:
    route: str | None = getattr(handler, "route", settings.options.get("route", "/mcp"))
    return route or "/"


def _handler_options(given: dict[str, Any]) -> dict[str, Any]:
    """Collect what goes to ``create_mcp_handler``: only what was given, the handler knows its defaults."""
    options: dict[str, Any] = {
        option: list(value) if isinstance(value, tuple) else value
        for name, option in _HANDLER_OPTIONS.items()
        if (value := given[name]) not in (None, ())
    }
    if given["no_cors"] and given["cors_origin"]:
        raise click.UsageError("--no-cors and --cors-origin exclude each other.")
    if given["no_cors"]:
        options["cors"] = False
    elif given["cors_origin"]:
        options["cors"] = {"allow_origins": list(given["cors_origin"])}
    return options


def _flags() -> dict[str, str]:
    flags = {option: f"--{name.replace('_', '-')}" for name, option in _HANDLER_OPTIONS.items()}
    return flags | {"cors": "--cors-origin or --no-cors"}
