"""The gRPC library as this package uses it: imported quietly, and with types. All of its modules go through here.

gRPC ships no types; what is used of it is declared here, and the values are given theirs where they are made.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, cast

# C core logs to stderr, and reads this once, when it is loaded. A user's own setting stands.
_VERBOSITY = "GRPC_VERBOSITY"
_is_quieted = _VERBOSITY not in os.environ
if _is_quieted:
    os.environ[_VERBOSITY] = "NONE"
import grpc  # noqa: E402
from grpc import aio  # noqa: E402

if _is_quieted:
    del os.environ[_VERBOSITY]

from htfi.adapters.grpc.config import Options  # noqa: E402

SERVICE, METHOD = "htfi.link.v1.Link", "Stream"
_library: Any = grpc
_aio: Any = aio
RpcError = cast("type[Exception]", _library.RpcError)
# What a call may raise at either end because it has ended, or the connection has.
CallError: tuple[type[Exception], ...] = (
    RpcError,
    _aio.UsageError,
    _aio.InternalError,
    asyncio.InvalidStateError,
)
# Raised by `abort`, to end a handler whose answer is a refusal.
AbortError = cast("type[Exception]", _aio.AbortError)
Metadata = Sequence[tuple[str, str]]


class Duplex(Protocol):
    """A stream of messages, at either end."""

    def read(self) -> Awaitable[object]:
        """The next message's bytes, or EOF."""
        ...

    def write(self, message: bytes, /) -> Awaitable[None]: ...


class Call(Duplex, Protocol):
    """The dialling end."""

    def initial_metadata(self) -> Awaitable[Any]: ...
    def done_writing(self) -> Awaitable[None]: ...
    def cancel(self) -> bool: ...
    def code(self) -> Awaitable[Any]: ...
    def details(self) -> Awaitable[str]: ...


class Channel(Protocol):
    def close(self) -> Awaitable[None]: ...


class Context(Duplex, Protocol):
    """The accepting end."""

    def auth_context(self) -> Mapping[str, Sequence[bytes]]: ...
    def invocation_metadata(self) -> Metadata: ...
    def send_initial_metadata(self, metadata: Metadata, /) -> Awaitable[None]: ...
    def abort(self, code: object, details: str = "") -> Awaitable[None]: ...
    def peer(self) -> str: ...


class Server(Protocol):
    def start(self) -> Awaitable[None]: ...
    async def stop(self, grace: float | None) -> None: ...
    def wait_for_termination(self, timeout: float) -> Awaitable[bool]:
        """True when the time is over. Raises what has ended the server, its streams may go on."""
        ...

    def add_insecure_port(self, address: str) -> int: ...
    def add_secure_port(self, address: str, server_credentials: Any) -> int: ...


def make_server(
    handler: Callable[[object, Context], Awaitable[None]], num_streams: int, options: Options
) -> Server:
    """A server of our one method; messages are bytes. Inside the loop that will run it."""
    method = _library.stream_stream_rpc_method_handler(handler)
    handlers = [_library.method_handlers_generic_handler(SERVICE, {METHOD: method})]
    return cast(Server, _aio.server(handlers=handlers, maximum_concurrent_rpcs=num_streams, options=options))


def make_channel(address: str, credentials: Any | None, options: Options) -> Channel:
    """Not yet connected. `credentials` None: plaintext."""
    if credentials is None:
        return cast(Channel, _aio.insecure_channel(address, options))
    return cast(Channel, _aio.secure_channel(address, credentials, options))


def make_call(channel: Channel, metadata: Metadata) -> Call:
    untyped: Any = channel
    return cast(Call, untyped.stream_stream(f"/{SERVICE}/{METHOD}")(metadata=tuple(metadata)))


def channel_credentials(authority: bytes, key: bytes, chain: bytes) -> Any:
    return _library.ssl_channel_credentials(authority, key, chain)


def server_credentials(authority: bytes, key: bytes, chain: bytes) -> Any:
    return _library.ssl_server_credentials(((key, chain),), authority, require_client_auth=True)


def status(name: str) -> object:
    """UNAUTHENTICATED and the like."""
    return _library.StatusCode[name]


def words_of(error: Exception) -> tuple[str, str]:
    """Name of the status and details of a call that failed."""
    untyped: Any = error
    return str(untyped.code().name), str(untyped.details() or "")
