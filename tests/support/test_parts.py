"""The helpers that install and start real parts."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests.support import parts


@pytest.mark.node
def test_node_is_the_pinned_one() -> None:
    """Node.js comes from the pinned wheel, whatever the system has."""
    run = subprocess.run([parts.require_node(), "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "v22.20.0"


@pytest.mark.node
def test_npm_is_beside_node() -> None:
    """npm lies beside node and runs in the environment made for it."""
    npm = parts.require_node().with_name("npm")
    run = subprocess.run([npm, "--version"], capture_output=True, timeout=60, check=True, env=parts.node_environment())
    assert run.stdout.strip()


def test_a_missing_part_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI a missing part is a failure."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"MISSING PART: .*no-such-program"):
        parts.require_apt("no-such-package", "no-such-program")


def test_a_missing_part_skips_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside CI a missing part skips the test and says how to get it."""
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install no-such-package"):
        parts.require_apt("no-such-package", "no-such-program")


def test_a_part_is_made_once(tmp_path: Path) -> None:
    """A part is made when it is first asked for and again only when its recipe changes."""
    made = []
    folder = tmp_path / "part"
    for recipe in (["a"], ["a"], ["b"]):
        parts._once(folder, recipe, lambda: made.append(folder.is_dir()))
    assert made == [True, True]


def test_a_part_that_failed_is_made_again(tmp_path: Path) -> None:
    """A part whose making was interrupted does not count as made."""

    def fail() -> None:
        raise OSError("interrupted")

    with pytest.raises(OSError, match="interrupted"):
        parts._once(tmp_path / "part", ["a"], fail)
    made = []
    parts._once(tmp_path / "part", ["a"], lambda: made.append(True))
    assert made == [True]


def test_free_port_can_be_bound() -> None:
    """A port said to be free can be listened on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", parts.free_port()))


def test_a_server_that_ends_says_why(tmp_path: Path) -> None:
    """When the served process ends by itself, the error has its exit status and its output."""
    with (
        pytest.raises(RuntimeError, match=r"twolane serve ended with [1-9]") as caught,
        parts.serve("no_such_file.py:create_server", cwd=tmp_path),
    ):
        pass
    assert len(str(caught.value).splitlines()) > 1


def test_a_server_accepts_and_stops() -> None:
    """A served example accepts connections inside the block and none after it."""
    with parts.serve("examples/hello.py:create_server") as served:
        socket.create_connection(("127.0.0.1", served.port), timeout=5).close()
    assert served.process.returncode is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", served.port), timeout=5)
