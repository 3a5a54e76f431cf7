"""Decisions as they are released: Server-Sent Events and WebSocket. Each resumes from the index that a client names."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse

from htfi.apps.service.callers import needs
from htfi.apps.service.served_run import record_of
from htfi.domain.errors import HtfiError, InvalidInput
from htfi.library.serving.callers import Scope
from htfi.wiring.service.live_record import LineGroup, LiveRecord

_KEEP_ALIVE_S = 15.0
_GOING_AWAY, _INTERNAL = 1001, 1011

router = APIRouter(dependencies=[Depends(needs(Scope.READ))])
From = Annotated[int | None, Query(alias="from", ge=0, le=2**62, description="index of the first decision")]


@router.get("/stream", summary="Decisions as they are released, as Server-Sent Events")
async def stream(
    request: Request, first: From = None, last_event_id: Annotated[str | None, Header()] = None
) -> StreamingResponse:
    """Every event's id is its index in the ledger: a client that comes back with `Last-Event-ID` misses nothing.

    Without an id the stream begins with the next decision.
    """
    record = record_of(request)
    start = _start(record, first, last_event_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(record, start), media_type="text/event-stream", headers=headers)


@router.websocket("/ws")
async def websocket(socket: WebSocket) -> None:
    """The same lines, each a text message; `from` in the query names the first index."""
    record = record_of(socket)
    text = socket.query_params.get("from")
    if text is not None and not text.isdecimal():
        await socket.close(1008, "from: write the index of the first decision")
        return
    await socket.accept()
    start = record.size if text is None else int(text)
    leaving = asyncio.ensure_future(_until_closed(socket))
    sending = asyncio.ensure_future(_send(record, start, socket))
    try:
        await asyncio.wait((leaving, sending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (leaving, sending):
            task.cancel()
            with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await task


async def _events(record: LiveRecord, start: int) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    try:
        async for group in record.follow(start, _KEEP_ALIVE_S):
            if not group.lines:
                yield b": alive\n\n"
                continue
            if group.events is None:
                group.events = _as_events(group)
            yield group.events
    except HtfiError as error:
        yield b"event: problem\ndata: %s\n\n" % str(error).encode()


def _as_events(group: LineGroup) -> bytes:
    return b"".join(
        b"id: %d\nevent: decision\ndata: %s\n\n" % (index, line)
        for index, line in enumerate(group.lines, group.first)
    )


async def _send(record: LiveRecord, start: int, socket: WebSocket) -> None:
    try:
        async for group in record.follow(start):
            for line in group.lines:
                await socket.send_text(line.decode())
        await socket.close(_GOING_AWAY, "the service ends")
    except HtfiError as error:
        await socket.close(_INTERNAL, str(error)[:120])


async def _until_closed(socket: WebSocket) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            await socket.receive_text()


def _start(record: LiveRecord, first: int | None, last_event_id: str | None) -> int:
    if last_event_id:
        if not last_event_id.isdecimal() or len(last_event_id) > 18:
            raise InvalidInput(f"Last-Event-ID is not an index: {last_event_id[:40]!r}")
        return int(last_event_id) + 1
    return record.size if first is None else first
