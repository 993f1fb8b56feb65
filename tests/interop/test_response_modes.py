"""Official clients under every response mode: always a stream, or never one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.expected import common
from tests.support import parts

pytestmark = [pytest.mark.peers, pytest.mark.node]

RunClient = Callable[[list[str | Path]], dict[str, Any]]


@pytest.fixture(scope="module", params=["sse", "json"])
def mode_and_server(request: pytest.FixtureRequest) -> Iterator[tuple[str, parts.Served]]:
    """The example with everything in it, in each of the modes that are not the default."""
    with parts.serve("examples/everything.py:create_server", "--response-mode", request.param) as served:
        yield request.param, served


@pytest.mark.parametrize("era", ["2026-07-28", "legacy"])
@pytest.mark.parametrize("client", ["python", "typescript"])
def test_clients_follow_the_response_mode(
    client: str,
    era: str,
    mode_and_server: tuple[str, parts.Served],
    node_peers: Path,
    run_client: RunClient,
) -> None:
    """Both official clients do all they can in either mode; JSON carries no progress, and listening still streams."""
    mode, served = mode_and_server
    if client == "python":
        found = run_client([sys.executable, "py_mcp2.py", served.url, era])
    else:
        found = run_client([parts.require_node(), "ts_v2.mjs", node_peers, served.url, era])
    expected = common(modern=era != "legacy")
    expected["progress"] = [0, 50, 100] if mode == "sse" else []
    if client == "typescript":
        expected["unknown_resource"] = -32602  # this client also translates the -32002 of the 2025 revisions
    assert {key: found[key] for key in expected} == expected
    if era != "legacy":
        assert found["input_required"] == "Ada likes teal."
        assert found["listen"]["event"] == "ToolsListChanged"
