"""Input rounds on the wire: retries lifted, questions lowered, state sealed in between."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twolane.backends.memory import MemoryBackend
from twolane.errors import InvalidParams, McpError, MissingClientCapability, SealError, ServerOutputError
from twolane.protocol.inputs import InputRequired, elicit, elicit_url, input_required, list_roots, sample
from twolane.seal import Sealer
from twolane.server.rounds import lift, lower

NAME = elicit("Name?", {"type": "object", "properties": {"name": {"type": "string"}}})
ALL: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}}


class FakeServer:
    """A server that has a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def info(self) -> dict[str, Any]:
        return {"name": self.name, "version": "1"}


class FakeCall:
    """The parts of a call that rounds touch."""

    def __init__(
        self,
        params: dict[str, Any],
        *,
        method: str = "tools/call",
        principal: tuple[str, ...] = ("anonymous",),
        capabilities: dict[str, Any] | None = None,
        server: str = "shop",
        revision: str = "2026-07-28",
    ) -> None:
        self.method = method
        self.params = params
        self.principal = principal
        self.capabilities = ALL if capabilities is None else capabilities
        self.server = FakeServer(server)
        self.revision = revision
        self.input_responses: dict[str, Any] = {}
        self.request_state: Any = None
        self.retried = False


class FakeService:
    """A handler's sealing, and the failures it was told."""

    def __init__(self, backend: MemoryBackend | None = None, *, single_use: bool = False) -> None:
        self.sealer = Sealer(backend or MemoryBackend())
        self.single_use_state = single_use
        self.reported: list[BaseException] = []

    def report(self, exc: BaseException, call: Any) -> None:
        self.reported.append(exc)


def pay(**more: Any) -> dict[str, Any]:
    return {"name": "pay", "arguments": {"sum": 10}, **more}


async def ask(required: InputRequired, call: FakeCall, service: FakeService) -> dict[str, Any]:
    return await lower(required, call, service)  # type: ignore[arg-type]


async def retry(call: FakeCall, service: FakeService) -> FakeCall:
    await lift(call, service)  # type: ignore[arg-type]
    return call


async def refused(call: FakeCall, service: FakeService) -> McpError:
    with pytest.raises(InvalidParams) as caught:
        await retry(call, service)
    return caught.value


async def sealed(service: FakeService, state: Any = None, **call: Any) -> str:
    """Run a first round that carries state and return the sealed text."""
    result = await ask(input_required(state={"step": 1} if state is None else state), FakeCall(pay(), **call), service)
    text = result["requestState"]
    assert isinstance(text, str)
    return text


@pytest.mark.obligation("S-112", "S-113")
async def test_lowered_result() -> None:
    """The result names its type, holds bare requests in order and sealed state, and reads as the official type."""
    required = input_required(a=NAME, b=elicit_url("Pay", "https://pay.example"), c=list_roots(), state=[1])
    result = await ask(required, FakeCall(pay()), FakeService())
    assert list(result) == ["resultType", "inputRequests", "requestState"]
    assert list(result["inputRequests"]) == ["a", "b", "c"]
    assert all(set(request) == {"method", "params"} for request in result["inputRequests"].values())
    assert result["inputRequests"]["c"] == {"method": "roots/list", "params": {}}
    assert isinstance(mcp_types.InputRequiredResult.model_validate(result).request_state, str)


@pytest.mark.obligation("S-112")
async def test_only_what_there_is() -> None:
    """Without state there is no requestState, and without requests no inputRequests."""
    service = FakeService()
    assert set(await ask(input_required(a=NAME), FakeCall(pay()), service)) == {"resultType", "inputRequests"}
    assert set(await ask(input_required(state=0), FakeCall(pay()), service)) == {"resultType", "requestState"}


@pytest.mark.obligation("S-111")
@pytest.mark.parametrize("method", ["tools/list", "completion/complete", "acme/custom"])
async def test_other_methods_cannot_ask(method: str) -> None:
    """On any other method a round is the server's own error."""
    with pytest.raises(ServerOutputError, match=method):
        await ask(input_required(a=NAME), FakeCall({}, method=method), FakeService())


