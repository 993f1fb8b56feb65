"""
Data that lasts from call to call without a session: a shopping cart in SQLite behind a sealed handle.

The first tool makes a cart and hands out a handle; the others take the handle back. It is encrypted, expires, and
opens only for the caller it was made for, so a cart's number cannot be guessed, read or borrowed. The data itself
sits in an ordinary table, which every worker opens for itself.

Run it with::

    twolane serve examples/handles.py:create_server

``CARTS_DB`` names the database file; by default it is ``carts.sqlite3`` in the working directory.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from twolane import Context, McpServer, ToolError, create_mcp_handler

__all__ = ["app", "create_server"]

DAY = 86400.0

# Named once, here: a factory runs for each request, and building an annotation costs more than looking one up.
Cart = Annotated[str, Field(description="The handle that open_cart returned")]
Item = Annotated[str, Field(min_length=1, max_length=100)]
Quantity = Annotated[int, Field(ge=1, le=1000)]

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    cart TEXT NOT NULL, item TEXT NOT NULL, quantity INTEGER NOT NULL, PRIMARY KEY (cart, item)
) WITHOUT ROWID
"""


@contextmanager
def database() -> Iterator[sqlite3.Connection]:
    """A connection for one call, in a worker thread: committed when the work is done, rolled back when it fails."""
    connection = sqlite3.connect(os.environ.get("CARTS_DB", "carts.sqlite3"), timeout=5)
    try:
        with connection:
            connection.execute(SCHEMA)
            yield connection
    finally:
        connection.close()


def create_server() -> McpServer:
    """Build the server; the handler calls this once for every request it serves."""
    server = McpServer("carts", version="1.0.0", instructions="Open a cart first and pass its handle to every tool.")

    @server.tool
    async def open_cart(ctx: Context) -> dict[str, str]:
        """Open an empty cart and return its handle, which is good for a day."""
        return {"cart": await ctx.issue_handle({"cart": secrets.token_hex(16)}, ttl=DAY)}

    @server.tool
    async def add_item(cart: Cart, item: Item, ctx: Context, quantity: Quantity = 1) -> str:
        """Put something into a cart."""
        key = await _cart_key(ctx, cart)
        await anyio.to_thread.run_sync(_put, key, item, quantity)
        return f"Added {quantity} x {item}."

    @server.tool
    async def show_cart(cart: Cart, ctx: Context) -> dict[str, int]:
        """Show what is in a cart, by item."""
        key = await _cart_key(ctx, cart)
        return await anyio.to_thread.run_sync(_contents, key)

    return server


def _put(key: str, item: str, quantity: int) -> None:
    with database() as connection:
        connection.execute(
            "INSERT INTO items VALUES (?, ?, ?) "
            "ON CONFLICT (cart, item) DO UPDATE SET quantity = quantity + excluded.quantity",
            (key, item, quantity),
        )


def _contents(key: str) -> dict[str, int]:
    with database() as connection:
        return dict(connection.execute("SELECT item, quantity FROM items WHERE cart = ? ORDER BY item", (key,)))


async def _cart_key(ctx: Context, handle: str) -> str:
    payload = await ctx.open_handle(handle)
    if "cart" not in payload:
        raise ToolError("This handle is not a cart's.")
    return str(payload["cart"])


app = create_mcp_handler(create_server)
