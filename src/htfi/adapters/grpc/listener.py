"""Keeps the port open on which streams are accepted, whatever becomes of gRPC's server; the transport runs it.

gRPC's server ends at a request whose path is not UTF-8, and whoever may connect may send one. Its streams live on.
"""

import asyncio
from collections.abc import Callable

from htfi.adapters.grpc.library import Server
from htfi.adapters.grpc.server import listen
from htfi.adapters.grpc.switch import Switch
from htfi.adapters.grpc.tls import Credentials
from htfi.domain.errors import HtfiError

_LOOK_S = 0.1  # between looks at the server: it tells of its end to nobody
_FIRST_S, _LONGEST_S = 0.01, 1.0  # between attempts to take the port again, doubling
_NUM_OLD = (
    8  # servers that ended and still carry streams; beyond them the oldest streams must be dialled anew
)
_FOR_EVER_S = 1e9


class Listener:
    """`open` once, `keep` for ever, `close`. `trouble(node, words)` hears that the port is closed, and '' after."""

    def __init__(
        self,
        switch: Switch,
        node: str,
        address: str,
        credentials: Credentials | None,
        trouble: Callable[[str, str], None],
    ) -> None:
        self.is_open = False
        self._switch, self._node, self._address, self._credentials = switch, node, address, credentials
        self._trouble = trouble
        self._server: Server | None = None
        self._old: dict[asyncio.Task[None], Server] = {}

    async def open(self) -> int:
        """The port. Raises: InvalidInput, DependencyUnavailable where it cannot listen."""
        self._server, port = await listen(self._switch, self._node, self._address, self._credentials)
        # It is the port that peers know: no other will do from now on.
        self._address = f"{self._address.rpartition(':')[0]}:{port}"
        self.is_open = True
        return port

    async def keep(self) -> None:
        """Until the switch is closing."""
        while not self._switch.is_closing and self._server is not None:
            try:
                await self._server.wait_for_termination(_LOOK_S)
            except Exception as error:  # noqa: BLE001 - whatever ended the server, the port is to be open
                self.is_open = False
                told = f"a request closed its port ({error}): it opens it again"
                self._trouble(self._node, told)
                self._retire(self._server)
                await self._open_again()
                self._trouble(self._node, "")

    async def close(self) -> None:
        self.is_open = False
        servers = list(self._old.values()) + ([self._server] if self._server is not None else [])
        await asyncio.gather(*(server.stop(0.2) for server in servers), return_exceptions=True)

    async def _open_again(self) -> None:
        wait_s = _FIRST_S
        while not self._switch.is_closing:
            try:
                await self.open()
                return
            except HtfiError:  # the port is not free yet, or the files of the certificate are being renewed
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_S)

    def _retire(self, server: Server) -> None:
        """Let a server that has ended carry its streams until they end; and then free it."""
        if len(self._old) >= _NUM_OLD:
            self._stop(self._old.pop(next(iter(self._old))), 0.0)
        self._stop(server, _FOR_EVER_S)

    def _stop(self, server: Server, after_s: float) -> None:
        stopping = asyncio.create_task(server.stop(after_s))
        self._old[stopping] = server
        stopping.add_done_callback(lambda done: self._old.pop(done, None))
