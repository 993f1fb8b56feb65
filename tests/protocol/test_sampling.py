"""Sampling messages and parameters."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest

from twolane.protocol.inputs import sample
from twolane.protocol.sampling import sampling_messages

TEXT = {"type": "text", "text": "hi"}


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "t", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": name, "content": []}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def test_text_is_one_user_message() -> None:
    """A text stands for one text message of the user."""
    assert sample("hi", max_tokens=5).params == {
        "messages": [{"role": "user", "content": TEXT}],
        "maxTokens": 5,
    }


def test_messages_of_every_kind() -> None:
    """Dicts, dicts with a plain text and models of the wire types are taken, alone and mixed."""
    model = mcp_types.SamplingMessage(role="assistant", content=mcp_types.TextContent(text="hi"))
    wire = sampling_messages([{"role": "user", "content": "hi"}, model, user(TEXT, mcp_types.TextContent(text="hi"))])
    assert wire[0] == {"role": "user", "content": TEXT}
    assert wire[1] == {"role": "assistant", "content": TEXT}
    assert wire[2] == {"role": "user", "content": [TEXT, TEXT]}


def test_parameters_in_wire_form() -> None:
    """Every parameter goes out under its name in the schema, models and shorthands included."""
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    request = sample(
        "hi",
        max_tokens=5,
        system_prompt="Be brief",
        temperature=0.5,
        model_preferences=mcp_types.ModelPreferences(cost_priority=0.5),
        stop_sequences=("stop",),
        include_context="none",
        metadata={"a": 1},
        tools=[tool, mcp_types.Tool(name="u", input_schema={"type": "object"})],
        tool_choice="required",
    )
    params = request.params
    assert params["systemPrompt"] == "Be brief"
    assert params["temperature"] == 0.5
    assert params["modelPreferences"] == {"costPriority": 0.5}
    assert params["stopSequences"] == ["stop"]
    assert params["includeContext"] == "none"
    assert params["metadata"] == {"a": 1}
    assert params["tools"] == [tool, {"name": "u", "inputSchema": {"type": "object"}}]
    assert params["toolChoice"] == {"mode": "required"}
    mcp_types.CreateMessageRequestParams.model_validate(params)


@pytest.mark.obligation("S-124")
@pytest.mark.parametrize(
    "messages",
    [
        [user(TEXT), assistant(use("1"), use("2")), user(result("2"), result("1"))],
        [user(TEXT), assistant(TEXT, use("1")), user(result("1")), assistant(use("1")), user(result("1")), user(TEXT)],
    ],
)
def test_paired_tool_uses(messages: list[Any]) -> None:
    """Each tool use that is answered in the next message, and by nothing beside it, is fine."""
    assert sampling_messages(messages) == messages


@pytest.mark.obligation("S-124")
@pytest.mark.parametrize(
    "messages",
    [
        [user(TEXT), assistant(use("1"))],
        [user(TEXT), assistant(use("1")), user(TEXT)],
        [user(TEXT), assistant(use("1"), use("2")), user(result("1"))],
        [user(TEXT), assistant(use("1")), user(result("1"), TEXT)],
        [user(TEXT), assistant(use("1")), user(result("2"))],
        [user(TEXT), assistant(use("1")), assistant(TEXT), user(result("1"))],
        [user(TEXT), assistant(use("1"), use("1")), user(result("1"))],
        [user(TEXT), assistant(use("1")), user(result("1"), result("1"))],
        [user(result("1"))],
        [user(use("1")), user(result("1"))],
        [user(TEXT), assistant(use("1")), assistant(result("1"))],
    ],
)
def test_unpaired_tool_uses(messages: list[Any]) -> None:
    """Tool uses without their results, results without their uses, and mixed messages are a ValueError."""
    with pytest.raises(ValueError, match=r"tool"):
        sampling_messages(messages)


@pytest.mark.parametrize(
    "messages",
    [
        7,
        b"hi",
        {"role": "user", "content": "hi"},
        [7],
        [{"role": "system", "content": "hi"}],
        [{"role": "user"}],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": {"type": "video"}}],
        [{"role": "user", "content": {"type": "text"}}],
        [{"role": "user", "content": {"type": "image", "data": "x"}}],
    ],
)
def test_misshapen_messages(messages: Any) -> None:
    """What is no sampling message is a TypeError."""
    with pytest.raises(TypeError):
        sampling_messages(messages)


@pytest.mark.parametrize(
    ("parameter", "value", "error"),
    [
        ("max_tokens", 0, ValueError),
        ("max_tokens", True, TypeError),
        ("max_tokens", "5", TypeError),
        ("system_prompt", 1, TypeError),
        ("temperature", float("nan"), ValueError),
        ("temperature", "hot", TypeError),
        ("model_preferences", "fast", TypeError),
        ("stop_sequences", "stop", TypeError),
        ("stop_sequences", [1], TypeError),
        ("include_context", "all", ValueError),
        ("metadata", [1], TypeError),
        ("tools", [{"name": "t"}], TypeError),
        ("tool_choice", "maybe", ValueError),
        ("tool_choice", {"mode": "maybe"}, ValueError),
        ("tool_choice", 1, TypeError),
    ],
)
def test_senseless_parameters(parameter: str, value: Any, error: type[Exception]) -> None:
    """A parameter of the wrong type or value fails where it is given, by name."""
    with pytest.raises(error, match=parameter):
        sample("hi", **{"max_tokens": 5, parameter: value})


def test_no_messages() -> None:
    """An empty sequence asks nothing and is a ValueError."""
    with pytest.raises(ValueError, match="empty"):
        sample([], max_tokens=5)
