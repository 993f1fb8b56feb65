"""Completion of prompt and template arguments (server/utilities/completion)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from twolane.errors import InvalidParams, MethodNotFound, ServerOutputError
from twolane.server.execute import run_function

if TYPE_CHECKING:
    from twolane.server.completable import Completer
    from twolane.server.context import Call
    from twolane.server.server import McpServer

__all__ = ["MAX_VALUES", "complete"]

#: Values that one result may hold (S-109).
MAX_VALUES = 100


async def complete(server: McpServer, call: Call) -> dict[str, Any]:
    """
    Answer ``completion/complete``.

    A prompt or template that does not exist is an error; an argument without a completer has no values.
    """
    if not server.completes:
        raise MethodNotFound(call.method)
    ref, name, value, arguments = _read(call.params)
    completer, owner = _find(server, ref, name)
    if completer is None:
        return _result([])
    bind = partial(_with_arguments, completer, value, arguments, call)
    return await run_function("Completion", f"{name} of {owner}", bind, call, partial(_shape, name))


def _read(params: Mapping[str, Any]) -> tuple[dict[str, Any], str, str, dict[str, str]]:
    """Return the reference, the argument's name and value, and the other arguments."""
    ref = params.get("ref")
    argument = params.get("argument")
    context = params.get("context", {})
    if not isinstance(ref, dict) or not isinstance(ref.get("type"), str):
        raise InvalidParams("completion/complete needs params.ref, an object with a type")
    if (
        not isinstance(argument, dict)
        or not isinstance(argument.get("name"), str)
        or not isinstance(argument.get("value"), str)
    ):
        raise InvalidParams("completion/complete needs params.argument, an object with the strings name and value")
    arguments = context.get("arguments", {}) if isinstance(context, dict) else None
    if not isinstance(arguments, dict) or not all(isinstance(item, str) for item in arguments.values()):
        raise InvalidParams("params.context.arguments must be an object of strings")
    return ref, argument["name"], argument["value"], arguments


def _find(server: McpServer, ref: dict[str, Any], argument: str) -> tuple[Completer | None, str]:
    """Return the completer that is meant, and the name of the prompt or template it belongs to."""
    match ref:
        case {"type": "ref/prompt", "name": str(name)}:
            prompt = server._prompts.get(name)
            if prompt is None or not prompt.enabled:
                raise InvalidParams(f"Prompt not found: {name}")
            return prompt.completers.get(argument), prompt.name
        case {"type": "ref/resource", "uri": str(uri)}:
            template = server._templates.get(uri)
            if template is not None and template.enabled:
                return template.completers.get(argument), template.name
            resource = server._resources.get(uri)
            if resource is None or not resource.enabled:
                raise InvalidParams(f"Resource template not found: {uri}")
            return None, resource.name
    raise InvalidParams('params.ref must be {"type": "ref/prompt", "name"} or {"type": "ref/resource", "uri"}')


def _with_arguments(completer: Completer, value: str, arguments: dict[str, str], call: Call) -> Callable[[], Any]:
    """Bind *completer* to as many of the value, the other arguments and the context as it asks for."""
    try:
        parameters = inspect.signature(completer).parameters.values()
    except (TypeError, ValueError):
        return partial(completer, value)
    takes = 3
    if not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        # A parameter with a default is the author's own: `lambda value, names=names: ...`.
        takes = sum(
            parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            for parameter in parameters
        )
    if takes >= 3:
        return partial(completer, value, arguments, call.context)
    return partial(completer, value, arguments) if takes == 2 else partial(completer, value)


def _shape(name: str, values: Any) -> dict[str, Any]:
    if values is None:
        return _result([])
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ServerOutputError(f"The completer of {name} must return strings in a list, not {type(values).__name__}")
    found = list(values)
    if not all(isinstance(item, str) for item in found):
        raise ServerOutputError(f"The completer of {name} must return strings only")
    return _result(found)


def _result(values: list[str]) -> dict[str, Any]:
    return {"completion": {"values": values[:MAX_VALUES], "total": len(values), "hasMore": len(values) > MAX_VALUES}}
