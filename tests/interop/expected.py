"""What every client finds on the example with everything in it."""

from __future__ import annotations

from typing import Any

__all__ = ["PROMPTS", "RESOURCES", "TEMPLATES", "TOOLS", "common"]

_ROUNDS = "elicitation sampling list_roots multiple_inputs capabilities request_state tampered_state multi_round"
TOOLS = [
    "test_simple_text",
    "add_numbers",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_x_mcp_header",
    "test_missing_capability",
    "json_schema_2020_12_tool",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_streaming_elicitation",
    "test_reconnection",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_trigger_resource_change",
    *(f"test_input_required_result_{name}" for name in _ROUNDS.split()),
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
]
PROMPTS = [
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
]
RESOURCES = ["test://static-text", "test://static-binary", "test://watched-resource"]
TEMPLATES = ["test://template/{id}/data"]


def common(*, modern: bool, structured: bool = True) -> dict[str, Any]:
    """What a client script reports, whichever client it drives.

    Args:
        modern: Whether 2026-07-28 was spoken.
        structured: Whether the client's revision knows ``structuredContent``.
    """
    return {
        "tools": TOOLS,
        "call": "8",
        "structured": {"result": 8} if structured else None,
        "progress": [0, 50, 100],
        "tool_error": [True, "This tool intentionally returns an error for testing"],
        "unknown_tool": -32602,
        "prompts": PROMPTS,
        "prompt": "Prompt with arguments: arg1='one', arg2='two'",
        "resources": RESOURCES,
        "templates": TEMPLATES,
        "resource": "42",
        "unknown_resource": -32602 if modern else -32002,
    }
