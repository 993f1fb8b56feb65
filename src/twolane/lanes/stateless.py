"""The stateless lane: 2026-07-28 requests, each served by a fresh server (basic; basic/transports/streamable-http)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twolane.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND_2025,
    McpError,
    MethodNotFound,
    RequestCancelled,
    RequestTimedOut,
    ServerOutputError,
)
from twolane.lanes.exchange import Answer, Exchange, StreamProfile, send_answer
from twolane.lanes.service import Service, error_context, name_of
from twolane.protocol.classify import header_mismatch
from twolane.protocol.headers import check_params
from twolane.protocol.inputs import InputRequired
from twolane.protocol.message import EncodeError, RequestId, error_message
from twolane.protocol.refusal import Refusal, refuse
from twolane.protocol.result import discover_result, modern_result
from twolane.protocol.revisions import MODERN
from twolane.server.context import Call
from twolane.server.rounds import lift, lower

if TYPE_CHECKING:
    from twolane.lanes.inbound import Inbound
    from twolane.lanes.listen import ListenHub
    from twolane.protocol.classify import Modern
    from twolane.server.servable import Servable

__all__ = ["StatelessLane", "error_answer", "refusal_answer"]

#: Methods of the 2025 era that this one dropped: refused before the factory runs (S-046).
_DROPPED = frozenset(
    (
        "initialize",
        "logging/setLevel",
        "ping",
        "resources/subscribe",
        "resources/unsubscribe",
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
    )
)


class StatelessLane:
    """Serves requests that :func:`~twolane.protocol.classify.classify` found to be modern."""

    name = "stateless"

    def __init__(self, service: Service, hub: ListenHub, profile: StreamProfile) -> None:
        self._service = service
        self._hub = hub
        self._profile = profile

    async def handle(self, request: Modern, inbound: Inbound) -> tuple[int, int | None]:
        """Answer one request. Returns HTTP status and JSON-RPC error code, for the record."""
        if request.method == "subscriptions/listen":
            return await self._listen(request, inbound)
        exchange = inbound.exchange(self._profile, self.name)
        answer = await exchange.run(
            self._serve(request, inbound, exchange), lambda: error_answer(request.id, RequestCancelled())
        )
        return (499, None) if answer is None else (answer.status, answer.code)

    async def _serve(self, request: Modern, inbound: Inbound, exchange: Exchange) -> Answer:
        if request.method in _DROPPED:
            return error_answer(request.id, _dropped(request.method))
        service = self._service
        envelope = request.envelope
        span = service.observer.span(
            request.method,
            name_of(request.method, request.params),
            self.name,
            envelope.version,
            request.id,
            envelope.meta,
        )
        failure: McpError
        with span:
            try:
                outcome = await service.timed(self._result(request, inbound, exchange))
                if isinstance(outcome, Refusal):
                    span.fail(outcome.code, outcome.message)
                    return refusal_answer(outcome)
                server, result = outcome
                if result.get("isError"):
                    span.tool_error()
                return Answer(200, modern_result(request.id, result, server.info()))
            except RequestTimedOut as exc:
                failure = exc
                self._report(failure, request)
            except McpError as exc:
                failure = exc
            except EncodeError as exc:
                failure = ServerOutputError(f"The result of {request.method} has no JSON form: {exc}")
                self._report(failure, request)
            span.fail(failure.code, failure.message)
            return error_answer(request.id, failure)

    def _report(self, failure: McpError, request: Modern) -> None:
        context = error_context(self.name, request.method, request.params, request.id, request.envelope.client_info)
        self._service.observer.report(failure, context)

    async def _result(
        self, request: Modern, inbound: Inbound, exchange: Exchange
    ) -> tuple[Servable, dict[str, Any]] | Refusal:
        server = await self._service.build("modern", inbound)
        if request.method == "server/discover":
            return server, _discover(server)
        mismatch = _param_mismatch(server, request, inbound)
        if mismatch is not None:
            return mismatch
        return server, await self._dispatch(server, request, inbound, exchange)

    async def _dispatch(
        self, server: Servable, request: Modern, inbound: Inbound, exchange: Exchange
    ) -> dict[str, Any]:
        service = self._service
        envelope = request.envelope
        request.params.pop("_meta", None)
        call = Call(
            method=request.method,
            params=request.params,
            request_id=request.id,
            lane=self.name,
            era="modern",
            revision=envelope.version,
            server=server,
            services=service,
            outlet=exchange,
            request=inbound.request,
            meta=envelope.meta,
            capabilities=envelope.capabilities,
            client_info=envelope.client_info,
            log_level=envelope.log_level,
            auth_info=inbound.auth_info,
            principal=inbound.principal,
            page_size=service.page_size,
        )
        if "inputResponses" in call.params or "requestState" in call.params:
            await lift(call, service)
        result = await server.dispatch(call)
        return await lower(result, call, service) if isinstance(result, InputRequired) else result

    async def _listen(self, request: Modern, inbound: Inbound) -> tuple[int, int | None]:
        if not inbound.accepts.sse:
            refusal: Refusal | None = refuse(
                406, "not_acceptable", "subscriptions/listen answers with text/event-stream; accept that type"
            )._replace(id=request.id)
        else:
            refusal = self._hub.refusal(request.id, request.params, inbound.principal)
        if refusal is not None:
            return await _send(refusal_answer(refusal), inbound)
        exchange = inbound.exchange(StreamProfile("json"), self.name)
        try:
            server = await exchange.watched(self._service.timed(self._service.build("modern", inbound)))
        except McpError as exc:
            if isinstance(exc, RequestTimedOut):
                self._report(exc, request)
            return await _send(error_answer(request.id, exc), inbound)
        if server is None:
            return 499, None
        # Asked again: others may have come while the factory ran.
        refusal = self._hub.refusal(request.id, request.params, inbound.principal)
        if refusal is not None:
            return await _send(refusal_answer(refusal), inbound)
        await self._hub.serve(
            request.id,
            request.params,
            capabilities=server.capabilities("modern", push=True),
            server_info=server.info(),
            principal=inbound.principal,
            headers=inbound.cors,
            receive=inbound.receive,
            send=inbound.send,
        )
        return 200, None


async def _send(answer: Answer, inbound: Inbound) -> tuple[int, int | None]:
    await send_answer(inbound.send, answer.status, answer.body, inbound.cors)
    return answer.status, answer.code


def error_answer(request_id: RequestId, exc: McpError) -> Answer:
    """
    Encode an error for the modern era.

    Codes that this revision forbids become what they mean here: -32002 is -32602, and what is left of the reserved
    range is the server's fault (S-027).
    """
    code, message, data, status = exc.code, exc.message, exc.data, exc.status
    if code == RESOURCE_NOT_FOUND_2025:
        code = INVALID_PARAMS
    elif -32099 <= code <= -32001 and code not in (-32020, -32021, -32022):
        code = INTERNAL_ERROR
        if exc.code == -32042:
            message = (
                "The tool asked for a URL elicitation the 2025 way; return input_required(elicit_url(...)) instead"
            )
    try:
        body = error_message(request_id, code, message, data)
    except EncodeError:
        # The data cannot be sent; the message still can.
        body = error_message(request_id, code, message.encode("utf-8", "replace").decode())
    return Answer(status, body, code)


def refusal_answer(refusal: Refusal, *, null_id: bool = False) -> Answer:
    """Encode a refusal."""
    body = error_message(refusal.id, refusal.code, refusal.message, refusal.data, null_id=null_id)
    return Answer(refusal.status, body, refusal.code)


def _dropped(method: str) -> McpError:
    error = MethodNotFound(method)
    if method == "initialize":
        # Whoever asks for a handshake learns what is spoken instead (S-084).
        error.message += f"; this request names {MODERN[0]}, which has no handshake"
        error.data = {"supported": list(MODERN)}
    return error


def _discover(server: Servable) -> dict[str, Any]:
    return discover_result(
        server.capabilities("modern", push=True),
        server.instructions_text(),
        MODERN,
        server.cache_hint("server/discover"),
    )


def _param_mismatch(server: Servable, request: Modern, inbound: Inbound) -> Refusal | None:
    """Compare ``Mcp-Param-*`` headers with the arguments, before these are validated (S-052 to S-056)."""
    if request.method != "tools/call":
        return None
    name = request.params.get("name")
    declared = server.header_params(name) if type(name) is str else ()
    if not declared:
        return None
    arguments = request.params.get("arguments")
    detail = check_params(declared, arguments if type(arguments) is dict else {}, inbound.headers)
    if detail is None:
        return None
    return header_mismatch(request.id, "mcp-param", "(see body)", detail)
