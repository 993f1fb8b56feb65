"""What all requests of one handler share: the factory, notices, sealing, threads and the observer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from twolane.errors import InternalError, InvalidParams, RequestTimedOut, SealError
from twolane.lanes.threads import Threads
from twolane.observe import ErrorContext, Observer
from twolane.protocol.classify import NAMED_METHODS
from twolane.seal import Binding, handle_binding
from twolane.server.context import Call, McpRequestContext
from twolane.server.execute import must_propagate

if TYPE_CHECKING:
    from twolane.lanes.inbound import Inbound
    from twolane.lanes.notify import HandlerNotify
    from twolane.protocol.message import RequestId
    from twolane.protocol.revisions import Era
    from twolane.seal import Sealer
    from twolane.server.servable import Servable

__all__ = ["Factory", "FactoryFailed", "Service", "name_of"]

_Result = TypeVar("_Result")

Factory = Callable[..., "Servable | Awaitable[Servable]"]


class FactoryFailed(InternalError):
    """The factory raised, or returned something that is not a server (HTTP 500)."""

    status = 500


class Service:
    """
    The handler's side of every call; implements :class:`twolane.server.services.Services`.

    Args:
        factory: builds the server of one request; takes a :class:`McpRequestContext` or nothing.
        notify: the handler's change notices.
        sealer: seals request state and handles.
        observer: the application's callbacks.
        page_size: entries per list page, or None.
        max_worker_threads: plain ``def`` handlers that run at once.
        single_use_state: whether sealed request state opens once only.
        request_timeout: seconds for factory and handler together, or None.
    """

    def __init__(
        self,
        factory: Factory,
        *,
        notify: HandlerNotify,
        sealer: Sealer,
        observer: Observer,
        page_size: int | None,
        max_worker_threads: int,
        single_use_state: bool,
        request_timeout: float | None,
    ) -> None:
        self._factory = factory
        self._takes_context = _takes_context(factory)
        self._threads = Threads(max_worker_threads)
        self.notify = notify
        self.sealer = sealer
        self.observer = observer
        self.page_size = page_size
        self.single_use_state = single_use_state
        self.request_timeout = request_timeout

    async def build(self, era: Era, inbound: Inbound) -> Servable:
        """
        Run the factory for one request.

        Raises:
            FactoryFailed: it raised or returned junk; the cause has been reported.
        """
        try:
            if self._takes_context:
                server: Any = self._factory(McpRequestContext(era, inbound.auth_info, inbound.request))
            else:
                server = self._factory()
            if not hasattr(server, "dispatch") and inspect.isawaitable(server):
                server = await server
            if not hasattr(server, "dispatch"):
                raise TypeError(f"the factory returned {type(server).__name__}; it must return a new McpServer")
        except BaseException as exc:
            if must_propagate(exc):
                raise
            self.observer.report(exc, ErrorContext(lane=None, method="factory"))
            raise FactoryFailed from exc
        return server  # type: ignore[no-any-return]

    async def run_sync(self, function: Callable[[], Any]) -> Any:
        """Run a plain function in a worker thread."""
        return await self._threads.run(function)

    async def issue_handle(self, payload: Any, ttl: float | None, call: Call) -> str:
        """Seal *payload* for the principal of *call*."""
        return await self.sealer.seal(payload, _handle_binding(call), ttl)

    async def open_handle(self, text: str, call: Call) -> Any:
        """Open a handle; a bad one is the client's mistake."""
        try:
            return await self.sealer.open(text, _handle_binding(call))
        except SealError as exc:
            self.report(exc, call)
            raise InvalidParams("Invalid or expired handle", {"reason": "invalid_handle"}) from None

    def report(self, exc: BaseException, call: Call) -> None:
        """Hand a failure to ``on_error``; the log has it already."""
        context = error_context(call.lane, call.method, call.params, call.request_id, call.client_info)
        self.observer.report(exc, context, logged=True)

    async def timed(self, work: Awaitable[_Result]) -> _Result:
        """
        Await *work* within ``request_timeout``.

        Raises:
            RequestTimedOut: the time is over, and the work was cancelled.
        """
        if self.request_timeout is None:
            return await work
        try:
            async with asyncio.timeout(self.request_timeout) as limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise RequestTimedOut(self.request_timeout) from None


def _takes_context(factory: Factory) -> bool:
    """
    Tell whether *factory* wants a :class:`McpRequestContext`.

    Raises:
        TypeError: it needs more arguments than one.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(needed) > 1 or any(p.kind not in positional for p in needed):
        names = ", ".join(p.name for p in needed)
        raise TypeError(f"the factory takes no argument or one McpRequestContext, but it needs ({names})")
    if needed:
        return True
    # A factory whose only parameter has a default still gets the context if it is annotated with it.
    return any("McpRequestContext" in str(p.annotation) for p in parameters if p.kind in positional)


def _handle_binding(call: Call) -> Binding:
    return handle_binding(call.principal, call.server.info()["name"])


def name_of(method: str | None, params: dict[str, Any] | None) -> str | None:
    """Return the tool, prompt or resource that a request names, for records and traces."""
    source = NAMED_METHODS.get(method or "")
    value = params.get(source) if source is not None and params is not None else None
    return value if isinstance(value, str) else None


def error_context(
    lane: str, method: str, params: dict[str, Any] | None, request_id: RequestId | None, client: dict[str, Any] | None
) -> ErrorContext:
    """Say which request a failure belongs to."""
    name = (client or {}).get("name")
    return ErrorContext(lane, method, name_of(method, params), request_id, name if isinstance(name, str) else None)
