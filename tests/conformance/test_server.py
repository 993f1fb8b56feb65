"""
The official conformance suite against ``twolane serve examples/everything.py:create_server`` as a real process.

The suite's own exit status is not enough: a server that reaches nothing passes some scenarios vacuously, and a
scenario that could not start leaves nothing at all. So every scored scenario has to have left a success of its own.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conformance.suite import Run, run_server_suite, scored_server_scenarios
from tests.support import parts

pytestmark = [pytest.mark.node]

HERE = Path(__file__).parent
TARGET = "examples/everything.py:create_server"
EMPTY = HERE / "empty.yml"
STATELESS = HERE / "stateless-2025-11-25.yml"
#: Run by the suite and not scored by it, but promised here.
UNSCORED_2026 = {"http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"}


def expected_failures(file: Path) -> set[str]:
    """The scenarios that a baseline file names."""
    return set(re.findall(r"^ {2}- (\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE))


def own_scenarios(run: Run) -> dict[str, list[str]]:
    """The unclean scenarios, without the tasks extension, which the server does not declare."""
    return {scenario: lines for scenario, lines in run.unclean().items() if not scenario.startswith("tasks-")}


def wait_for(port: int) -> None:
    """Returns as soon as something accepts connections."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, f"nothing accepts connections on port {port}"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def scored() -> dict[str, set[str]]:
    """What the suite scores, by revision; asking for it also installs the suite, outside of any test's time."""
    return {revision: scored_server_scenarios(revision) for revision in ("2026-07-28", "2025-11-25")}


def test_the_frozen_sets_are_the_known_ones(scored: dict[str, set[str]]) -> None:
    """The pinned suite scores 37 server scenarios of 2026-07-28 and 30 of 2025-11-25, so that none is lost unseen."""
    assert {revision: len(names) for revision, names in scored.items()} == {"2026-07-28": 37, "2025-11-25": 30}


@pytest.mark.parametrize("legacy", ["stateless", "reject"])
def test_2026_07_28_strictly(legacy: str, scored: dict[str, set[str]], tmp_path: Path) -> None:
    """All 37 scored scenarios of 2026-07-28 and three unscored ones pass without a warning, in both postures."""
    with parts.serve(TARGET, "--legacy", legacy) as served:
        run = run_server_suite(served.url, "2026-07-28", EMPTY, tmp_path)
        assert run.status == 0, run.text
    assert own_scenarios(run) == {}
    assert (scored["2026-07-28"] | UNSCORED_2026) - run.proven() == set()


@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_2026_07_28_under_plain_uvicorn(parser: str, scored: dict[str, set[str]], tmp_path: Path) -> None:
    """The module's own app passes as well where uvicorn runs it without our command, with either HTTP parser."""
    port = parts.free_port()
    command = [sys.executable, "-m", "uvicorn", "--app-dir", "examples", "everything:app", "--http", parser]
    with subprocess.Popen(
        [*command, "--port", str(port), "--log-level", "warning"], cwd=parts.ROOT, stdin=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(port)
            run = run_server_suite(f"http://127.0.0.1:{port}/mcp", "2026-07-28", EMPTY, tmp_path)
        finally:
            process.terminate()
            process.wait(10)
    assert run.status == 0, run.text
    assert own_scenarios(run) == {}
    assert (scored["2026-07-28"] | UNSCORED_2026) - run.proven() == set()


def test_2025_11_25_without_sessions(scored: dict[str, set[str]], tmp_path: Path) -> None:
    """Every scenario of 2025-11-25 passes but those that the baseline names, each of which needs a session."""
    with parts.serve(TARGET) as served:
        run = run_server_suite(served.url, "2025-11-25", STATELESS, tmp_path)
        assert run.status == 0, run.text
    named = expected_failures(STATELESS)
    assert set(own_scenarios(run)) == named, own_scenarios(run)
    assert scored["2025-11-25"] - run.proven() == named & scored["2025-11-25"]


def test_several_workers(scored: dict[str, set[str]], tmp_path: Path) -> None:
    """With two workers the rounds of 2026-07-28 still pass, since any worker opens the state that another sealed."""
    with parts.serve(TARGET, "--workers", "2") as served:
        run = run_server_suite(served.url, "2026-07-28", EMPTY, tmp_path)
    # Change notices stay within one worker here, and what hears of them is judged by the other tests.
    rounds = {scenario for scenario in scored["2026-07-28"] if scenario.startswith("input-required-")}
    assert rounds - run.proven() == set(), own_scenarios(run)
