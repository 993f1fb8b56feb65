"""The command line, in this process where that is enough."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.processes import write_server
from twolane import cli as cli_package
from twolane.cli import command, serving
from twolane.keyring import KEYS_VARIABLE


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("twolane", "uvicorn")]
    before = [(logger.level, list(logger.handlers), logger.propagate) for logger in loggers]
    yield
    for logger, (level, handlers, propagate) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers
        logger.propagate = propagate


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Catches what would be served instead of serving it."""
    write_server(folder)
    seen: list[dict[str, Any]] = []

    def catch(handler: Any, settings: serving.Settings, sockets: list[socket.socket], ready: Any) -> None:
        seen.append({"handler": handler, "settings": settings, "port": sockets[0].getsockname()[1]})
        ready()
        for listener in sockets:
            listener.close()

    monkeypatch.setattr(command, "serve", catch)
    return seen


def run(*args: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command.cli, list(args), prog_name="twolane", catch_exceptions=False)


class TestOptions:
    """What reaches the handler and the server."""

    def test_nothing_is_passed_that_was_not_given(self, served: list[dict[str, Any]]) -> None:
        """Without options the handler keeps its own defaults, and one line on standard error has the URL."""
        result = run("serve", "probe_server.py", "--port", "0")
        assert result.exit_code == 0
        assert served[0]["settings"].options == {}
        port = served[0]["port"]
        assert result.stderr == f"twolane: serving probe_server.py at http://127.0.0.1:{port}/mcp (stop with Ctrl-C)\n"
        assert result.stdout == ""

    def test_every_option_has_its_place(self, served: list[dict[str, Any]]) -> None:
        """Each flag becomes the option of ``create_mcp_handler`` that it stands for."""
        result = run(
            *("serve", "probe_server.py", "--port", "0", "--route", "/x", "--legacy", "reject"),
            *("--allow-host", "a.example", "--allow-host", "b.example", "--allow-origin", "https://a.example"),
            *("--response-mode", "json", "--max-body-size", "1MiB", "--request-timeout", "2.5", "--keep-alive", "0"),
            *("--cors-origin", "https://a.example", "--shutdown-timeout", "3", "--root-path", "/api/"),
            *("--log-level", "warning", "--proxy-headers"),
        )
        assert result.exit_code == 0, result.output
        settings = served[0]["settings"]
        assert settings.options == {
            "route": "/x",
            "legacy": "reject",
            "allowed_hostnames": ["a.example", "b.example"],
            "allowed_origin_hostnames": ["https://a.example"],
            "response_mode": "json",
            "max_body_size": 2**20,
            "request_timeout": 2.5,
            "keep_alive": 0.0,
            "cors": {"allow_origins": ["https://a.example"]},
        }
        assert (settings.shutdown_timeout, settings.root_path, settings.log_level) == (3, "/api", "warning")
        assert settings.forwarded_allow_ips == "127.0.0.1,::1"
        assert "/x (stop" in result.stderr

    def test_proxies_are_believed_only_when_asked(self, served: list[dict[str, Any]]) -> None:
        """Forwarded headers count for nobody by default, and for the named proxies otherwise."""
        run("serve", "probe_server.py", "--port", "0")
        run("serve", "probe_server.py", "--port", "0", "--forwarded-allow-ips", "10.0.0.1")
        assert [one["settings"].forwarded_allow_ips for one in served] == [None, "10.0.0.1"]

    def test_cors_can_be_switched_off(self, served: list[dict[str, Any]]) -> None:
        """``--no-cors`` is ``cors=False``, and excludes naming origins."""
        assert run("serve", "probe_server.py", "--port", "0", "--no-cors").exit_code == 0
        assert served[0]["settings"].options == {"cors": False}
        result = run("serve", "probe_server.py", "--no-cors", "--cors-origin", "https://a.example")
        assert (result.exit_code, "exclude each other" in result.output) == (2, True)

    @pytest.mark.parametrize(
        ("text", "size"), [("4096", 4096), ("2k", 2048), ("3 MiB", 3 * 2**20), ("1GB", 2**30), ("7kb", 7168)]
    )
    def test_sizes_have_units(self, served: list[dict[str, Any]], text: str, size: int) -> None:
        """A size is bytes, or a number with a unit of 1024."""
        assert run("serve", "probe_server.py", "--port", "0", "--max-body-size", text).exit_code == 0
        assert served[0]["settings"].options == {"max_body_size": size}

    @pytest.mark.parametrize("text", ["", "-1", "4.5M", "four", "1TiB"])
    def test_wrong_sizes_are_explained(self, served: list[dict[str, Any]], text: str) -> None:
        """What is no size is refused with the form it should have."""
        result = run("serve", "probe_server.py", "--max-body-size", text)
        assert (result.exit_code, "KiB, MiB or GiB" in result.output) == (2, True)


