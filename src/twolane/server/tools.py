"""Tools: registration, the list, and calls (server/tools)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import orjson
from typing_extensions import Unpack

from twolane.errors import InvalidParams, MethodNotFound, PushUnavailable, ToolError
from twolane.protocol.message import encode
from twolane.server.entries import Registered, check_options, described
from twolane.server.execute import BadArguments, HandlerFailed, run_handler
from twolane.server.metadata import check_common, common_wire, tool_annotations
from twolane.server.signature import Compiled, compile_handler

if TYPE_CHECKING:
    from twolane.protocol.inputs import InputRequired
    from twolane.server.context import Call
    from twolane.server.server import McpServer

__all__ = ["RegisteredTool", "ToolOptions", "call_tool", "check_tool_name"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_UPDATES = frozenset(("name", "handler", "enabled"))
_COMPILED = ("input_schema", "output_schema", "structured_output")


class ToolOptions(TypedDict, total=False):
    """
    What a tool may be registered with, besides its name and handler.

    ``title`` and ``description`` are for people and models (the docstring by default); ``input_schema`` and
    ``output_schema`` replace what the type hints say (a pydantic model, a TypedDict or a JSON Schema dict);
    ``structured_output`` switches structured content off or insists on it; ``annotations`` are
    ``mcp_types.ToolAnnotations``, ``icons`` ``mcp_types.Icon``, or dicts; ``meta`` is sent as ``_meta``.
    """

    title: str | None
    description: str | None
    input_schema: Any
    output_schema: Any
    structured_output: bool | None
    annotations: Any
    icons: Sequence[Any] | None
    meta: Mapping[str, Any] | None


class ToolUpdate(ToolOptions, total=False):
    """What :meth:`RegisteredTool.update` changes."""

    name: str
    handler: Callable[..., Any]
    enabled: bool


def check_tool_name(name: object) -> str:
    """Return *name* if a tool may have it, else raise ValueError (S-100)."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise ValueError(
        f"tool name {name!r}: a tool name has 1 to 128 characters of A-Z a-z 0-9 _ . -; register it with name=..."
    )


class RegisteredTool(Registered):
    """The handle of a registered tool."""

    __slots__ = ()
    _kind = "tool"

    def __init__(
        self,
        tools: dict[str, RegisteredTool],
        name: str | None,
        handler: Callable[..., Any],
        options: Mapping[str, Any] | None,
    ) -> None:
        self.compiled = compiled = compile_handler(handler) if options is None else _compile(handler, options)
        if name is None:
            name = compiled.name
            if "named" not in compiled.memo:
                check_tool_name(name)
                compiled.memo["named"] = True
        else:
            check_tool_name(name)
        if name in tools:
            raise ValueError(f"tool {name!r} is already registered; give one of the two another name")
        self.name = name
        self.handler = handler
        self.enabled = True
        self._siblings = tools
        self._options = options
        tools[name] = self

    def update(self, **changes: Unpack[ToolUpdate]) -> None:
        """
        Change the tool: any option of its registration, and ``name``, ``handler``, ``enabled``.

        An option that is not given stays; None takes it back. Nothing changes when a new value is refused.

        Raises:
            TypeError, ValueError: as at registration.
        """
        options = check_options(self, changes, ToolOptions.__annotations__.keys(), _UPDATES)
        handler = changes.get("handler", self.handler)
        compiled = _compile(handler, options) if options else compile_handler(handler)
        name = check_tool_name(changes.get("name", self.name))
        self._apply(name, handler, compiled, options, changes.get("enabled", self.enabled))

    def descriptor(self) -> dict[str, Any]:
        """The tool as ``tools/list`` shows it, as plain values."""
        return _describe(self, self.compiled.input_schema, self.compiled.output_schema)

    def encoded(self) -> orjson.Fragment:
        """The tool as ``tools/list`` shows it, as JSON; plain tools are encoded once a process."""
        compiled = self.compiled
        if self._options is None and self.name == compiled.name:
            known = compiled.memo.get("descriptor")
            if known is None:
                known = compiled.memo["descriptor"] = self._encode()
            return known
        return self._encode()

    def _encode(self) -> orjson.Fragment:
        compiled = self.compiled
        output = None if compiled.output_json is None else orjson.Fragment(compiled.output_json)
        return orjson.Fragment(encode(_describe(self, orjson.Fragment(compiled.input_json), output)))


def _compile(handler: Callable[..., Any], options: Mapping[str, Any]) -> Compiled:
    check_common(options)
    if options.get("annotations") is not None:
        tool_annotations(options["annotations"])
    return compile_handler(handler, **{key: options[key] for key in _COMPILED if options.get(key) is not None})


def _describe(tool: RegisteredTool, input_schema: Any, output_schema: Any) -> dict[str, Any]:
    descriptor = described({"name": tool.name}, tool)
    descriptor["inputSchema"] = input_schema
    if output_schema is not None:
        descriptor["outputSchema"] = output_schema
    if tool._options is not None:
        common_wire(descriptor, tool._options)
    return descriptor


async def call_tool(server: McpServer, call: Call) -> dict[str, Any] | InputRequired:
    """
    Answer ``tools/call``.

    Bad arguments and failures are results with ``isError``, for the model to read (S-102); only what makes the
    request itself wrong is a JSON-RPC error (S-101).
    """
    tools = server._tools
    if not tools:
        raise MethodNotFound(call.method)
    params = call.params
    name = params.get("name")
    if type(name) is not str:
        raise InvalidParams("tools/call needs the name of a tool: params.name must be a string")
    tool = tools.get(name)
    if tool is None or not tool.enabled:
        raise InvalidParams(f"Tool not found: {name}")
    arguments = params.get("arguments")
    if type(arguments) is not dict:
        if arguments is not None or "arguments" in params:
            raise InvalidParams("params.arguments must be an object")
        arguments = {}
    try:
        return await run_handler("Tool", tool, arguments, call, tool.compiled.result)
    except (BadArguments, HandlerFailed, ToolError) as exc:
        text = exc.message
    except PushUnavailable as exc:
        text = str(exc)
    return {"content": [{"type": "text", "text": text}], "isError": True}
