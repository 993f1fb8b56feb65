"""What a server says about itself, and what it refuses to be."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest
from tests.support.calls import ask, refusal

from twolane.errors import METHOD_NOT_FOUND
from twolane.server.caching import CACHEABLE, CacheHint
from twolane.server.resources import ResourceTemplate
from twolane.server.server import McpServer

LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


def tool() -> str:
    return "x"


def full(**options: Any) -> McpServer:
    """Return a server with one of everything."""
    server = McpServer("test", version="1", **options)
    server.tool(tool)
    server.prompt(tool)
    server.resource("x://a")(tool)
    server.resource("x://{a}")(lambda a: a)
    return server


def test_the_identity() -> None:
    """info() is the Implementation, with the fields that were given."""
    assert McpServer("test", version="1").info() == {"name": "test", "version": "1"}
    server = McpServer(
        "test",
        version="1",
        title="Test",
        description="For tests",
        website_url="https://x.example",
        icons=[mcp_types.Icon(src="https://x.example/i.png"), {"src": "data:,x", "mimeType": "image/png"}],
        instructions="Be nice",
    )
    info = server.info()
    assert info == {
        "name": "test", "version": "1", "title": "Test", "description": "For tests", "websiteUrl": "https://x.example",
        "icons": [{"src": "https://x.example/i.png"}, {"src": "data:,x", "mimeType": "image/png"}],
    }  # fmt: skip
    mcp_types.Implementation.model_validate(info)
    assert server.instructions_text() == "Be nice"
    assert McpServer("test", version="1").instructions_text() is None
    assert repr(server) == "McpServer('test', version='1')"


@pytest.mark.obligation("S-110")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": ""}, ValueError),
        ({"name": 7}, ValueError),
        ({"version": ""}, ValueError),
        ({"version": 2}, ValueError),
        ({"title": 7}, TypeError),
        ({"instructions": ["x"]}, TypeError),
        ({"icons": [{"src": "http://x"}]}, ValueError),
        ({"page_size": 0}, ValueError),
        ({"page_size": True}, ValueError),
        ({"page_size": 2.5}, ValueError),
        ({"extensions": {"noprefix": {}}}, ValueError),
        ({"extensions": {"a/b": None}}, TypeError),
        ({"extensions": {"a/b": {"x": object()}}}, ValueError),
        ({"experimental": [1]}, TypeError),
        ({"cache_hints": {"tools/call": CacheHint()}}, ValueError),
        ({"cache_hints": {"tools/list": 60}}, ValueError),
        ({"colour": "red"}, TypeError),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    """What a server cannot be is refused when it is built."""
    with pytest.raises(error):
        McpServer(**{"name": "test", "version": "1", **options})


@pytest.mark.obligation("S-081", "S-082")
def test_capabilities_follow_from_what_is_registered() -> None:
    """A feature is declared when something of it is registered; change notices only where they are delivered."""
    empty = McpServer("test", version="1", logging=False)
    assert empty.capabilities("modern", push=True) == {}
    assert McpServer("test", version="1").capabilities("modern", push=True) == {"logging": {}}
    server = full()
    assert server.capabilities("modern", push=True) == {
        "tools": {"listChanged": True}, "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True}, "logging": {},
    }  # fmt: skip
    assert server.capabilities("legacy", push=False) == {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
    mcp_types.ServerCapabilities.model_validate(server.capabilities("modern", push=True))
    template_only = McpServer("test", version="1", logging=False)
    template_only.resource("x://{a}")(lambda a: a)
    assert template_only.capabilities("modern", push=False) == {"resources": {}}


@pytest.mark.obligation("S-083")
def test_extensions_are_a_modern_notion() -> None:
    """Extensions are declared with their settings on 2026-07-28 only; experimental capabilities in both eras."""
    server = McpServer(
        "test",
        version="1",
        logging=False,
        extensions={"io.modelcontextprotocol/ui": {}, "com.example/x.y-z": {"a": 1}},
        experimental={"mine": {"b": 2}},
    )
    assert server.capabilities("modern", push=True) == {
        "extensions": {"io.modelcontextprotocol/ui": {}, "com.example/x.y-z": {"a": 1}},
        "experimental": {"mine": {"b": 2}},
    }
    assert server.capabilities("legacy", push=True) == {"experimental": {"mine": {"b": 2}}}


@pytest.mark.obligation("S-083")
@pytest.mark.parametrize("identifier", ["x", "/x", "x/", "a b/c", "-a/b", "a./b", "a/-b", "1a/b", "a/b/c", ""])
def test_an_extension_has_a_prefixed_identifier(identifier: str) -> None:
    """An extension without a well-formed prefix and name is refused."""
    with pytest.raises(ValueError, match=r"vendor/name"):
        McpServer("test", version="1", extensions={identifier: {}})


@pytest.mark.obligation("S-047")
@pytest.mark.parametrize(
    ("method", "params"),
    [*((method, {}) for method in LISTS), ("tools/call", {"name": "x"}), ("prompts/get", {"name": "x"}),
     ("resources/read", {"uri": "x://a"}), ("completion/complete", {}), ("server/discover", {}), ("unknown", {})],
)  # fmt: skip
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_feature_without_registrations_does_not_exist(method: str, params: dict[str, Any], era: str) -> None:
    """Every method of a feature that the server does not have is -32601, before its params are looked at."""
    error = await refusal(McpServer("test", version="1"), method, params, era=era)
    assert (error.code, error.status) == (METHOD_NOT_FOUND, 404)


@pytest.mark.obligation("S-090")
@pytest.mark.parametrize(
    ("method", "member"), [*zip(LISTS, ["tools", "prompts", "resources", "resourceTemplates"], strict=True)]
)
async def test_what_is_disabled_still_counts(method: str, member: str) -> None:
    """A feature whose entries are all disabled is declared and lists nothing."""
    server = full()
    before = server.capabilities("modern", push=True)
    for kind in (server.tools, server.prompts, server.resources, server.resource_templates):
        for handle in kind.values():
            handle.disable()
    assert server.capabilities("modern", push=True) == before
    assert (await ask(server, method))[member] == []


async def test_resources_and_templates_are_one_feature() -> None:
    """Fixed resources alone give an empty list of templates, and the other way round."""
    fixed = McpServer("test", version="1")
    fixed.resource("x://a")(tool)
    assert (await ask(fixed, "resources/templates/list"))["resourceTemplates"] == []
    template = McpServer("test", version="1")
    template.resource(ResourceTemplate("x://{a}"))(lambda a: a)
    assert (await ask(template, "resources/list"))["resources"] == []


@pytest.mark.obligation("S-093", "S-094")
@pytest.mark.parametrize("method", LISTS)
async def test_lists_carry_hints_on_the_modern_revision(method: str) -> None:
    """Every page of a list carries the configured hints on 2026-07-28, and none in the 2025 era."""
    default = await ask(full(), method)
    assert (default["ttlMs"], default["cacheScope"]) == (0, "private")
    hints = {method: CacheHint(ttl=0.25, scope="public"), "*": CacheHint(ttl=9)}
    server = full(cache_hints=hints, page_size=1)
    server.register_tool("b", tool)
    result = await ask(server, method)
    assert (result["ttlMs"], result["cacheScope"]) == (250, "public")
    if "nextCursor" in result:
        second = await ask(server, method, {"cursor": result["nextCursor"]})
        assert second["cacheScope"] == "public"
    assert not {"ttlMs", "cacheScope"} & set(await ask(server, method, era="legacy"))


def test_hints_by_method() -> None:
    """A method's own hint wins over the one for all; discover has one too."""
    server = McpServer(
        "test", version="1", cache_hints={"tools/list": CacheHint(ttl=1), "*": CacheHint(scope="public")}
    )
    assert server.cache_hint("tools/list") == (1000, "private")
    assert server.cache_hint("server/discover") == (0, "public")
    assert {McpServer("test", version="1").cache_hint(method) for method in CACHEABLE} == {(0, "private")}


