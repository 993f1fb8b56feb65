"""A pytest plugin with one rule: every test says in its docstring what it promises."""

from __future__ import annotations

import inspect
from collections.abc import Generator

import pytest

__all__ = ["pytest_pycollect_makeitem"]


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Generator[None, object, object]:
    """Turns a test function without a docstring into a collection error of its module."""
    collected = yield
    if collected and inspect.isroutine(obj) and not (inspect.getdoc(obj) or "").strip():
        raise collector.CollectError(f"{name} has no docstring: say in one sentence what the test promises")
    return collected
