"""Tools: registration, the list, calls and their failures."""

from __future__ import annotations

from typing import Annotated, Any

import mcp_types
import pytest
from pydantic import Field
from tests.support.calls import ask, text_of

from twolane.server.server import McpServer


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1")


async def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"Hello, {name}!"] * times)


async def test_the_decorator_returns_the_function(server: McpServer) -> None:
    """@server.tool works with and without parentheses and leaves the function as it is."""
    assert server.tool(greet) is greet
    assert server.tool(name="again")(greet) is greet
    assert list(server.tools) == ["greet", "again"]
    for name in server.tools:
        assert text_of(await ask(server, "tools/call", {"name": name, "arguments": {"name": "Ada"}})) == "Hello, Ada!"


async def test_one_function_under_many_names(server: McpServer) -> None:
    """A function may be registered often; each registration is a tool of its own."""
    first = server.register_tool("one", greet)
    second = server.register_tool("two", greet, description="Other")
    assert first is server.tools["one"]
    listed = (await ask(server, "tools/list"))["tools"]
    assert [(tool["name"], tool["description"]) for tool in listed] == [("one", "Greet somebody."), ("two", "Other")]
    assert first.description == "Greet somebody."
    assert second.title is None


def test_handles_are_read_only_by_name(server: McpServer) -> None:
    """server.tools maps names to handles and cannot be written to."""
    server.tool(greet)
    assert server.tools["greet"].handler is greet
    with pytest.raises(TypeError):
        server.tools["x"] = None  # type: ignore[index]
    assert repr(server.tools["greet"]) == "<RegisteredTool 'greet'>"
    server.tools["greet"].disable()
    assert "(disabled)" in repr(server.tools["greet"])


@pytest.mark.obligation("S-100")
@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "x" * 129, "a\n", "<lambda>"])
def test_a_bad_tool_name_is_refused(server: McpServer, name: str) -> None:
    """A tool name outside the specification's alphabet or length is a ValueError that says how to give another."""
    with pytest.raises(ValueError, match=r"1 to 128 characters"):
        server.register_tool(name, greet)


@pytest.mark.obligation("S-100")
@pytest.mark.parametrize("name", ["a", "x" * 128, "A-z_0.9", "admin.tools.list"])
def test_a_good_tool_name_is_kept(server: McpServer, name: str) -> None:
    """Every name the specification allows is accepted unchanged."""
    assert server.register_tool(name, greet).name == name


@pytest.mark.obligation("S-100")
def test_names_are_unique_and_case_sensitive(server: McpServer) -> None:
    """A second tool of the same name is refused; one that differs in case is another tool."""
    server.tool(greet)
    server.register_tool("Greet", greet)
    with pytest.raises(ValueError, match=r"'greet' is already registered"):
        server.tool(greet)
    assert list(server.tools) == ["greet", "Greet"]


def test_a_lambda_needs_a_name(server: McpServer) -> None:
    """A function without a usable name is refused until one is given."""
    with pytest.raises(ValueError, match=r"name=\.\.\."):
        server.tool(lambda: "x")
    server.tool(name="fine")(lambda: "x")


def test_misused_decorators_say_what_to_write(server: McpServer) -> None:
    """A positional name, an unknown option and a thing that is no function are TypeErrors that name the fix."""
    with pytest.raises(TypeError, match=r"@server\.tool\(name="):
        server.tool("greet")  # type: ignore[type-var]
    with pytest.raises(TypeError, match=r"no option 'inputSchema'; use .*input_schema"):
        server.tool(inputSchema={})  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"no option 'tite'"):
        server.register_tool("x", greet, tite="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"first argument is the name"):
        server.register_tool(greet, "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        server.register_tool("x", 7)  # type: ignore[arg-type]
    assert not server.tools


@pytest.mark.obligation("S-096", "S-110")
async def test_the_descriptor_holds_everything(server: McpServer) -> None:
    """tools/list shows name, title, description, schemas, annotations, icons and _meta, in both eras alike."""
    server.tool(
        title="Greeter",
        description="Says hello",
        annotations=mcp_types.ToolAnnotations(read_only_hint=True),
        icons=[mcp_types.Icon(src="https://x.example/i.png", mime_type="image/png")],
        meta={"com.example/k": [1]},
    )(greet)
    server.tool(
        name="plain",
        annotations={"destructive_hint": False, "openWorldHint": True, "title": None},
        icons=[{"src": "data:image/png;base64,AA==", "mime_type": "image/png", "sizes": ["16x16"]}],
    )(greet)
    (full, plain) = (await ask(server, "tools/list"))["tools"]
    assert full["title"] == "Greeter"
    assert full["description"] == "Says hello"
    assert full["inputSchema"]["type"] == "object"
    assert full["outputSchema"]["type"] == "object"
    assert full["annotations"] == {"readOnlyHint": True}
    assert full["icons"] == [{"src": "https://x.example/i.png", "mimeType": "image/png"}]
    assert full["_meta"] == {"com.example/k": [1]}
    assert plain["annotations"] == {"destructiveHint": False, "openWorldHint": True}
    assert plain["icons"][0]["mimeType"] == "image/png"
    assert (await ask(server, "tools/list", era="legacy"))["tools"] == [full, plain]
    mcp_types.ListToolsResult.model_validate(await ask(server, "tools/list"))


@pytest.mark.obligation("S-110")
@pytest.mark.parametrize("src", ["http://x.example/i.png", "file:///i.png", "javascript:1", "/i.png", ""])
def test_an_icon_is_https_or_data(server: McpServer, src: str) -> None:
    """An icon that clients must not load is refused where it is registered."""
    with pytest.raises(ValueError, match=r"only https: and data:"):
        server.register_tool("x", greet, icons=[{"src": src}])
    with pytest.raises(ValueError, match=r"only https: and data:"):
        server.register_tool("x", greet, icons=[mcp_types.Icon(src=src)])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"title": 7}, TypeError),
        ({"description": ["x"]}, TypeError),
        ({"annotations": {"readonly": True}}, ValueError),
        ({"annotations": {"readOnlyHint": "yes"}}, ValueError),
        ({"annotations": {"title": True}}, ValueError),
        ({"annotations": 7}, TypeError),
        ({"icons": "https://x"}, TypeError),
        ({"icons": [{"mimeType": "image/png"}]}, TypeError),
        ({"icons": [{"src": "https://x", "size": "16x16"}]}, ValueError),
        ({"icons": [7]}, TypeError),
        ({"meta": [1]}, TypeError),
        ({"meta": {"x": object()}}, ValueError),
        ({"meta": {"x": float("nan")}}, ValueError),
    ],
)
def test_bad_options_are_refused_at_registration(
    server: McpServer, options: dict[str, Any], error: type[Exception]
) -> None:
    """What could not be listed is refused where it is written down, and the tool is not registered."""
    with pytest.raises(error):
        server.register_tool("x", greet, **options)
    assert not server.tools


