"""Both faces of one handler, each under uvicorn with httptools and with h11."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faces.server import Seen, make_factory
from tests.faces.serving import Client, fetch_face, running
from twolane import create_mcp_handler

_SEEN = Seen()


@pytest.fixture(scope="session", params=["asgi-httptools", "asgi-h11", "fetch-httptools", "fetch-h11"])
def served(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A running server; the parameter names the face and the HTTP implementation."""
    face, http = request.param.split("-")
    handler = create_mcp_handler(
        make_factory(_SEEN),
        on_error=_SEEN.on_error,
        on_request=_SEEN.on_request,
        max_body_size=64 * 1024,
        keep_alive=0.2,
    )
    app: Any = handler if face == "asgi" else fetch_face(handler)
    with running(app, http) as port:
        yield Client(port, handler)


@pytest.fixture
def client(served: Client) -> Client:
    """The running server, with a clean slate."""
    _SEEN.clear()
    return served


@pytest.fixture
def seen(client: Client) -> Seen:
    """What the server saw since the test began."""
    return _SEEN
