"""The documentation says what the code does: options, defaults, refusals, names, links and examples."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import twolane
from twolane import ErrorContext, McpServer, RequestRecord, create_mcp_handler
from twolane.asgi import DEFAULT_MAX_BODY_SIZE
from twolane.cli.command import serve_command
from twolane.options import HandlerOptions
from twolane.protocol import cors
from twolane.server.prompts import PromptOptions
from twolane.server.resources import ResourceOptions
from twolane.server.tools import ToolOptions
from twolane.testing import Answer, McpTestClient

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "twolane"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: Frameworks that examples show and the test environment leaves out: such a block is compiled and not run.
FOREIGN = ("django", "fastapi")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """Return the part of *text* under the heading *title*, up to the next heading of its level."""
    level, _, _ = title.partition(" ")
    found = re.search(rf"^{re.escape(title)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.M | re.S)
    assert found is not None, f"there is no section {title!r}"
    return found[1]


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of every table row in *text*, by each name that stands as code in its first cell."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = cells
    return found


def syntax_trees() -> Iterator[ast.Module]:
    for path in SOURCE.rglob("*.py"):
        yield ast.parse(path.read_text(encoding="utf-8"))


def defaults() -> dict[str, Any]:
    """Return the default of each handler option, read where the options are resolved."""
    found: dict[str, Any] = {}
    for name in ("asgi.py", "options.py"):
        for node in ast.walk(ast.parse((SOURCE / name).read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="options"), attr="get"),
                    args=[ast.Constant(value=str(option)), *rest],
                ):
                    value: Any = None
                    if rest:
                        is_named = isinstance(rest[0], ast.Name)
                        value = DEFAULT_MAX_BODY_SIZE if is_named else ast.literal_eval(rest[0])
                    assert found.setdefault(option, value) == value, f"{option} has two defaults"
    return found


# -- names, options and defaults ---------------------------------------------------------------------------------------


def test_every_handler_option_is_listed_with_its_default() -> None:
    """docs/handler.md has a row for each option of create_mcp_handler and for nothing else, with the code's default."""
    listed = rows(section(page("handler.md"), "## Options").partition("### CORS")[0])
    options = HandlerOptions.__annotations__
    table = {name: cells[1] for name, cells in listed.items()}
    assert set(table) == set(options)
    known = defaults()
    assert set(known) == set(options)
    for name, cell in table.items():
        written = '"' in cell and ast.literal_eval(cell.strip("`"))
        assert (written or cell.strip("`")) == (known[name] if written else repr(known[name])), name


def test_every_cors_key_is_listed() -> None:
    """docs/handler.md names each key of the cors option and everything in its default."""
    listed = rows(section(page("handler.md"), "### CORS"))
    assert set(listed) == set(cors._DEFAULTS)
    for key, value in cors._DEFAULTS.items():
        for item in value if isinstance(value, tuple) else (value,):
            assert str(item) in listed[key][1], key


def test_every_serve_option_is_listed_with_its_default() -> None:
    """docs/deploying.md has a row for each option of ``twolane serve`` and for nothing else, with its default."""
    listed = rows(section(page("deploying.md"), "## twolane serve"))
    expected = {}
    for parameter in serve_command.params:
        if isinstance(parameter, click.Option) and parameter.name != "help":
            said = re.search(r"\[default: ([^]]+)\]", parameter.help or "")
            shown = said[1] if said else str(parameter.default) if parameter.show_default else "none"
            expected[parameter.opts[0]] = "off" if parameter.is_flag else shown
            assert parameter.help or said
    assert {flag: cells[1].strip("`") for flag, cells in listed.items()} == expected


def test_every_server_option_is_listed_with_its_default() -> None:
    """docs/server.md has a row for each argument of McpServer with its default."""
    listed = rows(section(page("server.md"), "## What a server says of itself"))
    parameters = list(inspect.signature(McpServer).parameters.values())[1:]
    expected = {p.name: "required" if p.default is p.empty else f"`{p.default!r}`" for p in parameters}
    assert {name: cells[1] for name, cells in listed.items()} == expected


