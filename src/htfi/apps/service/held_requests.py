"""Streams and WebSockets end when who opened them is no longer let in: a key that was revoked reads nothing more."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htfi.apps.service.callers import Caller

_POLICY_VIOLATION = 1008  # of a WebSocket's end


class HeldRequests:
    """Of a service; belongs to its event loop."""

    def __init__(self) -> None:
        self._held: dict[asyncio.Future[None], Caller] = {}

    def end_where(self, is_over: Callable[[Caller], bool]) -> None:
        """End the requests of callers of whom this says so."""
        answers: dict[Caller, bool] = {}
        for ended, caller in self._held.items():
            if caller not in answers:
                answers[caller] = is_over(caller)
            if answers[caller] and not ended.done():
                ended.set_result(None)

    async def run(self, app: ASGIApp, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, which sees its client leave when it is ended."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        is_websocket, is_begun, is_whole = scope["type"] == "websocket", False, False

        async def receive_or_end() -> Message:
            waiting = asyncio.ensure_future(receive())
            try:
                await asyncio.wait((waiting, ended), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not waiting.done():
                    waiting.cancel()
                    with suppress(asyncio.CancelledError):
                        await waiting
            if ended.done():
                return {"type": "websocket.disconnect", "code": _POLICY_VIOLATION} if is_websocket else _LEFT
            return waiting.result()

        async def send_until_end(message: Message) -> None:
            nonlocal is_begun, is_whole
            if ended.done():
                return
            is_begun = True
            is_whole = message["type"] == "websocket.close" or (
                message["type"] == "http.response.body" and not message.get("more_body")
            )
            await send(message)

        self._held[ended] = caller
        try:
            await app(scope, receive_or_end, send_until_end)
        finally:
            del self._held[ended]
        if ended.done() and is_begun and not is_whole:
            if is_websocket:
                await send(
                    {"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": "the key has ended"}
                )
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})


_LEFT: Message = {"type": "http.disconnect"}
