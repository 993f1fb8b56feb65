"""``python -m twolane`` is the command ``twolane``."""

from __future__ import annotations

from twolane.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
