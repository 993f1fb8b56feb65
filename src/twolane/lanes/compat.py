"""
The compat lane: 2025-era requests without a session, each POST served by a fresh server.

There is no way back to the client here, so a handler that pushes a request is refused at once with a sentence that
names the sessionful lane. What older clients do before and between calls (``initialize``, ``ping``, setting a log
level, subscribing) is answered, and nothing of it is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twolane.errors import (
    INVALID_REQUEST,
    RESOURCE_NOT_FOUND_2025,
    InternalError,
    InvalidParams,
    McpError,
    MethodNotFound,
    PushUnavailable,
    RequestCancelled,
    RequestTimedOut,
    ResourceNotFound,
    ServerOutputError,
)
from twolane.lanes.exchange import Answer, Exchange, StreamProfile, send_empty
from twolane.lanes.service import FactoryFailed, Service, error_context, name_of
from twolane.protocol.classify import id_of
from twolane.protocol.envelope import LOG_LEVELS
from twolane.protocol.inputs import InputRequired
from twolane.protocol.message import EncodeError, Message, error_message
from twolane.protocol.refusal import Refusal, refuse
from twolane.protocol.result import initialize_result, legacy_result
from twolane.protocol.revisions import DEFAULT_LEGACY, LATEST_LEGACY, LEGACY
from twolane.server.context import Call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from twolane.lanes.inbound import Inbound
    from twolane.protocol.classify import Legacy
    from twolane.server.servable import Servable

__all__ = ["CompatLane"]


class CompatLane:
    """Serves traffic that :func:`~twolane.protocol.classify.classify` found to be legacy."""

    name = "compat"

    def __init__(self, service: Service, profile: StreamProfile) -> None:
        self._service = service
        self._profile = profile

    def refusal(self, traffic: Legacy) -> Refusal | None:
        """Say why *traffic* is not served: its version header, or a batch where the revision has none."""
        version = traffic.version
        if version is not None and version not in LEGACY:
            return refuse(
                400,
                "unsupported_protocol_version",
                f"Unsupported MCP-Protocol-Version: {version[:64]}; 2025-era clients are served {', '.join(LEGACY)}",
                supported=list(LEGACY),
            )._replace(id=id_of(traffic))
        if not traffic.batch:
            return None
        if version is not None and version > DEFAULT_LEGACY:
            return refuse(400, "batch", f"Revision {version} has no batches; send the messages one by one")
        if any(isinstance(message, Message) and message.method == "initialize" for message in traffic.messages):
            return refuse(400, "initialize_in_batch", "initialize is sent alone, never in a batch")
        return None

    async def handle(self, traffic: Legacy, inbound: Inbound) -> tuple[int, int | None]:
        """Answer what :meth:`refusal` let pass. Returns HTTP status and JSON-RPC error code, for the record."""
        requests = [m for m in traffic.messages if isinstance(m, Message) and m.id is not None]
        if not requests:
            # Notifications and posted responses ask for nothing, and nothing here waits for them (L-005).
            await send_empty(inbound.send, 202, inbound.cors)
            return 202, None
        exchange = inbound.exchange(self._profile, self.name)
        answer = await exchange.run(
            self._serve(requests, traffic, inbound, exchange), lambda: _cancelled(requests, traffic.batch)
        )
        return (499, None) if answer is None else (answer.status, answer.code)

    async def _serve(self, requests: list[Message], traffic: Legacy, inbound: Inbound, exchange: Exchange) -> Answer:
        revision = traffic.version or DEFAULT_LEGACY
        built: list[Servable] = []

        async def server() -> Servable:
            # One for the whole POST, built within the span of the first request that needs it.
            if not built:
                built.append(await self._service.build("legacy", inbound))
            return built[0]

        answers = [await self._answer(request, revision, server, inbound, exchange) for request in requests]
        status = max(answer.status for answer in answers)
        code = None if traffic.batch else answers[0].code
        return Answer(status, _joined([answer.body for answer in answers], traffic.batch), code)

    async def _answer(
        self,
        request: Message,
        revision: str,
        server: Callable[[], Awaitable[Servable]],
        inbound: Inbound,
        exchange: Exchange,
    ) -> Answer:
        service = self._service
        assert request.id is not None
        method, params = request.method, request.params or {}
        span = service.observer.span(
            method, name_of(method, params), self.name, revision, request.id, params.get("_meta") or {}
        )
        failure: McpError
        with span:
            try:
                revision, result = await service.timed(self._result(request, revision, server, inbound, exchange))
                if result.get("isError"):
                    span.tool_error()
                return Answer(200, legacy_result(request.id, method, result, revision))
            except RequestTimedOut as exc:
                failure = exc
                self._report(failure, request)
            except McpError as exc:
                failure = exc
            except EncodeError as exc:
                failure = ServerOutputError(f"The result of {method} has no JSON form: {exc}")
                self._report(failure, request)
            span.fail(failure.code, failure.message)
            # Errors of this era are in-band, except those of a server that could not serve at all.
            status = failure.status if isinstance(failure, FactoryFailed | RequestTimedOut) else 200
            return Answer(status, _error(request, failure), failure.code)

    async def _result(
        self,
        request: Message,
        revision: str,
        build: Callable[[], Awaitable[Servable]],
        inbound: Inbound,
        exchange: Exchange,
    ) -> tuple[str, dict[str, Any]]:
        """Return the result of one request, and the revision it is in."""
        server = await build()
        params = request.params or {}
        if request.method == "initialize":
            return _initialize(server, params)
        handle = _HOUSEKEEPING.get(request.method)
        if handle is not None:
            return revision, handle(server, params)
        return revision, await self._dispatch(server, self._call(request, revision, server, inbound, exchange))

    async def _dispatch(self, server: Servable, call: Call) -> dict[str, Any]:
        result = await server.dispatch(call)
        if not isinstance(result, InputRequired):
            return result
        method = next((request.method for request in result.requests.values()), "input_required")
        refusal = PushUnavailable(method, self.name)
        if call.method == "tools/call":
            return {"content": [{"type": "text", "text": str(refusal)}], "isError": True}
        raise InternalError(str(refusal))

    def _call(self, request: Message, revision: str, server: Servable, inbound: Inbound, exchange: Exchange) -> Call:
        assert request.id is not None
        params = dict(request.params or {})
        return Call(
            method=request.method,
            request_id=request.id,
            lane=self.name,
            era="legacy",
            revision=revision,
            server=server,
            services=self._service,
            outlet=exchange,
            request=inbound.request,
            meta=params.pop("_meta", None) or {},
            params=params,
            # Who the client is and what it can do was said in an initialize that nobody remembers.
            capabilities={},
            client_info=None,
            # No level can have been set, so the server decides (L-018): everything.
            log_level="debug",
            auth_info=inbound.auth_info,
            principal=inbound.principal,
            page_size=self._service.page_size,
        )

    def _report(self, failure: McpError, request: Message) -> None:
        context = error_context(self.name, request.method, request.params, request.id, None)
        self._service.observer.report(failure, context)


def _initialize(server: Servable, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Answer the handshake: the revision asked for, or else the latest of the era (L-002)."""
    asked = params.get("protocolVersion")
    if not isinstance(asked, str):
        raise InvalidParams("initialize needs params.protocolVersion, a string", {"supported": list(LEGACY)})
    revision = asked if asked in LEGACY else LATEST_LEGACY
    capabilities = server.capabilities("legacy", push=False)
    return revision, initialize_result(revision, capabilities, server.info(), server.instructions_text())


