"""Input rounds: what is asked, what comes back, and what a client must have declared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from twolane.errors import INVALID_PARAMS, InvalidParams
from twolane.protocol.inputs import (
    InputRequest,
    InputRequired,
    accepted_content,
    elicit,
    elicit_url,
    input_required,
    input_response,
    lift_responses,
    list_roots,
    required_capability,
    sample,
    to_wire,
)

MODERN = "2026-07-28"
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


class Name(BaseModel):
    name: str


FORM = elicit("What is your name?", Name)
PAGE = elicit_url("Please pay", "https://pay.example/1")


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


class TestAsking:
    """What a handler builds."""

    def test_elicit(self) -> None:
        """A form goes out in form mode with a flat schema."""
        assert to_wire(FORM, MODERN) == {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "What is your name?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "title": "Name"}},
                    "required": ["name"],
                },
            },
        }

    @pytest.mark.obligation("S-122")
    @pytest.mark.parametrize(
        "url", ["https://a.example", "http://localhost:8080/x?y=1#z", "https://[::1]:1/%20", "HTTPS://A.example/"]
    )
    def test_valid_urls(self, url: str) -> None:
        """An absolute http or https URL goes out as it is."""
        assert elicit_url("Open", url).params == {"mode": "url", "message": "Open", "url": url}

    @pytest.mark.obligation("S-122", "X-12")
    @pytest.mark.parametrize(
        "url",
        [
            "",
            "/relative",
            "pay.example",
            "//pay.example/1",
            "https://",
            "https:///path",
            "ftp://a.example",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://ann@a.example",
            "https://ann:secret@a.example/",
            "https://@a.example",
            "https://a.example:99999/",
            "https://a.example:x/",
            "https://[::1/",
            "https://a.example/ x",
            "https://a.example/\n",
            "https://a.example\\@b.example",
            "https://ä.example/",
            'https://a.example/"',
        ],
    )
    def test_invalid_urls(self, url: str) -> None:
        """Anything but a clean absolute http or https URL without user name or password is a ValueError."""
        with pytest.raises(ValueError, match="URL") as caught:
            elicit_url("Open", url)
        assert "secret" not in str(caught.value)

    def test_list_roots(self) -> None:
        """The request for roots has empty parameters."""
        assert to_wire(list_roots(), MODERN) == {"method": "roots/list", "params": {}}

    @pytest.mark.parametrize("build", [lambda: elicit(1, Name), lambda: elicit_url(None, "https://a.example")])  # type: ignore[arg-type]
    def test_messages_are_strings(self, build: Any) -> None:
        """A message that is no string is a TypeError."""
        with pytest.raises(TypeError, match="message"):
            build()

    def test_older_revisions_have_no_mode(self) -> None:
        """Before 2025-11-25 an elicitation says no mode; the request itself stays as it was."""
        assert "mode" not in to_wire(FORM, "2025-06-18")["params"]
        assert to_wire(FORM, "2025-11-25")["params"]["mode"] == "form"
        assert to_wire(InputRequest("elicitation/create", {"message": "m"}), MODERN)["params"]["mode"] == "form"
        assert FORM.params["mode"] == "form"

    @pytest.mark.obligation("S-113")
    def test_only_three_methods(self) -> None:
        """A request of any other method cannot be made."""
        with pytest.raises(ValueError, match="ping"):
            InputRequest("ping", {})

    @pytest.mark.obligation("S-113")
    def test_the_wire_types_agree(self) -> None:
        """What goes out is what the official types read."""
        for request in (FORM, PAGE, sample("hi", max_tokens=5), list_roots()):
            wire = to_wire(request, MODERN)
            assert set(wire) == {"method", "params"}
            result = mcp_types.InputRequiredResult.model_validate(
                {"resultType": "input_required", "inputRequests": {"k": wire}}
            )
            assert result.input_requests is not None
            assert result.input_requests["k"].method == request.method


class TestInputRequired:
    """What a handler returns."""

    def test_keys_from_both_sides(self) -> None:
        """Requests come by keyword and by mapping; both keep their order."""
        required = input_required({"a-b": FORM, "state": PAGE}, c=list_roots(), state={"step": 1})
        assert list(required.requests) == ["a-b", "state", "c"]
        assert required.state == {"step": 1}

    @pytest.mark.obligation("S-112")
    @pytest.mark.parametrize("state", [0, False, "", {}, []])
    def test_state_alone(self, state: Any) -> None:
        """A state alone is enough, however empty, as long as it is not None."""
        assert input_required(state=state).requests == {}

    @pytest.mark.obligation("S-112")
    def test_neither(self) -> None:
        """With neither a request nor a state it is a ValueError, however it is made."""
        builds: list[Callable[[], InputRequired]] = [
            input_required,
            lambda: input_required({}),
            lambda: InputRequired({}),
        ]
        for build in builds:
            with pytest.raises(ValueError, match="at least one"):
                build()

    @pytest.mark.obligation("S-113")
    def test_doubled_keys(self) -> None:
        """A key that is given twice is a ValueError."""
        with pytest.raises(ValueError, match="'a' is given twice"):
            input_required({"a": FORM}, a=PAGE)

    @pytest.mark.parametrize("requests", [{"": FORM}, {1: FORM}, {"a": {"method": "roots/list"}}, {"a": None}])
    def test_junk(self, requests: Any) -> None:
        """Keys that are no names and values that are no requests are a TypeError."""
        with pytest.raises(TypeError):
            input_required(requests)

    def test_state_stays_out_of_repr(self) -> None:
        """The repr does not show the state, which may be confidential."""
        assert "hunter2" not in repr(input_required(state="hunter2"))


class TestLiftResponses:
    """What a retry may bring."""

    @pytest.mark.obligation("S-119")
    def test_bare_results_pass(self) -> None:
        """Objects pass whatever their keys and members are, for nobody reads the unknown ones."""
        raw = {"a": accept(name="x"), "unknown": {"foo": 1}, "b": {"roots": []}, "c": {"result": 1}, "d": {}}
        assert lift_responses(raw) == raw

    @pytest.mark.obligation("S-119")
    @pytest.mark.parametrize("raw", [None, [], "x", 7, True])
    def test_not_an_object(self, raw: Any) -> None:
        """Null and anything else that is no object is -32602."""
        with pytest.raises(InvalidParams) as caught:
            lift_responses(raw)
        assert caught.value.code == INVALID_PARAMS
        assert caught.value.data == {"reason": "invalid_input_responses"}

    @pytest.mark.obligation("S-119")
    @pytest.mark.parametrize(
        "answer",
        [
            12345,
            None,
            "x",
            [],
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"id": 1, "result": {}},
            {"method": "elicitation/create", "params": {}},
        ],
    )
    def test_not_a_bare_result(self, answer: Any) -> None:
        """An answer that is no object, or a whole JSON-RPC message, is -32602 and its key is named."""
        with pytest.raises(InvalidParams, match="'user_name'") as caught:
            lift_responses({"fine": {}, "user_name": answer})
        assert caught.value.data == {"reason": "invalid_input_responses", "key": "user_name"}


@dataclass
class Holder:
    """Stands for a Context: it has the answers."""

    input_responses: dict[str, Any] = field(default_factory=dict)


class TestReading:
    """What a handler reads."""

    def test_accepted(self) -> None:
        """An accepted form gives its content: as an instance, as checked fields, or as it is."""
        answers = {"k": accept(name="Ann")}
        name = accepted_content(answers, "k", Name)
        assert name == Name(name="Ann")
        assert accepted_content(Holder(answers), "k", FORM.params["requestedSchema"]) == {"name": "Ann"}
        assert accepted_content(answers, "k") == {"name": "Ann"}

    def test_opened_page(self) -> None:
        """An accepted URL has no content and reads as an empty dict, which is not None."""
        assert accepted_content({"k": {"action": "accept"}}, "k") == {}

    @pytest.mark.obligation("S-119", "S-120")
    @pytest.mark.parametrize(
        "answer",
        [
            {"action": "decline"},
            {"action": "cancel", "content": {"name": "Ann"}},
            {"action": "ACCEPT", "content": {"name": "Ann"}},
            {"action": ["accept"], "content": {"name": "Ann"}},
            {"content": {"name": "Ann"}},
            accept(name=12345),
            accept(),
            {"action": "accept"},
            {"action": "accept", "content": [1]},
            {"roots": []},
            {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
            {},
        ],
    )
    def test_everything_else_is_none(self, answer: dict[str, Any]) -> None:
        """Declined, cancelled, misshapen, invalid, and answers of another kind give None."""
        assert accepted_content({"k": answer}, "k", Name) is None

    @pytest.mark.obligation("S-119")
    @pytest.mark.parametrize("responses", [None, {}, {"other": accept(name="x")}, Holder(), {"k": 7}])
    def test_missing(self, responses: Any) -> None:
        """A missing answer is None, and ``missing`` in the other view."""
        assert accepted_content(responses, "k", Name) is None
        assert input_response(responses, "k").kind == "missing"

    @pytest.mark.obligation("S-120")
    def test_the_view_of_forms(self) -> None:
        """All three actions reach the handler; content comes with acceptance only."""
        accepted = input_response({"k": accept(name="Ann")}, "k")
        assert (accepted.kind, accepted.action, accepted.content) == ("elicit", "accept", {"name": "Ann"})
        for action in ("decline", "cancel"):
            answer = input_response({"k": {"action": action, "content": {"name": "Ann"}}}, "k")
            assert (answer.kind, answer.action, answer.content) == ("elicit", action, None)
        nested = input_response({"k": accept(name={"a": 1})}, "k")
        assert (nested.action, nested.content) == ("accept", None)

    def test_the_view_of_the_others(self) -> None:
        """Sampling gives the message, roots give the list, and neither is taken for the other."""
        message = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
        sampled = input_response({"k": message}, "k")
        assert (sampled.kind, sampled.message) == ("sample", message)
        rooted = input_response({"k": {"roots": [{"uri": "file:///a"}]}}, "k")
        assert (rooted.kind, rooted.roots) == ("roots", ({"uri": "file:///a"},))
        assert input_response({"k": {"roots": []}}, "k").kind == "roots"
        assert input_response({"k": {"roots": [{}]}}, "k").kind == "missing"
        assert input_response({"k": {"role": "assistant"}}, "k").kind == "missing"

    @pytest.mark.obligation("S-119")
    @given(
        answer=st.dictionaries(
            st.sampled_from(["action", "content", "roots", "role", "model", "x"]),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.text()
                | st.sampled_from(["accept", "user", "assistant"]),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=5,
            ),
        )
    )
    def test_nothing_raises(self, answer: dict[str, Any]) -> None:
        """No answer of a client makes a reader raise."""
        input_response({"k": answer}, "k")
        for schema in (None, Name, FORM.params["requestedSchema"]):
            accepted_content({"k": answer}, "k", schema)


@pytest.mark.obligation("S-114")
@pytest.mark.parametrize(
    ("request_", "declared", "missing"),
    [
        (FORM, {"elicitation": {"form": {}}}, None),
        (FORM, {"elicitation": {}}, None),
        (FORM, {"elicitation": {"vendor": {}}}, None),
        (FORM, {"elicitation": {"form": {}, "url": {}}}, None),
        (FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (FORM, {}, {"elicitation": {"form": {}}}),
        (FORM, {"elicitation": None}, {"elicitation": {"form": {}}}),
        (FORM, {"sampling": {}}, {"elicitation": {"form": {}}}),
        (PAGE, {"elicitation": {"url": {}}}, None),
        (PAGE, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (PAGE, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        (PAGE, {"elicitation": {"url": True}}, {"elicitation": {"url": {}}}),
        (sample("x", max_tokens=1), {"sampling": {}}, None),
        (sample("x", max_tokens=1), {}, {"sampling": {}}),
        (sample("x", max_tokens=1, tools=[TOOL]), {"sampling": {"tools": {}}}, None),
        (sample("x", max_tokens=1, tools=[TOOL]), {"sampling": {}}, {"sampling": {"tools": {}}}),
        (sample("x", max_tokens=1, tools=[]), {"sampling": {}}, {"sampling": {"tools": {}}}),
        (sample("x", max_tokens=1, tools=[TOOL]), {}, {"sampling": {"tools": {}}}),
        (sample("x", max_tokens=1, tool_choice="auto"), {"sampling": {}}, {"sampling": {"tools": {}}}),
        (sample("x", max_tokens=1, include_context="none"), {"sampling": {}}, None),
        (sample("x", max_tokens=1, include_context="thisServer"), {"sampling": {"context": {}}}, None),
        (sample("x", max_tokens=1, include_context="allServers"), {"sampling": {}}, {"sampling": {"context": {}}}),
        (list_roots(), {"roots": {}}, None),
        (list_roots(), {}, {"roots": {}}),
        (list_roots(), {"roots": False}, {"roots": {}}),
    ],
)
def test_capability_gate(request_: InputRequest, declared: dict[str, Any], missing: dict[str, Any] | None) -> None:
    """Each question needs its own declaration, and what is missing comes back as a ClientCapabilities object."""
    assert required_capability(request_, declared) == missing


def test_light_import() -> None:
    """Importing the module loads neither the wire types nor pydantic's models."""
    script = "import sys, twolane.protocol.inputs; sys.exit('mcp_types' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