@pytest.mark.obligation("S-050")
def test_a_broken_header_declaration_is_refused(server: McpServer) -> None:
    """A tool whose x-mcp-header declaration breaks the rules cannot be registered."""

    async def broken(a: Annotated[float, Field(json_schema_extra={"x-mcp-header": "A"})]) -> str:
        return "x"

    with pytest.raises(ValueError, match=r"x-mcp-header|header"):
        server.tool(broken)
    assert not server.tools


def test_header_declarations_are_told_for_callable_tools(server: McpServer) -> None:
    """A lane learns a tool's header declarations by name, and none for a tool that cannot be called."""

    async def where(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "") -> str:
        return region

    server.tool(where)
    server.tool(greet)
    assert [declared.path for declared in server.header_params("where")] == [("region",)]
    assert server.header_params("greet") == ()
    assert server.header_params("unknown") == ()
    server.tools["where"].disable()
    assert server.header_params("where") == ()


@pytest.mark.obligation("S-090", "S-091")
async def test_the_list_is_current_and_ordered(server: McpServer) -> None:
    """tools/list shows enabled tools in the order of registration, each time alike."""
    for name in ("c", "a", "b"):
        server.register_tool(name, greet)

    async def names() -> list[str]:
        return [tool["name"] for tool in (await ask(server, "tools/list"))["tools"]]

    assert await names() == await names() == ["c", "a", "b"]
    server.tools["a"].disable()
    assert await names() == ["c", "b"]
    server.tools["a"].enable()
    assert await names() == ["c", "a", "b"]
    server.tools["c"].remove()
    assert await names() == ["a", "b"]


async def test_plain_descriptors_are_encoded_once(server: McpServer) -> None:
    """A fresh server lists plain tools with the very bytes that another one encoded."""
    server.tool(greet)
    other = McpServer("other", version="1")
    other.tool(greet)
    assert server.tools["greet"].encoded() is other.tools["greet"].encoded()
    renamed = other.register_tool("other", greet)
    assert renamed.encoded() is not other.tools["greet"].encoded()


async def test_update_changes_what_it_names(server: McpServer) -> None:
    """update() changes the given options only, None takes one back, and a renamed tool keeps its place."""
    handle = server.register_tool("a", greet, title="T", description="D")
    server.register_tool("b", greet)
    handle.update(description="E", name="z")
    assert list(server.tools) == ["z", "b"]
    assert (handle.name, handle.title, handle.description) == ("z", "T", "E")
    handle.update(description=None, enabled=False)
    assert (handle.description, handle.enabled) == ("Greet somebody.", False)

    async def other(x: int) -> str:
        return str(x)

    handle.update(handler=other, enabled=True)
    assert text_of(await ask(server, "tools/call", {"name": "z", "arguments": {"x": 3}})) == "3"
    assert "x" in server.tools["z"].descriptor()["inputSchema"]["properties"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": "b"}, ValueError),
        ({"name": "not good"}, ValueError),
        ({"icons": [{"src": "http://x"}]}, ValueError),
        ({"handler": 7}, TypeError),
        ({"nmae": "x"}, TypeError),
    ],
)
def test_a_refused_update_changes_nothing(server: McpServer, changes: dict[str, Any], error: type[Exception]) -> None:
    """An update that is refused leaves the tool as it was."""
    handle = server.register_tool("a", greet, title="T")
    server.register_tool("b", greet)
    with pytest.raises(error):
        handle.update(title="U", **changes)
    assert (handle.name, handle.title, handle.handler, list(server.tools)) == ("a", "T", greet, ["a", "b"])


def test_remove_frees_the_name(server: McpServer) -> None:
    """A removed tool can be registered again, and removing the old handle then touches nothing."""
    old = server.register_tool("a", greet)
    old.remove()
    server.register_tool("a", greet)
    old.remove()
    assert list(server.tools) == ["a"]
