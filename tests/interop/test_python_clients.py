"""The official Python clients, old and new, and fastmcp's client against a served example."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.expected import common
from tests.support import parts

pytestmark = [pytest.mark.peers]

RunClient = Callable[[list[str | Path]], dict[str, Any]]
HEARD = {"honored": {"toolsListChanged": True}, "event": "ToolsListChanged"}


@pytest.mark.parametrize(
    ("mode", "revision", "server"),
    [("auto", "2026-07-28", "everything"), ("2026-07-28", "2026-07-28", None), ("legacy", "2025-11-25", "everything")],
)
def test_mcp_2(mode: str, revision: str, server: str | None, everything: parts.Served, run_client: RunClient) -> None:
    """The official Python client 2.3 lists, calls, mirrors headers, answers two rounds and hears of a change."""
    modern = revision == "2026-07-28"
    expected = {**common(modern=modern), "revision": revision, "server": server, "header": "region=Zürich 1"}
    if modern:
        expected |= {"input_required": "Ada likes teal.", "listen": HEARD}
    assert run_client([sys.executable, "py_mcp2.py", everything.url, mode]) == expected


def test_mcp_1(mcp1: tuple[str, Path], everything: parts.Served, run_client: RunClient) -> None:
    """An official Python client 1.x, each with the revision of its time, lists, calls and reads."""
    version, python = mcp1
    revision = {"1.30.0": "2025-11-25", "1.22.0": "2025-06-18", "1.9.4": "2025-03-26"}[version]
    expected = common(modern=False, structured=revision != "2025-03-26")
    expected |= {"client": version, "revision": revision, "server": "everything"}
    assert run_client([python, "py_mcp1.py", everything.url]) == expected


def test_fastmcp(everything: parts.Served, fastmcp_python: Path, run_client: RunClient) -> None:
    """fastmcp's own client lists, calls, reads, follows progress and sees both kinds of errors."""
    expected = common(modern=True)
    found = run_client([fastmcp_python, "py_fastmcp.py", everything.url])
    assert found == {"client": "4.2.3", "revision": "2026-07-28", **expected}
