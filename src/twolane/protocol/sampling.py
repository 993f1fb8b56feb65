"""
The messages and parameters of a sampling request (client/sampling; deprecated there, still part of 2026-07-28).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["plain", "sampling_messages", "sampling_params"]

_BLOCKS = {
    "text": (("text", str),),
    "image": (("data", str), ("mimeType", str)),
    "audio": (("data", str), ("mimeType", str)),
    "tool_use": (("id", str), ("name", str), ("input", dict)),
    "tool_result": (("toolUseId", str), ("content", list)),
}
_INCLUDED = ("none", "thisServer", "allServers")
_CHOICES = ("auto", "required", "none")


def plain(value: Any, what: str) -> dict[str, Any]:
    """
    Return *value* as a JSON object: a mapping is copied, a model of the wire types is dumped.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{what} is a dict or a model of mcp_types, not {type(value).__name__}")
    return dict(dump(mode="json", by_alias=True, exclude_none=True))


def sampling_messages(messages: str | Sequence[Any]) -> list[dict[str, Any]]:
    """
    Return sampling messages in wire form; a text stands for one message of the user.

    Raises:
        TypeError: a message has the wrong shape.
        ValueError: tool uses and tool results do not pair up (S-124).
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": {"type": "text", "text": messages}}]
    if isinstance(messages, bytes | Mapping) or not isinstance(messages, Sequence):
        raise TypeError("messages is a text or a sequence of sampling messages")
    if not messages:
        raise ValueError("messages must not be empty")
    wire = [_message(message, index) for index, message in enumerate(messages)]
    _check_tool_rounds([(message["role"], _blocks(message["content"])) for message in wire])
    return wire


def _message(raw: Any, index: int) -> dict[str, Any]:
    where = f"messages[{index}]"
    message = plain(raw, where)
    if message.get("role") not in ("user", "assistant"):
        raise TypeError(f"{where}: role is 'user' or 'assistant'")
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = {"type": "text", "text": content}
    elif isinstance(content, list | tuple):
        if not content:
            raise TypeError(f"{where}: content must not be empty")
        message["content"] = [_block(block, where) for block in content]
    else:
        message["content"] = _block(content, where)
    return message


def _block(raw: Any, where: str) -> dict[str, Any]:
    block = plain(raw, f"{where}: content")
    members = _BLOCKS.get(str(block.get("type")))
    if members is None:
        raise TypeError(f"{where}: content has one of the types {', '.join(_BLOCKS)}")
    for name, kind in members:
        if not isinstance(block.get(name), kind):
            raise TypeError(f"{where}: {block['type']} content needs {name!r}")
    return block


def _blocks(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [content]


def _check_tool_rounds(messages: list[tuple[str, list[dict[str, Any]]]]) -> None:
    """Check that each round of tool uses is answered, wholly and by nothing else, in the next message."""
    open_uses: set[str] = set()
    for index, (role, blocks) in enumerate(messages):
        results = [block["toolUseId"] for block in blocks if block["type"] == "tool_result"]
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        where = f"messages[{index}]"
        if results and role != "user":
            raise ValueError(f"{where}: tool results belong in a user message")
        if results and len(results) != len(blocks):
            raise ValueError(f"{where}: a message with tool results holds nothing else")
        if uses and role != "assistant":
            raise ValueError(f"{where}: tool uses belong in an assistant message")
        if len(set(results)) != len(results) or len(set(uses)) != len(uses):
            raise ValueError(f"{where}: a tool use id appears twice")
        if set(results) != open_uses:
            raise ValueError(
                f"{where}: each tool use of the message before needs its result here, before anything else"
                if open_uses
                else f"{where}: a tool result answers no tool use of the message before"
            )
        open_uses = set(uses)
    if open_uses:
        raise ValueError("the last message uses tools; their results must follow before the model is asked again")


def sampling_params(
    *,
    max_tokens: int,
    system_prompt: str | None,
    temperature: float | None,
    model_preferences: Any,
    stop_sequences: Sequence[str] | None,
    include_context: str | None,
    metadata: Mapping[str, Any] | None,
    tools: Sequence[Any] | None,
    tool_choice: Any,
) -> dict[str, Any]:
    """
    Return the parameters beside the messages in wire form; what is None is left out.

    Raises:
        TypeError: a parameter has the wrong type.
        ValueError: a parameter has a value that the schema does not allow.
    """
    if type(max_tokens) is not int:
        raise TypeError("max_tokens is an integer")
    if max_tokens < 1:
        raise ValueError("max_tokens must be positive")
    params: dict[str, Any] = {"maxTokens": max_tokens}
    if system_prompt is not None:
        if not isinstance(system_prompt, str):
            raise TypeError("system_prompt is a string")
        params["systemPrompt"] = system_prompt
    if temperature is not None:
        if isinstance(temperature, bool) or not isinstance(temperature, int | float):
            raise TypeError("temperature is a number")
        if not math.isfinite(temperature):
            raise ValueError("temperature must be finite")
        params["temperature"] = temperature
    if model_preferences is not None:
        params["modelPreferences"] = plain(model_preferences, "model_preferences")
    if stop_sequences is not None:
        if isinstance(stop_sequences, str) or not all(isinstance(text, str) for text in stop_sequences):
            raise TypeError("stop_sequences is a sequence of strings")
        params["stopSequences"] = list(stop_sequences)
    if include_context is not None:
        if include_context not in _INCLUDED:
            raise ValueError(f"include_context is one of {', '.join(_INCLUDED)}")
        params["includeContext"] = include_context
    if metadata is not None:
        params["metadata"] = plain(metadata, "metadata")
    if tools is not None:
        params["tools"] = [_tool(tool, index) for index, tool in enumerate(tools)]
    if tool_choice is not None:
        params["toolChoice"] = _tool_choice(tool_choice)
    return params


def _tool(raw: Any, index: int) -> dict[str, Any]:
    tool = plain(raw, f"tools[{index}]")
    if not isinstance(tool.get("name"), str) or not isinstance(tool.get("inputSchema"), Mapping):
        raise TypeError(f"tools[{index}] needs a name and an inputSchema")
    return tool


def _tool_choice(raw: Any) -> dict[str, Any]:
    choice = {"mode": raw} if isinstance(raw, str) else plain(raw, "tool_choice")
    if choice.get("mode", "auto") not in _CHOICES:
        raise ValueError(f"the mode of tool_choice is one of {', '.join(_CHOICES)}")
    return choice
