"""How a function becomes a tool: its arguments checked against its schema, what it does to the world stated."""

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def make_tool(function: Callable[..., Any], title: str) -> Tool:
    """A tool of the function's name; its docstring is what an agent reads. It knows no argument but its own."""
    words = " ".join((function.__doc__ or "").split())
    annotations = READS.model_copy(update={"title": title})
    tool = Tool.from_function(
        function, title=title, description=words, annotations=annotations, structured_output=True
    )
    tool.parameters["additionalProperties"] = False
    return tool
