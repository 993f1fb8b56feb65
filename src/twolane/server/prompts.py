"""Prompts: registration, the list, and getting one (server/prompts)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import orjson
from typing_extensions import Unpack

from twolane.errors import InvalidParams, MethodNotFound, ServerOutputError
from twolane.protocol.message import encode
from twolane.server.completable import Completer, check_completers
from twolane.server.entries import Registered, check_options, described
from twolane.server.execute import run_handler
from twolane.server.metadata import check_common, common_wire, plain, wire
from twolane.server.signature import Compiled, compile_handler

if TYPE_CHECKING:
    from twolane.protocol.inputs import InputRequired
    from twolane.server.context import Call
    from twolane.server.server import McpServer

__all__ = ["PromptOptions", "RegisteredPrompt", "get_prompt"]

_UPDATES = frozenset(("name", "handler", "enabled"))
_BLOCKS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


class PromptOptions(TypedDict, total=False):
    """
    What a prompt may be registered with, besides its name and handler.

    ``arguments`` replaces what the handler's parameters say: a list of ``mcp_types.PromptArgument`` (or dicts, or
    names), a model, or a JSON Schema dict; the handler then takes all of them as one parameter. ``complete`` maps an
    argument to the function that proposes its values. ``title``, ``description``, ``icons`` and ``meta`` are as for
    tools.
    """

    title: str | None
    description: str | None
    arguments: Any
    icons: Sequence[Any] | None
    meta: Mapping[str, Any] | None
    complete: Mapping[str, Completer] | None


class PromptUpdate(PromptOptions, total=False):
    """What :meth:`RegisteredPrompt.update` changes."""

    name: str
    handler: Callable[..., Any]
    enabled: bool


class RegisteredPrompt(Registered):
    """The handle of a registered prompt."""

    __slots__ = ()
    _kind = "prompt"

    def __init__(
        self,
        prompts: dict[str, RegisteredPrompt],
        name: str | None,
        handler: Callable[..., Any],
        options: Mapping[str, Any] | None,
    ) -> None:
        self.compiled = compiled = _compile(handler, options or {})
        if name is None:
            name = compiled.name
        _check_name(name)
        if name in prompts:
            raise ValueError(f"prompt {name!r} is already registered; give one of the two another name")
        self.name = name
        self.handler = handler
        self.enabled = True
        self._siblings = prompts
        self._options = options
        prompts[name] = self

    @property
    def completers(self) -> dict[str, Completer]:
        """The completer of each argument that has one."""
        found = {p.name: p.completer for p in self.compiled.parameters if p.completer is not None}
        found.update((self._options or {}).get("complete") or {})
        return found

    def update(self, **changes: Unpack[PromptUpdate]) -> None:
        """
        Change the prompt: any option of its registration, and ``name``, ``handler``, ``enabled``.

        An option that is not given stays; None takes it back. Nothing changes when a new value is refused.

        Raises:
            TypeError, ValueError: as at registration.
        """
        options = check_options(self, changes, PromptOptions.__annotations__.keys(), _UPDATES)
        handler = changes.get("handler", self.handler)
        compiled = _compile(handler, options)
        name = _check_name(changes.get("name", self.name))
        self._apply(name, handler, compiled, options, changes.get("enabled", self.enabled))

    def descriptor(self) -> dict[str, Any]:
        """The prompt as ``prompts/list`` shows it, as plain values."""
        descriptor = described({"name": self.name}, self)
        arguments = [_argument(parameter) for parameter in self.compiled.parameters]
        if arguments:
            descriptor["arguments"] = arguments
        if self._options is not None:
            common_wire(descriptor, self._options)
        return descriptor

    def encoded(self) -> orjson.Fragment:
        """The prompt as ``prompts/list`` shows it, as JSON."""
        return orjson.Fragment(encode(self.descriptor()))


def _check_name(name: object) -> str:
    if isinstance(name, str) and name and name.isprintable():
        return name
    raise ValueError(f"prompt name {name!r}: a prompt needs a printable name; register it with name=...")


def _compile(handler: Callable[..., Any], options: Mapping[str, Any]) -> Compiled:
    check_common(options)
    arguments = options.get("arguments")
    if arguments is None:
        compiled = compile_handler(handler, kind="prompt")
    else:
        if isinstance(arguments, Sequence) and not isinstance(arguments, str):
            arguments = _schema(arguments)
        compiled = compile_handler(handler, input_schema=arguments, kind="prompt")
    complete = options.get("complete")
    if complete is not None:
        check_completers(complete, [p.name for p in compiled.parameters], f"prompt {compiled.name!r}")
    return compiled


def _schema(arguments: Sequence[Any]) -> dict[str, Any]:
    """Return listed arguments as a JSON Schema of strings."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for argument in arguments:
        fields = {"name": argument} if isinstance(argument, str) else wire(argument)
        name = fields.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"arguments: an argument needs a name, {argument!r} has none")
        if name in properties:
            raise ValueError(f"arguments: {name!r} is listed twice")
        properties[name] = {"type": "string", **{k: fields[k] for k in ("title", "description") if fields.get(k)}}
        if fields.get("required"):
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _argument(parameter: Any) -> dict[str, Any]:
    argument: dict[str, Any] = {"name": parameter.name}
    if parameter.title:
        argument["title"] = parameter.title
    if parameter.description:
        argument["description"] = parameter.description
    argument["required"] = parameter.required
    return argument


