"""Results for older revisions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from twolane.protocol.downconvert import downconvert
from twolane.protocol.envelope import SERVER_INFO
from twolane.protocol.revisions import LEGACY

REVISIONS = sorted(LEGACY)
ICONS = [{"src": "https://x.example/i.png"}]
OUTPUT = {"type": "object", "properties": {}}
NOTES = {"audience": ["user"], "priority": 1, "lastModified": "2025-01-01T00:00:00Z"}

#: The first revision that knows a field (CHECKLIST 4.3, after the five schemas).
SINCE = {
    "tool": {
        "name": "2024-11-05",
        "description": "2024-11-05",
        "inputSchema": "2024-11-05",
        "annotations": "2025-03-26",
        "title": "2025-06-18",
        "outputSchema": "2025-06-18",
        "_meta": "2025-06-18",
        "icons": "2025-11-25",
        "execution": "2025-11-25",
    },
    "listed": {"name": "2024-11-05", "title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"},
    "argument": {"name": "2024-11-05", "required": "2024-11-05", "title": "2025-06-18"},
    "server": {
        "name": "2024-11-05",
        "version": "2024-11-05",
        "title": "2025-06-18",
        "icons": "2025-11-25",
        "description": "2025-11-25",
        "websiteUrl": "2025-11-25",
    },
}


def known(table: str, revision: str) -> set[str]:
    return {field for field, since in SINCE[table].items() if since <= revision}


def convert(method: str, result: dict[str, Any], revision: str) -> Any:
    """Converts, and asserts that the input stayed as it was."""
    before = copy.deepcopy(result)
    converted = downconvert(method, result, revision)
    assert result == before
    return converted


EACH = pytest.mark.parametrize("revision", REVISIONS)


@pytest.mark.obligation("L-014", "L-044")
@EACH
@pytest.mark.parametrize("method", ["tools/call", "completion/complete", "ping", "x/custom"])
def test_nothing_modern_is_left(method: str, revision: str) -> None:
    """No result type, no cache hint and no server identity in _meta reach an older client; the rest does."""
    result = {
        "content": [],
        "resultType": "complete",
        "ttlMs": 5,
        "cacheScope": "public",
        "_meta": {SERVER_INFO: {"name": "s", "version": "1"}, "x.y/z": 1},
        "more": 1,
    }
    assert convert(method, result, revision) == {"content": [], "_meta": {"x.y/z": 1}, "more": 1}


@pytest.mark.obligation("L-043")
@EACH
def test_tools(revision: str) -> None:
    """A listed tool has the fields that its reader's revision knows, and pagination goes on."""
    tool = {
        "name": "t",
        "description": "d",
        "inputSchema": {"type": "object", "title": "kept", "icons": "kept"},
        "annotations": {"title": "kept", "readOnlyHint": True},
        "title": "T",
        "outputSchema": OUTPUT,
        "_meta": {"a": 1},
        "icons": ICONS,
        "execution": {"taskSupport": "optional"},
    }
    converted = convert("tools/list", {"tools": [tool, {"name": "u"}], "nextCursor": "c", "ttlMs": 1}, revision)
    kept = {field: value for field, value in tool.items() if field in known("tool", revision)}
    assert converted == {"tools": [kept, {"name": "u"}], "nextCursor": "c"}


@pytest.mark.obligation("L-024", "L-043")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "string"}, {}, {"anyOf": [OUTPUT]}, True, False, None])
def test_output_schemas_that_are_no_objects(schema: Any, revision: str) -> None:
    """Older clients take structured content for an object, so another output schema is not announced."""
    converted = convert("tools/list", {"tools": [{"name": "t", "outputSchema": schema}]}, revision)
    assert converted == {"tools": [{"name": "t"}]}


@pytest.mark.obligation("L-024", "L-043")
@EACH
@pytest.mark.parametrize("structured", [{"a": 1}, {}, [1], "text", 5, None])
def test_structured_content(structured: Any, revision: str) -> None:
    """Structured content reaches revisions that know it where it is an object; its text stays for all."""
    text = {"type": "text", "text": "1"}
    converted = convert("tools/call", {"content": [text], "structuredContent": structured, "isError": False}, revision)
    kept = {"structuredContent": structured} if isinstance(structured, dict) and revision >= "2025-06-18" else {}
    assert converted == {"content": [text], "isError": False, **kept}


@EACH
def test_a_tool_result_always_has_content(revision: str) -> None:
    """A result without content gets an empty list: older clients require it."""
    assert convert("tools/call", {}, revision) == {"content": []}


