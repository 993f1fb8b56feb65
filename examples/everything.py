"""
One server with everything in it: what the official conformance suite asks for, in both eras.

Run it with::

    twolane serve examples/everything.py:create_server

The tools in ``_pushing_tools`` ask the client over its session: without one they fail at once and say what to use.
"""

from __future__ import annotations

import base64
import json
from typing import Annotated, Any

import anyio
from mcp_types import AudioContent, EmbeddedResource, ImageContent, PromptMessage, TextContent, TextResourceContents
from pydantic import BaseModel, Field

from twolane import (
    Context,
    InputRequired,
    McpServer,
    MissingClientCapability,
    ToolError,
    accepted_content,
    create_mcp_handler,
    elicit,
    input_required,
    input_response,
    list_roots,
    sample,
)

__all__ = ["app", "create_server"]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

# Named once, here: a factory runs for each request, and building an annotation costs more than looking one up.
Content = TextContent | ImageContent | EmbeddedResource
Region = Annotated[str, Field(description="Where to run", json_schema_extra={"x-mcp-header": "Region"})]


class Name(BaseModel):
    """A form that asks for a name."""

    name: str


def _form(**fields: str) -> dict[str, Any]:
    """A form as a JSON Schema, where a model would say too much: every field with its type, all required."""
    return {"type": "object", "properties": {key: {"type": fields[key]} for key in fields}, "required": [*fields]}


STRING = {"type": "string"}
JSON_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}},
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}

OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def create_server() -> McpServer:
    """Build the server; the handler calls this once for every request it serves."""
    server = McpServer("everything", version="1.0.0", completions=True)
    for register in (_plain_tools, _streaming_tools, _change_tools, _asking_tools, _rounds_tools, _pushing_tools):
        register(server)
    _resources(server)
    _prompts(server)
    return server


