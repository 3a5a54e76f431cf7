"""The gRPC library as this package uses it: imported quietly, with types, limits and channel options.

All modules of the package import gRPC through here. gRPC ships no types; what is used of it is declared here.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import grpc
from grpc import aio

from htfi.decoding.link.frames import MAX_FRAME_BYTES
from htfi.domain.errors import InvalidInput

GrpcOptions = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """How much a stream may hold, and how long anything may take. Raises InvalidInput for what cannot work."""

    outbox_bytes: int = 1 << 20  # of a stream, handed over and not yet taken by HTTP/2
    inbox_bytes: int = 4 << 20  # of a stream, arrived and not yet received; beyond it we stop reading
    tick_ms: float = 25.0  # between calls of `StreamObserver.due`
    dial_s: float = 3.0  # for TCP, TLS and the stream's opening together
    handshake_s: float = 3.0  # that an unknown peer may hold a connection without TLS
    first_redial_s: float = 0.1
    longest_redial_s: float = 2.0
    fresh_s: float = 0.3  # a stream that received within this time is alive
    silent_s: float = 4.0  # a node with heartbeats that was silent for so long is to be dialled again
    num_bad_frames: int = 16  # whole, and rejected by the watcher; on one stream, before it is dropped
    num_streams: int = 256  # accepted at once
    num_connections: int = 1024  # accepted at once, unknown peers included

    def __post_init__(self) -> None:
        if self.outbox_bytes < MAX_FRAME_BYTES or self.inbox_bytes < MAX_FRAME_BYTES:
            raise InvalidInput(f"a stream must hold one frame: give at least {MAX_FRAME_BYTES} bytes")
        if not 1.0 <= self.tick_ms <= 1000.0:
            raise InvalidInput(f"tick_ms is {self.tick_ms}: give 1 to 1000")
        if not 0.0 < self.first_redial_s <= self.longest_redial_s:
            raise InvalidInput("first_redial_s must be above 0 and at most longest_redial_s")
        if min(self.dial_s, self.handshake_s) <= 0.0:
            raise InvalidInput("dial_s and handshake_s must be above 0")
        if not self.silent_s > 4 * self.tick_ms / 1e3:
            raise InvalidInput("silent_s must be above four ticks")
        if min(self.num_bad_frames, self.num_streams, self.num_connections) < 1:
            raise InvalidInput("num_bad_frames, num_streams and num_connections must be at least 1")


# What a message costs on the wire beside its own bytes, measured through a relay on loopback (gRPC 1.85): 36 bytes
# (gRPC's prefix 5, HTTP/2's DATA header 9, a TLS 1.3 record 22) where several messages go one way; 62 where each is
# answered, since chttp2 adds two WINDOW_UPDATEs of 13 bytes to any write that follows a read, and no option changes
# that. They travel in the message's own TLS record: no packet goes for them alone. A quiet stream costs a PING and its
# answer each keepalive.
_SHARED_OPTIONS: GrpcOptions = (
    ("grpc.max_receive_message_length", MAX_FRAME_BYTES),
    ("grpc.max_send_message_length", MAX_FRAME_BYTES),
    # A probe is a PING and its answer for nearly every small message; our windows never need to grow.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.enable_retries", 0),
    # Heartbeats notice a loss much sooner; this ends connections over which no heartbeat goes.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
)


def server_options(bounds: TransportLimits) -> GrpcOptions:
    return (
        *_SHARED_OPTIONS,
        ("grpc.so_reuseport", 0),  # or a second process would take half of our connections
        ("grpc.max_concurrent_streams", 4),  # of one connection
        ("grpc.max_allowed_incoming_connections", bounds.num_connections),
        ("grpc.server_handshake_timeout_ms", round(bounds.handshake_s * 1000)),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    )


def channel_options(bounds: TransportLimits, node: str) -> GrpcOptions:
    """`node` is whom the certificate at the other end must name, whatever the address is."""
    return (
        *_SHARED_OPTIONS,
        ("grpc.ssl_target_name_override", node),
        ("grpc.default_authority", node),
        ("grpc.use_local_subchannel_pool", 1),  # each dial is a new connection, with no backoff but ours
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.min_reconnect_backoff_ms", round(bounds.dial_s * 1000)),
    )


# C core logs to stderr, and reads this once, when it is loaded. A user's own setting stands.
_VERBOSITY = "GRPC_VERBOSITY"
_silences_grpc = _VERBOSITY not in os.environ
if _silences_grpc:
    os.environ[_VERBOSITY] = "NONE"

if _silences_grpc:
    del os.environ[_VERBOSITY]


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


class DuplexStream(Protocol):
    """A stream of messages, at either end."""

    def read(self) -> Awaitable[object]:
        """The next message's bytes, or EOF."""
        ...

    def write(self, message: bytes, /) -> Awaitable[None]: ...


