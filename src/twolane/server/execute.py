"""
Running what users wrote. Whatever it raises, the client gets one clean answer and the log gets the rest.

``McpError`` and ``ToolError`` are meant for the client and pass. A cancellation of the request passes too. Everything
else, ``SystemExit`` and cancellations that nobody asked for included, is a failure: it is logged under a short
reference, handed to ``on_error``, and the client reads only that reference.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import Callable
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from twolane.errors import InternalError, InvalidParams, McpError, PushUnavailable, ServerOutputError, ToolError
from twolane.protocol.inputs import InputRequired
from twolane.server.arguments import ArgumentError

if TYPE_CHECKING:
    from twolane.server.context import Call
    from twolane.server.signature import Compiled

__all__ = ["BadArguments", "HandlerFailed", "Runnable", "must_propagate", "run_function", "run_handler"]

logger = logging.getLogger("twolane.server")

_Result = TypeVar("_Result")


class HandlerFailed(InternalError):
    """A handler broke; the failure is logged and reported, and the text names only its reference."""


class BadArguments(InvalidParams):
    """The arguments do not fit the handler. Tools answer this to the model, everything else to the client."""


class Runnable(Protocol):
    """An entry of the registry: a handler with its compiled form."""

    name: str
    handler: Callable[..., Any]
    compiled: Compiled


async def run_handler(
    kind: str, entry: Runnable, arguments: dict[str, Any], call: Call, finish: Callable[[Any], _Result]
) -> _Result | InputRequired:
    """
    Bind *arguments*, run the handler of *entry*, and shape what it returns.

    An ``async def`` handler runs right here; a plain one runs in a worker thread.

    Args:
        kind: what the entry is, for messages: "Tool", "Prompt", ...
        entry: the registered handler.
        arguments: the client's arguments.
        call: the request.
        finish: turns the handler's value into the result. It may run users' code (serialisers), so it runs in here.

    Raises:
        BadArguments: the arguments do not fit.
        HandlerFailed: the handler broke.
        McpError: raised by the handler.
        ToolError: raised by the handler.
        PushUnavailable: raised by the handler.
    """
    compiled = entry.compiled
    try:
        try:
            kwargs = compiled.bind(arguments)
        except ArgumentError as exc:
            raise BadArguments(str(exc)) from None
        if compiled.context_name is not None:
            kwargs[compiled.context_name] = call.context
        if compiled.is_async:
            value = await entry.handler(**kwargs)
        else:
            value = await call.run_sync(partial(_in_thread, partial(entry.handler, **kwargs)))
            if inspect.isawaitable(value):
                value = await value
        if isinstance(value, InputRequired):
            return value
        return finish(value)
    except BaseException as exc:
        _settle(kind, entry.name, exc, call)
        raise


async def run_function(
    kind: str, name: str, bind: Callable[[], Callable[[], Any]], call: Call, finish: Callable[[Any], _Result]
) -> _Result:
    """
    Run a function that no schema describes, under the same rules as :func:`run_handler`. It cannot ask for input.

    Args:
        kind: what it is, for messages.
        name: its name, for messages.
        bind: returns the function with all it takes; it may run users' code too.
        call: the request.
        finish: turns the function's value into the result.

    Raises:
        HandlerFailed: the function broke.
        McpError: raised by the function.
    """
    try:
        function = bind()
        if inspect.iscoroutinefunction(function):
            value = await function()
        else:
            value = await call.run_sync(partial(_in_thread, function))
            if inspect.isawaitable(value):
                value = await value
        if isinstance(value, InputRequired):
            raise ServerOutputError(f"{call.method} cannot ask for input; only tools, prompts and resource reads can")
        return finish(value)
    except BaseException as exc:
        _settle(kind, name, exc, call)
        raise


def _in_thread(function: Callable[[], Any]) -> Any:
    """Call *function* in its worker thread, where what it yields is collected too."""
    try:
        value = function()
        return list(value) if isinstance(value, GeneratorType) else value
    except GeneratorExit as exc:
        # On its way to the event loop it would close every coroutine that waits for this thread.
        raise RuntimeError("a plain function raised GeneratorExit") from exc


def _settle(kind: str, name: str, exc: BaseException, call: Call) -> None:
    """Return where *exc* may pass as it is; otherwise log and report it and raise what the client is to see."""
    if isinstance(exc, ServerOutputError):
        logger.error("%s %s: %s", kind, name, exc.message, exc_info=exc)
        call.services.report(exc, call)
        return
    if isinstance(exc, McpError):
        return
    if isinstance(exc, ToolError | PushUnavailable):
        if kind == "Tool":
            return
        raise InternalError(str(exc)) from exc
    if must_propagate(exc):
        return
    reference = secrets.token_hex(4)
    logger.error("%s %s failed (ref %s)", kind, name, reference, exc_info=exc)
    call.services.report(exc, call)
    raise HandlerFailed(f"{kind} {name} failed (ref {reference})") from exc


def must_propagate(exc: BaseException) -> bool:
    """Tell whether *exc* is the end of this task, asked for from outside, and no failure of the code that ran."""
    if isinstance(exc, asyncio.CancelledError):
        return _is_cancelled()
    return isinstance(exc, GeneratorExit) and _is_closed(exc)


def _is_cancelled() -> bool:
    """Tell a cancellation of this request from a ``CancelledError`` that the handler brought up by itself."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is None or task.cancelling() > 0


def _is_closed(exc: GeneratorExit) -> bool:
    """
    Tell whether this coroutine is being closed, from a ``GeneratorExit`` that the handler raised by itself.

    Closing unwinds from the inside and starts anew in each frame, so its exception has seen no frame but ours; one
    that a handler raised has travelled through the handler's.
    """
    born = exc.__traceback__
    return born is None or born.tb_next is None
