"""The map from obligations to tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.obligations import check, main

LIST = """
[S-001]
title = "Everything arrives as a POST"
lane = "stateless"

[S-002]
title = "A duty of others"
lane = "auth"
stated = "not ours"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one obligation to pin and one that is stated."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "obligations.toml").write_text(LIST, encoding="utf-8")
    return tmp_path


def add_tests(root: Path, source: str) -> None:
    """Writes the one test module of the repository."""
    (root / "tests" / "test_it.py").write_text(source, encoding="utf-8")


MARK = '@pytest.mark.obligation("S-001")'


@pytest.mark.parametrize(
    ("source", "test"),
    [
        (f"{MARK}\ndef test_a(): ...\n", "test_it.py::test_a"),
        ('@pytest.mark.obligation("S-002", "S-001")\nasync def test_a(): ...\n', "test_it.py::test_a"),
        (f"{MARK}\nclass TestA: ...\n", "test_it.py::TestA"),
        (f"class TestA:\n    {MARK}\n    def test_a(self): ...\n", "test_it.py::TestA::test_a"),
        ('pytestmark = [pytest.mark.node, pytest.mark.obligation("S-001")]\n', "test_it.py"),
        ('CASES = [pytest.param(1, marks=pytest.mark.obligation("S-001"))]\n', "test_it.py"),
    ],
)
def test_markers_are_read_wherever_pytest_reads_them(root: Path, source: str, test: str) -> None:
    """Markers on functions, classes, modules and parameters pin their obligation."""
    add_tests(root, source)
    text, faults = check(root)
    assert faults == []
    assert f"| S-001 | Everything arrives as a POST | stateless | `{test}` |" in text


def test_a_stated_reason_is_shown(root: Path) -> None:
    """An obligation without a test shows its stated reason."""
    assert "| S-002 | A duty of others | auth | *not ours* |" in check(root)[0]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("", "S-001: neither a test nor a stated reason (Everything arrives as a POST)"),
        (
            '@pytest.mark.obligation("S-999")\ndef test_a(): ...\n',
            "tests/test_it.py::test_a: no obligation has the id 'S-999'",
        ),
        ("@pytest.mark.obligation(NAME)\ndef test_a(): ...\n", "tests/test_it.py:1: obligation ids are plain strings"),
        (
            "@pytest.mark.obligation()\ndef test_a(): ...\n",
            "tests/test_it.py:1: an obligation marker takes ids and nothing else",
        ),
        (
            f"{MARK}\ndef helper(): ...\n",
            "tests/test_it.py:1: helper pins nothing, since pytest does not collect it",
        ),
    ],
)
def test_gaps_and_wrong_markers_are_faults(root: Path, source: str, fault: str) -> None:
    """A gap, an unknown id and a marker that cannot count are each a fault with a sentence."""
    add_tests(root, source)
    assert fault in check(root)[1]


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('[S-003]\ntitle = "x"\nlane = "fast"\n', "S-003: lane is one of stateless, compat, sessionful, auth, all"),
        (f'[S-003]\ntitle = "{"word " * 13}"\nlane = "all"\n', "S-003: a title has 1 to 12 words"),
        ('[S-003]\ntitle = "x"\nlane = "all"\nwhy = "y"\n', "S-003: unknown keys why"),
    ],
)
def test_the_list_itself_is_checked(root: Path, entry: str, fault: str) -> None:
    """An entry of the list with an unknown lane, a long title or an unknown key is a fault."""
    (root / "tests" / "obligations.toml").write_text(LIST + entry, encoding="utf-8")
    assert fault in check(root)[1]


def test_an_outdated_page_fails_until_it_is_written(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The check fails while docs/obligations.md differs from the tests, and passes once it is written."""
    add_tests(root, 'pytestmark = pytest.mark.obligation("S-001")\n')
    assert main(["--check"], root) == 1
    assert "docs/obligations.md is outdated" in capsys.readouterr().err
    assert main(["--write"], root) == 0
    assert main(["--check"], root) == 0
    add_tests(root, 'pytestmark = pytest.mark.obligation("S-001", "S-002")\n')
    assert main(["--check"], root) == 1
