"""From TARGET to a handler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes import write_server
from twolane import StatelessMcpHandler
from twolane.cli.target import CliError, load_handler
from twolane.testing import McpTestClient

FLAGS = {"route": "--route", "legacy": "--legacy"}


def load(target: str, **options: object) -> StatelessMcpHandler:
    """Load *target* as the command does."""
    return load_handler(target, options, FLAGS)


def write(path: Path, *lines: str) -> None:
    """Write a file of *lines*, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


FACTORY = ("from twolane import McpServer", "def create_server():", "    return McpServer('x', version='1')")


class TestFound:
    """Targets that can be served."""

    @pytest.mark.parametrize(
        "target", ["probe_server.py", "probe_server.py:create_server", "probe_server", "probe_server:create_server"]
    )
    async def test_files_and_modules_are_found(self, folder: Path, target: str) -> None:
        """A file or a module of the working directory is served, with ``create_server`` as the default."""
        write_server(folder)
        async with McpTestClient(load(target)) as client:
            assert (await client.call_tool("hello", {"name": "Ada"})).text == "Hello, Ada!"

    def test_a_handler_is_served_as_it_is(self, folder: Path) -> None:
        """A target that is a handler already is the one that is served."""
        write_server(folder)
        handler = load("probe_server.py:app")
        assert isinstance(handler, StatelessMcpHandler)

    def test_files_in_other_folders_see_their_neighbours(self, folder: Path) -> None:
        """What lies beside the file can be imported from it, wherever the command runs."""
        write(folder / "site" / "beside.py", *FACTORY)
        write(folder / "site" / "main_server.py", "from beside import create_server")
        assert isinstance(load("site/main_server.py:create_server"), StatelessMcpHandler)

    def test_dotted_names_are_followed(self, folder: Path) -> None:
        """The attribute may be a method of a class or a member of something else."""
        write(folder / "dotted.py", "class Servers:", "    @staticmethod", *(f"    {line}" for line in FACTORY[1:]))
        assert isinstance(load("dotted.py:Servers.create_server"), StatelessMcpHandler)
        write(folder / "deep" / "inner.py", *FACTORY)
        assert isinstance(load("deep.inner:create_server"), StatelessMcpHandler)

    @pytest.mark.parametrize("name", ["json.py", "my-server.py", "pytest.py"])
    def test_the_name_of_a_file_may_be_taken(self, folder: Path, name: str) -> None:
        """A file named like another module, or like none at all, is served and hides nothing."""
        import json

        write(folder / name, *FACTORY)
        assert isinstance(load(name), StatelessMcpHandler)
        import json as still

        assert still is json

    def test_options_reach_the_handler(self, folder: Path) -> None:
        """What was given on the command line is what the handler is built with."""
        write_server(folder)
        with pytest.raises(CliError, match="route takes a path"):
            load("probe_server.py", route="mcp")


