"""
A tool that asks its user twice before it acts, without holding anything between the requests.

The tool returns ``input_required(...)`` and is called again with the answers. What the first round learned travels
to the second as sealed state: the client carries it and can neither read nor change it, so any worker can go on.

Run it with::

    twolane serve examples/elicitation.py:create_server
"""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

from twolane import (
    Context,
    InputRequired,
    McpServer,
    accepted_content,
    create_mcp_handler,
    elicit,
    input_required,
    input_response,
)

__all__ = ["app", "create_server"]

# Named once, here: a factory runs for each request, and building an annotation costs more than looking one up.
Restaurant = Annotated[str, Field(description="Where to book", min_length=1, max_length=80)]
Guests = Annotated[int, Field(ge=1, le=12, description="How many people come")]


class Party(BaseModel):
    """The first question: who comes, and when."""

    name: str = Field(min_length=1, title="Name", description="The name to book under")
    guests: Guests = 2
    seating: Literal["inside", "terrace"] = "inside"


class Confirmation(BaseModel):
    """The second question: book it, or not."""

    book: bool = Field(title="Book it", description="Make the booking now")


class Known(TypedDict):
    """What the first round leaves for the second."""

    name: str
    guests: int
    seating: str


def create_server() -> McpServer:
    """Build the server; the handler calls this once for every request it serves."""
    server = McpServer("booking", version="1.0.0", instructions="Ask before you book: the tool asks the user itself.")

    @server.tool(title="Book a table")
    async def book_table(restaurant: Restaurant, ctx: Context) -> str | InputRequired:
        """Book a table after asking for the party and then for a confirmation."""
        known: Known | None = ctx.request_state
        if known is None:
            party = accepted_content(ctx, "party", Party)
            if party is None:
                if input_response(ctx, "party").kind != "missing":
                    return "Nothing was booked."
                return input_required({"party": elicit(f"Who comes to {restaurant}?", Party)})
            known = Known(name=party.name, guests=party.guests, seating=party.seating)
            question = f"A table for {party.guests} ({party.seating}) at {restaurant}, under {party.name}?"
            return input_required({"confirm": elicit(question, Confirmation)}, state=known)
        confirmation = accepted_content(ctx, "confirm", Confirmation)
        if confirmation is None or not confirmation.book:
            return "Nothing was booked."
        return f"Booked: {known['name']}, {known['guests']} people, {known['seating']}, at {restaurant}."

    return server


app = create_mcp_handler(create_server)