@pytest.mark.obligation("S-092")
@pytest.mark.parametrize("method", LISTS)
async def test_a_bad_cursor_is_refused_by_every_list(method: str) -> None:
    """Each list refuses a cursor that is none of its own, paged or not."""
    for options in ({}, {"page_size": 1}):
        for cursor in ("", "garbage", 7):
            error = await refusal(full(**options), method, {"cursor": cursor})
            assert error.data == {"reason": "invalid_cursor"}


@pytest.mark.obligation("S-092")
async def test_cursors_survive_a_fresh_server() -> None:
    """The second page comes from another server object, as on another worker; the server's own size wins."""
    seen = []
    params: dict[str, Any] = {}
    for _ in range(3):
        server = McpServer("test", version="1", page_size=2)
        for name in "abcde":
            server.register_tool(name, tool)
        result = await ask(server, "tools/list", params, page_size=4)
        seen.append([entry["name"] for entry in result["tools"]])
        params = {"cursor": result.get("nextCursor")}
    assert seen == [["a", "b"], ["c", "d"], ["e"]]
    assert params == {"cursor": None}


async def test_the_handlers_page_size_is_the_default() -> None:
    """A server without a page size takes the handler's."""
    result = await ask(full(), "tools/list", page_size=1)
    assert len(result["tools"]) == 1
    assert "nextCursor" not in result
