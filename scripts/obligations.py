"""
The map of obligations: which test pins which rule of the specification.

``tests/obligations.toml`` lists the obligations, ``@pytest.mark.obligation("S-001")`` on a test, a test class or a
module's ``pytestmark`` says what the test pins. The markers are read from the syntax tree, so nothing is imported.

Usage: ``obligations.py --write`` writes ``docs/obligations.md``; ``obligations.py --check`` fails on a gap.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Obligation", "check", "collect", "load", "main", "render"]

LANES = ("stateless", "compat", "sessionful", "auth", "all")
MOST_WORDS = 12
FOOT = "Written by `make obligations` from `tests/obligations.toml` and the markers in `tests/`; do not edit by hand."


@dataclass
class Obligation:
    """One rule: where it holds, the tests that pin it, and the reason when none does."""

    id: str
    title: str
    lane: str
    stated: str | None = None
    tests: list[str] = field(default_factory=list)


def load(path: Path) -> tuple[dict[str, Obligation], list[str]]:
    """Reads the list of obligations.

    Args:
        path: The TOML file, one table an obligation.

    Returns:
        The obligations by id, and a sentence for each fault of the file.
    """
    found: dict[str, Obligation] = {}
    faults: list[str] = []
    for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        unknown = set(entry) - {"title", "lane", "stated"}
        title, lane = entry.get("title", ""), entry.get("lane", "")
        if unknown:
            faults.append(f"{name}: unknown keys {', '.join(sorted(unknown))}")
        if not title or len(title.split()) > MOST_WORDS:
            faults.append(f"{name}: a title has 1 to {MOST_WORDS} words")
        if lane not in LANES:
            faults.append(f"{name}: lane is one of {', '.join(LANES)}")
        found[name] = Obligation(name, title, lane, entry.get("stated"))
    return found, faults


def collect(root: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Reads the obligation markers of every test.

    Args:
        root: The repository; tests lie in its folder ``tests``.

    Returns:
        Pairs of id and test, and a sentence for each marker that cannot be read.
    """
    pairs: list[tuple[str, str]] = []
    faults: list[str] = []
    for path in sorted((root / "tests").rglob("*.py")):
        where = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=where)
        for test, call in _markers(tree, where):
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    pairs.append((argument.value, test))
                else:
                    faults.append(f"{where}:{call.lineno}: obligation ids are plain strings")
            name = test.rpartition("::")[2]
            if "::" in test and not name.lower().startswith("test"):
                faults.append(f"{where}:{call.lineno}: {name} pins nothing, since pytest does not collect it")
            if not call.args or call.keywords:
                faults.append(f"{where}:{call.lineno}: an obligation marker takes ids and nothing else")
    return pairs, faults


def _markers(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Call]]:
    """Finds marker calls below a node, each with the name of the test, class or module it stands on."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{where}::{child.name}"
            for decorator in child.decorator_list:
                yield from ((inner, call) for call in _calls(decorator))
            if isinstance(child, ast.ClassDef):
                yield from _markers(child, inner)
        elif isinstance(child, ast.Assign | ast.AnnAssign) and child.value is not None:
            # pytestmark, and lists of pytest.param(..., marks=...) that a decorator names
            yield from ((where, call) for call in _calls(child.value))


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Finds calls of ``pytest.mark.obligation`` in an expression, those in ``pytest.param(..., marks=)`` included."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and ast.unparse(inner.func) in ("pytest.mark.obligation", "mark.obligation"):
            yield inner


def render(obligations: dict[str, Obligation]) -> str:
    """Draws the table of all obligations as Markdown."""
    pinned = sum(1 for entry in obligations.values() if entry.tests)
    stated = sum(1 for entry in obligations.values() if entry.stated and not entry.tests)
    lines = [
        "# Obligations",
        "",
        "Every rule of the MCP specification that a server has to keep, and the tests that pin it. `S-` is the",
        "2026-07-28 server, `L-` the 2025-era and older server, `X-` security. What no test pins says why.",
        "",
        f"{len(obligations)} obligations: {pinned} pinned by tests, {stated} stated as not met or not ours.",
        "",
        "| id | obligation | lane | tests, or the stated refusal |",
        "| --- | --- | --- | --- |",
    ]
    for entry in obligations.values():
        parts = [f"`{test.removeprefix('tests/')}`" for test in sorted(set(entry.tests))]
        if entry.stated:
            parts.append(f"*{entry.stated}*")
        title = entry.title.replace("|", "\\|")
        lines.append(f"| {entry.id} | {title} | {entry.lane} | {'<br>'.join(parts) or '**gap**'} |")
    return "\n".join([*lines, "", FOOT, ""])


def check(root: Path) -> tuple[str, list[str]]:
    """Joins list and markers.

    Args:
        root: The repository.

    Returns:
        The text that ``docs/obligations.md`` should have, and a sentence for each fault.
    """
    obligations, faults = load(root / "tests" / "obligations.toml")
    pairs, unreadable = collect(root)
    faults += unreadable
    for name, test in pairs:
        if name in obligations:
            obligations[name].tests.append(test)
        else:
            faults.append(f"{test}: no obligation has the id {name!r}")
    faults += [
        f"{entry.id}: neither a test nor a stated reason ({entry.title})"
        for entry in obligations.values()
        if not entry.tests and not entry.stated
    ]
    return render(obligations), faults


def main(arguments: list[str] | None = None, root: Path | None = None) -> int:
    """Writes or checks the map and tells by the exit status whether it is whole."""
    parser = argparse.ArgumentParser(description="The map from obligations to tests.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write docs/obligations.md")
    action.add_argument("--check", action="store_true", help="fail on a gap or an outdated docs/obligations.md")
    options = parser.parse_args(arguments)
    root = root or Path(__file__).resolve().parent.parent
    page = root / "docs" / "obligations.md"
    text, faults = check(root)
    if options.write:
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
        print(f"Wrote {page.relative_to(root)}; {len(faults)} faults, which --check lists.")
        return 0
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        faults.append("docs/obligations.md is outdated: run `make obligations`")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"Obligations: {len(faults)} faults." if faults else "Every obligation has a test or a stated reason.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
