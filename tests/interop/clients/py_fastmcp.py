"""Drive a server with fastmcp's client and print one JSON line. Usage: py_fastmcp.py URL"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version

from fastmcp import Client
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import MCPError


async def main(url):
    """List and call as an application built on fastmcp does."""
    out = {"client": version("fastmcp")}
    steps = []

    async def on_progress(progress, _total, _message):
        steps.append(progress)

    async with Client(url, progress_handler=on_progress, timeout=20) as client:
        out["revision"] = client.protocol_version
        out["tools"] = [tool.name for tool in await client.list_tools()]
        called = await client.call_tool("add_numbers", {"a": 5, "b": 3})
        out["call"] = called.content[0].text
        out["structured"] = called.structured_content
        await client.call_tool("test_tool_with_progress", {})
        out["progress"] = steps
        try:
            await client.call_tool("test_error_handling", {})
        except ToolError as error:
            out["tool_error"] = [True, str(error)]
        try:
            await client.call_tool("no_such_tool", {})
        except MCPError as error:
            out["unknown_tool"] = error.error.code
        out["prompts"] = [prompt.name for prompt in await client.list_prompts()]
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        out["prompt"] = prompt.messages[0].content.text
        out["resources"] = [str(resource.uri) for resource in await client.list_resources()]
        out["templates"] = [template.uri_template for template in await client.list_resource_templates()]
        contents = await client.read_resource("test://template/42/data")
        contents = getattr(contents, "contents", contents)
        out["resource"] = json.loads(contents[0].text)["id"]
        try:
            await client.read_resource("test://nothing-here")
        except MCPError as error:
            out["unknown_resource"] = error.error.code
    return out


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(asyncio.wait_for(main(sys.argv[1]), 60))) + "\n")
