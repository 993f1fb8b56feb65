"""The rule that every test has a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.parts import ROOT

SENTENCE = '"""It promises something."""'


@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        (f"def test_a():\n    {SENTENCE}\n", 0, "1 passed"),
        ("def test_a():\n    pass\n", 2, "test_a has no docstring"),
        (f"class TestB:\n    def test_b(self):\n        {SENTENCE}\n", 0, "1 passed"),
        ("class TestB:\n    def test_b(self):\n        pass\n", 2, "test_b has no docstring"),
        (f"def helper():\n    pass\n\ndef test_a():\n    {SENTENCE}\n", 0, "1 passed"),
    ],
)
def test_every_test_needs_a_sentence(tmp_path: Path, source: str, status: int, words: str) -> None:
    """A test function or method without a docstring is an error of collection; a helper needs none."""
    module = tmp_path / "test_it.py"
    module.write_text(source, encoding="utf-8")
    alone = ("-q", "-p", "tests.support.sentences", "--rootdir", tmp_path, "-c", "/dev/null")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *alone, module],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == status, run.stdout + run.stderr
    assert words in run.stdout
