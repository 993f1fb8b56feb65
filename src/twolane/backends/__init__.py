"""One file a technology, each serving every port of :mod:`twolane.ports`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from twolane.ports import Backend

__all__ = ["open_backend"]

_PORTS = ("publish", "subscribe", "keys", "spend", "aclose")


def open_backend(backend: str | Backend | None = None) -> Backend:
    """
    Return the backend that *backend* names. Nothing is opened or connected yet.

    Args:
        backend: a URL, an object that serves the ports, or None for ``memory://``. Each URL makes a backend of its
            own; pass one object to several handlers to let them share it.

    Raises:
        TypeError: the object does not serve every port.
        ValueError: the URL is of no kind that is served, or has options that it does not know. The text holds no
            more of it than the scheme and the names of options: there may be a password in it.
    """
    if backend is None:
        backend = "memory://"
    if isinstance(backend, str):
        return _open_url(backend)
    missing = [name for name in _PORTS if not callable(getattr(backend, name, None))]
    if not isinstance(getattr(backend, "namespace", None), str):
        missing.append("namespace")
    if missing:
        raise TypeError(
            f"backend takes a URL or an object that serves twolane.ports.Backend; {type(backend).__name__} "
            f"lacks {', '.join(missing)}"
        )
    return backend


def _open_url(url: str) -> Backend:
    scheme, separator, _ = url.partition("://")
    if not separator or scheme != "memory":
        named = repr(f"{scheme}://") if separator else "a text without a scheme"
        raise ValueError(f"no backend for {named}; supported: memory:// (with ?namespace=NAME if wanted)")
    parts = urlsplit(url)
    if parts.netloc or parts.path:
        raise ValueError("memory:// takes no host and no path; it lives in this process")
    from twolane.backends.memory import MemoryBackend

    return MemoryBackend(**_options(parts.query, "memory://"))


def _options(query: str, scheme: str) -> dict[str, Any]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name != "namespace":
            raise ValueError(f"{scheme} has no option {name!r}; it takes namespace")
        if name in options:
            raise ValueError(f"the backend URL gives {name} twice")
        options[name] = value
    return options