class ClientCall(DuplexStream, Protocol):
    """The dialling end."""

    def initial_metadata(self) -> Awaitable[Any]: ...
    def done_writing(self) -> Awaitable[None]: ...
    def cancel(self) -> bool: ...
    def code(self) -> Awaitable[Any]: ...
    def details(self) -> Awaitable[str]: ...


class GrpcChannel(Protocol):
    def close(self) -> Awaitable[None]: ...


class ServerContext(DuplexStream, Protocol):
    """The accepting end."""

    def auth_context(self) -> Mapping[str, Sequence[bytes]]: ...
    def invocation_metadata(self) -> Metadata: ...
    def send_initial_metadata(self, metadata: Metadata, /) -> Awaitable[None]: ...
    def abort(self, code: object, details: str = "") -> Awaitable[None]: ...
    def peer(self) -> str: ...


class GrpcServer(Protocol):
    def start(self) -> Awaitable[None]: ...
    async def stop(self, grace: float | None) -> None: ...
    def wait_for_termination(self, timeout: float) -> Awaitable[bool]:
        """True when the time is over. Raises what has ended the server, its streams may continue."""
        ...

    def add_insecure_port(self, address: str) -> int: ...
    def add_secure_port(self, address: str, server_credentials: Any) -> int: ...


def make_server(
    handler: Callable[[object, ServerContext], Awaitable[None]], num_streams: int, options: GrpcOptions
) -> GrpcServer:
    """A server of our one method; messages are bytes. Inside the loop that will run it."""
    method = _library.stream_stream_rpc_method_handler(handler)
    handlers = [_library.method_handlers_generic_handler(SERVICE, {METHOD: method})]
    return cast(
        GrpcServer, _aio.server(handlers=handlers, maximum_concurrent_rpcs=num_streams, options=options)
    )


def make_channel(address: str, credentials: Any | None, options: GrpcOptions) -> GrpcChannel:
    """Not yet connected. `credentials` None: plaintext."""
    if credentials is None:
        return cast(GrpcChannel, _aio.insecure_channel(address, options))
    return cast(GrpcChannel, _aio.secure_channel(address, credentials, options))


def make_call(channel: GrpcChannel, metadata: Metadata) -> ClientCall:
    untyped: Any = channel
    return cast(ClientCall, untyped.stream_stream(f"/{SERVICE}/{METHOD}")(metadata=tuple(metadata)))


def channel_credentials(authority: bytes, key: bytes, chain: bytes) -> Any:
    return _library.ssl_channel_credentials(authority, key, chain)


def server_credentials(authority: bytes, key: bytes, chain: bytes) -> Any:
    return _library.ssl_server_credentials(((key, chain),), authority, require_client_auth=True)


def status(name: str) -> object:
    """UNAUTHENTICATED and the like."""
    return _library.StatusCode[name]


def error_text(error: Exception) -> tuple[str, str]:
    """Name of the status and details of a call that failed."""
    untyped: Any = error
    return str(untyped.code().name), str(untyped.details() or "")
