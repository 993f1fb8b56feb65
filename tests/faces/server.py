"""The server behind the faces suite: one tool for each thing that can go right or wrong."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

from pydantic import BaseModel, Field

from twolane import (
    Context,
    McpError,
    McpRequestContext,
    McpServer,
    ToolError,
    accepted_content,
    elicit,
    get_mcp_auth_context,
    input_required,
)

Region = Annotated[str | None, Field(json_schema_extra={"x-mcp-header": "Region"})]


class NameForm(BaseModel):
    """Who is asked."""

    name: str


class Seen:
    """What the server saw, for the test to look at."""

    def __init__(self) -> None:
        self.factories = 0
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.errors: list[Any] = []
        self.records: list[Any] = []

    def clear(self) -> None:
        self.factories = 0
        self.started.clear()
        self.cancelled.clear()
        self.errors.clear()
        self.records.clear()

    def on_error(self, exc: BaseException, context: Any) -> None:
        self.errors.append((exc, context))

    def on_request(self, record: Any) -> None:
        self.records.append(record)


class Boom(BaseException):
    """An exception that no ``except Exception`` catches."""


RAISED: dict[str, BaseException] = {
    "value": ValueError("secret-detail"),
    "base": Boom("secret-detail"),
    "exit": SystemExit("secret-detail"),
    "interrupt": KeyboardInterrupt("secret-detail"),
    "generator": GeneratorExit("secret-detail"),
    "cancelled": asyncio.CancelledError("secret-detail"),
    "stop": StopIteration("secret-detail"),
    "group": BaseExceptionGroup("secret-detail", [SystemExit(1)]),
}


def make_factory(seen: Seen) -> Any:
    def create_server(request: McpRequestContext) -> McpServer:
        seen.factories += 1
        server = McpServer("faces", version="1.0.0", instructions="Use the tools.")

        @server.tool
        async def greet(name: str = "World") -> str:
            """Greet somebody."""
            return f"Hello, {name}!"

        @server.tool
        def greet_in_thread(name: str) -> str:
            """Greet from a worker thread."""
            return f"Hello, {name}, from a thread!"

        @server.tool
        async def count(ctx: Context, to: int = 3) -> str:
            """Count with progress."""
            for number in range(to):
                await ctx.progress(number + 1, to)
            return "counted"

        @server.tool
        async def speak(ctx: Context) -> str:
            """Log at two levels."""
            await ctx.log("debug", "quiet")
            await ctx.log("error", "loud")
            return "spoken"

        @server.tool
        async def region(region: Region = None) -> str:
            """Take a value that a header repeats."""
            return str(region)

        @server.tool
        async def fail(how: str) -> str:
            """Raise."""
            raise RAISED[how]

        @server.tool
        def fail_in_thread(how: str) -> str:
            """Raise in a thread."""
            raise RAISED[how]

        @server.tool
        async def refuse() -> str:
            """Fail for the model."""
            raise ToolError("not today")

        @server.tool
        async def protocol_error() -> str:
            """Answer with a JSON-RPC error."""
            raise McpError(1234, "custom", {"more": True})

        @server.tool
        async def unencodable(kind: str) -> Any:
            """Return what has no JSON form."""
            return {"nan": {"x": float("nan")}, "object": {"x": object()}, "cycle": _cycle(), "surrogate": "\ud800"}[
                kind
            ]

        @server.tool
        async def hang() -> str:
            """Wait until cancelled."""
            seen.started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                seen.cancelled.set()
                raise
            return "never"

        @server.tool
        async def cancel_self() -> str:
            """Cancel the task it runs in, then go on."""
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
            return "never"

        @server.tool
        async def ask(ctx: Context) -> Any:
            """Ask for a name, then greet."""
            answer = accepted_content(ctx, "who", NameForm)
            if answer is None:
                return input_required({"who": elicit("What is your name?", NameForm)}, state={"asked": True})
            return f"Hello, {answer.name}; state {ctx.request_state}"

        @server.tool
        async def push(ctx: Context) -> str:
            """Push a request, the 2025 way."""
            return str(await ctx.elicit("What is your name?", NameForm))

        @server.tool
        async def whoami(ctx: Context) -> dict[str, Any]:
            """Tell who calls."""
            auth, ambient = ctx.auth_info, get_mcp_auth_context()
            return {
                "client": auth.client_id if auth else None,
                "subject": auth.subject if auth else None,
                "props": dict(ambient.props) if ambient else None,
                "factory": request.auth_info.subject if request.auth_info else None,
            }

        @server.tool
        async def body_again(ctx: Context) -> int:
            """Read the request body again."""
            return len(await ctx.request.body())

        @server.tool
        async def change(ctx: Context) -> str:
            """Publish a change of the tool list."""
            await ctx.notify.tools_changed()
            return "changed"

        @server.resource("faces://text", mime_type="text/plain")
        async def text() -> str:
            """A text."""
            return "some text"

        @server.prompt
        async def hello(name: str) -> str:
            """Say hello."""
            return f"Say hello to {name}."

        return server

    return create_server


def _cycle() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    return loop
