"""The edge: an ASGI application around the lanes. Options are resolved here, once."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, Unpack

from twolane.auth.callers import AUTH_INFO, Callers
from twolane.auth.context import current
from twolane.auth.info import AuthInfo
from twolane.backends import open_backend
from twolane.body import BODY, DECODED, DEFAULT_MAX_BODY_SIZE, UNSET, ClientGone, body_of, read_body
from twolane.edge import Edge
from twolane.errors import INTERNAL_ERROR
from twolane.lanes.compat import CompatLane
from twolane.lanes.exchange import RawHeaders, StreamProfile, send_answer, send_empty
from twolane.lanes.inbound import Inbound
from twolane.lanes.listen import ListenHub
from twolane.lanes.notify import HandlerNotify
from twolane.lanes.service import Factory, Service, name_of
from twolane.lanes.stateless import StatelessLane, refusal_answer
from twolane.observe import ErrorContext, Observer
from twolane.options import (
    HandlerOptions,
    check_factory,
    choice,
    make_sealer,
    positive_count,
    reject_unknown,
    route_paths,
    seconds_or_none,
)
from twolane.protocol.classify import (
    Legacy,
    Modern,
    ModernNotification,
    classify,
    id_of,
    parse,
    unsupported_version,
)
from twolane.protocol.cors import Cors
from twolane.protocol.guard import Guard
from twolane.protocol.headers import Headers
from twolane.protocol.message import Message, RequestId
from twolane.protocol.refusal import Refusal, refuse
from twolane.protocol.revisions import LEGACY

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from twolane.server.services import Notify

__all__ = ["StatelessMcpHandler", "create_mcp_handler"]


def create_mcp_handler(factory: Factory, **options: Unpack[HandlerOptions]) -> StatelessMcpHandler:
    """
    Serve MCP over HTTP: 2026-07-28 requests, and 2025-era requests that need no session.

    Building the handler opens nothing: no loop, thread, socket or file. Build it once, at module level: change
    notices reach the streams of this handler and of those that share its backend.

    Args:
        factory: builds the server of one request: a function, plain or async, that takes a
            :class:`~twolane.McpRequestContext` or nothing and returns a new :class:`~twolane.McpServer`.
        **options: keyword-only, all optional.

            - ``route`` ("/mcp"): the path, answered with and without a trailing slash; None for every path.
            - ``cors``: a mapping with ``allow_origins``, ``allow_headers``, ``allow_methods``, ``expose_headers``,
              ``max_age`` over the defaults, or False for no CORS headers.
            - ``allowed_hostnames``: Host names served, without ports; ``"*"`` for any. By default localhost names on
              loopback sockets, and any name elsewhere, which is logged once.
            - ``allowed_origin_hostnames``: Origins served: host names (any http or https origin of them) or whole
              origins; ``"*"`` for no check at all. By default localhost names, the concrete ``allow_origins`` of
              ``cors``, and the request's own host where that was checked.
            - ``auth_context``: what ``get_mcp_auth_context()`` returns: a :class:`~twolane.McpAuthContext`, or a
              function of the request, plain or async. By default the props in ``auth_info.extra``.
            - ``legacy`` ("stateless"): serve 2025-era requests without sessions, or ``"reject"`` them.
            - ``response_mode`` ("auto"): JSON until a message must travel, then a stream; ``"json"`` drops messages,
              ``"sse"`` always streams. A client that accepts JSON only gets JSON.
            - ``on_error``: called with an exception and an :class:`~twolane.ErrorContext`; changes no answer.
            - ``on_request``: called with a :class:`~twolane.RequestRecord` after each request.
            - ``max_subscriptions`` (1024) and ``max_subscriptions_per_principal`` (None): open listen streams.
            - ``keep_alive`` (15.0): seconds between comments on open streams; None or 0 for none.
            - ``stream_after`` (15.0): seconds of silence after which ``auto`` opens the stream; None for never.
            - ``request_timeout`` (None): seconds that factory and handler may take together.
            - ``max_body_size`` (4 MiB): bytes of a request body.
            - ``page_size`` (None): entries per list page, where the server does not say.
            - ``max_worker_threads`` (40): plain ``def`` handlers that run at once.
            - ``state_keys``: secrets of 32 bytes or more that seal request state and handles; the first seals, all
              open. By default ``TWOLANE_STATE_KEYS``, else a key of the backend.
            - ``state_ttl`` (600): seconds that sealed state lives. ``single_use_state`` (False): it opens once.
            - ``backend`` ("memory://"): a URL or an object; what workers share.
            - ``handle_signals`` (True): end listen streams at SIGTERM and SIGINT, before whoever else handles these.

    Raises:
        TypeError: the factory is a constructed server or takes too much, or an option does not exist.
        ValueError: an option has a value it cannot have.
    """
    reject_unknown("create_mcp_handler", options, _OPTION_NAMES)
    return StatelessMcpHandler(factory, options)


_OPTION_NAMES = tuple(HandlerOptions.__annotations__)


class StatelessMcpHandler:
    """
    An ASGI application that serves MCP without sessions. Made by :func:`create_mcp_handler`.

    It works mounted, with or without lifespan events, and with any number of event loops.
    """

    def __init__(self, factory: Factory, options: HandlerOptions) -> None:
        check_factory(factory)
        self._observer = Observer(options.get("on_request"), options.get("on_error"))
        self._legacy: str = choice("legacy", options.get("legacy", "stateless"), ("stateless", "reject"))
        mode = choice("response_mode", options.get("response_mode", "auto"), ("auto", "json", "sse"))
        profile = StreamProfile(
            mode,
            seconds_or_none("keep_alive", options.get("keep_alive", 15.0), off=True),
            seconds_or_none("stream_after", options.get("stream_after", 15.0)),
        )
        self._max_body_size = positive_count("max_body_size", options.get("max_body_size", DEFAULT_MAX_BODY_SIZE))
        self._cors = Cors(options.get("cors"))
        guard = Guard(
            options.get("allowed_hostnames"), options.get("allowed_origin_hostnames"), self._cors.concrete_origins
        )
        self._route = options.get("route", "/mcp")
        self._edge = Edge(
            route_paths(self._route),
            guard,
            self._cors,
            max_body_size=self._max_body_size,
            response_mode=mode,
        )
        self._callers = Callers(options.get("auth_context"))
        backend = options.get("backend")
        self._owns_backend = backend is None or isinstance(backend, str)
        self._backend = open_backend(backend)
        notify = HandlerNotify(self._backend)
        self._hub = ListenHub(
            self._backend,
            notify,
            limit=positive_count("max_subscriptions", options.get("max_subscriptions", 1024)),
            limit_per_principal=positive_count(
                "max_subscriptions_per_principal", options.get("max_subscriptions_per_principal"), none=True
            ),
            keep_alive=profile.keep_alive,
            handle_signals=options.get("handle_signals", True),
        )
        self._service = Service(
            factory,
            notify=notify,
            sealer=make_sealer(options, self._backend),
            observer=self._observer,
            page_size=positive_count("page_size", options.get("page_size"), none=True),
            max_worker_threads=positive_count("max_worker_threads", options.get("max_worker_threads", 40)),
            single_use_state=options.get("single_use_state", False),
            request_timeout=seconds_or_none("request_timeout", options.get("request_timeout")),
        )
        self._stateless = StatelessLane(self._service, self._hub, profile)
        self._compat = CompatLane(self._service, profile)
        self._closed = False

    @property
    def route(self) -> str | None:
        """The path this handler answers; None for every path."""
        return self._route

    @property
    def notify(self) -> Notify:
        """Change notices to every open stream that asked for them (basic/patterns/subscriptions)."""
        return self._service.notify

    # -- the ASGI face -----------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: HTTP is served, lifespan is answered, WebSocket is refused."""
        kind = scope["type"]
        if kind == "http":
            await self._serve_http(scope, receive, send)
        elif kind == "lifespan":
            await self._serve_lifespan(receive, send)
        elif kind == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": "MCP is served over HTTP"})
        else:
            raise RuntimeError(f"the ASGI scope {kind!r} is not served")

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._closed = False
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        headers = Headers(scope["headers"])
        cors = self._cors.headers(headers.get(b"origin"))
        accepted = self._edge.check(scope, headers)
        if accepted is None:
            await send_empty(send, 204, self._cors.preflight_headers(headers))
            return
        verdict: Refusal | Modern | ModernNotification | Legacy
        inbound: Inbound | None = None
        if isinstance(accepted, Refusal):
            verdict = accepted
        elif self._closed:
            verdict = refuse(503, "closed", "This server is shutting down", ((b"retry-after", b"1"),))
        else:
            inbound = Inbound(scope, receive, send, headers, accepted, cors)
            try:
                verdict = await self._understand(inbound)
            except ClientGone:
                return
        if isinstance(verdict, Legacy):
            verdict = self._route_legacy(verdict)
        lane = "none"
        if inbound is not None and not isinstance(verdict, Refusal):
            verdict = await self._authenticate(inbound, id_of(verdict)) or verdict
        try:
            if isinstance(verdict, Refusal):
                status, code = await self._refuse(verdict, headers, cors, send)
            elif isinstance(verdict, ModernNotification) or inbound is None:
                lane = "stateless"
                status, code = 202, None
                await send_empty(send, status, cors)
            else:
                token = current.set(inbound.auth_context)
                try:
                    if isinstance(verdict, Modern):
                        lane = "stateless"
                        status, code = await self._stateless.handle(verdict, inbound)
                    else:
                        lane = "compat"
                        status, code = await self._compat.handle(verdict, inbound)
                finally:
                    current.reset(token)
        except Exception as exc:
            # A fault of ours. If the response has begun, the server says so in its own way.
            self._observer.report(exc, ErrorContext(lane))
            status, code = 500, INTERNAL_ERROR
            with suppress(RuntimeError):
                await self._refuse(Refusal(status, code, "Internal server error"), headers, cors, send)
        if self._observer.recording:
            self._record(verdict, lane, status, code, time.perf_counter() - started)

    async def _understand(self, inbound: Inbound) -> Refusal | Modern | ModernNotification | Legacy:
        """Read, decode and classify the body, or take what an earlier reader left in the scope."""
        scope = inbound.scope
        value: Any = scope.get(DECODED, UNSET)
        body = scope.get(BODY)
        if body is None:
            body = await read_body(inbound.receive, self._max_body_size) if value is UNSET else b""
        if body is None or len(body) > self._max_body_size:
            return self._edge.too_large()
        inbound.body = body
        if value is UNSET:
            value = parse(body)
            if isinstance(value, Refusal):
                return value
        return classify(value, inbound.headers)

    def _route_legacy(self, traffic: Legacy) -> Legacy | ModernNotification | Refusal:
        """Hand 2025-era traffic to the compat lane, or refuse it where there is none (S-084, S-146)."""
        if self._legacy == "stateless":
            return self._compat.refusal(traffic) or traffic
        message = traffic.messages[0]
        if traffic.batch:
            return refuse(400, "batch", "This endpoint serves single messages of 2026-07-28, no batches")
        if not isinstance(message, Message):
            return refuse(400, "posted_response", "This endpoint asks clients nothing, so no response can be posted")
        if message.id is None:
            return ModernNotification(message.method)
        asked: Any = traffic.version
        if message.method == "initialize":
            asked = (message.params or {}).get("protocolVersion", asked)
        return unsupported_version(message.id, asked if isinstance(asked, str) else None)

    async def _authenticate(self, inbound: Inbound, request_id: RequestId | None) -> Refusal | None:
        """Settle who is calling. What goes wrong here is the deployment's fault, so nothing is served."""
        try:
            caller = await self._callers.of(inbound.scope, inbound.request)
        except Exception as exc:
            self._observer.report(exc, ErrorContext("none", "authentication"))
            return Refusal(500, INTERNAL_ERROR, "Internal server error", {"reason": "authentication"}, request_id)
        inbound.auth_info, inbound.principal, inbound.auth_context = caller
        return None

    async def _refuse(self, refusal: Refusal, headers: Headers, cors: RawHeaders, send: Send) -> tuple[int, int | None]:
        # 2025-06-18 and older want the id in every error; newer revisions leave an unreadable one out.
        null_id = headers.get(b"mcp-protocol-version") in LEGACY[1:]
        answer = refusal_answer(refusal, null_id=null_id)
        await send_answer(send, answer.status, answer.body, (*refusal.headers, *cors))
        return answer.status, answer.code

    def _record(self, verdict: object, lane: str, status: int, code: int | None, duration: float) -> None:
        method: str | None = None
        params: dict[str, Any] | None = None
        client: Any = None
        revision: str | None = None
        if isinstance(verdict, Modern):
            method, params = verdict.method, verdict.params
            client, revision = verdict.envelope.client_info, verdict.envelope.version
        elif isinstance(verdict, ModernNotification):
            method = verdict.method
        elif isinstance(verdict, Legacy) and isinstance(message := verdict.messages[0], Message):
            method, params, revision = message.method, message.params, verdict.version
            client = (params or {}).get("clientInfo") if method == "initialize" else None
        self._observer.record(
            lane=lane,
            era="legacy" if lane == "compat" else None if lane == "none" else "modern",
            method=method,
            name=name_of(method, params),
            client_info=client if isinstance(client, dict) else None,
            revision=revision,
            status=status,
            code=code,
            duration=duration,
        )

    # -- the fetch face ----------------------------------------------------------------------------------------

    async def fetch(self, request: Request, *, auth_info: AuthInfo | None = None, parsed_body: Any = UNSET) -> Response:
        """
        Serve a request that another framework has already taken in hand.

        Args:
            request: Starlette's request, as FastAPI and others hand it to a path operation.
            auth_info: the verified caller; it goes before what middleware left in the scope.
            parsed_body: the JSON value of the body, where the framework has read it.

        Returns:
            The response to return from the path operation; a stream runs as long as its body is read.

        Raises:
            TypeError: the body was consumed and no *parsed_body* is given.
        """
        from starlette.requests import ClientDisconnect
        from starlette.responses import Response

        from twolane.bridge import respond

        extra: dict[str, Any] = {}
        if auth_info is not None:
            extra[AUTH_INFO] = auth_info
        if parsed_body is not UNSET:
            extra[DECODED] = parsed_body
        elif DECODED not in request.scope:
            try:
                extra[BODY] = await body_of(request, self._max_body_size)
            except ClientDisconnect:
                return Response(status_code=499)
        return await respond(self, request, extra, body=b"")

    # -- the end -----------------------------------------------------------------------------------------------

    def close_streams(self) -> None:
        """End all listen streams with their final result. Returns at once and may be called from a signal handler."""
        self._hub.end_all()

    async def aclose(self) -> None:
        """
        End all listen streams gracefully and refuse further requests with 503; those at work finish.

        A handler is opened again by the next lifespan startup or ``async with``.
        """
        self._closed = True
        await self._hub.aclose()
        if self._owns_backend:
            await self._backend.aclose()

    async def __aenter__(self) -> Self:
        self._closed = False
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
