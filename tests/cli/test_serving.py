"""``twolane serve`` as a real process."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.processes import call, children, post, running, serving, write_server


def status_of(port: int, method: str, path: str) -> int:
    """Ask for any path and return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()


def is_working(process: psutil.Process) -> bool:
    """Tell whether *process* has not ended yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_server_answers_on_every_path(tmp_path: Path) -> None:
    """Once the line with the URL is there, every path has an answer: the endpoint serves, all others are 404."""
    write_server(tmp_path)
    with serving(tmp_path, "probe_server.py") as served:
        assert call(served.port, "hello", {"name": "Ada"}) == "Hello, Ada!"
        assert call(served.port, "hello", path="/mcp/") == "Hello, World!"
        assert status_of(served.port, "GET", "/") == 404
        assert status_of(served.port, "GET", "/anything/else") == 404
        assert status_of(served.port, "GET", "/mcp") == 405
        assert served.output().count("\n") == 1


def test_standard_output_stays_free(tmp_path: Path) -> None:
    """Everything goes to standard error, and the exit code after a signal is 0."""
    write_server(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "twolane", "serve", "probe_server.py:app", "--port", "0", "--log-level", "debug"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        while "serving" not in (line := process.stderr.readline()):
            assert line, "the process ended before it served"
        port = int(line.split(":")[-1].split("/")[0])
        assert call(port, "hello") == "Hello, World!"
        process.terminate()
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")
    assert "stateless tools/call hello from - -> 200" in err


def test_the_command_is_installed(tmp_path: Path) -> None:
    """The console script is there and tells its version."""
    script = Path(sys.executable).with_name("twolane")
    done = subprocess.run([script, "--version"], check=True, capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert done.stdout.startswith("twolane 0.")


def test_mistakes_of_a_real_run_have_no_traceback(tmp_path: Path) -> None:
    """A wrong target ends the process with exit code 2 and a line on standard error."""
    command = [sys.executable, "-m", "twolane", "serve", "nothing.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: There is no file nothing.py in {tmp_path}.\n"


def test_a_proxy_prefix_is_taken_off(tmp_path: Path) -> None:
    """Behind a proxy that cuts off a prefix the endpoint is found under its own path."""
    write_server(tmp_path)
    with serving(tmp_path, "probe_server.py", "--root-path", "/api") as served:
        assert call(served.port, "hello") == "Hello, World!"


def test_ipv6_is_served(tmp_path: Path) -> None:
    """An IPv6 address can be listened on, and its URL can be pasted."""
    if not socket.has_ipv6:
        pytest.skip("MISSING PART: this Python has no IPv6")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as exc:
        pytest.skip(f"MISSING PART: this machine has no IPv6 loopback: {exc}")
    write_server(tmp_path)
    with serving(tmp_path, "probe_server.py", "--host", "::1") as served:
        assert f"http://[::1]:{served.port}/mcp" in served.output()


class TestWorkers:
    """Several processes on one port."""

    def test_every_worker_opens_what_another_sealed(self, tmp_path: Path) -> None:
        """Without any configuration, a handle of one worker opens in the others."""
        write_server(tmp_path)
        with serving(tmp_path, "probe_server.py", "--workers", "2") as served:
            handle = call(served.port, "issue")
            workers = children(served.process.pid)
            assert len(workers) == 2
            for asleep in workers:
                # With one worker stopped, the other one gets the connection.
                os.kill(asleep, signal.SIGSTOP)
                maker, opener = call(served.port, "open_handle", {"handle": handle})
                os.kill(asleep, signal.SIGCONT)
                assert maker in workers
                assert {opener} == workers - {asleep}

    def test_a_killed_worker_is_replaced(self, tmp_path: Path) -> None:
        """A worker that dies is followed by another one, and the others serve on."""
        write_server(tmp_path)
        with serving(tmp_path, "probe_server.py", "--workers", "2") as served:
            victim, other = children(served.process.pid)
            os.kill(victim, signal.SIGKILL)
            served.until(rf"worker {victim} was killed by signal 9; starting another one")
            for _ in range(20):
                assert call(served.port, "hello") == "Hello, World!"
            assert other in children(served.process.pid)
            assert served.stop() == 0
            assert "Traceback" not in served.output()

    def test_workers_do_not_outlive_their_parent(self, tmp_path: Path) -> None:
        """A parent that is killed leaves no worker behind on its port."""
        write_server(tmp_path)
        with serving(tmp_path, "probe_server.py", "--workers", "2") as served:
            workers = [psutil.Process(pid) for pid in children(served.process.pid)]
            served.stop(signal.SIGKILL)
            deadline = time.monotonic() + 5
            while any(is_working(worker) for worker in workers):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with pytest.raises(ConnectionRefusedError):
                call(served.port, "hello")

    def test_a_worker_that_cannot_start_ends_the_command(self, tmp_path: Path) -> None:
        """A target that fails in the workers alone ends everything, instead of starting them for ever."""
        path = write_server(tmp_path)
        guard = "import multiprocessing\nassert multiprocessing.parent_process() is None, 'not in a worker'\n"
        path.write_text(guard + path.read_text(encoding="utf-8"), encoding="utf-8")
        with running(["twolane", "serve", "probe_server.py", "--port", "0", "--workers", "2"], tmp_path) as served:
            assert served.wait(20) == 1
            assert "AssertionError: not in a worker" in served.output()
            assert "before it could serve; stopping" in served.output()

    def test_discovery_is_the_same_in_all_workers(self, tmp_path: Path) -> None:
        """Each worker imports the target anew and serves the same."""
        write_server(tmp_path)
        with serving(tmp_path, "probe_server:create_server", "--workers", "2") as served:
            answers = [post(served.port, "server/discover", {})["result"]["capabilities"] for _ in range(10)]
            assert all(answer == answers[0] for answer in answers)
