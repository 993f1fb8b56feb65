"""Reading resources: which one is meant, and what its handler's value becomes."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import mcp_types
import pytest
from pydantic import BaseModel
from tests.support.calls import ask, make_call, refusal

from twolane.errors import INTERNAL_ERROR, INVALID_PARAMS, ResourceNotFound
from twolane.protocol.inputs import InputRequired, input_required, list_roots
from twolane.server.caching import CacheHint
from twolane.server.reading import ResourceContent
from twolane.server.server import McpServer


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1")


async def static() -> str:
    """A fixed text."""
    return "static"


async def user(id: str) -> str:  # noqa: A002
    """One user."""
    return f"user {id}"


async def read(server: McpServer, uri: str, **options: Any) -> list[dict[str, Any]]:
    result = await ask(server, "resources/read", {"uri": uri}, **options)
    contents = result["contents"]
    assert isinstance(contents, list)
    return contents


async def got(server: McpServer, value: Any, **options: Any) -> list[dict[str, Any]]:
    """Return the contents that a handler's *value* becomes."""

    async def handler() -> Any:
        return value

    handle = server.register_resource("x://it", handler, **options)
    contents = await read(server, "x://it")
    handle.remove()
    mcp_types.ReadResourceResult.model_validate({"contents": contents})
    return contents


@pytest.mark.obligation("S-106")
@pytest.mark.parametrize(
    "uri", ["x://nope", "x://", "nope", "users://a/b", "X://static", "x://static/", "x://%73tatic"]
)
async def test_a_missing_resource_is_not_found(server: McpServer, uri: str) -> None:
    """An unknown URI is -32602 with data.uri; URIs are compared as they are written."""
    server.register_resource("x://static", static)
    server.register_resource("users://{id}", user)
    error = await refusal(server, "resources/read", {"uri": uri})
    assert (error.code, error.data) == (INVALID_PARAMS, {"uri": uri})
    assert isinstance(error, ResourceNotFound)


@pytest.mark.obligation("S-106")
async def test_none_means_not_found(server: McpServer) -> None:
    """A handler that finds nothing returns None, and the client never sees empty contents."""

    async def find(id: str) -> str | None:  # noqa: A002
        return None

    server.register_resource("users://{id}", find)
    error = await refusal(server, "resources/read", {"uri": "users://7"})
    assert (error.code, error.data) == (INVALID_PARAMS, {"uri": "users://7"})


@pytest.mark.parametrize("params", [{}, {"uri": 7}, {"uri": None}, {"uri": ""}, {"uri": ["x://static"]}])
async def test_malformed_params_are_invalid_params(server: McpServer, params: dict[str, Any]) -> None:
    """A read without a URI is -32602."""
    server.register_resource("x://static", static)
    assert (await refusal(server, "resources/read", params)).code == INVALID_PARAMS


async def test_fixed_resources_come_before_templates(server: McpServer) -> None:
    """A fixed URI wins over templates, and of those the one registered first."""

    async def first(id: str) -> str:  # noqa: A002
        return f"first {id}"

    server.register_resource("users://{id}", first)
    server.register_resource("users://{+id}", user)
    server.register_resource("users://me", static)
    assert (await read(server, "users://me"))[0]["text"] == "static"
    assert (await read(server, "users://7"))[0]["text"] == "first 7"
    assert (await read(server, "users://7/8"))[0]["text"] == "user 7/8"
    server.resources["users://me"].disable()
    server.resource_templates["users://{id}"].disable()
    assert (await read(server, "users://me"))[0]["text"] == "user me"


async def test_variables_are_typed_by_hints(server: McpServer) -> None:
    """Template variables arrive as what the hints say; what is missing or does not convert is -32602."""

    async def find(q: str, limit: int = 10) -> str:
        return f"{q} {limit + 1}"

    server.register_resource("s://find{?q,limit}", find)
    assert (await read(server, "s://find?limit=5&q=a"))[0]["text"] == "a 6"
    assert (await read(server, "s://find?q=a"))[0]["text"] == "a 11"
    for uri in ("s://find?q=a&limit=many", "s://find?limit=5"):
        error = await refusal(server, "resources/read", {"uri": uri})
        assert error.code == INVALID_PARAMS
        assert "\n" not in error.message


class Point(BaseModel):
    x: int
    y: int | None = None


@dataclass
class Pair:
    a: int
    b: str


