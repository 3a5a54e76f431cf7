"""Completes what a person types into a prompt's or a resource's argument: names of series, the newest index."""

from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from htfi.wiring.service.live_record import LiveRecord

_MAX_VALUES = 100  # the protocol's bound


def add_completion(server: MCPServer[Any], record: LiveRecord) -> None:
    """From the record of the one run that is served."""

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        del ref, context  # an argument's name means the same everywhere
        if argument.name == "series":
            names = sorted(name for name in record.series if name.startswith(argument.value))
        elif argument.name == "index" and record.size:
            names = [str(record.size - 1)] if str(record.size - 1).startswith(argument.value) else []
        else:
            names = []
        return Completion(values=names[:_MAX_VALUES], total=len(names), has_more=len(names) > _MAX_VALUES)