def _ping(server: Servable, params: dict[str, Any]) -> dict[str, Any]:
    return {}


def _set_level(server: Servable, params: dict[str, Any]) -> dict[str, Any]:
    if "logging" not in server.capabilities("legacy", push=False):
        raise MethodNotFound("logging/setLevel")
    level = params.get("level")
    if not isinstance(level, str) or level not in LOG_LEVELS:
        raise InvalidParams(f"logging/setLevel needs params.level, one of {', '.join(LOG_LEVELS)}")
    return {}


def _subscribe(server: Servable, params: dict[str, Any]) -> dict[str, Any]:
    if "resources" not in server.capabilities("legacy", push=False):
        raise MethodNotFound("resources/subscribe")
    if not isinstance(params.get("uri"), str):
        raise InvalidParams("resources/subscribe and resources/unsubscribe need params.uri, a string")
    return {}


_HOUSEKEEPING = {
    "ping": _ping,
    "logging/setLevel": _set_level,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _subscribe,
}


def _error(request: Message, exc: McpError) -> bytes:
    """Encode an error for the 2025 era: the codes of 2026-07-28 do not exist there (L-044)."""
    code = exc.code
    if isinstance(exc, ResourceNotFound):
        code = RESOURCE_NOT_FOUND_2025
    elif code in (-32020, -32021, -32022):
        code = INVALID_REQUEST
    try:
        return error_message(request.id, code, exc.message, exc.data)
    except EncodeError:
        return error_message(request.id, code, exc.message.encode("utf-8", "replace").decode())


def _cancelled(requests: list[Message], batch: bool) -> Answer:
    failure = RequestCancelled()
    return Answer(failure.status, _joined([_error(request, failure) for request in requests], batch), failure.code)


def _joined(bodies: list[bytes], batch: bool) -> bytes:
    return b"[" + b",".join(bodies) + b"]" if batch else bodies[0]
