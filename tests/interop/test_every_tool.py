"""Every tool, prompt and resource of the example with everything in it, for a client that can do everything, too."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from tests.interop.expected import PROMPTS, RESOURCES, TOOLS
from tests.support import parts

pytestmark = [pytest.mark.peers]

ARGUMENTS: dict[str, dict[str, Any]] = {
    "add_numbers": {"a": 2**53, "b": 1},
    "json_schema_2020_12_tool": {"contactMethod": "phone", "phone": "1"},
    "test_trigger_resource_change": {"uri": "test://watched-resource"},
    "test_sampling": {"prompt": "Say hello"},
    "test_elicitation": {"message": "Who are you?"},
}
PUSHING = {"test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"}
ASKING = {name for name in TOOLS if name.startswith("test_input_required")} | {"test_streaming_elicitation"}
VALUES = {"name": "Ada", "color": "teal", "ok": True, "context": "tea"}


async def form(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Accept any form."""
    assert isinstance(params, types.ElicitRequestFormParams)
    return types.ElicitResult(
        action="accept", content={key: VALUES[key] for key in params.requested_schema["properties"]}
    )


async def model(_context: Any, _params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    """Answer for a model."""
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def roots(_context: Any) -> types.ListRootsResult:
    """Name one root."""
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])


def client(url: str, mode: str) -> Client:
    """A client that declares every capability."""
    return Client(url, mode=mode, elicitation_callback=form, sampling_callback=model, list_roots_callback=roots)


async def test_every_tool_for_2026(everything: parts.Served) -> None:
    """Every tool succeeds, but the one that is made to fail and those that push, which say what to use instead."""
    failed: dict[str, str] = {}
    with anyio.fail_after(60):
        async with client(everything.url, "2026-07-28") as connected:
            await connected.list_tools()
            for name in TOOLS:
                result = await connected.call_tool(name, ARGUMENTS.get(name, {}))
                if result.is_error:
                    failed[name] = result.content[0].text  # type: ignore[union-attr]
    assert set(failed) == PUSHING | {"test_error_handling"}, failed
    assert all("input_required" in failed[name] for name in PUSHING), failed


async def test_every_tool_for_2025(everything: parts.Served) -> None:
    """Without a session a 2025-era client gets every tool but those that need to ask it, which say so at once."""
    failed: dict[str, str] = {}
    with anyio.fail_after(60):
        async with client(everything.url, "legacy") as connected:
            for name in (tool for tool in TOOLS if tool != "test_missing_capability"):
                result = await connected.call_tool(name, ARGUMENTS.get(name, {}))
                if result.is_error:
                    failed[name] = result.content[0].text  # type: ignore[union-attr]
    unasked = {"test_input_required_result_capabilities"}  # it sees no capabilities and so asks for nothing
    assert set(failed) == PUSHING | (ASKING - unasked) | {"test_error_handling"}, failed
    assert all("sessionful lane" in text for name, text in failed.items() if name != "test_error_handling"), failed


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_every_prompt_and_resource(mode: str, everything: parts.Served) -> None:
    """Every prompt that a client of this era can get and every resource comes back with content."""
    arguments = {
        "test_prompt_with_arguments": {"arg1": "a", "arg2": "b"},
        "test_prompt_with_embedded_resource": {"resourceUri": "test://elsewhere"},
    }
    prompts = [name for name in PROMPTS if mode != "legacy" or name != "test_input_required_result_prompt"]
    with anyio.fail_after(60):
        async with client(everything.url, mode) as connected:
            for name in prompts:
                assert (await connected.get_prompt(name, arguments.get(name))).messages
            for uri in RESOURCES:
                assert (await connected.read_resource(uri)).contents
