"""
The command ``twolane``.

It needs the extra ``serve``; everything that imports it is loaded only once the command runs.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command with the arguments of this process."""
    try:
        from twolane.cli.command import cli
    except ModuleNotFoundError as exc:
        if exc.name not in ("click", "uvicorn"):
            raise
        sys.stderr.write(
            f"Error: the command twolane needs {exc.name}, which is not installed. Install what it needs with: "
            "pip install 'twolane[serve]'\n"
        )
        sys.exit(2)
    cli(prog_name="twolane")
