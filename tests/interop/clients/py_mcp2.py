"""Drive a server with the official Python client 2.x and print one JSON line. Usage: py_mcp2.py URL MODE"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError


async def answer_form(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Fill in any form that asks for a name or a colour."""
    wanted = params.requested_schema["properties"]  # type: ignore[union-attr]
    known = {"name": "Ada", "color": "teal"}
    return types.ElicitResult(action="accept", content={key: known[key] for key in wanted})


async def listen(client: Client) -> dict[str, Any]:
    """Hear of one change of the tools and none of anything else."""
    async with client.listen(tools_list_changed=True) as stream:
        honored = stream.honored.model_dump(by_alias=True, exclude_none=True)
        await client.call_tool("test_trigger_prompt_change")
        await client.call_tool("test_trigger_tool_change")
        async with asyncio.timeout(10):
            event = await anext(stream)
    return {"honored": honored, "event": type(event).__name__}


async def main(url: str, mode: str) -> dict[str, Any]:
    """Do everything the server can show in this mode."""
    out: dict[str, Any] = {}
    async with Client(url, mode=mode, elicitation_callback=answer_form, read_timeout_seconds=20) as client:
        out["revision"] = client.protocol_version
        # A pinned revision is adopted without asking the server who it is.
        out["server"] = client.server_info.name if client.server_info else None
        out["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("add_numbers", {"a": 5, "b": 3})
        out["call"] = called.content[0].text  # type: ignore[union-attr]
        out["structured"] = called.structured_content
        mirrored = await client.call_tool("test_x_mcp_header", {"region": "Zürich 1"})
        out["header"] = mirrored.content[0].text  # type: ignore[union-attr]

        steps: list[float] = []

        async def on_progress(progress: float, _total: float | None, _message: str | None) -> None:
            steps.append(progress)

        await client.call_tool("test_tool_with_progress", progress_callback=on_progress)
        out["progress"] = steps
        failed = await client.call_tool("test_error_handling")
        out["tool_error"] = [failed.is_error, failed.content[0].text]  # type: ignore[union-attr]
        try:
            unknown = await client.call_tool("no_such_tool", {})
            out["unknown_tool"] = ["isError", unknown.is_error]
        except MCPError as error:
            out["unknown_tool"] = error.error.code
        out["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        out["prompt"] = prompt.messages[0].content.text  # type: ignore[union-attr]
        out["resources"] = [str(resource.uri) for resource in (await client.list_resources()).resources]
        out["templates"] = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        read = await client.read_resource("test://template/42/data")
        out["resource"] = json.loads(read.contents[0].text)["id"]  # type: ignore[union-attr]
        try:
            await client.read_resource("test://nothing-here")
        except MCPError as error:
            out["unknown_resource"] = error.error.code
        if client.protocol_version == "2026-07-28":
            asked = await client.call_tool("test_input_required_result_multi_round")
            out["input_required"] = asked.content[0].text  # type: ignore[union-attr]
            out["listen"] = await listen(client)
    return out


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2]), 60))) + "\n")
