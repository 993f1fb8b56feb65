"""Calls as a lane makes them, and a lane's services that remember what they were told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from anyio.to_thread import run_sync

from twolane.errors import McpError
from twolane.protocol.inputs import InputRequired
from twolane.server.context import Call
from twolane.server.server import McpServer

__all__ = ["FakeServices", "ask", "make_call", "refusal", "text_of"]


class FakeServices:
    """What a handler lends to its calls, as far as dispatch needs it."""

    def __init__(self) -> None:
        self.reported: list[tuple[BaseException, Call]] = []

    async def run_sync(self, function: Callable[[], Any]) -> Any:
        return await run_sync(function)

    def report(self, exc: BaseException, call: Call) -> None:
        self.reported.append((exc, call))


def make_call(
    server: McpServer,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    era: str = "modern",
    services: FakeServices | None = None,
    capabilities: dict[str, Any] | None = None,
    page_size: int | None = None,
) -> Call:
    """Return a call of *method*."""
    absent: Any = None
    return Call(
        method=method,
        params={} if params is None else params,
        request_id=1,
        lane="stateless" if era == "modern" else "compat",
        era=era,  # type: ignore[arg-type]
        revision="2026-07-28" if era == "modern" else "2025-11-25",
        server=server,
        services=services or FakeServices(),  # type: ignore[arg-type]
        outlet=absent,
        request=absent,
        meta={},
        capabilities=capabilities or {},
        client_info=None,
        log_level=None,
        auth_info=None,
        principal=("anonymous",),
        page_size=page_size,
    )


async def ask(server: McpServer, method: str, params: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Serve one request and return its result as a client decodes it."""
    result = await server.dispatch(make_call(server, method, params, **options))
    assert not isinstance(result, InputRequired)
    decoded: dict[str, Any] = orjson.loads(orjson.dumps(result))
    return decoded


async def refusal(server: McpServer, method: str, params: dict[str, Any] | None = None, **options: Any) -> McpError:
    """Serve one request that must end in a JSON-RPC error, and return that."""
    try:
        result = await ask(server, method, params, **options)
    except McpError as exc:
        return exc
    raise AssertionError(f"{method} was answered: {result}")


def text_of(result: dict[str, Any]) -> str:
    """Return the text of a tool result's only block."""
    (block,) = result["content"]
    assert block["type"] == "text"
    text = block["text"]
    assert isinstance(text, str)
    return text
