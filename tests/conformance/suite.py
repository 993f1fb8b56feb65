"""Runs the official conformance suite against a URL and reads what it left behind, scenario by scenario."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import parts

__all__ = ["PACKAGE", "Run", "run_server_suite", "scored_server_scenarios"]

PACKAGE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
HERE = Path(__file__).parent
#: ``server-<scenario>-<time>`` is the folder that a scenario leaves.
FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
#: Every scenario adds this check, even when it reached nothing.
ALWAYS_THERE = "wire-schema-valid"


@dataclass(frozen=True)
class Run:
    """One run of the suite: how it ended, what it printed, and the checks of each scenario."""

    status: int
    text: str
    checks: dict[str, list[dict[str, Any]]]

    def unclean(self) -> dict[str, list[str]]:
        """The scenarios with a failure or a warning, and which checks those were."""
        found = {
            scenario: [
                f"{check['status']} {check['id']}: {check.get('errorMessage')}"
                for check in checks
                if check["status"] in ("FAILURE", "WARNING")
            ]
            for scenario, checks in self.checks.items()
        }
        return {scenario: lines for scenario, lines in found.items() if lines}

    def proven(self) -> set[str]:
        """The scenarios that left a real result: a success of their own, nothing failed, warned or skipped."""
        return {
            scenario
            for scenario, checks in self.checks.items()
            if all(check["status"] in ("SUCCESS", "INFO") for check in checks)
            and any(check["status"] == "SUCCESS" and check["id"] != ALWAYS_THERE for check in checks)
        }


def run_server_suite(url: str, revision: str, baseline: Path, out: Path) -> Run:
    """Runs the frozen set of a revision against a server.

    Args:
        url: The endpoint.
        revision: The protocol revision whose requirements to run.
        baseline: The file of expected failures; with an empty one a warning fails the run, too.
        out: A folder for the results.
    """
    done = _suite(
        ["server", "--url", url, "--requirements", revision, "--expected-failures", str(baseline), "-o", str(out)]
    )
    checks: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(out.glob("*/checks.json")):
        match = FOLDER.fullmatch(file.parent.name)
        assert match is not None, f"unknown result folder {file.parent.name}"
        checks[match["scenario"]] = json.loads(file.read_text(encoding="utf-8"))
    return Run(done.returncode, done.stdout + done.stderr, checks)


def scored_server_scenarios(revision: str) -> set[str]:
    """The server scenarios that the suite scores for a revision, by its own list."""
    text = _suite(["list", "--requirements", revision]).stdout
    section = text.split("Server scenarios", 1)[1].split("Client scenarios", 1)[0]
    return set(re.findall(r"^ {2}- (\S+)$", section, re.MULTILINE))


def _suite(args: list[str]) -> subprocess.CompletedProcess[str]:
    folder = parts.npm_install("conformance", [PACKAGE])
    program = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    # The hook keeps whatever the suite listens on off every interface but loopback.
    command = [parts.require_node(), "--import", (HERE / "loopback.mjs").as_uri(), program, *args]
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
        env=parts.node_environment(),
    )
