"""The server a factory returns: a registry, and the face that lanes serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twolane.protocol.message import EncodeError, encode
from twolane.server.caching import NO_CACHE, CacheHint, check_hints
from twolane.server.dispatch import dispatch
from twolane.server.metadata import check_icons, check_text, icons_wire
from twolane.server.methods import check_extension
from twolane.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from twolane.protocol.headers import HeaderParam
    from twolane.protocol.inputs import InputRequired
    from twolane.protocol.revisions import Era
    from twolane.server.context import Call

__all__ = ["McpServer"]


class McpServer(Registry):
    """
    An MCP server: its tools, prompts, resources and methods, and what it says about itself.

    A factory builds one for each request, so it opens nothing and costs microseconds.

    Args:
        name: the server's name, for programs.
        version: the server's version.
        title: its name for people.
        description: what it is for.
        website_url: where to read more.
        icons: ``mcp_types.Icon`` or dicts; ``https:`` and ``data:`` URIs only (S-110).
        instructions: how to use the server, for the client's model.
        logging: whether handlers may send log messages with ``ctx.log`` (deprecated by the specification).
        completions: declare completion even before any argument has a completer.
        extensions: settings of each extension of the server by its identifier, ``{}`` for none; off without it.
        experimental: non-standard capabilities, sent as they are.
        page_size: entries on a page of a list; the handler's ``page_size`` by default.
        cache_hints: a :class:`~twolane.server.caching.CacheHint` by method, ``"*"`` for all others.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a value is refused; the text says which are not.
    """

    __slots__ = (
        "_completions",
        "_description",
        "_experimental",
        "_hints",
        "_icons",
        "_instructions",
        "_logging",
        "_title",
        "_website_url",
        "name",
        "page_size",
        "version",
    )

    def __init__(
        self,
        name: str,
        *,
        version: str,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Any] = (),
        instructions: str | None = None,
        logging: bool = True,
        completions: bool = False,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
        experimental: Mapping[str, Mapping[str, Any]] | None = None,
        page_size: int | None = None,
        cache_hints: Mapping[str, CacheHint] | None = None,
    ) -> None:
        super().__init__()
        if not name or type(name) is not str:
            raise ValueError(f'McpServer needs a name, as in McpServer("weather", version="1.0.0"), not {name!r}')
        if not version or type(version) is not str:
            raise ValueError(f"version must be a non-empty string, not {version!r}")
        self.name = name
        self.version = version
        self._title = title
        self._description = description
        self._website_url = website_url
        self._instructions = instructions
        self._icons = icons
        self._logging = logging
        self._completions = completions
        self._experimental = experimental
        self.page_size = page_size
        self._hints = None if cache_hints is None else check_hints(cache_hints)
        if title or description or website_url or instructions:
            check_text(title, "title")
            check_text(description, "description")
            check_text(website_url, "website_url")
            check_text(instructions, "instructions")
        if icons:
            check_icons(icons)
        if page_size is not None and (type(page_size) is not int or page_size < 1):
            raise ValueError(f"page_size is a number of entries from 1 up, not {page_size!r}")
        if extensions:
            for identifier, settings in extensions.items():
                self._extensions[check_extension(identifier)] = _settings(identifier, settings)
        if experimental:
            _settings("experimental", experimental)

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, version={self.version!r})"

    def info(self) -> dict[str, Any]:
        """Return the server's Implementation."""
        info: dict[str, Any] = {"name": self.name, "version": self.version}
        if self._title is not None:
            info["title"] = self._title
        if self._description is not None:
            info["description"] = self._description
        if self._website_url is not None:
            info["websiteUrl"] = self._website_url
        if self._icons:
            info["icons"] = icons_wire(self._icons)
        return info

    def instructions_text(self) -> str | None:
        """Return the instructions."""
        return self._instructions

    @property
    def completes(self) -> bool:
        """Whether ``completion/complete`` is served: asked for, or some argument has a completer."""
        if self._completions:
            return True
        return any(entry.completers for kind in (self._prompts, self._templates) for entry in kind.values())

    def capabilities(self, era: Era, *, push: bool) -> dict[str, Any]:
        """Return what the server can do; see :meth:`~twolane.server.servable.Servable.capabilities`."""
        capabilities: dict[str, Any] = {}
        if self._tools:
            capabilities["tools"] = {"listChanged": True} if push else {}
        if self._prompts:
            capabilities["prompts"] = {"listChanged": True} if push else {}
        if self._resources or self._templates:
            capabilities["resources"] = {"subscribe": True, "listChanged": True} if push else {}
        if self.completes:
            capabilities["completions"] = {}
        if self._logging:
            capabilities["logging"] = {}
        if self._extensions and era == "modern":
            capabilities["extensions"] = {key: dict(settings) for key, settings in self._extensions.items()}
        if self._experimental:
            capabilities["experimental"] = dict(self._experimental)
        return capabilities

    def cache_hint(self, method: str) -> tuple[int, str]:
        """Return the ``ttlMs`` and ``cacheScope`` configured for *method*."""
        hints = self._hints
        if hints is None:
            return NO_CACHE
        return hints.get(method) or hints.get("*") or NO_CACHE

    def header_params(self, tool: str) -> tuple[HeaderParam, ...]:
        """Return the ``x-mcp-header`` declarations of *tool*; none for one that cannot be called."""
        registered = self._tools.get(tool)
        return registered.compiled.header_params if registered is not None and registered.enabled else ()

    def dispatch(self, call: Call) -> Coroutine[Any, Any, dict[str, Any] | InputRequired]:
        """Serve one request; see :meth:`~twolane.server.servable.Servable.dispatch`."""
        return dispatch(self, call)


def _settings(name: str, settings: object) -> dict[str, Any]:
    """Return settings that are a JSON object."""
    if not isinstance(settings, Mapping):
        raise TypeError(f"{name}: the settings are a mapping, {{}} for none, not {type(settings).__name__}")
    try:
        encode(dict(settings))
    except EncodeError as exc:
        raise ValueError(f"{name}: the settings have no JSON form: {exc}") from None
    return dict(settings)
