"""MCP within another application, such as `htfi serve`: its path, and what has to run while that is up."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.routing import BaseRoute

from htfi.apps.mcp.http import over_http_at
from htfi.apps.mcp.server import RecordServer
from htfi.library.serving.run import ReadableRun


class MountedServer:
    """Answers at `/mcp` for the runs of a service, which identifies callers and checks hosts before.

    No session outlives a request, so that none can be another caller's.
    """

    def __init__(self, runs: Mapping[str, ReadableRun], names: Sequence[str], *, has_keys: bool) -> None:
        self._server = RecordServer(runs, has_keys=has_keys)
        app = over_http_at(self._server, names, is_stateless=True)
        self.routes: Sequence[BaseRoute] = app.routes

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the application is up, with its runs open."""
        announcing = asyncio.ensure_future(self._server.announce())
        try:
            async with self._server.session_manager.run():
                yield
        finally:
            announcing.cancel()
            with suppress(asyncio.CancelledError):
                await announcing
