"""Tools for agents at /mcp, made at the first request for them: importing their library takes half a second."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.routing import Router
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from htfi.apps.mcp.mount import MountedServer


class AgentTools:
    """An ASGI application. Belongs to the event loop in which it is `running`."""

    def __init__(self, make: "Callable[[], MountedServer]") -> None:
        self._make = make
        self._wanted = asyncio.Event()
        self._made: asyncio.Future[Router] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises: as `make`."""
        assert self._made is not None, "it is running"
        self._wanted.set()
        answer = await asyncio.shield(self._made)
        await answer(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the application is up, with its runs open."""
        made = self._made = asyncio.get_running_loop().create_future()
        ending = asyncio.Event()
        serving = asyncio.ensure_future(self._serve(made, ending))
        try:
            yield
        finally:
            ending.set()
            self._wanted.set()
            await serving

    async def _serve(self, made: asyncio.Future[Router], ending: asyncio.Event) -> None:
        """In one task from begin to end, as the library's own tasks demand."""
        await self._wanted.wait()
        if ending.is_set():
            return
        try:
            server = await asyncio.to_thread(self._make)
        except Exception as error:  # noqa: BLE001 - those who ask for tools are answered with it
            made.set_exception(error)
            return
        async with server.running():
            made.set_result(Router(server.routes))
            await ending.wait()
