"""The served example, the installed peers, and how a client script is run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import parts

__all__ = ["everything", "fastmcp_python", "mcp1", "node_peers", "run_client"]

CLIENTS = Path(__file__).with_name("clients")
TARGET = "examples/everything.py:create_server"
#: One folder for all npm peers: they share most of what they depend on.
NODE_PEERS = (
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/inspector@2.12.0",
)
#: The last of the 2025-06-18 clients and the last of the 2025-03-26 ones; the latter cannot use today's pydantic.
MCP1 = {"1.30.0": ("mcp==1.30.0",), "1.22.0": ("mcp==1.22.0",), "1.9.4": ("mcp==1.9.4", "pydantic<2.12")}
FASTMCP = ("fastmcp==4.2.3",)


@pytest.fixture(scope="module")
def everything() -> Iterator[parts.Served]:
    """``twolane serve`` of the example with everything in it."""
    with parts.serve(TARGET) as served:
        yield served


@pytest.fixture(scope="session")
def node_peers() -> Path:
    """The folder whose ``node_modules`` holds the official TypeScript clients and the inspector."""
    return parts.npm_install("interop", NODE_PEERS)


@pytest.fixture(scope="session", params=list(MCP1))
def mcp1(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """Each version of the official 1.x client in turn, and the Python of an environment that has it."""
    return request.param, parts.peer_env(f"mcp-{request.param}", MCP1[request.param])


@pytest.fixture(scope="session")
def fastmcp_python() -> Path:
    """The Python of an environment with fastmcp."""
    return parts.peer_env("fastmcp", FASTMCP)


@pytest.fixture(scope="session")
def run_client() -> Callable[[Sequence[str | Path]], dict[str, Any]]:
    """Runs a client script in bounded time and gives the JSON line it printed."""

    def run(command: Sequence[str | Path]) -> dict[str, Any]:
        program, script, *rest = map(str, command)
        done = subprocess.run(
            [program, str(CLIENTS / script), *rest],
            capture_output=True,
            text=True,
            timeout=75,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{script} {rest} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return printed

    return run
