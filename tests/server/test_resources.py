"""Resources and templates: registration and lists."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest
from tests.support.calls import ask, refusal

from twolane.errors import INTERNAL_ERROR, ResourceNotFound
from twolane.server.context import Context
from twolane.server.resources import RegisteredResource, RegisteredTemplate, ResourceTemplate
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


async def test_the_decorator_returns_the_function(server: McpServer) -> None:
    """@server.resource registers a fixed URI or a template and leaves the function as it is."""
    assert server.resource("x://static")(static) is static
    assert server.resource("users://{id}", name="a user")(user) is user
    assert list(server.resources) == ["x://static"]
    assert list(server.resource_templates) == ["users://{id}"]
    assert isinstance(server.resources["x://static"], RegisteredResource)
    assert isinstance(server.resource_templates["users://{id}"], RegisteredTemplate)
    assert (await read(server, "x://static"))[0]["text"] == "static"
    assert (await read(server, "users://a%20b"))[0]["text"] == "user a b"


async def test_the_descriptors_hold_everything(server: McpServer) -> None:
    """Both lists show every declared field, in both eras alike."""
    options: dict[str, Any] = {
        "title": "T",
        "description": "D",
        "mime_type": "text/x-y",
        "annotations": mcp_types.Annotations(audience=["user"], priority=0.5),
        "icons": [mcp_types.Icon(src="data:,x")],
        "meta": {"k": 1},
    }
    server.register_resource("x://a", static, name="a", size=6, **options)
    server.register_resource("x://b", static)
    server.register_resource("y://{id}", user, name="y", **options)
    shared = {
        "title": "T", "description": "D", "mimeType": "text/x-y", "icons": [{"src": "data:,x"}], "_meta": {"k": 1},
        "annotations": {"audience": ["user"], "priority": 0.5},
    }  # fmt: skip
    resources = (await ask(server, "resources/list"))["resources"]
    assert resources == [
        {"uri": "x://a", "name": "a", "size": 6, **shared},
        {"uri": "x://b", "name": "static", "description": "A fixed text."},
    ]
    templates = (await ask(server, "resources/templates/list"))["resourceTemplates"]
    assert templates == [{"uriTemplate": "y://{id}", "name": "y", **shared}]
    assert (await ask(server, "resources/list", era="legacy"))["resources"] == resources
    assert (await ask(server, "resources/templates/list", era="legacy"))["resourceTemplates"] == templates
    mcp_types.ListResourcesResult.model_validate(await ask(server, "resources/list"))
    mcp_types.ListResourceTemplatesResult.model_validate(await ask(server, "resources/templates/list"))


@pytest.mark.obligation("S-107")
@pytest.mark.parametrize("uri", ["", "no-scheme", "x://a b", "x://{", "x://{a}{a}", "x://{a*}"])
def test_a_bad_uri_is_refused(server: McpServer, uri: str) -> None:
    """What is neither a URI nor a template is a ValueError at registration."""
    with pytest.raises(ValueError, match=r"URI"):
        server.register_resource(uri, static)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"size": -1}, ValueError),
        ({"size": "6"}, ValueError),
        ({"size": True}, ValueError),
        ({"mime_type": 7}, TypeError),
        ({"name": 7}, TypeError),
        ({"ttl": -1}, ValueError),
        ({"ttl": float("inf")}, ValueError),
        ({"ttl": True}, ValueError),
        ({"cache_scope": "shared"}, ValueError),
        ({"annotations": {"audience": ["system"]}}, ValueError),
        ({"annotations": {"priority": 2}}, ValueError),
        ({"annotations": {"priority": True}}, ValueError),
        ({"annotations": []}, TypeError),
        ({"mime": "x"}, TypeError),
    ],
)
def test_bad_options_are_refused(server: McpServer, options: dict[str, Any], error: type[Exception]) -> None:
    """What is wrong with a resource's options is said at registration, and nothing is registered."""
    with pytest.raises(error):
        server.register_resource("x://a", static, **options)
    assert not server.resources