@pytest.mark.parametrize(
    ("title", "options"),
    [("## Tools", ToolOptions), ("## Prompts", PromptOptions), ("## Resources and templates", ResourceOptions)],
)
def test_every_registration_option_is_listed(title: str, options: Any) -> None:
    """docs/server.md lists what a tool, a prompt and a resource may be registered with."""
    listed = rows(section(page("server.md"), title))
    assert set(options.__annotations__) - set(listed) == set()


def test_every_argument_of_the_test_client_is_listed() -> None:
    """docs/testing.md lists the arguments of McpTestClient and the members of an answer."""
    text = page("testing.md")
    assert set(rows(section(text, "## McpTestClient"))) >= set(inspect.signature(McpTestClient).parameters)
    members = [name for name in dir(Answer) if not name.startswith("_")]
    assert [name for name in members if f"`{name}`" not in text] == []


def test_every_public_name_is_on_some_page() -> None:
    """Each name in ``twolane.__all__`` is written about."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    names = [name for name in twolane.__all__ if name != "__version__"]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_every_reason_is_listed() -> None:
    """docs/handler.md lists each ``data.reason`` that the code can send, and no other."""
    sent: set[str] = set()
    for tree in syntax_trees():
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id="refuse"), args=[_, ast.Constant(value=str(reason)), *_]):
                    sent.add(reason)
                case ast.Call(func=ast.Name(id="_invalid"), args=[ast.Constant(value=str(reason)), _]):
                    sent.add(reason)
                case ast.Dict(keys=keys, values=values):
                    for key, value in zip(keys, values, strict=True):
                        match key, value:
                            case ast.Constant(value="reason"), ast.Constant(value=str(reason)) if " " not in reason:
                                sent.add(reason)
    table = [line for line in section(page("handler.md"), "## Refusals").splitlines() if line.startswith("| ")]
    listed = {name for line in table for name in re.findall(r"`([a-z_]+)`", line.split("|")[3])}
    assert len(sent) > 20
    assert listed == sent


def test_every_logger_is_listed() -> None:
    """docs/observing.md lists each logger by its name, and no other."""
    named = {
        node.args[0].value
        for tree in syntax_trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "getLogger"
        and isinstance(node.args[0], ast.Constant)
    }
    assert set(rows(section(page("observing.md"), "## Loggers"))) == named


@pytest.mark.parametrize("kind", [RequestRecord, ErrorContext])
def test_every_field_of_a_record_is_listed(kind: Any) -> None:
    """docs/observing.md names the fields of what the callbacks receive."""
    text = section(page("observing.md"), "## on_request" if kind is RequestRecord else "## on_error")
    assert [field.name for field in fields(kind) if f"`{field.name}`" not in text] == []


# -- links -------------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name if path.parent == ROOT else f"docs/{path.name}")
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link resolves, its anchor included, and every test that is named exists."""
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            found = (path.parent / file).resolve() if file else path
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), target
    for name in re.findall(r"`(tests/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_the_index_leads_to_every_page() -> None:
    """docs/README.md links to each page beside it."""
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", page("README.md")))
    assert linked == {path.name for path in PAGES if path.parent.name == "docs"} - {"README.md"}


# -- examples ----------------------------------------------------------------------------------------------------------


def blocks() -> Iterator[Any]:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
            line = text.count("\n", 0, found.start()) + 1
            yield pytest.param(found[1], id=f"{path.relative_to(ROOT)}:{line}")


@pytest.mark.parametrize("code", [*blocks()])
async def test_examples_work(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example compiles and runs, its factory builds a server that answers, and the tests it shows pass."""
    compiled = compile(code, "example", "exec")
    if re.search(rf"^(?:from|import) (?:{'|'.join(FOREIGN)})\b", code, re.M):
        return
    # A module of its own: type hints are looked up through here.
    module = ModuleType("documentation_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.delitem(sys.modules, "hello", raising=False)
    exec(compiled, module.__dict__)
    monkeypatch.delitem(sys.modules, "hello", raising=False)
    if factory := getattr(module, "create_server", None):
        async with McpTestClient(create_mcp_handler(factory)) as client:
            offered = (await client.discover()).result["capabilities"]
            for kind in {"tools", "prompts", "resources"} & set(offered):
                assert (await client.request(f"{kind}/list")).result[kind] is not None
    for name, value in vars(module).items():
        if name.startswith("test_"):
            await value()
