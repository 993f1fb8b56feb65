"""Prompts: registration, the list, and getting one."""

from __future__ import annotations

from typing import Annotated, Any

import mcp_types
import pytest
from pydantic import Field
from tests.support.calls import ask, make_call, refusal

from twolane.errors import INTERNAL_ERROR, INVALID_PARAMS
from twolane.protocol.inputs import InputRequired, input_required, list_roots
from twolane.server.context import Context
from twolane.server.server import McpServer

PNG = mcp_types.ImageContent(type="image", data="AA==", mime_type="image/png")
EMBEDDED = mcp_types.EmbeddedResource(
    type="resource", resource=mcp_types.TextResourceContents(uri="x://a", mime_type="text/plain", text="A")
)


@pytest.fixture
def server() -> McpServer:
    return McpServer("test", version="1")


async def review(code: str, language: str = "python") -> str:
    """Review some code."""
    return f"Review this {language}: {code}"


async def got(server: McpServer, value: Any) -> list[dict[str, Any]]:
    """Return the messages that a handler's *value* becomes."""

    async def prompt() -> Any:
        return value

    server.register_prompt("it", prompt)
    result = await ask(server, "prompts/get", {"name": "it"})
    server.prompts["it"].remove()
    mcp_types.GetPromptResult.model_validate(result)
    messages = result["messages"]
    assert isinstance(messages, list)
    return messages


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


async def test_the_decorator_returns_the_function(server: McpServer) -> None:
    """@server.prompt works with and without parentheses and leaves the function as it is."""
    assert server.prompt(review) is review
    assert server.prompt(name="again", title="Again")(review) is review
    assert list(server.prompts) == ["review", "again"]
    result = await ask(server, "prompts/get", {"name": "again", "arguments": {"code": "x"}})
    assert result == {"description": "Review some code.", "messages": [user(text("Review this python: x"))]}


async def test_the_descriptor_holds_everything(server: McpServer) -> None:
    """prompts/list shows name, title, description, arguments, icons and _meta, in both eras alike."""

    async def prompt(code: Annotated[str, Field(description="The code", title="Code")], style: str = "x") -> str:
        """Say something."""
        return code

    server.register_prompt("p", prompt, title="P", icons=[{"src": "https://x.example/i"}], meta={"k": 1})
    server.prompt(prompt)
    (full, plain) = (await ask(server, "prompts/list"))["prompts"]
    assert full["title"] == "P"
    assert full["description"] == plain["description"] == "Say something."
    assert full["icons"] == [{"src": "https://x.example/i"}]
    assert full["_meta"] == {"k": 1}
    code, style = plain["arguments"]
    assert (code["name"], code["required"]) == ("code", True)
    assert (style["name"], style["required"]) == ("style", False)
    assert code["description"] == "The code"
    assert (await ask(server, "prompts/list", era="legacy"))["prompts"] == [full, plain]
    mcp_types.ListPromptsResult.model_validate(await ask(server, "prompts/list"))


async def test_listed_arguments_replace_the_parameters(server: McpServer) -> None:
    """arguments= describes the arguments by hand, and the handler takes them as one parameter."""

    async def prompt(given: dict[str, str]) -> str:
        return str(sorted(given.items()))

    server.register_prompt(
        "p",
        prompt,
        arguments=[mcp_types.PromptArgument(name="code", description="The code", required=True), "language"],
    )
    (prompt,) = (await ask(server, "prompts/list"))["prompts"]
    assert prompt["arguments"] == [
        {"name": "code", "description": "The code", "required": True},
        {"name": "language", "required": False},
    ]
    result = await ask(server, "prompts/get", {"name": "p", "arguments": {"code": "x"}})
    assert result["messages"] == [user(text("[('code', 'x')]"))]
    assert (await refusal(server, "prompts/get", {"name": "p", "arguments": {}})).code == INVALID_PARAMS


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"arguments": ["a", "a"]}, ValueError),
        ({"arguments": [{"title": "x"}]}, ValueError),
        ({"complete": {"nope": lambda value: []}}, ValueError),
        ({"complete": {"code": "x"}}, TypeError),
        ({"icons": [{"src": "http://x"}]}, ValueError),
        ({"title": 3}, TypeError),
        ({"titel": "x"}, TypeError),
    ],
)
def test_bad_options_are_refused(server: McpServer, options: dict[str, Any], error: type[Exception]) -> None:
    """What is wrong with a prompt's options is said where they are written, and nothing is registered."""
    with pytest.raises(error):
        server.register_prompt("p", review, **options)
    assert not server.prompts


@pytest.mark.parametrize("name", ["", "a\nb", "\x00"])
def test_a_bad_name_is_refused(server: McpServer, name: str) -> None:
    """A prompt's name is printable and not empty."""
    with pytest.raises(ValueError, match=r"printable name"):
        server.register_prompt(name, review)


def test_misused_decorators_say_what_to_write(server: McpServer) -> None:
    """A positional name is a TypeError that shows the right form."""
    with pytest.raises(TypeError, match=r"@server\.prompt\(name="):
        server.prompt("review")  # type: ignore[type-var]
    with pytest.raises(ValueError, match=r"already registered"):
        server.prompt(server.prompt(review))


async def test_update_changes_what_it_names(server: McpServer) -> None:
    """update() renames, re-describes, re-handles and disables a prompt."""
    handle = server.register_prompt("p", review, title="T")
    handle.update(name="q", description="D")
    assert (handle.name, handle.title, handle.description) == ("q", "T", "D")

    async def other() -> str:
        return "other"

    handle.update(handler=other)
    assert (await ask(server, "prompts/get", {"name": "q"}))["messages"] == [user(text("other"))]
    assert handle.descriptor() == {"name": "q", "title": "T", "description": "D"}
    with pytest.raises(ValueError, match=r"has no argument 'code'"):
        handle.update(complete={"code": lambda value: []})
    handle.disable()
    assert (await ask(server, "prompts/list"))["prompts"] == []


