"""The other examples do what they say, for the official client over real sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.support import parts

pytestmark = [pytest.mark.peers]

PARTY = {"name": "Ada", "guests": 4, "seating": "terrace"}


@pytest.fixture(scope="module")
def booking() -> Iterator[parts.Served]:
    """The elicitation example, with two workers: either has to open the state that the other sealed."""
    with parts.serve("examples/elicitation.py:create_server", "--workers", "2") as served:
        yield served


@pytest.fixture
def carts(tmp_path: Path) -> Iterator[parts.Served]:
    """The handles example with a database of its own."""
    with parts.serve("examples/handles.py:create_server", env={"CARTS_DB": str(tmp_path / "carts.sqlite3")}) as served:
        yield served


def text_of(result: types.CallToolResult) -> str:
    """The text of a result that is not an error."""
    block = result.content[0]
    assert not result.is_error
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([PARTY, {"book": True}], "Booked: Ada, 4 people, terrace, at Chez Panisse."),
        ([PARTY, {"book": False}], "Nothing was booked."),
        ([PARTY, None], "Nothing was booked."),
        ([None], "Nothing was booked."),
    ],
)
async def test_booking(answers: list[dict[str, Any] | None], outcome: str, booking: parts.Served) -> None:
    """The booking tool asks twice, keeps what it learned, and respects a refusal in either round."""
    asked: list[str] = []

    async def answer(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        content = answers[len(asked)]
        asked.append(params.message)
        return types.ElicitResult(action="decline") if content is None else accepted(content)

    def accepted(content: dict[str, Any]) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content=content)

    with anyio.fail_after(30):
        async with Client(booking.url, elicitation_callback=answer) as client:
            result = await client.call_tool("book_table", {"restaurant": "Chez Panisse"})
    assert text_of(result) == outcome
    assert (
        asked
        == [
            "Who comes to Chez Panisse?",
            "A table for 4 (terrace) at Chez Panisse, under Ada?",
        ][: len(answers)]
    )


async def test_cart(carts: parts.Served) -> None:
    """A cart is filled and shown across separate connections by its handle alone."""
    with anyio.fail_after(30):
        async with Client(carts.url) as client:
            cart = (await client.call_tool("open_cart")).structured_content["cart"]
            await client.call_tool("add_item", {"cart": cart, "item": "tea", "quantity": 2})
        async with Client(carts.url, mode="legacy") as client:
            await client.call_tool("add_item", {"cart": cart, "item": "tea"})
            await client.call_tool("add_item", {"cart": cart, "item": "bread"})
            shown = await client.call_tool("show_cart", {"cart": cart})
    assert json.loads(text_of(shown)) == {"bread": 1, "tea": 3}


async def test_an_altered_cart_handle_is_refused(carts: parts.Served) -> None:
    """A handle that was changed opens nothing and is the client's error."""
    with anyio.fail_after(30):
        async with Client(carts.url) as client:
            cart = (await client.call_tool("open_cart")).structured_content["cart"]
            altered = cart[:-2] + ("AA" if cart[-2:] != "AA" else "BB")
            with pytest.raises(MCPError) as caught:
                await client.call_tool("show_cart", {"cart": altered})
    assert caught.value.error.code == -32602
    assert caught.value.error.data == {"reason": "invalid_handle"}