@pytest.mark.obligation("S-114", "S-041")
async def test_gate_in_order() -> None:
    """The first question that the client did not declare is refused with its key, method and capability."""
    required = input_required(a=list_roots(), b=NAME, c=sample("x", max_tokens=1), state=1)
    service = FakeService()
    for declared, key, missing in (
        ({}, "a", {"roots": {}}),
        ({"roots": {}, "elicitation": {"url": {}}}, "b", {"elicitation": {"form": {}}}),
        ({"roots": {}, "elicitation": {}}, "c", {"sampling": {}}),
    ):
        with pytest.raises(MissingClientCapability) as caught:
            await ask(required, FakeCall(pay(), capabilities=declared), service)
        assert caught.value.code == -32021
        assert caught.value.status == 400
        assert caught.value.data == {"requiredCapabilities": missing}
        assert caught.value.message.startswith(f"Cannot request input '{key}' ({required.requests[key].method}): ")
    wanted = input_required(a=sample("x", max_tokens=1, tool_choice="auto", include_context="allServers"))
    with pytest.raises(MissingClientCapability, match=r"sampling\.tools, sampling\.context"):
        await ask(wanted, FakeCall(pay(), capabilities={}), service)


@pytest.mark.obligation("S-116")
async def test_state_comes_back() -> None:
    """The retry of the same request gets its state and answers, and the parameters no longer hold either."""
    service = FakeService()
    text = await sealed(service, {"step": 1, "names": ["ä"]})
    call = await retry(FakeCall(pay(requestState=text, inputResponses={"a": {"action": "accept"}})), service)
    assert call.request_state == {"step": 1, "names": ["ä"]}
    assert call.input_responses == {"a": {"action": "accept"}}
    assert call.params == pay()
    assert call.retried


async def test_first_round_is_untouched() -> None:
    """A request that brings neither is no retry, and nothing is sealed, opened or logged for it."""
    call = await retry(FakeCall(pay()), FakeService())
    assert (call.params, call.input_responses, call.request_state, call.retried) == (pay(), {}, None, False)


@pytest.mark.obligation("S-111")
async def test_other_methods_keep_their_parameters() -> None:
    """On other methods the two members mean nothing and stay where they are."""
    params = {"requestState": "x", "inputResponses": None}
    call = await retry(FakeCall(dict(params), method="acme/custom"), FakeService())
    assert call.params == params
    assert not call.retried


@pytest.mark.obligation("S-011", "S-118")
async def test_another_worker_serves_the_retry() -> None:
    """A second handler that shares only the backend opens the state; one that does not cannot."""
    backend = MemoryBackend()
    text = await sealed(FakeService(backend))
    assert (await retry(FakeCall(pay(requestState=text)), FakeService(backend))).request_state == {"step": 1}
    await refused(FakeCall(pay(requestState=text)), FakeService())


@pytest.mark.obligation("S-115", "S-116", "S-123", "X-05")
@pytest.mark.parametrize(
    ("params", "more"),
    [
        ({"name": "refund", "arguments": {"sum": 10}}, {}),
        ({"name": "pay", "arguments": {"sum": 11}}, {}),
        ({"name": "pay", "arguments": {"sum": "10"}}, {}),
        ({"name": "pay"}, {}),
        (pay(), {"principal": ("auth", "iss", "eve", "client")}),
        (pay(), {"method": "prompts/get"}),
        ({**pay(), "uri": "pay"}, {"method": "resources/read"}),
        (pay(), {"server": "bank"}),
    ],
)
async def test_foreign_requests(params: dict[str, Any], more: dict[str, Any]) -> None:
    """State does not open for another tool, other arguments, another caller, method or server."""
    service = FakeService()
    text = await sealed(service)
    error = await refused(FakeCall({**params, "requestState": text}, **more), service)
    assert (error.code, error.message) == (-32602, "Invalid or expired requestState")
    assert error.data == {"reason": "invalid_request_state"}


@pytest.mark.obligation("S-116")
async def test_equal_requests() -> None:
    """Arguments that are equal as JSON are the same request, whatever their spelling."""
    service = FakeService()
    first = FakeCall({"name": "t", "arguments": {"a": 1, "b": {"x": 2.0}}})
    text = (await ask(input_required(state=1), first, service))["requestState"]
    again = {"name": "t", "arguments": {"b": {"x": 2}, "a": 1.0}, "requestState": text}
    assert (await retry(FakeCall(again), service)).request_state == 1


@pytest.mark.obligation("S-115", "X-05")
@pytest.mark.parametrize("text", [None, 7, True, "", "junk", [], {"a": 1}, "tl1.AAAA"])
async def test_unsealed_state(text: Any, caplog: pytest.LogCaptureFixture) -> None:
    """What was never sealed is -32602 without a hint; the true reason goes to the log and to on_error only."""
    service = FakeService()
    with caplog.at_level(logging.WARNING, "twolane"):
        error = await refused(FakeCall(pay(requestState=text)), service)
    assert error.data == {"reason": "invalid_request_state"}
    assert error.__cause__ is None
    assert [exc.reason for exc in service.reported if isinstance(exc, SealError)] == ["malformed"]
    assert "malformed" in caplog.text
    assert "junk" not in caplog.text