@pytest.mark.obligation("S-107")
async def test_what_handlers_return_becomes_contents(server: McpServer) -> None:
    """Text, bytes and JSON values have their form and a fitting MIME type."""

    def text(value: str, mime_type: str) -> list[dict[str, Any]]:
        return [{"uri": "x://it", "mimeType": mime_type, "text": value}]

    assert await got(server, "hi") == text("hi", "text/plain")
    assert await got(server, "", mime_type="text/x") == text("", "text/x")
    blob = b64encode(b"\x00\xff").decode()
    assert await got(server, b"\x00\xff") == [{"uri": "x://it", "mimeType": "application/octet-stream", "blob": blob}]
    assert await got(server, bytearray(b"\x00\xff"), mime_type="image/png") == [
        {"uri": "x://it", "mimeType": "image/png", "blob": blob}
    ]
    assert await got(server, {"a": [1]}) == text('{"a":[1]}', "application/json")
    assert await got(server, ["a", 1]) == text('["a",1]', "application/json")
    assert await got(server, []) == text("[]", "application/json")
    assert await got(server, 7) == text("7", "application/json")
    assert await got(server, False) == text("false", "application/json")
    assert await got(server, Point(x=1)) == text('{"x":1,"y":null}', "application/json")
    assert await got(server, [Point(x=1, y=2)]) == text('[{"x":1,"y":2}]', "application/json")
    assert await got(server, {"p": Point(x=1, y=2)}) == text('{"p":{"x":1,"y":2}}', "application/json")
    assert await got(server, Pair(1, "b")) == text('{"a":1,"b":"b"}', "application/json")


async def test_contents_come_through(server: McpServer) -> None:
    """mcp_types contents, ResourceContents and lists of them are sent as they are."""
    official = mcp_types.TextResourceContents(uri="x://other", mime_type="text/a", text="A", meta={"k": 1})
    wire = {"uri": "x://other", "mimeType": "text/a", "text": "A", "_meta": {"k": 1}}
    blob = mcp_types.BlobResourceContents(uri="x://b", blob="AA==")
    assert await got(server, official) == [wire]
    assert await got(server, [official, blob]) == [wire, {"uri": "x://b", "blob": "AA=="}]
    assert await got(server, mcp_types.ReadResourceResult(contents=[official, blob])) == [
        wire, {"uri": "x://b", "blob": "AA=="},
    ]  # fmt: skip
    assert await got(server, ResourceContent("A", "text/a", "x://other", {"k": 1})) == [wire]
    assert await got(server, [ResourceContent("A"), ResourceContent({"b": 1}), official], mime_type="text/z") == [
        {"uri": "x://it", "mimeType": "text/z", "text": "A"},
        {"uri": "x://it", "mimeType": "text/z", "text": '{"b":1}'},
        wire,
    ]


@pytest.mark.parametrize("value", [object(), {"a": object()}, {1, 2}, float("nan"), [ResourceContent(object())]])
async def test_wrong_output_is_the_servers_error(server: McpServer, value: Any) -> None:
    """What has no form as contents is -32603."""

    async def handler() -> Any:
        return value

    server.register_resource("x://it", handler)
    assert (await refusal(server, "resources/read", {"uri": "x://it"})).code == INTERNAL_ERROR


async def test_a_round_is_returned_as_it_is(server: McpServer) -> None:
    """input_required from a resource leaves dispatch untouched, without cache hints."""
    asked = input_required(roots=list_roots())

    async def again() -> InputRequired:
        return asked

    server.register_resource("x://it", again)
    assert await server.dispatch(make_call(server, "resources/read", {"uri": "x://it"})) is asked


@pytest.mark.obligation("S-093", "S-095")
async def test_read_hints_by_precedence() -> None:
    """The handler's own hint beats the resource's, that beats the server's for the method, field by field."""
    server = McpServer("test", version="1", cache_hints={"resources/read": CacheHint(ttl=60, scope="public")})

    async def own() -> mcp_types.ReadResourceResult:
        contents = [mcp_types.TextResourceContents(uri="x://own", text="x")]
        return mcp_types.ReadResourceResult(contents=contents, ttl_ms=5)

    server.register_resource("x://plain", static)
    server.register_resource("x://ttl", static, ttl=1.5)
    server.register_resource("x://scope", static, cache_scope="private")
    server.register_resource("x://own", own, ttl=2, cache_scope="private")

    async def hints(uri: str, **options: Any) -> tuple[int, str]:
        result = await ask(server, "resources/read", {"uri": uri}, **options)
        return result["ttlMs"], result["cacheScope"]

    assert await hints("x://plain") == (60000, "public")
    assert await hints("x://ttl") == (1500, "public")
    assert await hints("x://scope") == (60000, "private")
    assert await hints("x://own") == (5, "private")
    legacy = await ask(server, "resources/read", {"uri": "x://own"}, era="legacy")
    assert set(legacy) == {"contents"}


@pytest.mark.obligation("S-093", "S-095")
async def test_an_answer_to_input_is_not_cached() -> None:
    """A read that was reached by a retry is stale at once and private, whatever is configured."""
    server = McpServer("test", version="1", cache_hints={"*": CacheHint(ttl=60, scope="public")})
    server.register_resource("x://a", static, ttl=9, cache_scope="public")
    call = make_call(server, "resources/read", {"uri": "x://a"})
    call.retried = True
    call.input_responses = {"name": {"action": "accept"}}
    result = await server.dispatch(call)
    assert isinstance(result, dict)
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