async def get_prompt(server: McpServer, call: Call) -> dict[str, Any] | InputRequired:
    """Answer ``prompts/get``; what is wrong with the request is -32602 (S-108)."""
    prompts = server._prompts
    if not prompts:
        raise MethodNotFound(call.method)
    params = call.params
    name = params.get("name")
    if type(name) is not str:
        raise InvalidParams("prompts/get needs the name of a prompt: params.name must be a string")
    prompt = prompts.get(name)
    if prompt is None or not prompt.enabled:
        raise InvalidParams(f"Prompt not found: {name}")
    arguments = params.get("arguments", {})
    if type(arguments) is not dict:
        raise InvalidParams("params.arguments must be an object")
    for key, value in arguments.items():
        if type(value) is not str:
            raise InvalidParams(f"Prompt arguments are strings; {key!r} is not")
    return await run_handler("Prompt", prompt, arguments, call, prompt_result(prompt))


def prompt_result(prompt: RegisteredPrompt) -> Callable[[Any], dict[str, Any]]:
    """Return what turns a value of *prompt*'s handler into the result of ``prompts/get``."""

    def finish(value: Any) -> dict[str, Any]:
        value = plain(value)
        result = dict(value) if isinstance(value, Mapping) and "messages" in value else {"messages": value}
        result.pop("resultType", None)
        messages = result["messages"]
        items = messages if isinstance(messages, list | tuple) else [messages]
        result["messages"] = [_message(prompt.name, item) for item in items]
        if "description" not in result and prompt.description:
            result["description"] = prompt.description
        return result

    return finish


def _message(name: str, item: Any) -> dict[str, Any]:
    """Return a message; text and single blocks are the user's."""
    item = plain(item)
    message = dict(item) if isinstance(item, Mapping) and "role" in item else {"role": "user", "content": item}
    if message["role"] not in ("user", "assistant"):
        raise ServerOutputError(f'Prompt {name}: the role of a message is "user" or "assistant"')
    message["content"] = _block(name, message.get("content"))
    return message


def _block(name: str, content: Any) -> dict[str, Any]:
    """Return a content block, whole (S-108)."""
    content = plain(content)
    if isinstance(content, str):
        return {"type": "text", "text": content}
    block = dict(content) if isinstance(content, Mapping) else {}
    kind = block.get("type")
    resource = plain(block.get("resource"))
    if kind == "resource" and isinstance(resource, Mapping):
        if isinstance(resource.get("uri"), str) and ("text" in resource or "blob" in resource):
            return {**block, "resource": resource}
    elif kind in _BLOCKS and all(isinstance(block.get(member), str) for member in _BLOCKS[kind]):
        return block
    raise ServerOutputError(
        f"Prompt {name} returned {type(content).__name__} where text, a content block or a message belongs"
    )