@pytest.mark.obligation("S-108")
@pytest.mark.parametrize(
    "params",
    [{}, {"name": 7}, {"name": "nope"}, {"name": "review"}, {"name": "review", "arguments": []},
     {"name": "review", "arguments": {"code": 7}}, {"name": "review", "arguments": {"code": None}},
     {"name": "review", "arguments": {"language": "x"}}, {"name": "hidden", "arguments": {"code": "x"}}],
)  # fmt: skip
async def test_what_is_wrong_with_a_request_is_invalid_params(server: McpServer, params: dict[str, Any]) -> None:
    """An unknown or disabled prompt, a missing argument and one that is no string are -32602 in one sentence."""
    server.prompt(review)
    server.register_prompt("hidden", review).disable()
    error = await refusal(server, "prompts/get", params)
    assert error.code == INVALID_PARAMS
    assert "\n" not in error.message


async def test_arguments_are_converted_to_the_hints(server: McpServer) -> None:
    """Arguments come as strings and arrive as what the parameters say; what does not convert is -32602."""

    async def repeat(times: int, loud: bool = False) -> str:
        return "x" * times + ("!" if loud else "")

    server.prompt(repeat)
    result = await ask(server, "prompts/get", {"name": "repeat", "arguments": {"times": "3", "loud": "true"}})
    assert result["messages"] == [user(text("xxx!"))]
    error = await refusal(server, "prompts/get", {"name": "repeat", "arguments": {"times": "many"}})
    assert error.code == INVALID_PARAMS
    assert "times" in error.message


async def test_a_string_is_a_user_message(server: McpServer) -> None:
    """Text from a handler is one message of the user."""
    assert await got(server, "Hi") == [user(text("Hi"))]


@pytest.mark.obligation("S-108")
async def test_messages_and_blocks_come_through(server: McpServer) -> None:
    """Messages, blocks, texts and dicts, alone or in a list, become messages with whole content."""
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    resource = {"type": "resource", "resource": {"uri": "x://a", "mimeType": "text/plain", "text": "A"}}
    assistant = {"role": "assistant", "content": text("Yes")}
    message = mcp_types.PromptMessage(role="assistant", content=mcp_types.TextContent(type="text", text="Yes"))
    assert await got(server, PNG) == [user(image)]
    assert await got(server, EMBEDDED) == [user(resource)]
    assert await got(server, message) == [assistant]
    assert await got(server, ["a", PNG, message, assistant, {"role": "assistant", "content": "Yes"}, image]) == [
        user(text("a")), user(image), assistant, assistant, assistant, user(image),
    ]  # fmt: skip
    assert await got(server, {"role": "user", "content": EMBEDDED}) == [user(resource)]
    assert await got(server, {"type": "resource", "resource": EMBEDDED.resource}) == [user(resource)]
    assert await got(server, []) == []


async def test_a_whole_result_comes_through(server: McpServer) -> None:
    """A GetPromptResult keeps its description and _meta; a dict of messages does the same."""

    async def official() -> mcp_types.GetPromptResult:
        return mcp_types.GetPromptResult(
            description="Own", messages=[mcp_types.PromptMessage(role="user", content=PNG)], meta={"k": 1}
        )

    async def plain() -> Any:
        """Documented."""
        return {"messages": "Hi", "_meta": {"k": 1}}

    server.prompt(official)
    server.prompt(plain)
    result = await ask(server, "prompts/get", {"name": "official"})
    assert result["description"] == "Own"
    assert result["_meta"] == {"k": 1}
    assert result["messages"][0]["content"]["type"] == "image"
    assert "resultType" not in result
    assert await ask(server, "prompts/get", {"name": "plain"}) == {
        "messages": [user(text("Hi"))], "_meta": {"k": 1}, "description": "Documented.",
    }  # fmt: skip


@pytest.mark.obligation("S-108")
@pytest.mark.parametrize(
    "value",
    [None, 7, object(), b"x", [None], [["a"]], {"role": "system", "content": "x"}, {"role": "user"}, {"type": "text"},
     {"type": "image", "data": "AA=="}, {"type": "audio", "mimeType": "audio/wav"}, {"type": "video", "data": "x"},
     {"type": "resource"}, {"type": "resource", "resource": {"uri": "x://a"}}, {"type": "resource_link", "name": "x"}],
    ids=repr,
)  # fmt: skip
async def test_wrong_output_is_the_servers_error(server: McpServer, value: Any) -> None:
    """A handler that returns no message, or half a block, is -32603: the server's fault."""

    async def prompt() -> Any:
        return value

    server.prompt(prompt)
    assert (await refusal(server, "prompts/get", {"name": "prompt"})).code == INTERNAL_ERROR


async def test_a_round_is_returned_as_it_is(server: McpServer) -> None:
    """input_required from a prompt leaves dispatch untouched."""
    asked = input_required(roots=list_roots())

    async def again() -> InputRequired:
        return asked

    server.prompt(again)
    assert await server.dispatch(make_call(server, "prompts/get", {"name": "again"})) is asked


async def test_plain_functions_and_the_context(server: McpServer) -> None:
    """A def prompt runs in a worker thread, with its context."""

    def prompt(ctx: Context, a: str) -> list[str]:
        return [ctx.method, a]

    server.prompt(prompt)
    result = await ask(server, "prompts/get", {"name": "prompt", "arguments": {"a": "b"}})
    assert result["messages"] == [user(text("prompts/get")), user(text("b"))]
