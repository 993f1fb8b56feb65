"""The official TypeScript clients and the inspector's command line against a served example."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.expected import PROMPTS, RESOURCES, TOOLS, common
from tests.support import parts

pytestmark = [pytest.mark.peers, pytest.mark.node]

RunClient = Callable[[list[str | Path]], dict[str, Any]]
HEARD = {"honored": {"toolsListChanged": True}, "event": "ToolsListChanged"}


@pytest.mark.parametrize(
    ("mode", "revision"), [("auto", "2026-07-28"), ("2026-07-28", "2026-07-28"), ("legacy", "2025-11-25")]
)
def test_client_2(mode: str, revision: str, everything: parts.Served, node_peers: Path, run_client: RunClient) -> None:
    """The official TypeScript client 2.4 lists, calls, mirrors headers, answers two rounds and hears of a change."""
    modern = revision == "2026-07-28"
    expected = {**common(modern=modern), "revision": revision, "server": "everything", "header": "region=Zürich 1"}
    expected["unknown_resource"] = -32602  # this client also translates the -32002 of the 2025 revisions
    if modern:
        expected |= {"input_required": "Ada likes teal.", "listen": HEARD}
    assert run_client([parts.require_node(), "ts_v2.mjs", node_peers, everything.url, mode]) == expected


def test_client_1(everything: parts.Served, node_peers: Path, run_client: RunClient) -> None:
    """The official TypeScript client 1.32 shakes hands, lists, calls and reads."""
    expected = {**common(modern=False), "revision": "2025-11-25", "server": "everything"}
    assert run_client([parts.require_node(), "ts_v1.mjs", node_peers, everything.url]) == expected


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_inspector(era: str, everything: parts.Served, node_peers: Path, tmp_path: Path) -> None:
    """The inspector's command line lists, calls with arguments, reads and shows a tool's error, in both eras."""
    program = node_peers / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    fixed = ("--cli", everything.url, "--transport", "http", "--protocol-era", era, "--format", "json", "--quiet")

    def inspect(*args: str, status: int = 0) -> dict[str, Any]:
        done = subprocess.run(
            [str(parts.require_node()), str(program), *fixed, *args],
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(tmp_path)},  # it keeps its settings in the home folder
        )
        assert done.returncode == status, f"{args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        result: dict[str, Any] = json.loads(done.stdout)["result"]
        return result

    assert [tool["name"] for tool in inspect("--method", "tools/list")["tools"]] == TOOLS
    added = inspect("--method", "tools/call", "--tool-name", "add_numbers", "--tool-args-json", '{"a": 5, "b": 3}')
    assert added["structuredContent"] == {"result": 8}
    failed = inspect("--method", "tools/call", "--tool-name", "test_error_handling", status=5)
    assert failed["isError"] is True
    assert [prompt["name"] for prompt in inspect("--method", "prompts/list")["prompts"]] == PROMPTS
    assert [one["uri"] for one in inspect("--method", "resources/list")["resources"]] == RESOURCES
    read = inspect("--method", "resources/read", "--uri", "test://static-text")
    assert read["contents"][0]["text"] == "This is the content of the static text resource."
