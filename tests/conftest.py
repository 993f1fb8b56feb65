"""What holds for every test: the event loop, and the rule that each test has a sentence."""

from __future__ import annotations

import pytest

from tests.support.sentences import pytest_pycollect_makeitem

__all__ = ["anyio_backend", "pytest_pycollect_makeitem"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Runs asynchronous tests on asyncio, the one event loop that twolane supports."""
    return "asyncio"
