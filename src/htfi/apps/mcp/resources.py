"""Resources: decisions, ledger entries, the checkpoint, and the newest forecast of each series."""

import json
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import Resource
from pydantic import BaseModel, Field

from htfi.apps.mcp.record_shapes import detail
from htfi.apps.mcp.record_tools import catalogue, newest_forecast, recorded_line
from htfi.apps.mcp.serving import RunOf
from htfi.library.serving.callers import Scope

CHECKPOINT, CATALOGUE = "htfi://checkpoint", "htfi://catalogue"
JSON, TEXT = "application/json", "text/plain"
FIXED = (
    Resource(
        uri=CATALOGUE,
        name="catalogue",
        title="Data catalogue",
        description="The run's series, time span, models and settings.",
        mime_type=JSON,
    ),
    Resource(
        uri=CHECKPOINT,
        name="checkpoint",
        title="Newest checkpoint",
        description="The ledger's newest signed checkpoint (c2sp.org/tlog-checkpoint).",
        mime_type=TEXT,
    ),
)


def forecast_uri(series: str) -> str:
    """Of the newest forecast of a series."""
    return f"htfi://forecasts/{series}"


async def read_fixed(uri: str, context: Context, run_of: RunOf) -> str:
    """The content of one of `FIXED`. Raises: HtfiError."""
    record = (await run_of(context, Scope.READ)).record
    if uri == CHECKPOINT:
        _, note = await record.ask(lambda reader: reader.checkpoint())
        return note
    return _text(await catalogue(record))


def add_templates(server: MCPServer[Any], run_of: RunOf) -> None:
    """Those with a part that a client names."""

    @server.resource(
        "htfi://decisions/{index}",
        name="decision",
        title="A decision",
        description="A decision by its index in the ledger, counted from 0. Text from news is marked untrusted.",
        mime_type=JSON,
    )
    async def decision(index: Annotated[int, Field(ge=0, le=2**62)], context: Context) -> str:
        return _text(detail(await recorded_line((await run_of(context, Scope.READ)).record, index)))

    @server.resource(
        "htfi://ledger/{index}",
        name="ledger entry",
        title="A ledger entry",
        description="The bytes of an entry, whose hash is a leaf of the ledger's tree. Untrusted: it holds headlines.",
        mime_type="application/octet-stream",
        meta={"htfi/untrusted": True},
    )
    async def entry(index: Annotated[int, Field(ge=0, le=2**62)], context: Context) -> bytes:
        record = (await run_of(context, Scope.READ)).record
        await recorded_line(record, index)
        return await record.ask(lambda reader: reader.log.entry(index))

    @server.resource(
        "htfi://forecasts/{+series}",
        name="newest forecast",
        title="Newest forecast of a series",
        description="The newest released forecast of a series, such as ACME/1d; subscribe to hear of the next.",
        mime_type=JSON,
    )
    async def forecast(series: str, context: Context) -> str:
        return _text(newest_forecast((await run_of(context, Scope.READ)).record, series))


def _text(body: BaseModel) -> str:
    return json.dumps(body.model_dump(mode="json"), ensure_ascii=False)
