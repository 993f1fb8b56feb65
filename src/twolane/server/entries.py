"""What every registered handler has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twolane.server.signature import Compiled

__all__ = ["Registered", "check_options", "described"]


class Registered:
    """
    The handle of something registered on a server.

    Changes count from the next request that this server answers. They are not announced: with a server per request
    nobody listens to this one, so say ``await ctx.notify.tools_changed()`` (or its siblings) yourself.

    Attributes:
        name: its name.
        handler: the function behind it.
        enabled: whether clients can see and use it.
    """

    __slots__ = ("_options", "_siblings", "compiled", "enabled", "handler", "name")
    _kind = "entry"

    name: str
    handler: Callable[..., Any]
    compiled: Compiled
    enabled: bool
    _siblings: dict[str, Any]
    _options: Mapping[str, Any] | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._key()!r}{'' if self.enabled else ' (disabled)'}>"

    @property
    def title(self) -> str | None:
        """Its name for people."""
        title: str | None = (self._options or {}).get("title")
        return title

    @property
    def description(self) -> str | None:
        """What it is for: as registered, else the handler's docstring."""
        description: str | None = (self._options or {}).get("description")
        return self.compiled.description if description is None else description

    def enable(self) -> None:
        """Show it to clients again."""
        self.enabled = True

    def disable(self) -> None:
        """Hide it: it is left out of lists and answers as if it did not exist."""
        self.enabled = False

    def remove(self) -> None:
        """Take it off the server; its name is free again. Removing twice does nothing."""
        if self._siblings.get(self._key()) is self:
            del self._siblings[self._key()]

    def _key(self) -> str:
        return self.name

    def _apply(
        self, key: str, handler: Callable[..., Any], compiled: Compiled, options: Mapping[str, Any], enabled: bool
    ) -> None:
        """Take over checked values, under *key*; the place in the list is kept."""
        siblings = self._siblings
        old = self._key()
        if key != old:
            if key in siblings:
                raise ValueError(f"{self._kind} {key!r} is already registered; give one of the two another name")
            if siblings.get(old) is self:
                entries = [(key if entry is self else name, entry) for name, entry in siblings.items()]
                siblings.clear()
                siblings.update(entries)
            self._rename(key)
        self.handler = handler
        self.compiled = compiled
        self._options = options or None
        self.enabled = bool(enabled)

    def _rename(self, key: str) -> None:
        self.name = key


def check_options(entry: Registered, changes: Mapping[str, Any], options: Set[str], others: Set[str]) -> dict[str, Any]:
    """
    Return the options of *entry* after *changes*; those that were taken back with None are gone.

    Raises:
        TypeError: a change that is neither one of *options* nor of *others*.
    """
    for key in changes:
        if key not in options and key not in others:
            raise TypeError(f"update() has no option {key!r}; use {', '.join(sorted(options | others))}")
    merged = {**(entry._options or {}), **changes}
    return {key: value for key, value in merged.items() if key in options and value is not None}


def described(descriptor: dict[str, Any], entry: Registered) -> dict[str, Any]:
    """Add ``title`` and ``description`` of *entry* to *descriptor*."""
    title = entry.title
    if title is not None:
        descriptor["title"] = title
    description = entry.description
    if description:
        descriptor["description"] = description
    return descriptor
