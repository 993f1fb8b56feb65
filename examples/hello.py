"""
The smallest server: one tool, one factory, one ASGI app.

Run it with either of::

    twolane serve examples/hello.py:create_server
    uvicorn --app-dir examples hello:app

The endpoint is ``http://127.0.0.1:8000/mcp``.
"""

from __future__ import annotations

from twolane import McpServer, create_mcp_handler

__all__ = ["app", "create_server"]


def create_server() -> McpServer:
    """Build the server; the handler calls this once for every request it serves."""
    server = McpServer("hello-server", version="1.0.0")

    @server.tool
    async def hello(name: str | None = None) -> str:
        """Return a greeting."""
        return f"Hello, {name or 'World'}!"

    return server


app = create_mcp_handler(create_server)
