"""Resources and resource templates: registration and lists (server/resources). Reading is in :mod:`.reading`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import orjson
from typing_extensions import Unpack

from twolane.protocol.message import encode
from twolane.server.caching import CacheScope, cache_scope, ttl_ms
from twolane.server.completable import Completer, check_completers
from twolane.server.entries import Registered, check_options, described
from twolane.server.metadata import check_common, check_text, common_wire, resource_annotations
from twolane.server.signature import Compiled, compile_handler
from twolane.server.uri_template import UriTemplate, check_uri, parse_template

__all__ = ["RegisteredResource", "RegisteredTemplate", "ResourceOptions", "ResourceTemplate"]

_UPDATES = frozenset(("handler", "enabled"))


class ResourceOptions(TypedDict, total=False):
    """
    What a resource or template may be registered with, besides its URI and handler.

    ``name`` is the function's name by default and ``description`` its docstring. ``mime_type`` and ``size`` (bytes;
    not for templates) describe the content. ``ttl`` (seconds) and ``cache_scope`` are hints for those who keep
    the content. ``title``, ``annotations`` (``mcp_types.Annotations`` or a dict), ``icons`` and ``meta`` are as for
    tools.
    """

    name: str | None
    title: str | None
    description: str | None
    mime_type: str | None
    size: int | None
    annotations: Any
    icons: Sequence[Any] | None
    meta: Mapping[str, Any] | None
    ttl: float | None
    cache_scope: CacheScope | None


class ResourceUpdate(ResourceOptions, total=False):
    """What ``update()`` of a resource or template changes."""

    handler: Callable[..., Any]
    enabled: bool


class ResourceTemplate:
    """
    A family of resources under one RFC 6570 template (levels 1 to 3).

    Args:
        uri_template: for example ``notes://{user}/{+path}{?version}``.
        list: a function, plain or ``async``, without arguments or with the context, that returns the resources of
            the family for ``resources/list``: ``mcp_types.Resource`` or dicts with ``uri`` and ``name``.
        complete: the functions that propose values, by variable.

    Raises:
        ValueError: the template is malformed, or ``complete`` names no variable of it.
    """

    __slots__ = ("complete", "list", "parsed", "uri_template")

    def __init__(
        self,
        uri_template: str,
        *,
        list: Callable[..., Any] | None = None,  # noqa: A002 - the name the option has everywhere
        complete: Mapping[str, Completer] | None = None,
    ) -> None:
        self.uri_template = uri_template
        self.parsed: UriTemplate = parse_template(uri_template)
        self.list = list
        self.complete = dict(complete or {})
        if list is not None and not callable(list):
            raise TypeError("list must be a function that returns resources")
        check_completers(self.complete, self.parsed.names, f"template {uri_template!r}")


class _Source(Registered):
    """What resources and templates have in common; they are found by URI, not by name."""

    __slots__ = ("uri",)

    uri: str

    def _register(
        self, siblings: dict[str, Any], uri: str, handler: Callable[..., Any], options: Mapping[str, Any] | None
    ) -> None:
        if uri in siblings:
            raise ValueError(f"{self._kind} {uri!r} is already registered; give one of the two another URI")
        self.uri = uri
        self.compiled = self._compile(handler, options or {})
        self.handler = handler
        self.name = (options or {}).get("name") or self.compiled.name
        self.enabled = True
        self._siblings = siblings
        self._options = options
        siblings[uri] = self

    def _key(self) -> str:
        return self.uri

    @property
    def mime_type(self) -> str | None:
        """The content's type, if it was declared."""
        mime_type: str | None = (self._options or {}).get("mime_type")
        return mime_type

    def hint(self, default: tuple[int, str]) -> tuple[int, str]:
        """Return ``ttlMs`` and ``cacheScope``: its own where given, else *default*."""
        options = self._options
        if options is None:
            return default
        ttl, scope = options.get("ttl"), options.get("cache_scope")
        return default[0] if ttl is None else ttl_ms(ttl), default[1] if scope is None else scope

    def update(self, **changes: Unpack[ResourceUpdate]) -> None:
        """
        Change it: any option of its registration, and ``handler``, ``enabled``. The URI stays.

        An option that is not given stays; None takes it back. Nothing changes when a new value is refused.

        Raises:
            TypeError, ValueError: as at registration.
        """
        options = check_options(self, changes, ResourceOptions.__annotations__.keys(), _UPDATES)
        handler = changes.get("handler", self.handler)
        compiled = self._compile(handler, options)
        self._apply(self.uri, handler, compiled, options, changes.get("enabled", self.enabled))
        self.name = options.get("name") or compiled.name

    def _compile(self, handler: Callable[..., Any], options: Mapping[str, Any]) -> Compiled:
        if options:
            _check(options)
        return compile_handler(handler, kind="resource", uri_names=self._variables())

    def _variables(self) -> frozenset[str]:
        return frozenset()

    def encoded(self) -> orjson.Fragment:
        """The descriptor as JSON."""
        return orjson.Fragment(encode(self.descriptor()))

    def descriptor(self) -> dict[str, Any]:
        """What lists show, as plain values."""
        descriptor = described({self._uri_member(): self.uri, "name": self.name}, self)
        options = self._options
        if options is not None:
            for option, member in (("mime_type", "mimeType"), ("size", "size")):
                if options.get(option) is not None:
                    descriptor[member] = options[option]
            common_wire(descriptor, options)
        return descriptor

    def _uri_member(self) -> str:
        return "uri"


class RegisteredResource(_Source):
    """The handle of a resource with a fixed URI."""

    __slots__ = ()
    _kind = "resource"

    def __init__(
        self,
        resources: dict[str, RegisteredResource],
        uri: str,
        handler: Callable[..., Any],
        options: Mapping[str, Any] | None,
    ) -> None:
        self._register(resources, check_uri(uri), handler, options)


class RegisteredTemplate(_Source):
    """The handle of a resource template."""

    __slots__ = ("template",)
    _kind = "resource template"

    template: ResourceTemplate

    def __init__(
        self,
        templates: dict[str, RegisteredTemplate],
        template: ResourceTemplate | str,
        handler: Callable[..., Any],
        options: Mapping[str, Any] | None,
    ) -> None:
        if isinstance(template, str):
            template = ResourceTemplate(template)
        if options and options.get("size") is not None:
            raise ValueError(f"{template.uri_template!r}: a template has no size, its resources have")
        self.template = template
        self._register(templates, template.uri_template, handler, options)

    @property
    def completers(self) -> dict[str, Completer]:
        """The completer of each variable that has one."""
        found = {p.name: p.completer for p in self.compiled.parameters if p.completer is not None}
        found.update(self.template.complete)
        return found

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables of *uri*, None when it belongs to another."""
        return self.template.parsed.match(uri)

    def _variables(self) -> frozenset[str]:
        return frozenset(self.template.parsed.names)

    def _uri_member(self) -> str:
        return "uriTemplate"


def _check(options: Mapping[str, Any]) -> None:
    check_common(options)
    check_text(options.get("name"), "name")
    check_text(options.get("mime_type"), "mime_type")
    size = options.get("size")
    if size is not None and (type(size) is not int or size < 0):
        raise ValueError(f"size is a number of bytes from 0 up, not {size!r}")
    if options.get("annotations") is not None:
        resource_annotations(options["annotations"])
    if options.get("ttl") is not None:
        ttl_ms(options["ttl"])
    if options.get("cache_scope") is not None:
        cache_scope(options["cache_scope"])
