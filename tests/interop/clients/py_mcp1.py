"""Drive a server with an official Python client 1.x and print one JSON line. Usage: py_mcp1.py URL"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from importlib.metadata import version

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


async def main(url):
    """Do everything that this generation of clients can."""
    out = {"client": version("mcp")}
    async with streamablehttp_client(url) as (read, write, _session_id), ClientSession(read, write) as session:
        hello = await session.initialize()
        out["revision"] = hello.protocolVersion
        out["server"] = hello.serverInfo.name
        await session.send_ping()
        out["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        called = await session.call_tool("add_numbers", {"a": 5, "b": 3})
        out["call"] = called.content[0].text
        out["structured"] = getattr(called, "structuredContent", None)
        if "progress_callback" in inspect.signature(session.call_tool).parameters:
            steps = []

            async def on_progress(progress, _total, _message):
                steps.append(progress)

            await session.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
            out["progress"] = steps
        failed = await session.call_tool("test_error_handling", {})
        out["tool_error"] = [failed.isError, failed.content[0].text]
        try:
            unknown = await session.call_tool("no_such_tool", {})
            out["unknown_tool"] = ["isError", unknown.isError]
        except McpError as error:
            out["unknown_tool"] = error.error.code
        out["prompts"] = [prompt.name for prompt in (await session.list_prompts()).prompts]
        prompt = await session.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        out["prompt"] = prompt.messages[0].content.text
        out["resources"] = [str(resource.uri) for resource in (await session.list_resources()).resources]
        templates = (await session.list_resource_templates()).resourceTemplates
        out["templates"] = [template.uriTemplate for template in templates]
        text = (await session.read_resource(AnyUrl("test://template/42/data"))).contents[0].text
        out["resource"] = json.loads(text)["id"]
        try:
            await session.read_resource(AnyUrl("test://nothing-here"))
        except McpError as error:
            out["unknown_resource"] = error.error.code
    return out


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(asyncio.wait_for(main(sys.argv[1]), 60))) + "\n")
