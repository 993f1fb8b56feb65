"""Methods of your own, beside those of the specification (basic/versioning, "Extensions")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import lru_cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import is_typeddict

from twolane.errors import InvalidParams, MethodNotFound, MissingClientCapability, ServerOutputError
from twolane.server.annotations import resolve
from twolane.server.callables import dissect, parameters_of
from twolane.server.context import Context
from twolane.server.execute import run_function
from twolane.server.metadata import is_model, wire

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from twolane.server.context import Call
    from twolane.server.server import McpServer

__all__ = ["RegisteredMethod", "call_method", "check_extension"]

# What the specification names, in any revision, and so no server may redefine.
_SPECIFIED = frozenset(
    (
        "completion/complete",
        "elicitation/create",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "roots/list",
        "sampling/createMessage",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    )
)
_RESERVED = ("notifications/", "rpc.")
_TASKS = "io.modelcontextprotocol/tasks"
# The method travels in the Mcp-Method header as it is, so it is visible ASCII.
_METHOD = re.compile(r"[\x21-\x7e]{1,128}")
# A prefix of dotted labels and a name, as for _meta keys (basic, "_meta").
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EXTENSION = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def check_extension(identifier: object) -> str:
    """Return *identifier* if an extension may have it, else raise ValueError (S-083)."""
    if isinstance(identifier, str) and _EXTENSION.fullmatch(identifier):
        return identifier
    raise ValueError(f'extension {identifier!r}: name it "vendor/name", for example "com.example/billing"')


class RegisteredMethod:
    """The handle of a custom method."""

    __slots__ = ("_adapter", "_methods", "_shape", "enabled", "extension", "handler", "name")

    def __init__(
        self,
        methods: dict[str, RegisteredMethod],
        name: str,
        handler: Callable[..., Any],
        params: Any,
        extension: str | None,
    ) -> None:
        _check_name(name, extension)
        if name in methods:
            raise ValueError(f"method {name!r} is already registered; give one of the two another name")
        self.name = name
        self.handler = handler
        self.extension = extension
        self.enabled = True
        self._shape, hint = _arguments(handler)
        wanted = hint if params is None and _is_shape(hint) else params
        self._adapter = None if wanted is None else _adapter(wanted)
        self._methods = methods
        methods[name] = self

    def __repr__(self) -> str:
        return f"<RegisteredMethod {self.name!r}{'' if self.enabled else ' (disabled)'}>"

    def enable(self) -> None:
        """Serve it again."""
        self.enabled = True

    def disable(self) -> None:
        """Answer as if it did not exist."""
        self.enabled = False

    def remove(self) -> None:
        """Take it off the server. Removing twice does nothing."""
        if self._methods.get(self.name) is self:
            del self._methods[self.name]

    def bind(self, call: Call) -> Callable[[], Any]:
        """
        Return the handler with the parameters and the context it asks for.

        Raises:
            InvalidParams: the parameters do not fit.
        """
        arguments: dict[str, Any] = {"params": call.params, "context": None}
        if "params" in self._shape and self._adapter is not None:
            arguments["params"] = _validated(self._adapter, call.params)
        if "context" in self._shape:
            arguments["context"] = call.context
        return partial(self.handler, *[arguments[part] for part in self._shape])


def _check_name(name: object, extension: str | None) -> None:
    if not isinstance(name, str) or not _METHOD.fullmatch(name):
        raise ValueError(f"method {name!r}: a method has 1 to 128 visible ASCII characters")
    if name in _SPECIFIED or name.startswith(_RESERVED) or (name.startswith("tasks/") and extension != _TASKS):
        raise ValueError(f'method {name!r} belongs to the specification; name yours "vendor/method"')


def _arguments(handler: Callable[..., Any]) -> tuple[tuple[str, ...], Any]:
    """Return what *handler* takes, in order, and the annotation of its parameters object."""
    if not callable(handler):
        raise TypeError(f"a handler is a function, not {type(handler).__name__}")
    anatomy = dissect(handler)
    taken = [parameter for parameter in parameters_of(anatomy) if parameter.default is parameter.empty]
    if len(taken) > 2 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in taken):
        raise TypeError(f"{anatomy.where}: the handler of a method takes (params) or (params, ctx)")
    raw = {p.name: p.annotation for p in taken if p.annotation is not p.empty}
    function = cast("FunctionType | None", anatomy.function)  # mypy takes the field for a method
    resolved = resolve(raw, function, anatomy.where)[0] if raw else {}
    hints = [resolved.get(parameter.name) for parameter in taken]
    shape = ["context" if hint is Context else "params" for hint in hints]
    if shape == ["params", "params"]:
        shape[1] = "context"
    if shape == ["context", "context"]:
        raise TypeError(f"{anatomy.where}: one parameter takes the context, the other the params")
    return tuple(shape), hints[shape.index("params")] if "params" in shape else None


def _is_shape(hint: Any) -> bool:
    """Tell whether an annotation asks for validation: a model, a dataclass or a TypedDict."""
    if not isinstance(hint, type):
        return False
    from pydantic import BaseModel

    return issubclass(hint, BaseModel) or is_dataclass(hint) or is_typeddict(hint)


@lru_cache(maxsize=256)
def _adapter(shape: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(shape)


def _validated(adapter: TypeAdapter[Any], params: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_python(params)
    except ValidationError as exc:
        problem = exc.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(("params", *map(str, problem["loc"])))
        raise InvalidParams(f"Invalid params: {where}: {problem['msg']}") from None


async def call_method(server: McpServer, call: Call) -> dict[str, Any]:
    """
    Serve a custom method.

    One that belongs to an extension is for clients that declared the extension on this request (S-083).
    """
    method = server._methods.get(call.method)
    if method is None or not method.enabled:
        raise MethodNotFound(call.method)
    if method.extension is not None:
        declared = call.capabilities.get("extensions")
        if not isinstance(declared, dict) or method.extension not in declared:
            if call.era == "legacy":
                raise MethodNotFound(call.method)
            raise MissingClientCapability({"extensions": {method.extension: {}}})
    return await run_function("Method", method.name, partial(method.bind, call), call, partial(_result, method.name))


def _result(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if is_model(value):
        return wire(value)
    raise ServerOutputError(f"Method {name} must return a dict or a model, not {type(value).__name__}")
