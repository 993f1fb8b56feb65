"""Fails when a Python file is longer than 400 lines: a long file has more than one reason to change."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["main", "too_long"]

LIMIT = 400
FOLDERS = ("src", "tests", "examples", "scripts", "benchmarks")


def too_long(root: Path, limit: int = LIMIT) -> list[tuple[Path, int]]:
    """Finds the files over the limit.

    Args:
        root: The repository.
        limit: The most lines that a file may have.

    Returns:
        Each file with its number of lines, longest first.
    """
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*.py"):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if lines > limit:
                found.append((path.relative_to(root), lines))
    return sorted(found, key=lambda entry: -entry[1])


def main() -> int:
    """Prints the files over the limit and tells by the exit status whether there are any."""
    found = too_long(Path(__file__).resolve().parent.parent)
    for path, lines in found:
        print(f"{path}: {lines} lines, {LIMIT} at most", file=sys.stderr)
    if not found:
        print(f"No Python file is over {LIMIT} lines.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