@pytest.mark.obligation("L-043")
@EACH
def test_content_blocks(revision: str) -> None:
    """Blocks that a revision does not know are told as text; those it knows keep what it knows of them."""
    text = {"type": "text", "text": "t", "_meta": {"a": 1}, "annotations": NOTES}
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    audio = {"type": "audio", "data": "", "mimeType": "audio/wav"}
    embedded = {"type": "resource", "resource": {"uri": "x:y", "text": "z"}}
    link = {"type": "resource_link", "name": "n", "uri": "x:y", "title": "T", "icons": ICONS, "_meta": {}}
    converted = convert("tools/call", {"content": [text, image, audio, embedded, link]}, revision)["content"]
    old = revision < "2025-06-18"
    bare = {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 1}}
    assert converted[0] == (bare if old else text)
    assert converted[1] == image
    if revision < "2025-03-26":
        assert converted[2]["type"] == "text"
        assert "audio/wav" in converted[2]["text"]
    else:
        assert converted[2] == audio
    assert converted[3] == embedded
    if old:
        assert converted[4] == {"type": "text", "text": "n: x:y"}
    elif revision < "2025-11-25":
        assert converted[4] == {field: value for field, value in link.items() if field != "icons"}
    else:
        assert converted[4] == link


def test_blocks_with_less_in_them() -> None:
    """A block that is told as text needs none of its fields, and an unknown kind passes."""
    blocks = [{"type": "audio"}, {"type": "resource_link"}, {"type": "hologram"}, {}]
    converted = convert("tools/call", {"content": blocks}, "2024-11-05")["content"]
    assert [block.get("type") for block in converted] == ["text", "text", "hologram", None]


@pytest.mark.obligation("L-043")
@EACH
def test_prompts(revision: str) -> None:
    """Prompts and their arguments keep what the revision knows."""
    argument = {"name": "a", "required": True, "title": "A"}
    prompt = {"name": "p", "title": "P", "icons": ICONS, "_meta": {}, "arguments": [argument]}
    converted = convert("prompts/list", {"prompts": [prompt, {"name": "q"}]}, revision)
    kept = {field: value for field, value in prompt.items() if field in known("listed", revision)}
    kept["arguments"] = [{field: value for field, value in argument.items() if field in known("argument", revision)}]
    assert converted == {"prompts": [kept, {"name": "q"}]}


@pytest.mark.obligation("L-043")
@EACH
def test_prompt_messages(revision: str) -> None:
    """A prompt's messages are converted block by block, and the role and description stay."""
    audio = {"type": "audio", "data": "", "mimeType": "audio/wav"}
    result = {"description": "d", "messages": [{"role": "user", "content": audio}]}
    converted = convert("prompts/get", result, revision)
    assert converted["description"] == "d"
    assert converted["messages"][0]["role"] == "user"
    kind = "text" if revision < "2025-03-26" else "audio"
    assert converted["messages"][0]["content"]["type"] == kind


@pytest.mark.obligation("L-043")
@EACH
@pytest.mark.parametrize(
    ("method", "member"), [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
)
def test_resources(method: str, member: str, revision: str) -> None:
    """Resources and templates keep what the revision knows, down to the fields of their annotations."""
    resource = {"name": "r", "uri": "x:y", "title": "R", "icons": ICONS, "_meta": {}, "size": 5, "annotations": NOTES}
    (converted,) = convert(method, {member: [resource]}, revision)[member]
    assert set(converted) == known("listed", revision) | {"uri", "size", "annotations"}
    assert ("lastModified" in converted["annotations"]) is (revision >= "2025-06-18")
    assert converted["annotations"]["priority"] == 1


@pytest.mark.obligation("L-043")
@EACH
def test_resource_contents(revision: str) -> None:
    """Contents lose their _meta where the revision has none there."""
    result = {"contents": [{"uri": "x:y", "text": "t", "_meta": {"a": 1}}, {"uri": "x:z", "blob": ""}], "ttlMs": 0}
    converted = convert("resources/read", result, revision)
    first = {"uri": "x:y", "text": "t", **({"_meta": {"a": 1}} if revision >= "2025-06-18" else {})}
    assert converted == {"contents": [first, {"uri": "x:z", "blob": ""}]}


@pytest.mark.obligation("L-043")
@EACH
def test_the_handshake(revision: str) -> None:
    """initialize names the server with the fields its reader knows; 2024-11-05 knows no completions capability."""
    info = {
        "name": "s",
        "version": "1",
        "title": "S",
        "icons": ICONS,
        "description": "d",
        "websiteUrl": "https://x.example",
    }
    capabilities = {"tools": {}, "completions": {}, "experimental": {}}
    result = {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info, "instructions": "i"}
    converted = convert("initialize", result, revision)
    assert set(converted["serverInfo"]) == known("server", revision)
    assert ("completions" in converted["capabilities"]) is (revision >= "2025-03-26")
    assert converted["instructions"] == "i"
    assert converted["protocolVersion"] == revision
