"""Which backend a URL names."""

from __future__ import annotations

from typing import Any

import pytest

from twolane.backends import open_backend
from twolane.backends.memory import MemoryBackend


def test_default_is_memory() -> None:
    """None and ``memory://`` make a memory backend, each call one of its own."""
    assert isinstance(open_backend(), MemoryBackend)
    assert isinstance(open_backend(None), MemoryBackend)
    assert open_backend("memory://") is not open_backend("memory://")
    assert open_backend("memory://").namespace == ""


def test_namespace() -> None:
    """``?namespace=`` names the namespace."""
    assert open_backend("memory://?namespace=shop%20a").namespace == "shop a"


def test_objects_pass() -> None:
    """An object that serves every port is used as it is."""
    backend = MemoryBackend()
    assert open_backend(backend) is backend


@pytest.mark.parametrize("url", ["mongodb://u:hunter2@host/x", "hunter2", "", "memory", "memory:/", "MEMORY://"])
def test_unknown_kinds(url: str) -> None:
    """An unknown scheme is refused with what is supported, and the rest of the URL is not repeated."""
    with pytest.raises(ValueError, match="supported: memory://") as caught:
        open_backend(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["memory://host", "memory:///path", "memory://?size=1", "memory://?namespace=a&namespace=b"]
)
def test_senseless_urls(url: str) -> None:
    """A memory URL with a host, a path, an unknown option or a doubled one is refused."""
    with pytest.raises(ValueError, match=r"memory://|twice"):
        open_backend(url)


@pytest.mark.parametrize("junk", [object(), 7, MemoryBackend, b"memory://"])
def test_junk_objects(junk: Any) -> None:
    """An object that lacks a port is a TypeError that names what is missing."""
    with pytest.raises(TypeError, match="lacks"):
        open_backend(junk)