def _plain_tools(server: McpServer) -> None:
    """Tools that answer at once."""

    @server.tool
    async def test_simple_text() -> str:
        """Return one text."""
        return "This is a simple text response for testing."

    @server.tool
    async def add_numbers(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    @server.tool
    async def test_image_content() -> ImageContent:
        """Return one image."""
        return ImageContent(type="image", data=PNG, mime_type="image/png")

    @server.tool
    async def test_audio_content() -> AudioContent:
        """Return one sound."""
        return AudioContent(type="audio", data=WAV, mime_type="audio/wav")

    @server.tool
    async def test_embedded_resource() -> EmbeddedResource:
        """Return one embedded resource."""
        return _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")

    @server.tool
    async def test_multiple_content_types() -> list[Content]:
        """Return a text, an image and a resource together."""
        return [
            TextContent(type="text", text="Multiple content types test:"),
            ImageContent(type="image", data=PNG, mime_type="image/png"),
            _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]

    @server.tool
    async def test_error_handling() -> str:
        """Fail with a text that the model may read."""
        raise ToolError("This tool intentionally returns an error for testing")

    @server.tool
    async def test_x_mcp_header(region: Region = "nowhere") -> str:
        """Take an argument that clients repeat in the Mcp-Param-Region header."""
        return f"region={region}"

    @server.tool
    async def test_missing_capability(ctx: Context) -> str:
        """Refuse to work for clients that did not declare sampling."""
        if "sampling" not in ctx.client_capabilities:
            raise MissingClientCapability({"sampling": {}})
        return "The client declared sampling."

    @server.tool(name="json_schema_2020_12_tool", input_schema=JSON_SCHEMA_2020_12)
    async def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
        """Take what a JSON Schema of the 2020-12 draft describes."""
        return f"Contact by {arguments.get('contactMethod', 'email')}"


def _streaming_tools(server: McpServer) -> None:
    """Tools that say something before they answer."""

    @server.tool
    async def test_tool_with_progress(ctx: Context) -> str:
        """Report progress three times."""
        for step in (0, 50, 100):
            await ctx.progress(step, 100, f"Completed step {step} of 100")
            await anyio.sleep(0.02)
        return "Progress was reported."

    @server.tool
    async def test_tool_with_logging(ctx: Context) -> str:
        """Log three messages, 50 ms apart."""
        for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.log("info", text)
            await anyio.sleep(0.05)
        return "Logging was done."

    @server.tool
    async def test_logging_tool(ctx: Context) -> str:
        """Log one message, which only travels when the request asked for logs."""
        await ctx.log("info", "A message at info")
        return "Logged at info."

    @server.tool
    async def test_streaming_elicitation(ctx: Context) -> str | InputRequired:
        """Ask for a name in the result; nothing but notifications may travel before it."""
        answer = accepted_content(ctx, "user_name", Name)
        if answer is not None:
            return f"Hello, {answer.name}!"
        await ctx.progress(1, 2, "About to ask")
        return input_required({"user_name": elicit("What is your name?", Name)})

    @server.tool
    async def test_reconnection(ctx: Context) -> str:
        """Let go of the stream, work on, and answer to whoever comes back; without a session simply answer."""
        await ctx.close_stream(retry=0.1)
        await anyio.sleep(0.15)
        return "Reconnection test completed"


def _change_tools(server: McpServer) -> None:
    """Tools that announce a change to everyone who listens."""

    @server.tool
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Announce that the list of tools changed."""
        await ctx.notify.tools_changed()
        return "The change of the tools was announced."

    @server.tool
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Announce that the list of prompts changed."""
        await ctx.notify.prompts_changed()
        return "The change of the prompts was announced."

    @server.tool
    async def test_trigger_resource_change(uri: str, ctx: Context) -> str:
        """Announce that the list of resources and one resource changed."""
        await ctx.notify.resources_changed()
        await ctx.notify.resource_updated(uri)
        return f"The change of {uri} was announced."


def _asking_tools(server: McpServer) -> None:
    """Tools that need one round of input from the client."""

    @server.tool
    async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequired:
        """Ask for a name and greet it."""
        answer = accepted_content(ctx, "user_name", Name)
        if answer is None:
            return input_required({"user_name": elicit("What is your name?", Name)})
        return f"Hello, {answer.name}!"

    @server.tool
    async def test_input_required_result_sampling(ctx: Context) -> str | InputRequired:
        """Ask the client's model a question."""
        answer = input_response(ctx, "capital_question")
        if answer.message is None:
            return input_required({"capital_question": sample("What is the capital of France?", max_tokens=100)})
        return f"The model said: {_text(answer.message)}"

    @server.tool
    async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequired:
        """Ask for the client's roots."""
        answer = input_response(ctx, "client_roots")
        if answer.kind == "missing":
            return input_required({"client_roots": list_roots()})
        return f"The client has {len(answer.roots)} roots."

    @server.tool
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequired:
        """Ask for a name, a greeting and the roots at once."""
        if all(input_response(ctx, key).kind != "missing" for key in ("user_name", "greeting", "client_roots")):
            return "All three inputs arrived."
        questions = {"user_name": elicit("What is your name?", Name), "greeting": sample("Greet me", max_tokens=50)}
        return input_required({**questions, "client_roots": list_roots()}, state={"asked": 3})

    @server.tool
    async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequired:
        """Ask only for what the client declared it can give."""
        requests = {}
        if "sampling" in ctx.client_capabilities:
            requests["greeting"] = sample("Say hello", max_tokens=50)
        if "elicitation" in ctx.client_capabilities:
            requests["user_name"] = elicit("What is your name?", Name)
        if not requests or any(input_response(ctx, key).kind != "missing" for key in requests):
            return "Nothing more to ask."
        return input_required(requests)


def _rounds_tools(server: McpServer) -> None:
    """Tools that carry state from one round to the next."""

    async def confirm(ctx: Context) -> str | InputRequired:
        """Ask for a confirmation and expect the state back, unaltered."""
        if ctx.request_state is None:
            return input_required({"confirm": elicit("Please confirm", _form(ok="boolean"))}, state={"round": 1})
        return f"state-ok: round {ctx.request_state['round']}"

    server.register_tool("test_input_required_result_request_state", confirm)
    server.register_tool("test_input_required_result_tampered_state", confirm)

    @server.tool
    async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequired:
        """Ask for a name, then for a colour."""
        known = ctx.request_state or {}
        color = accepted_content(ctx, "step2")
        if "name" in known and color is not None:
            return f"{known['name']} likes {color['color']}."
        name = accepted_content(ctx, "step1", Name)
        if name is not None:
            known = {"name": name.name}
        if "name" in known:
            return input_required(
                {"step2": elicit("What is your favourite colour?", _form(color="string"))}, state=known
            )
        return input_required({"step1": elicit("What is your name?", Name)}, state={"step": 1})


def _pushing_tools(server: McpServer) -> None:
    """Tools for 2025-era sessions: they ask while they run."""

    @server.tool
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Ask the client's model."""
        return f"LLM response: {_text(await ctx.sample(prompt, max_tokens=100))}"

    @server.tool
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Ask the user for a name and an address."""
        return f"User response: {json.dumps(await ctx.elicit(message, _form(username='string', email='string')))}"

    @server.tool
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Ask with a default for every kind of field."""
        return json.dumps(await ctx.elicit("Please check your details", {"type": "object", "properties": DEFAULTS}))

    @server.tool
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Ask with every kind of choice."""
        return json.dumps(await ctx.elicit("Please choose", {"type": "object", "properties": ENUMS}))


def _resources(server: McpServer) -> None:
    @server.resource("test://static-text", name="static-text", mime_type="text/plain")
    async def static_text() -> str:
        """A text that never changes."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", name="static-binary", mime_type="image/png")
    async def static_binary() -> bytes:
        """An image that never changes."""
        return base64.b64decode(PNG)

    @server.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
    async def watched_resource() -> str:
        """A text that clients may subscribe to."""
        return "Watched resource content"

    @server.resource("test://template/{id}/data", name="template", mime_type="application/json")
    async def template(id: str) -> str:
        """The data of one id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _prompts(server: McpServer) -> None:
    @server.prompt
    async def test_simple_prompt() -> str:
        """A prompt without arguments."""
        return "This is a simple prompt for testing."

    @server.prompt
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with two arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt
    async def test_prompt_with_embedded_resource(resourceUri: str) -> list[PromptMessage]:  # noqa: N803
        """A prompt that carries a resource."""
        resource = _embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [_said(resource), _said(TextContent(type="text", text="Please process the resource above."))]

    @server.prompt
    async def test_prompt_with_image() -> list[PromptMessage]:
        """A prompt that carries an image."""
        image = ImageContent(type="image", data=PNG, mime_type="image/png")
        return [_said(image), _said(TextContent(type="text", text="Please look at the image above."))]

    @server.prompt
    async def test_input_required_result_prompt(ctx: Context) -> str | InputRequired:
        """A prompt that asks its user for a context first."""
        answer = accepted_content(ctx, "user_context")
        if answer is None:
            return input_required({"user_context": elicit("Which context?", _form(context="string"))})
        return f"Use this context: {answer['context']}"


def _embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _said(content: Content) -> PromptMessage:
    return PromptMessage(role="user", content=content)


def _text(answer: dict[str, Any]) -> str:
    """The text of a sampling answer, whose content is one block or a list of them."""
    content = answer.get("content")
    blocks = content if isinstance(content, list) else [content]
    return " ".join(block.get("text", "") for block in blocks if isinstance(block, dict))


app = create_mcp_handler(create_server)
