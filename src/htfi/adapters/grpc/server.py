"""Accepts streams on one port: who connects, by the certificate, and what they may.

The transport runs it in its loop, and it keeps the port open whatever becomes of gRPC's server: that server ends at a
request whose path is not UTF-8, and any peer may send one. The streams live on.
"""

import asyncio
import ipaddress
from collections.abc import Callable
from contextlib import suppress

from htfi.adapters.grpc import library
from htfi.adapters.grpc.library import GrpcServer, ServerContext, server_options
from htfi.adapters.grpc.multiplexer import FLUSH_S, StreamMultiplexer
from htfi.adapters.grpc.tls import ReloadingCredentials, peer_name
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput

NODE_KEY = "htfi-node"  # metadata: a node's name where no certificate says it


async def listen(
    switch: StreamMultiplexer, node: str, address: str, credentials: ReloadingCredentials | None
) -> tuple[GrpcServer, int]:
    """A started server and its port. Raises: InvalidInput, DependencyUnavailable where it cannot listen."""
    tasks: set[asyncio.Task[object] | None] = set()

    async def stream(requests: object, context: ServerContext) -> None:
        del requests
        task = asyncio.current_task()
        tasks.add(task)  # a loop holds its tasks weakly, and a server that has ended holds none
        try:
            await _accept_stream(switch, node, context, credentials is not None)
        except library.CallError:  # the peer is gone
            return
        except Exception as error:
            if not isinstance(error, library.AbortError):
                switch.fail(error)
            raise
        finally:
            tasks.discard(task)

    server = library.make_server(stream, switch.bounds.num_streams, server_options(switch.bounds))
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            identity = credentials.current()
            port = server.add_secure_port(
                address, library.server_credentials(identity.authority, identity.key, identity.chain)
            )
        if port == 0:
            raise RuntimeError("no port")
    except RuntimeError as error:
        await server.stop(None)
        raise DependencyUnavailable(
            f"cannot listen on {address}: it is in use, or not an address of this machine"
        ) from error
    await server.start()
    return server, port


def require_loopback(address: str) -> None:
    """Raises: InvalidInput."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        raise InvalidInput(f"{address} is not a loopback address: without TLS only loopback is allowed")


async def _accept_stream(
    switch: StreamMultiplexer, node: str, context: ServerContext, is_secure: bool
) -> None:
    peer = peer_name(context.auth_context()) if is_secure else _stated_name(context)
    if switch.is_closing:
        return await context.abort(library.status("UNAVAILABLE"), f"{node} is closing")
    if not peer:
        return await context.abort(
            library.status("UNAUTHENTICATED"), "the certificate does not name exactly one node"
        )
    if reason := switch.refusal_reason(peer):
        return await context.abort(library.status("ALREADY_EXISTS"), reason)
    await context.send_initial_metadata(((NODE_KEY, node),))
    stream = switch.open(peer, dialled=False)
    try:
        reason = await switch.run(stream, context, None)
    except asyncio.CancelledError:  # by gRPC: the peer is gone
        return None
    if stream.drop_reason.done():
        with suppress(TimeoutError):  # a peer that does not read does not take this either
            async with asyncio.timeout(FLUSH_S):
                await context.abort(library.status("ABORTED"), reason)
    return None


def _stated_name(context: ServerContext) -> str:
    for key, value in context.invocation_metadata():
        if key == NODE_KEY:
            return value
    return ""


_CHECK_S = 0.1  # between looks at the server: it reports its end to no caller
_FIRST_RETRY_S, _MAX_RETRY_S = 0.01, 1.0  # between attempts to take the port again, doubling
_MAX_RETIRED_SERVERS = (
    8  # servers that ended and still carry streams; beyond them the oldest streams must be dialled again
)
_NO_TIMEOUT_S = 1e9


class PortListener:
    """`open` once, `keep` for ever, `close`. `trouble(node, words)` is called when the port is closed, and '' after."""

    def __init__(
        self,
        switch: StreamMultiplexer,
        node: str,
        address: str,
        credentials: ReloadingCredentials | None,
        trouble: Callable[[str, str], None],
    ) -> None:
        self.is_open = False
        self._switch, self._node, self._address, self._credentials = switch, node, address, credentials
        self._report_trouble = trouble
        self._server: GrpcServer | None = None
        self._retired: dict[asyncio.Task[None], GrpcServer] = {}

    async def open(self) -> int:
        """The port. Raises: InvalidInput, DependencyUnavailable where it cannot listen."""
        self._server, port = await listen(self._switch, self._node, self._address, self._credentials)
        # It is the port that peers know: no other will do from now on.
        self._address = f"{self._address.rpartition(':')[0]}:{port}"
        self.is_open = True
        return port

    async def run(self) -> None:
        """Until the switch is closing."""
        while not self._switch.is_closing and self._server is not None:
            try:
                await self._server.wait_for_termination(_CHECK_S)
            except Exception as error:  # noqa: BLE001 - whatever ended the server, the port is to be open
                self.is_open = False
                text = f"a request closed its port ({error}): it is being opened again"
                self._report_trouble(self._node, text)
                self._retire(self._server)
                await self._open_again()
                self._report_trouble(self._node, "")

    async def close(self) -> None:
        self.is_open = False
        servers = list(self._retired.values()) + ([self._server] if self._server is not None else [])
        await asyncio.gather(*(server.stop(0.2) for server in servers), return_exceptions=True)

    async def _open_again(self) -> None:
        wait_s = _FIRST_RETRY_S
        while not self._switch.is_closing:
            try:
                await self.open()
                return
            except HtfiError:  # the port is not free yet, or the files of the certificate are being renewed
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, _MAX_RETRY_S)

    def _retire(self, server: GrpcServer) -> None:
        """Let a server that has ended carry its streams until they end; and then free it."""
        if len(self._retired) >= _MAX_RETIRED_SERVERS:
            self._stop(self._retired.pop(next(iter(self._retired))), 0.0)
        self._stop(server, _NO_TIMEOUT_S)

    def _stop(self, server: GrpcServer, after_s: float) -> None:
        stopping = asyncio.create_task(server.stop(after_s))
        self._retired[stopping] = server
        stopping.add_done_callback(lambda done: self._retired.pop(done, None))
