"""The public names of the package: complete, lazy, and loaded from where they live."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import twolane

HEAVY = ("mcp", "mcp_types", "fastmcp", "redis", "psycopg", "uvicorn", "click", "jsonschema", "starlette.requests")


def test_every_public_name_can_be_had() -> None:
    """Each name of __all__ resolves, dir() shows it, and the typed imports name the same set."""
    assert sorted(twolane.__all__) == list(twolane.__all__)
    for name in twolane.__all__:
        assert getattr(twolane, name) is not None
    assert set(dir(twolane)) == set(twolane.__all__)
    tree = ast.parse(Path(twolane.__file__).read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {alias.name for node in blocks[0].body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == set(twolane.__all__) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as it would on any module."""
    with pytest.raises(AttributeError, match="create_mcp_handlr"):
        _ = twolane.create_mcp_handlr  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", ["import twolane", "from twolane import McpServer, create_mcp_handler"])
def test_nothing_heavy_is_imported(code: str) -> None:
    """Importing the package, and the handler and server with it, loads no SDK, driver, server or command."""
    program = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""
