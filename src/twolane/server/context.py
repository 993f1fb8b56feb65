"""What a factory and a handler see of the request they serve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twolane.protocol.envelope import LOG_LEVELS

if TYPE_CHECKING:
    from starlette.requests import Request

    from twolane.auth.info import AuthInfo, Principal
    from twolane.protocol.inputs import InputRequest
    from twolane.protocol.message import RequestId
    from twolane.protocol.revisions import Era
    from twolane.server.servable import Servable
    from twolane.server.services import Notify, Outlet, Services

__all__ = ["Call", "Context", "McpRequestContext"]


class Call:
    """
    One request on its way to a handler, made by a lane.

    ``params`` no longer holds ``_meta``, ``inputResponses`` and ``requestState``: they are lifted into ``meta``,
    ``input_responses`` and ``request_state``. ``log_level`` is the lowest level the client wants, None for no logs.
    """

    __slots__ = (
        "_context",
        "auth_info",
        "capabilities",
        "client_info",
        "era",
        "input_responses",
        "lane",
        "log_level",
        "meta",
        "method",
        "outlet",
        "page_size",
        "params",
        "principal",
        "progress_sent",
        "request",
        "request_id",
        "request_state",
        "retried",
        "revision",
        "server",
        "services",
    )

    def __init__(
        self,
        *,
        method: str,
        params: dict[str, Any],
        request_id: RequestId,
        lane: str,
        era: Era,
        revision: str,
        server: Servable,
        services: Services,
        outlet: Outlet,
        request: Callable[[], Request],
        meta: dict[str, Any],
        capabilities: dict[str, Any],
        client_info: dict[str, Any] | None,
        log_level: str | None,
        auth_info: AuthInfo | None,
        principal: Principal,
        page_size: int | None,
    ) -> None:
        self.method = method
        self.params = params
        self.request_id = request_id
        self.lane = lane
        self.era = era
        self.revision = revision
        self.server = server
        self.services = services
        self.outlet = outlet
        self.request = request
        self.meta = meta
        self.capabilities = capabilities
        self.client_info = client_info
        self.log_level = log_level
        self.auth_info = auth_info
        self.principal = principal
        self.page_size = page_size
        self.input_responses: dict[str, Any] = {}
        self.request_state: Any = None
        #: Whether this request answers an earlier ``input_required`` result.
        self.retried = False
        self.progress_sent = -math.inf
        self._context: Context | None = None

    @property
    def context(self) -> Context:
        """The handler's view of this call, built when a handler asks for it."""
        if self._context is None:
            self._context = Context(self)
        return self._context

    async def run_sync(self, function: Callable[[], Any]) -> Any:
        """Run a plain function in a worker thread with this call's context variables."""
        return await self.services.run_sync(function)