class TestMistakes:
    """Targets that cannot be served, each with its one paragraph."""

    @pytest.mark.parametrize("target", ["", ":", ":create_server", "hello.py:1x", "a.py:b c", "hello.py:"])
    def test_nonsense_is_explained(self, folder: Path, target: str) -> None:
        """A TARGET of the wrong form is answered with the right one."""
        with pytest.raises(CliError, match=r"TARGET is module:function or file\.py:function"):
            load(target)

    def test_a_missing_file_is_named(self, folder: Path) -> None:
        """A file that is not there is named, with the folder it was looked for in."""
        with pytest.raises(CliError, match=rf"There is no file hello\.py in {folder}"):
            load("hello.py:create_server")

    def test_a_missing_module_is_named(self, folder: Path) -> None:
        """A module that is not there is named."""
        with pytest.raises(CliError, match=r"There is no module nowhere_at_all in"):
            load("nowhere_at_all:create_server")
        write(folder / "deep" / "__init__.py")
        with pytest.raises(CliError, match=r"There is no module deep\.missing in"):
            load("deep.missing:create_server")

    def test_a_path_without_its_ending_gets_a_hint(self, folder: Path) -> None:
        """A path is no module name, and the file that was meant is proposed."""
        write(folder / "site" / "hello.py", *FACTORY)
        with pytest.raises(CliError, match=r"did you mean site/hello\.py\?"):
            load("site/hello:create_server")

    def test_a_broken_module_shows_its_own_lines(self, folder: Path) -> None:
        """An import that fails shows the user's lines, and none of this command or the import system."""
        write(folder / "inner.py", "def fail():", "    return 1 / 0", "fail()")
        write(folder / "broken.py", "import inner")
        for target in ("broken.py", "broken"):
            with pytest.raises(CliError) as caught:
                load(target)
            text = str(caught.value)
            assert text.startswith(f"{target} fails when it is imported:\n\nTraceback")
            assert "return 1 / 0" in text
            assert text.endswith("ZeroDivisionError: division by zero")
            assert "cli/target.py" not in text
            assert "importlib" not in text

    def test_a_missing_import_of_the_module_is_the_modules(self, folder: Path) -> None:
        """A module that imports something missing is not itself missing."""
        write(folder / "needs.py", "import not_installed_anywhere")
        for target in ("needs.py", "needs"):
            with pytest.raises(CliError, match=r"(?s)fails when it is imported.*No module named 'not_installed"):
                load(target)

    def test_a_syntax_error_shows_its_line(self, folder: Path) -> None:
        """A file that is no Python shows where."""
        write(folder / "typo.py", "def create_server(:", "    pass")
        with pytest.raises(CliError, match=r"(?s)typo\.py.*line 1.*SyntaxError"):
            load("typo.py")

    def test_a_script_that_ends_the_process_is_explained(self, folder: Path) -> None:
        """A module that exits on import gets the line that prevents it."""
        write(folder / "script.py", "raise SystemExit(3)")
        with pytest.raises(CliError, match="if __name__ == '__main__'"):
            load("script.py")

    def test_a_missing_attribute_lists_the_candidates(self, folder: Path) -> None:
        """An attribute that is not there is answered with what is."""
        write_server(folder)
        with pytest.raises(CliError, match=r"probe_server\.py has no make; it has create_server, app\."):
            load("probe_server.py:make")
        write(folder / "empty.py", "import os", "_hidden = 1")
        with pytest.raises(CliError, match=r"has no create_server and nothing else that could be served"):
            load("empty.py")

    def test_what_is_no_function_is_named(self, folder: Path) -> None:
        """A value that cannot be called is named by its type."""
        write(folder / "values.py", *FACTORY, "number = 7", "nothing = None")
        with pytest.raises(CliError, match=r"number in values\.py is a int, not a function.*it has create_server"):
            load("values.py:number")
        with pytest.raises(CliError, match=r"nothing in values\.py is None"):
            load("values.py:nothing")

    def test_a_constructed_server_gets_the_fix(self, folder: Path) -> None:
        """A server instead of its factory is answered with the way to write it."""
        write(folder / "made.py", *FACTORY, "server = create_server()")
        with pytest.raises(CliError, match=r"not a constructed McpServer.*create_mcp_handler\(create_server\)"):
            load("made.py:server")

    def test_a_factory_that_wants_too_much_is_named(self, folder: Path) -> None:
        """A function with more arguments than a factory has is refused when it is loaded."""
        write(folder / "wants.py", "def create_server(a, b): ...")
        with pytest.raises(CliError, match=r"create_server in wants\.py cannot be served:.*\(a, b\)"):
            load("wants.py")

    def test_options_cannot_change_a_handler(self, folder: Path) -> None:
        """Options for a handler that exists are refused by their flags instead of being ignored."""
        write_server(folder)
        with pytest.raises(CliError, match=r"app in probe_server\.py is a handler already, so --legacy, --route"):
            load("probe_server.py:app", route="/x", legacy="reject")