class TestMistakes:
    """Each ends with exit code 2 and one paragraph, and nothing is served."""

    def test_a_wrong_target_is_one_paragraph(self, folder: Path) -> None:
        """The text of a wrong target is an error of the command, without a traceback."""
        result = run("serve", "missing.py")
        assert (result.exit_code, result.stderr) == (2, f"Error: There is no file missing.py in {folder}.\n")

    def test_a_value_that_the_handler_refuses_is_one_paragraph(self, folder: Path) -> None:
        """What the handler refuses, the command says in the handler's words."""
        write_server(folder)
        result = run("serve", "probe_server.py", "--request-timeout", "-1")
        assert result.exit_code == 2
        assert "request_timeout takes seconds above 0" in result.stderr

    def test_a_port_in_use_names_the_way_out(self, folder: Path) -> None:
        """A taken port is named, with the option that helps."""
        write_server(folder)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = run("serve", "probe_server.py", "--port", str(port))
        assert result.exit_code == 2
        assert f"Port {port} on 127.0.0.1 is in use" in result.stderr
        assert "--port 0" in result.stderr

    @pytest.mark.parametrize(
        ("host", "text"), [("no.such.host.invalid", "is unknown"), ("192.0.2.1", "is no address of this machine")]
    )
    def test_a_wrong_host_is_named(self, folder: Path, host: str, text: str) -> None:
        """A host that does not exist or is elsewhere is named."""
        write_server(folder)
        result = run("serve", "probe_server.py", "--host", host, "--port", "0")
        assert result.exit_code == 2
        assert text in result.stderr

    def test_windows_has_one_worker(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Several workers on Windows are refused instead of failing somewhere else."""
        write_server(folder)
        monkeypatch.setattr(sys, "platform", "win32")
        result = run("serve", "probe_server.py", "--workers", "2")
        assert (result.exit_code, "--workers 1" in result.stderr) == (2, True)

    @pytest.mark.parametrize("module", ["click", "uvicorn"])
    def test_a_missing_extra_is_named(
        self, module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Without the extra the command says what to install."""
        for name in [name for name in sys.modules if name.startswith("twolane.cli.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(SystemExit) as caught:
            cli_package.main()
        assert caught.value.code == 2
        assert "pip install 'twolane[serve]'" in capsys.readouterr().err

    def test_other_import_errors_are_not_hidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A module that is missing for another reason is not taken for a missing extra."""
        for name in [name for name in sys.modules if name.startswith("twolane.cli.")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "twolane.cli.serving", None)
        with pytest.raises(ModuleNotFoundError):
            cli_package.main()


class TestSockets:
    """Where is listened."""

    def test_a_name_listens_on_all_its_addresses(self) -> None:
        """``localhost`` listens on each of its addresses, on one port."""
        sockets = serving.bind("localhost", 0)
        ports = {listener.getsockname()[1] for listener in sockets}
        families = {info[0] for info in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
        for listener in sockets:
            listener.close()
        assert len(ports) == 1
        assert {listener.family for listener in sockets} <= families

    def test_addresses_are_written_as_urls(self) -> None:
        """An IPv6 address stands in brackets."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            assert serving.address_of("::1", [listener]) == f"http://[::1]:{port}"
            assert serving.address_of("localhost", [listener]) == f"http://localhost:{port}"


class TestWorkers:
    """What the parent of several workers prepares."""

    @pytest.fixture
    def supervised(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Catches the supervisor instead of starting workers."""
        write_server(folder)
        counts: list[int] = []

        class Caught:
            def __init__(self, settings: Any, sockets: list[socket.socket], count: int, ready: Any) -> None:
                counts.append(count)
                for listener in sockets:
                    listener.close()
                self._ready = ready

            def run(self) -> int:
                self._ready()
                return 0

        monkeypatch.setattr(command, "Supervisor", Caught)
        return counts

    def test_one_key_is_made_for_all(self, supervised: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        """Without configured keys the workers share one that is made for this run; each run has another."""
        keys = []
        for _ in range(2):
            monkeypatch.delenv(KEYS_VARIABLE, raising=False)
            result = run("serve", "probe_server.py", "--port", "0", "--workers", "3")
            assert "with 3 workers" in result.stderr
            assert "change notices stay within the worker" in result.stderr
            keys.append(os.environ[KEYS_VARIABLE])
        assert supervised == [3, 3]
        assert len(set(keys)) == 2
        assert {len(key) for key in keys} == {43}
        assert not any(key in result.output for key in keys)

    def test_configured_keys_stay(self, supervised: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        """Keys of the environment are the ones that the workers use."""
        monkeypatch.setenv(KEYS_VARIABLE, "ab" * 32)
        assert run("serve", "probe_server.py", "--port", "0", "--workers", "2").exit_code == 0
        assert os.environ[KEYS_VARIABLE] == "ab" * 32


def test_the_version_is_told() -> None:
    """``--version`` names the program and its version."""
    result = run("--version")
    assert result.exit_code == 0
    assert result.output.startswith("twolane 0.")
