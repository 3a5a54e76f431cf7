"""A server of the fixtures that MCP's conformance suite asks for, over our HTTP transport: `python FILE PORT`.

The suite calls tools, resources and prompts by names of its own (test_*), which no server of a product has. What it
judges here is how `htfi.apps.mcp.http` carries them.
"""

import asyncio
import json
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer, UserMessage
from mcp.server.mcpserver.tools import Tool
from mcp.types import (
    AudioContent,
    Completion,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field, create_model

from htfi.apps.mcp.http import HttpAccess, over_http

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
CHOICES = ["active", "inactive", "pending"]


def json_schema_2020_12_tool(name: str) -> str:
    return name


SCHEMA_TOOL = Tool.from_function(json_schema_2020_12_tool, description="A fixture of the suite.")
SCHEMA_TOOL.parameters = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
server: MCPServer[Any] = MCPServer("conformance fixtures", tools=[SCHEMA_TOOL], log_level="ERROR")


def image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mime_type="image/png")


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def embedded(uri: str, words: str, kind: str = "text/plain") -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=kind, text=words)
    return EmbeddedResource(type="resource", resource=contents)


@server.tool("test_simple_text", description="A fixture of the suite.")
def simple_text() -> str:
    return "This is a simple text response for testing."


@server.tool("test_image_content", description="A fixture of the suite.")
def image_content() -> list[ImageContent]:
    return [image()]


@server.tool("test_audio_content", description="A fixture of the suite.")
def audio_content() -> list[AudioContent]:
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


@server.tool("test_embedded_resource", description="A fixture of the suite.")
def embedded_resource() -> list[EmbeddedResource]:
    return [embedded("test://embedded-resource", "This is an embedded resource content.")]


@server.tool("test_multiple_content_types", description="A fixture of the suite.")
def multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    body = embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
    return [text("Multiple content types test:"), image(), body]


@server.tool("test_tool_with_logging", description="A fixture of the suite.")
async def tool_with_logging(context: Context) -> str:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.info(words)
    return "done"


@server.tool("test_tool_with_progress", description="A fixture of the suite.")
async def tool_with_progress(context: Context) -> str:
    for done in (0, 50, 100):
        await context.report_progress(done, 100)
    return "done"


@server.tool("test_error_handling", description="A fixture of the suite.")
def error_handling() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


@server.tool("test_sampling", description="A fixture of the suite.")
async def sampling(prompt: str, context: Context) -> str:
    from mcp.types import SamplingMessage

    message = SamplingMessage(role="user", content=text(prompt))
    # On the call's own stream: a stream of the session's own may not be open yet.
    result = await context.session.create_message(
        [message], max_tokens=100, related_request_id=context.request_id
    )
    return f"LLM response: {result.content}"


@server.tool("test_reconnection", description="A fixture of the suite.")
async def reconnection(context: Context) -> str:
    await context.close_sse_stream()
    await asyncio.sleep(0.1)
    return "Reconnection test completed"


class Answer(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field(default="active", json_schema_extra={"enum": CHOICES})
    verified: bool = True


def titled(*names: str) -> list[dict[str, str]]:
    return [{"const": name, "title": name.title()} for name in names]


def enum_shape() -> type[BaseModel]:
    """Its fields have the suite's names."""
    options = ["option1", "option2", "option3"]
    fields: dict[str, tuple[Any, dict[str, Any]]] = {
        "untitledSingle": (str, {"enum": options}),
        "titledSingle": (str, {"oneOf": titled("value1", "value2", "value3")}),
        "legacyEnum": (str, {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]}),
        "untitledMulti": (list[str], {"items": {"type": "string", "enum": options}}),
        "titledMulti": (list[str], {"items": {"anyOf": titled("value1", "value2", "value3")}}),
    }
    named: dict[str, Any] = {
        name: (kind, Field(json_schema_extra=extra)) for name, (kind, extra) in fields.items()
    }
    return create_model("Enums", **named)


async def ask(context: Context, message: str, shape: type[BaseModel]) -> str:
    found = await context.elicit(message, schema=shape)
    content = found.data.model_dump_json() if found.action == "accept" else "{}"
    return f"Elicitation completed: action={found.action}, content={content}"


@server.tool("test_elicitation", description="A fixture of the suite.")
async def elicitation(message: str, context: Context) -> str:
    return await ask(context, message, Answer)


@server.tool("test_elicitation_sep1034_defaults", description="A fixture of the suite.")
async def elicitation_sep1034_defaults(context: Context) -> str:
    return await ask(context, "Please review and update the form fields", Defaults)


@server.tool("test_elicitation_sep1330_enums", description="A fixture of the suite.")
async def elicitation_sep1330_enums(context: Context) -> str:
    return await ask(context, "Please select options from the enum fields", enum_shape())


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    import base64

    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 - the suite's name
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    return "Watched resource content"


@server.prompt("test_simple_prompt", description="A fixture of the suite.")
def simple_prompt() -> list[UserMessage]:
    return [UserMessage("This is a simple prompt for testing.")]


@server.prompt("test_prompt_with_arguments", description="A fixture of the suite.")
def prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
    return [UserMessage(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]


@server.prompt("test_prompt_with_embedded_resource", description="A fixture of the suite.")
def prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    body = embedded(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(body), UserMessage("Please process the embedded resource above.")]


@server.prompt("test_prompt_with_image", description="A fixture of the suite.")
def prompt_with_image() -> list[UserMessage]:
    return [UserMessage(image()), UserMessage("Please analyze the image above.")]


@server.completion()
async def complete(*_: object) -> Completion:
    return Completion(values=[], total=0, has_more=False)


async def acknowledge(*_: object) -> EmptyResult:
    return EmptyResult()


for method, shape in (
    ("logging/setLevel", SetLevelRequestParams),
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
):
    server._lowlevel_server.add_request_handler(method, shape, acknowledge)


if __name__ == "__main__":
    port = int(sys.argv[1])
    app = over_http(server, HttpAccess(), f"127.0.0.1:{port}")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