class Context:
    """
    The request a handler serves. Annotate a parameter with ``Context`` to receive it.

    The coroutine methods run on the event loop; from a plain ``def`` handler, which runs in a worker thread, call
    them with ``anyio.from_thread.run(ctx.progress, 0.5)``.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def auth_info(self) -> AuthInfo | None:
        """What is known of the caller, or None."""
        return self._call.auth_info

    @property
    def request(self) -> Request:
        """The HTTP request (Starlette's ``Request``); its body can be read again."""
        return self._call.request()

    @property
    def request_id(self) -> RequestId:
        """The JSON-RPC id of this request."""
        return self._call.request_id

    @property
    def method(self) -> str:
        """The method being served, for example ``tools/call``."""
        return self._call.method

    @property
    def era(self) -> Era:
        """``"modern"`` (2026-07-28 and later) or ``"legacy"``."""
        return self._call.era

    @property
    def protocol_version(self) -> str:
        """The revision this request is served under."""
        return self._call.revision

    @property
    def client_info(self) -> Mapping[str, Any] | None:
        """``name`` and ``version`` the client gives itself: for display and logs, never for decisions (S-042)."""
        return self._call.client_info

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """The capabilities this very request declared; empty where the client is not known."""
        return self._call.capabilities

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta`` without the envelope: ``progressToken``, ``traceparent`` and your own keys."""
        return self._call.meta

    @property
    def cancelled(self) -> bool:
        """True once the client has gone. Safe to read from a worker thread, which cannot be interrupted."""
        return self._call.outlet.cancelled

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The answers to the last round's ``input_required`` requests, by key (basic/patterns/mrtr)."""
        return self._call.input_responses

    @property
    def request_state(self) -> Any:
        """The ``state`` of the last round's ``input_required``, verified and opened; None on the first round."""
        return self._call.request_state

    @property
    def notify(self) -> Notify:
        """Change notices to everyone who listens, on this worker and on those that share the backend."""
        return self._call.services.notify

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """
        Tell the client how far the work is (basic/patterns/progress).

        Nothing is sent when the client gave no ``progressToken``, and a value that does not rise is left out.

        Args:
            progress: how much is done, rising with each call.
            total: how much there is to do, when known.
            message: a short text for people.

        Raises:
            ValueError: a number is NaN or infinite.
        """
        if not math.isfinite(progress) or (total is not None and not math.isfinite(total)):
            raise ValueError("progress and total must be finite numbers")
        call = self._call
        if "progressToken" not in call.meta or progress <= call.progress_sent:
            return
        call.progress_sent = progress
        params: dict[str, Any] = {"progressToken": call.meta["progressToken"], "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await call.outlet.send_notification("notifications/progress", params)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """
        Send a log message to the client, if it asked for this level (server/utilities/logging; deprecated there).

        Args:
            level: debug, info, notice, warning, error, critical, alert or emergency.
            data: any JSON value. It reaches the client, so it must hold no secrets.
            logger: a steady name for the source.

        Raises:
            ValueError: the level is unknown.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"unknown log level {level!r}; use one of {', '.join(LOG_LEVELS)}")
        call = self._call
        wanted = call.log_level
        if wanted is None or LOG_LEVELS[level] < LOG_LEVELS[wanted]:
            return
        if "logging" not in call.server.capabilities(call.era, push=False):
            return
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        await call.outlet.send_notification("notifications/message", params)

    async def elicit(self, message: str, schema: Any) -> dict[str, Any]:
        """
        Ask the user for a form over the session's own connection (client/elicitation).

        Returns:
            The answer: ``{"action": "accept" | "decline" | "cancel", "content"?: {...}}``.

        Raises:
            PushUnavailable: this lane cannot push; return ``input_required(...)`` instead, which works on every lane.
        """
        from twolane.protocol.inputs import elicit

        return await self._push(elicit(message, schema))

    async def elicit_url(self, message: str, url: str) -> dict[str, Any]:
        """Ask the user to open *url*. Returns and raises as :meth:`elicit`."""
        from twolane.protocol.inputs import elicit_url

        return await self._push(elicit_url(message, url))

    async def sample(self, messages: str | Sequence[Any], *, max_tokens: int, **params: Any) -> dict[str, Any]:
        """
        Ask the client's model (client/sampling; deprecated there).

        Args:
            messages: a text, or sampling messages.
            max_tokens: the most tokens to generate.
            **params: as for :func:`twolane.sample`.

        Raises:
            PushUnavailable: as for :meth:`elicit`.
        """
        from twolane.protocol.inputs import sample

        return await self._push(sample(messages, max_tokens=max_tokens, **params))

    async def list_roots(self) -> dict[str, Any]:
        """Ask for the client's roots (client/roots; deprecated there). Raises as :meth:`elicit`."""
        from twolane.protocol.inputs import list_roots

        return await self._push(list_roots())

    async def _push(self, request: InputRequest) -> dict[str, Any]:
        return await self._call.outlet.push(request)

    async def close_stream(self, retry: float | None = None) -> None:
        """
        Let go of the connection while the work goes on; the client comes back for the rest after *retry* seconds.

        Only a session can be resumed, so elsewhere nothing happens and the response arrives on this connection.
        """
        await self._call.outlet.close_stream(retry)

    async def issue_handle(self, payload: Any, ttl: float | None = None) -> str:
        """
        Seal *payload* into a text that only this principal can bring back: the stateless replacement for data kept
        under a session id. Hand it to the client as a tool result and take it as an argument later.

        Args:
            payload: any JSON value; it is encrypted.
            ttl: seconds until it expires; ``state_ttl`` of the handler by default.
        """
        return await self._call.services.issue_handle(payload, ttl, self._call)

    async def open_handle(self, text: str) -> Any:
        """
        Return the payload of a handle.

        Raises:
            InvalidParams: it is altered, expired or another principal's; ``data.reason`` is ``invalid_handle``.
        """
        return await self._call.services.open_handle(text, self._call)


class McpRequestContext:
    """
    What a factory may look at: the era, the verified caller, and the HTTP request.

    The server it builds serves this one request, so what it registers may depend on who calls.
    """

    __slots__ = ("_request", "auth_info", "era")

    era: Era
    auth_info: AuthInfo | None

    def __init__(self, era: Era, auth_info: AuthInfo | None, request: Callable[[], Request]) -> None:
        object.__setattr__(self, "era", era)
        object.__setattr__(self, "auth_info", auth_info)
        object.__setattr__(self, "_request", request)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"McpRequestContext is read-only; cannot set {name}")

    @property
    def request_info(self) -> Request:
        """The HTTP request (Starlette's ``Request``); its body can be read again."""
        return self._request()  # type: ignore[no-any-return, attr-defined]
