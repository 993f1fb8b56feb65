"""The limit on the size of files."""

from __future__ import annotations

from pathlib import Path

from scripts.check_sizes import too_long


def test_long_files_are_found(tmp_path: Path) -> None:
    """A Python file over the limit is named with its length, one at the limit and other files are not."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "deep" / "long.py").write_text("x = 1\n" * 5, encoding="utf-8")
    (tmp_path / "tests" / "longer.py").write_text("x = 1\n" * 6, encoding="utf-8")
    (tmp_path / "src" / "at_limit.py").write_text("x = 1\n" * 4, encoding="utf-8")
    (tmp_path / "src" / "long.txt").write_text("x\n" * 9, encoding="utf-8")
    assert too_long(tmp_path, limit=4) == [(Path("tests/longer.py"), 6), (Path("src/deep/long.py"), 5)]
