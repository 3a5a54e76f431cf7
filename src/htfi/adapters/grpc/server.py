"""Accepts streams: who comes, by the certificate, and what they may. The transport starts it in its loop."""

import asyncio
import ipaddress
from contextlib import suppress

from htfi.adapters.grpc import library
from htfi.adapters.grpc.config import server_options
from htfi.adapters.grpc.library import Context, Server
from htfi.adapters.grpc.switch import FLUSH_S, Switch
from htfi.adapters.grpc.tls import Credentials, peer_name
from htfi.domain.errors import DependencyUnavailable, InvalidInput

NODE_KEY = "htfi-node"  # metadata: a node's name where no certificate says it


async def listen(
    switch: Switch, node: str, address: str, credentials: Credentials | None
) -> tuple[Server, int]:
    """A started server and its port. Raises: InvalidInput, DependencyUnavailable where it cannot listen."""
    tasks: set[asyncio.Task[object] | None] = set()

    async def stream(requests: object, context: Context) -> None:
        del requests
        task = asyncio.current_task()
        tasks.add(task)  # a loop holds its tasks weakly, and a server that has ended holds none
        try:
            await _accept(switch, node, context, credentials is not None)
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


def demand_loopback(address: str) -> None:
    """Raises: InvalidInput."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        raise InvalidInput(f"{address} is not of this machine alone: without TLS only loopback is allowed")


async def _accept(switch: Switch, node: str, context: Context, is_secure: bool) -> None:
    peer = peer_name(context.auth_context()) if is_secure else _stated_name(context)
    if switch.is_closing:
        return await context.abort(library.status("UNAVAILABLE"), f"{node} is closing")
    if not peer:
        return await context.abort(library.status("UNAUTHENTICATED"), "the certificate does not say one name")
    if words := switch.refusal(peer):
        return await context.abort(library.status("ALREADY_EXISTS"), words)
    await context.send_initial_metadata(((NODE_KEY, node),))
    stream = switch.open(peer, dialled=False)
    try:
        words = await switch.run(stream, context, None)
    except asyncio.CancelledError:  # by gRPC: the peer is gone
        return None
    if stream.dropped.done():
        with suppress(TimeoutError):  # a peer that does not read does not take this either
            async with asyncio.timeout(FLUSH_S):
                await context.abort(library.status("ABORTED"), words)
    return None


def _stated_name(context: Context) -> str:
    for key, value in context.invocation_metadata():
        if key == NODE_KEY:
            return value
    return ""