def test_misuse_says_what_to_write(server: McpServer) -> None:
    """A missing URI, a taken one, a sized template and foreign parameters are refused with a reason."""
    with pytest.raises(TypeError, match=r"@server\.resource\("):
        server.resource(static)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a URI or a ResourceTemplate"):
        server.register_resource(static, "x://a")  # type: ignore[arg-type]
    server.register_resource("x://a", static)
    with pytest.raises(ValueError, match=r"'x://a' is already registered"):
        server.register_resource("x://a", static)
    server.register_resource("x://{id}", user)
    with pytest.raises(ValueError, match=r"already registered"):
        server.register_resource(ResourceTemplate("x://{id}"), user)
    with pytest.raises(ValueError, match=r"a template has no size"):
        server.register_resource("z://{id}", user, size=3)
    with pytest.raises(TypeError):
        server.register_resource("z://{other}", user)
    with pytest.raises(TypeError):
        server.register_resource("x://fixed", user)
    with pytest.raises(TypeError, match=r"list must be a function"):
        ResourceTemplate("z://{id}", list=[])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no argument 'x'"):
        ResourceTemplate("z://{id}", complete={"x": lambda value: []})


async def test_update_changes_what_it_names(server: McpServer) -> None:
    """update() changes name, metadata, handler and visibility; the URI stays."""
    handle = server.register_resource("x://a", static, name="a", mime_type="text/plain")
    handle.update(title="T", ttl=5)
    assert handle.descriptor() == {
        "uri": "x://a", "name": "a", "title": "T", "description": "A fixed text.", "mimeType": "text/plain",
    }  # fmt: skip
    handle.update(name="b", mime_type=None)
    assert (handle.name, handle.mime_type, handle.title) == ("b", None, "T")
    handle.update(name=None)
    assert handle.name == "static"
    with pytest.raises(ValueError, match=r"ttl"):
        handle.update(ttl=-1, title="U")
    with pytest.raises(TypeError, match=r"no option 'uri'"):
        handle.update(uri="x://b")  # type: ignore[call-arg]
    assert handle.title == "T"
    handle.update(enabled=False)
    assert (await ask(server, "resources/list"))["resources"] == []
    assert isinstance(await refusal(server, "resources/read", {"uri": "x://a"}), ResourceNotFound)
    assert repr(handle) == "<RegisteredResource 'x://a' (disabled)>"


@pytest.mark.obligation("S-090")
async def test_a_template_lists_its_resources(server: McpServer) -> None:
    """resources/list shows the fixed resources, then what the list functions of templates return."""

    async def some() -> list[Any]:
        return [mcp_types.Resource(uri="u://1", name="one"), {"uri": "u://2", "mimeType": "text/b"}]

    def with_context(ctx: Context) -> list[Any]:
        return [{"uri": "v://1", "name": ctx.method}]

    server.register_resource(ResourceTemplate("u://{id}", list=some), user, mime_type="text/a")
    server.register_resource(ResourceTemplate("v://{id}", list=with_context), user)
    server.register_resource(ResourceTemplate("w://{id}", list=lambda: None), user)
    server.register_resource("x://a", static, description="")
    expected = [
        {"uri": "x://a", "name": "static"},
        {"uri": "u://1", "name": "one", "mimeType": "text/a"},
        {"uri": "u://2", "mimeType": "text/b", "name": "u://2"},
        {"uri": "v://1", "name": "resources/list"},
    ]
    for era in ("modern", "legacy"):
        listed = (await ask(server, "resources/list", era=era))["resources"]
        assert [{key: value for key, value in item.items() if key != "description"} for item in listed] == expected
    server.resource_templates["u://{id}"].disable()
    assert len((await ask(server, "resources/list"))["resources"]) == 2


@pytest.mark.parametrize(
    "value", ["x", {"uri": "a://b"}, 7, [7], ["a://b"], [{"name": "x"}], [{"uri": "x", "a": object()}]]
)
async def test_a_broken_listing_is_the_servers_error(server: McpServer, value: Any) -> None:
    """A list function that returns no resources is -32603."""
    server.register_resource(ResourceTemplate("u://{id}", list=lambda: value), user)
    assert (await refusal(server, "resources/list")).code == INTERNAL_ERROR


@pytest.mark.obligation("S-092")
async def test_pages_run_over_fixed_and_listed_resources(server: McpServer) -> None:
    """Paging goes through fixed resources and those of templates as one list."""
    for index in range(3):
        server.register_resource(f"x://{index}", static)
    listing = [{"uri": f"u://{index}"} for index in range(4)]
    server.register_resource(ResourceTemplate("u://{id}", list=lambda: listing), user)
    seen: list[str] = []
    params: dict[str, Any] = {}
    while True:
        result = await ask(server, "resources/list", dict(params), page_size=2)
        seen += [item["uri"] for item in result["resources"]]
        if "nextCursor" not in result:
            break
        params["cursor"] = result["nextCursor"]
    assert seen == ["x://0", "x://1", "x://2", "u://0", "u://1", "u://2", "u://3"]
