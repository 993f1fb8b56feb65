"""
Input rounds on the wire: what a retry brings is lifted out of its parameters before a handler sees them, and what a
handler asks for is lowered into a result (basic/patterns/mrtr).

Between two rounds the server holds nothing (S-118): what it must remember is sealed into ``requestState`` and comes
back with the retry, on any worker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from twolane.errors import InvalidParams, MissingClientCapability, SealError, ServerOutputError
from twolane.protocol.inputs import lift_responses, required_capability, to_wire
from twolane.seal import Sealer, state_binding

if TYPE_CHECKING:
    from twolane.protocol.inputs import InputRequired
    from twolane.server.context import Call

__all__ = ["ROUND_METHODS", "Sealing", "lift", "lower"]

#: The methods whose results may ask for input (S-111).
ROUND_METHODS = frozenset(("tools/call", "prompts/get", "resources/read"))

_log = logging.getLogger("twolane.rounds")


class Sealing(Protocol):
    """What a handler lends to the rounds of its calls."""

    @property
    def sealer(self) -> Sealer:
        """Seals request state."""

    @property
    def single_use_state(self) -> bool:
        """Whether request state opens once only."""

    def report(self, exc: BaseException, call: Call) -> None:
        """Hand a failure to ``on_error``. Never raises."""


async def lift(call: Call, service: Sealing) -> None:
    """
    Move ``inputResponses`` and ``requestState`` of a retry from the parameters into the call.

    The answers are checked first, so that a malformed retry does not use up single-use state.

    Raises:
        InvalidParams: the answers are malformed, or the state does not open for this request; ``data.reason`` is
            ``invalid_input_responses`` or ``invalid_request_state``. Why a state was refused is only logged (Q-09).
    """
    params = call.params
    if call.method not in ROUND_METHODS or not ("inputResponses" in params or "requestState" in params):
        return
    call.retried = True
    if "inputResponses" in params:
        call.input_responses = lift_responses(params.pop("inputResponses"))
    if "requestState" in params:
        text = params.pop("requestState")
        try:
            binding = state_binding(call.principal, call.method, params, _server_name(call))
        except TypeError:  # Only a parsed body can hold such arguments.
            raise InvalidParams("params.arguments has no JSON form", {"reason": "invalid_request_state"}) from None
        try:
            call.request_state = await service.sealer.open(text, binding, spend=service.single_use_state)
        except SealError as exc:
            _log.warning("requestState refused on %s: %s", call.method, exc.reason)
            service.report(exc, call)
            raise InvalidParams("Invalid or expired requestState", {"reason": "invalid_request_state"}) from None


async def lower(required: InputRequired, call: Call, service: Sealing) -> dict[str, Any]:
    """
    Return the wire result that asks for *required*, with its state sealed for this request.

    Raises:
        MissingClientCapability: this request did not declare what the first offending question needs (S-114).
        ServerOutputError: the method cannot carry a round, or the state cannot be sealed.
    """
    if call.method not in ROUND_METHODS:
        raise ServerOutputError(f"{call.method} cannot ask for input; only tools, prompts and resource reads can")
    requests = {}
    for key, request in required.requests.items():
        missing = required_capability(request, call.capabilities)
        if missing is not None:
            raise MissingClientCapability(
                missing,
                f"Cannot request input {key!r} ({request.method}): "
                f"this request does not declare the client capability {_dotted(missing)}",
            )
        requests[key] = to_wire(request, call.revision)
    result: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        result["inputRequests"] = requests
    if required.state is not None:
        try:
            binding = state_binding(call.principal, call.method, call.params, _server_name(call))
            result["requestState"] = await service.sealer.seal(required.state, binding)
        except (TypeError, ValueError) as exc:
            _log.error("the state of %s cannot be sealed: %s", call.method, exc)
            failure = ServerOutputError("The state of this round cannot be sealed")
            failure.__cause__ = exc
            service.report(failure, call)
            raise failure from exc
    return result


def _server_name(call: Call) -> str:
    name = call.server.info().get("name")
    return name if isinstance(name, str) else ""


def _dotted(capability: Mapping[str, Any]) -> str:
    """Write ``{"elicitation": {"form": {}}}`` as ``elicitation.form``."""
    ((name, inner),) = capability.items()
    return ", ".join(f"{name}.{part}" for part in inner) if inner else name
