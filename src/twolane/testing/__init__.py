"""
Testing a server without a socket: a client that drives any ASGI application inside the test's own process.

It speaks as a real client does: the envelope of each request, the ``Mcp-*`` headers, plain JSON and streams. Each part
can be replaced, so a test may also send what no real client would::

    from hello import app
    from twolane.testing import McpTestClient


    async def test_hello() -> None:
        async with McpTestClient(app) as client:
            answer = await client.call_tool("hello", {"name": "Ada"})
            assert answer.text == "Hello, Ada!"

The application may be a handler or any framework's application that holds one. Nothing here needs pytest; the examples
are coroutines that pytest runs with the plugin of anyio or with pytest-asyncio.
"""

from __future__ import annotations

from twolane.testing.answers import Answer
from twolane.testing.client import McpTestClient
from twolane.testing.streams import ListenStream, MessageStream

__all__ = ["Answer", "ListenStream", "McpTestClient", "MessageStream"]
