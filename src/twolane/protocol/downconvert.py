"""
Results for older revisions: fields and content a revision does not know are left out or told as text
(the five schemas; L-043, L-044).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from twolane.protocol.envelope import SERVER_INFO

__all__ = ["downconvert"]

# The first revision that knows each field; fields not named here exist in all of them.
_IMPLEMENTATION = {
    "title": "2025-06-18",
    "icons": "2025-11-25",
    "description": "2025-11-25",
    "websiteUrl": "2025-11-25",
}
_TOOL = {
    "annotations": "2025-03-26",
    "title": "2025-06-18",
    "outputSchema": "2025-06-18",
    "_meta": "2025-06-18",
    "icons": "2025-11-25",
    "execution": "2025-11-25",
}
_LISTED = {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
_BLOCK = {"_meta": "2025-06-18"}
_ARGUMENT = {"title": "2025-06-18"}
_BLOCK_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}

#: Members of the modern era that no legacy result has.
_MODERN_MEMBERS = ("resultType", "ttlMs", "cacheScope")


def downconvert(method: str, result: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return *result* of *method* as the legacy *revision* defines it. The input is not changed."""
    result = {key: value for key, value in result.items() if key not in _MODERN_MEMBERS}
    if (meta := result.get("_meta")) and SERVER_INFO in meta:
        result["_meta"] = {key: value for key, value in meta.items() if key != SERVER_INFO}
    convert = _METHODS.get(method)
    return result if convert is None else convert(result, revision)


def _without(item: dict[str, Any], since: dict[str, str], revision: str) -> dict[str, Any]:
    item = {key: value for key, value in item.items() if key not in since or since[key] <= revision}
    notes = item.get("annotations")
    if revision < "2025-06-18" and isinstance(notes, dict) and "lastModified" in notes:
        item["annotations"] = {key: value for key, value in notes.items() if key != "lastModified"}
    return item


def _listed(member: str, since: dict[str, str]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    def convert(result: dict[str, Any], revision: str) -> dict[str, Any]:
        return {**result, member: [_without(item, since, revision) for item in result[member]]}

    return convert


def _tools(result: dict[str, Any], revision: str) -> dict[str, Any]:
    tools = [_without(tool, _TOOL, revision) for tool in result["tools"]]
    for tool in tools:
        schema = tool.get("outputSchema")
        # Legacy structured content is an object, so a schema that allows anything else is not announced.
        if "outputSchema" in tool and (not isinstance(schema, dict) or schema.get("type") != "object"):
            del tool["outputSchema"]
    return {**result, "tools": tools}


def _prompts(result: dict[str, Any], revision: str) -> dict[str, Any]:
    prompts = [_without(prompt, _LISTED, revision) for prompt in result["prompts"]]
    for prompt in prompts:
        if "arguments" in prompt:
            prompt["arguments"] = [_without(argument, _ARGUMENT, revision) for argument in prompt["arguments"]]
    return {**result, "prompts": prompts}


def _call_tool(result: dict[str, Any], revision: str) -> dict[str, Any]:
    result = {**result, "content": list(_blocks(result.get("content", ()), revision))}
    if "structuredContent" in result and (revision < "2025-06-18" or not isinstance(result["structuredContent"], dict)):
        del result["structuredContent"]
    return result


def _get_prompt(result: dict[str, Any], revision: str) -> dict[str, Any]:
    messages = []
    for message in result["messages"]:
        (content,) = _blocks((message["content"],), revision)
        messages.append({**message, "content": content})
    return {**result, "messages": messages}


def _read_resource(result: dict[str, Any], revision: str) -> dict[str, Any]:
    if revision >= "2025-06-18":
        return result
    contents = [{key: value for key, value in item.items() if key != "_meta"} for item in result["contents"]]
    return {**result, "contents": contents}


def _initialize(result: dict[str, Any], revision: str) -> dict[str, Any]:
    capabilities = result["capabilities"]
    if revision < "2025-03-26":
        capabilities = {key: value for key, value in capabilities.items() if key != "completions"}
    info = _without(result["serverInfo"], _IMPLEMENTATION, revision)
    return {**result, "capabilities": capabilities, "serverInfo": info}


def _blocks(content: Iterable[dict[str, Any]], revision: str) -> Iterable[dict[str, Any]]:
    for block in content:
        kind = block.get("type")
        if kind in _BLOCK_SINCE and revision < _BLOCK_SINCE[kind]:
            yield {"type": "text", "text": _told(block)}
        elif kind == "resource_link":
            yield _without(block, _LISTED, revision)
        elif revision < "2025-06-18":
            yield _without(block, _BLOCK, revision)
        else:
            yield block


def _told(block: dict[str, Any]) -> str:
    """Tell in a sentence what a block held that this revision cannot carry."""
    if block["type"] == "audio":
        return f"[audio of type {block.get('mimeType', 'unknown')}, which this protocol revision cannot carry]"
    return f"{block.get('name', 'resource')}: {block.get('uri', '')}"


_METHODS: dict[str, Callable[[dict[str, Any], str], dict[str, Any]]] = {
    "initialize": _initialize,
    "tools/list": _tools,
    "tools/call": _call_tool,
    "prompts/list": _prompts,
    "prompts/get": _get_prompt,
    "resources/list": _listed("resources", _LISTED),
    "resources/templates/list": _listed("resourceTemplates", _LISTED),
    "resources/read": _read_resource,
}
