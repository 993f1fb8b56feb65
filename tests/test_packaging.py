"""The distribution: what is in it, and what installs beside it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.parts import ROOT, missing

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pip(*arguments: str | Path) -> None:
    """Runs pip, which may need the package index."""
    command = [sys.executable, "-m", "pip", *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    if run.returncode != 0 and "No matching distribution" in run.stderr and "Connection" in run.stderr:
        missing(f"the package index does not answer: {run.stderr[-500:]}")
    assert run.returncode == 0, run.stderr


def test_all_is_every_extra() -> None:
    """The extra ``all`` names every other extra."""
    extras = dict(PROJECT["optional-dependencies"])
    (everything,) = extras.pop("all")
    assert everything == f"twolane[{','.join(extras)}]"


@pytest.mark.peers
def test_all_resolves_beside_the_sdk(tmp_path: Path) -> None:
    """``twolane[all]`` resolves beside ``mcp==2.3.0``, ``orjson`` and ``uvicorn[standard]``."""
    report = tmp_path / "report.json"
    wanted = [".[all]", "mcp==2.3.0", "orjson", "uvicorn[standard]"]
    pip("install", "--dry-run", "--quiet", "--ignore-installed", "--report", report, *wanted)
    chosen = {
        entry["metadata"]["name"].lower(): entry["metadata"]["version"]
        for entry in json.loads(report.read_text(encoding="utf-8"))["install"]
    }
    assert chosen["mcp"] == "2.3.0"
    assert {"fastmcp", "redis", "psycopg", "click", "opentelemetry-api", "httpx2"} <= set(chosen)


@pytest.mark.peers
def test_the_wheel_is_typed_and_licensed(tmp_path: Path) -> None:
    """The wheel holds the package with its ``py.typed``, its licence and the command, and no tests."""
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ".")
    (wheel,) = tmp_path.glob("twolane-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        info = f"twolane-{PROJECT['version']}.dist-info"
        assert {"twolane/py.typed", "twolane/errors.py", f"{info}/licenses/LICENSE"} <= names
        assert {name.split("/")[0] for name in names} == {"twolane", info}
        assert b"twolane = twolane.cli:main" in archive.read(f"{info}/entry_points.txt")
