"""The registering half of a server: decorators and ``register_*``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, overload

from typing_extensions import Unpack

from twolane.server.methods import RegisteredMethod
from twolane.server.prompts import PromptOptions, RegisteredPrompt
from twolane.server.resources import (
    RegisteredResource,
    RegisteredTemplate,
    ResourceOptions,
    ResourceTemplate,
)
from twolane.server.tools import RegisteredTool, ToolOptions

__all__ = ["Registry"]

Handler = TypeVar("Handler", bound=Callable[..., Any])

_TOOL_OPTIONS = frozenset(ToolOptions.__annotations__)
_PROMPT_OPTIONS = frozenset(PromptOptions.__annotations__)
_RESOURCE_OPTIONS = frozenset(ResourceOptions.__annotations__)


class Registry:
    """What :class:`~twolane.server.server.McpServer` offers for filling a server."""

    __slots__ = ("_extensions", "_methods", "_prompts", "_resources", "_templates", "_tools")

    def __init__(self) -> None:
        self._tools: dict[str, RegisteredTool] = {}
        self._prompts: dict[str, RegisteredPrompt] = {}
        self._resources: dict[str, RegisteredResource] = {}
        self._templates: dict[str, RegisteredTemplate] = {}
        self._methods: dict[str, RegisteredMethod] = {}
        self._extensions: dict[str, dict[str, Any]] = {}

    @property
    def tools(self) -> Mapping[str, RegisteredTool]:
        """The handles of the tools, by name."""
        return MappingProxyType(self._tools)

    @property
    def prompts(self) -> Mapping[str, RegisteredPrompt]:
        """The handles of the prompts, by name."""
        return MappingProxyType(self._prompts)

    @property
    def resources(self) -> Mapping[str, RegisteredResource]:
        """The handles of the resources with a fixed URI, by URI."""
        return MappingProxyType(self._resources)

    @property
    def resource_templates(self) -> Mapping[str, RegisteredTemplate]:
        """The handles of the resource templates, by template."""
        return MappingProxyType(self._templates)

    @property
    def methods(self) -> Mapping[str, RegisteredMethod]:
        """The handles of the custom methods, by name."""
        return MappingProxyType(self._methods)

    @overload
    def tool(self, handler: Handler, /) -> Handler: ...

    @overload
    def tool(
        self, handler: None = None, /, *, name: str | None = None, **options: Unpack[ToolOptions]
    ) -> Callable[[Handler], Handler]: ...

    def tool(self, handler: Any = None, /, *, name: str | None = None, **options: Unpack[ToolOptions]) -> Any:
        """
        Register the decorated function as a tool, with or without parentheses. The function is returned unchanged.

        Its type hints are the input schema, its docstring is the description.

        Args:
            handler: the function, where the decorator is written without parentheses.
            name: the function's name by default.
            **options: see :class:`~twolane.server.tools.ToolOptions`.

        Raises:
            TypeError: a parameter has no usable type, or there is no such option.
            ValueError: the name is taken or breaks the rules (S-100), or another value is refused.
        """
        if handler is None:
            chosen = _chosen("tool", options, _TOOL_OPTIONS)

            def decorate(function: Handler) -> Handler:
                RegisteredTool(self._tools, name, function, chosen)
                return function

            return decorate
        if options or name is not None or not callable(handler):
            raise TypeError(_BARE.format("tool"))
        RegisteredTool(self._tools, None, handler, None)
        return handler

    def register_tool(self, name: str, handler: Callable[..., Any], **options: Unpack[ToolOptions]) -> RegisteredTool:
        """Register *handler* as the tool *name* and return its handle. Options and errors are those of :meth:`tool`."""
        return RegisteredTool(self._tools, _named(name), handler, _chosen("register_tool", options, _TOOL_OPTIONS))

    @overload
    def prompt(self, handler: Handler, /) -> Handler: ...

    @overload
    def prompt(
        self, handler: None = None, /, *, name: str | None = None, **options: Unpack[PromptOptions]
    ) -> Callable[[Handler], Handler]: ...

    def prompt(self, handler: Any = None, /, *, name: str | None = None, **options: Unpack[PromptOptions]) -> Any:
        """
        Register the decorated function as a prompt, with or without parentheses. It is returned unchanged.

        Its parameters are the arguments: strings on the wire, converted to the type hints. It returns text, a
        message, a content block, a list of those, or an ``mcp_types.GetPromptResult``.

        Args:
            handler: the function, where the decorator is written without parentheses.
            name: the function's name by default.
            **options: see :class:`~twolane.server.prompts.PromptOptions`.

        Raises:
            TypeError: a parameter has no usable type, or there is no such option.
            ValueError: the name is taken, or another value is refused.
        """
        if handler is None:
            chosen = _chosen("prompt", options, _PROMPT_OPTIONS)

            def decorate(function: Handler) -> Handler:
                RegisteredPrompt(self._prompts, name, function, chosen)
                return function

            return decorate
        if options or name is not None or not callable(handler):
            raise TypeError(_BARE.format("prompt"))
        RegisteredPrompt(self._prompts, None, handler, None)
        return handler

    def register_prompt(
        self, name: str, handler: Callable[..., Any], **options: Unpack[PromptOptions]
    ) -> RegisteredPrompt:
        """Register *handler* as the prompt *name* and return its handle. Options and errors as for :meth:`prompt`."""
        chosen = _chosen("register_prompt", options, _PROMPT_OPTIONS)
        return RegisteredPrompt(self._prompts, _named(name), handler, chosen)

    def resource(
        self, uri: str | ResourceTemplate, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[Handler], Handler]:
        """
        Register the decorated function as the resource *uri*. The function is returned unchanged.

        It returns text, bytes, any JSON value, a :class:`~twolane.server.reading.ResourceContent` or a list of them,
        ``mcp_types`` contents, or None for "no such resource". The variables of a template are its parameters.

        Args:
            uri: a URI, or an RFC 6570 template: one with a ``{``, or a
                :class:`~twolane.server.resources.ResourceTemplate`.
            **options: see :class:`~twolane.server.resources.ResourceOptions`.

        Raises:
            TypeError: a parameter is no variable of the template, or there is no such option.
            ValueError: the URI is taken or malformed, or another value is refused.
        """
        if not isinstance(uri, str | ResourceTemplate):
            raise TypeError('write @server.resource("config://settings"): a resource needs a URI')
        chosen = _chosen("resource", options, _RESOURCE_OPTIONS)

        def decorate(function: Handler) -> Handler:
            self._add_resource(uri, function, chosen)
            return function

        return decorate

    def register_resource(
        self, uri: str | ResourceTemplate, handler: Callable[..., Any], **options: Unpack[ResourceOptions]
    ) -> RegisteredResource | RegisteredTemplate:
        """Register *handler* under *uri* and return its handle. Options and errors are those of :meth:`resource`."""
        if not isinstance(uri, str | ResourceTemplate):
            raise TypeError(f"a resource needs a URI or a ResourceTemplate, not {type(uri).__name__}")
        return self._add_resource(uri, handler, _chosen("register_resource", options, _RESOURCE_OPTIONS))

    def _add_resource(
        self, uri: str | ResourceTemplate, handler: Callable[..., Any], options: Mapping[str, Any] | None
    ) -> RegisteredResource | RegisteredTemplate:
        if isinstance(uri, ResourceTemplate) or "{" in uri:
            return RegisteredTemplate(self._templates, uri, handler, options)
        return RegisteredResource(self._resources, uri, handler, options)

    def method(self, name: str, /, *, params: Any = None, extension: str | None = None) -> Callable[[Handler], Handler]:
        """
        Register the decorated function as a JSON-RPC method of your own. The function is returned unchanged.

        Args:
            name: for example ``"acme/thing"``; names of the specification are refused.
            params: what validates the parameters: a pydantic model, a dataclass or a TypedDict. By default the
                annotation of the handler's first parameter, else the parameters are a plain dict.
            extension: serve it only to clients that declare this extension, one of the server's own.

        Raises:
            TypeError: the handler takes something else than ``(params)`` or ``(params, ctx)``.
            ValueError: the name is taken or not yours, or the extension is none of the server's.
        """
        if not isinstance(name, str):
            raise TypeError('write @server.method("acme/thing"): a method needs a name')

        def decorate(function: Handler) -> Handler:
            self.register_method(name, function, params=params, extension=extension)
            return function

        return decorate

    def register_method(
        self, name: str, handler: Callable[..., Any], *, params: Any = None, extension: str | None = None
    ) -> RegisteredMethod:
        """Register *handler* as the method *name* and return its handle. Arguments and errors as for :meth:`method`."""
        if extension is not None and extension not in self._extensions:
            raise ValueError(
                f"method {name!r}: declare its extension first, McpServer(..., extensions={{{extension!r}: {{}}}})"
            )
        return RegisteredMethod(self._methods, name, handler, params, extension)


_BARE = 'write @server.{0} or @server.{0}(name="..."): the options are keywords'


def _chosen(where: str, options: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any] | None:
    """Return the options that are set, None when there are none."""
    chosen = {}
    for key, value in options.items():
        if key not in known:
            raise TypeError(f"{where}() has no option {key!r}; use {', '.join(sorted(known))}")
        if value is not None:
            chosen[key] = value
    return chosen or None


def _named(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the first argument is the name, a string, not {type(name).__name__}")
    return name