@pytest.mark.obligation("S-115")
@pytest.mark.parametrize("tail", ["-TAMPERED", "A", "=", " "])
async def test_tampered_state(tail: str) -> None:
    """Sealed state with anything appended is refused."""
    service = FakeService()
    await refused(FakeCall(pay(requestState=await sealed(service) + tail)), service)


@pytest.mark.obligation("S-116", "X-05")
async def test_expired_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """State that is older than its ttl is refused."""
    service = FakeService()
    text = await sealed(service)
    import time

    later = time.time() + 601
    monkeypatch.setattr("twolane.seal.time.time", lambda: later)
    await refused(FakeCall(pay(requestState=text)), service)
    assert [str(exc) for exc in service.reported] == ["sealed text does not open: expired"]


@pytest.mark.obligation("S-119")
@pytest.mark.parametrize("responses", [None, [], "x", {"user_name": 12345}, {"user_name": {"jsonrpc": "2.0"}}])
async def test_malformed_answers(responses: Any) -> None:
    """Malformed answers are -32602 and never reach a handler."""
    error = await refused(FakeCall(pay(inputResponses=responses)), FakeService())
    assert error.data["reason"] == "invalid_input_responses"


@pytest.mark.obligation("S-117")
async def test_single_use() -> None:
    """With single use, one of many retries gets the state, and a malformed retry does not use it up."""
    backend = MemoryBackend()
    services = [FakeService(backend, single_use=True) for _ in range(2)]
    text = await sealed(services[0])
    await refused(FakeCall(pay(requestState=text, inputResponses=None)), services[0])
    results = await asyncio.gather(
        *(retry(FakeCall(pay(requestState=text)), services[number % 2]) for number in range(10)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, FakeCall) for result in results) == 1
    assert sum(isinstance(result, InvalidParams) for result in results) == 9


async def test_reuse_is_the_default() -> None:
    """Without single use the same state opens again, so a lost answer can be fetched by the same retry."""
    service = FakeService()
    text = await sealed(service)
    for _ in range(3):
        assert (await retry(FakeCall(pay(requestState=text)), service)).request_state == {"step": 1}


@pytest.mark.parametrize("state", [object(), float("nan"), {1: 2}, "x" * 60_000])
async def test_state_that_cannot_be_sealed(state: Any) -> None:
    """State that is not JSON or too large is the server's error, reported with its cause and without the value."""
    service = FakeService()
    with pytest.raises(ServerOutputError) as caught:
        await ask(input_required(state=state), FakeCall(pay()), service)
    assert caught.value.code == -32603
    assert "xxx" not in str(caught.value)
    assert isinstance(service.reported[0].__cause__, TypeError | ValueError)


async def test_a_store_that_is_down_is_not_the_clients_fault() -> None:
    """When the keys cannot be read the failure stays what it is, and is not told as bad state."""

    class Broken(MemoryBackend):
        async def keys(self) -> Any:
            raise ConnectionError("the store is down")

    text = await sealed(FakeService())
    with pytest.raises(ConnectionError):
        await retry(FakeCall(pay(requestState=text)), FakeService(Broken()))


@pytest.mark.obligation("S-116")
async def test_reading_a_resource() -> None:
    """State of a resource read is bound to its URI."""
    service = FakeService()
    first = FakeCall({"uri": "note://1"}, method="resources/read")
    text = (await ask(input_required(state=1), first, service))["requestState"]
    same = FakeCall({"uri": "note://1", "requestState": text}, method="resources/read")
    assert (await retry(same, service)).request_state == 1
    await refused(FakeCall({"uri": "note://2", "requestState": text}, method="resources/read"), service)


@pytest.mark.obligation("S-115", "S-119")
@given(
    members=st.dictionaries(
        st.sampled_from(["name", "arguments", "inputResponses", "requestState"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
async def test_no_retry_breaks_it(members: dict[str, Any]) -> None:
    """Whatever a client sends for the two members, the retry is served or refused with -32602."""
    refusal: InvalidParams | None = None
    try:
        await retry(FakeCall(members), FakeService())
    except InvalidParams as exc:
        refusal = exc
    # No text that hypothesis makes up was ever sealed, so a state that is present is always refused.
    assert refusal is not None or "requestState" not in members
    assert refusal is None or refusal.data["reason"] in ("invalid_request_state", "invalid_input_responses")
