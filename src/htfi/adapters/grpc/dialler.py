"""Keeps one stream open to each configured node, and says in one line why a dial failed.

The transport starts it in its loop. gRPC hides the reason of a failed TLS handshake, so one is made by hand, with the
same files. It decides nothing: gRPC's own handshake decides whether a peer is trusted; this one trusts no peer and
sends nothing.
"""

import asyncio
import errno
import ssl
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from cryptography import x509

from htfi.adapters.grpc import library
from htfi.adapters.grpc.library import ClientCall, TransportLimits, channel_options
from htfi.adapters.grpc.multiplexer import StreamMultiplexer
from htfi.adapters.grpc.server import NODE_KEY
from htfi.adapters.grpc.tls import (
    Identity,
    ReloadingCredentials,
    dns_names,
    format_day,
    is_issued_by,
    is_server_certificate,
)

_PROBE_S = 1.5
_ALERT_WAIT_S = 0.5  # for the other end to refuse our certificate, which TLS 1.3 does after the handshake
# Alerts that a peer sends about our certificate, as OpenSSL words them
_TLS_ALERTS = {
    "CERTIFICATE_EXPIRED": "it states that our certificate has expired",
    "UNKNOWN_CA": "it does not trust the authority that signed our certificate",
    "CERTIFICATE_REQUIRED": "it received no certificate from us",
    "BAD_CERTIFICATE": "it rejects our certificate",
    "CERTIFICATE_UNKNOWN": "it rejects our certificate",
    "UNSUPPORTED_CERTIFICATE": "it does not accept our certificate for a client",
}


async def explain_failure(node: str, address: str, identity: Identity | None, details: str) -> str:
    """Why there is no connection to `node`. `details` are gRPC's, given where we find nothing better."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_PROBE_S):
            if identity is None:
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.close()
                return f"{address} does not speak our protocol without TLS ({_first_line(details)})"
            return await _try_handshake(node, host.strip("[]"), int(port), identity, details)
    except TimeoutError:
        return f"{address} does not complete a TLS handshake"
    except ssl.SSLError as error:
        return _tls_failure(address, error, details)
    except OSError as error:
        return _connection_failure(address, error)
    except ValueError as error:
        return f"certificate of {node} cannot be read: {error}"


async def _try_handshake(node: str, host: str, port: int, identity: Identity, details: str) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(identity.files.certificate, identity.files.key)
    reader, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=node)
    try:
        shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if shown and (
            reason := certificate_fault(x509.load_der_x509_certificate(shown), node, identity.authority)
        ):
            return reason
        if reason := _own_fault(identity):
            return reason
        async with asyncio.timeout(_ALERT_WAIT_S):
            if not await reader.read(1):  # gRPC's server hangs up without an alert
                return f"{node} at {host}:{port} refuses our certificate: does it trust another authority?"
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()
    return f"{node} at {host}:{port} does not open a stream: {_first_line(details)}"


def certificate_fault(certificate: x509.Certificate, node: str, authority: bytes) -> str:
    """What is wrong with a peer's certificate; '' where nothing is."""
    if not is_issued_by(certificate, authority):
        return f"certificate of {node} is signed by another authority"
    now = datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        return f"certificate of {node} expired on {format_day(certificate.not_valid_after_utc)}"
    if now < certificate.not_valid_before_utc:
        return f"certificate of {node} is not valid before {format_day(certificate.not_valid_before_utc)}"
    names = dns_names(certificate)
    if node not in names:
        return f"the certificate names {' and '.join(names) or 'no node'}, not {node}"
    if not is_server_certificate(certificate):
        return f"certificate of {node} is an edge's, not a server's"
    return ""


def _own_fault(identity: Identity) -> str:
    until = identity.certificate.not_valid_after_utc
    return f"our own certificate expired on {format_day(until)}" if datetime.now(UTC) > until else ""


def _tls_failure(address: str, error: ssl.SSLError, details: str) -> str:
    reason = (error.reason or "").upper()
    for alert, description in _TLS_ALERTS.items():
        if reason.endswith(alert):
            return f"{address} refuses: {description}"
    if reason in ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "PACKET_LENGTH_TOO_LONG", ""):
        return f"{address} does not speak TLS"
    return f"{address}: TLS failed, {reason.lower().replace('_', ' ')} ({_first_line(details)})"


def _connection_failure(address: str, error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"{address}: connection refused"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return f"{address} closes the connection during the handshake"
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return f"{address}: no route to the host"
    return f"{address}: {error.strerror or error}"


def _first_line(details: str) -> str:
    return details if len(details) <= 120 else f"{details[:117]}…"


ReportTrouble = Callable[[str, str], None]
_STABLE_S = 1.0  # up for so long, a stream's end is news, not one more failure


async def keep_dialled(
    switch: StreamMultiplexer,
    own_name: str,
    node: str,
    address: str,
    credentials: ReloadingCredentials | None,
    rng: np.random.Generator,
    trouble: ReportTrouble,
) -> None:
    """Returns when the switch is closing. `trouble` gets each change of why there is no stream, '' when there is."""
    loop = asyncio.get_running_loop()
    reported, num_failures = "", 0
    while not switch.is_closing:
        identity = None if credentials is None else credentials.current()
        channel = library.make_channel(
            address,
            None
            if identity is None
            else library.channel_credentials(identity.authority, identity.key, identity.chain),
            channel_options(switch.bounds, node),
        )
        try:
            metadata = ((NODE_KEY, own_name),) if identity is None else ()
            call = library.make_call(channel, metadata)
            reason = await _open_stream(call, node, address, identity, switch.bounds)
            if not reason:
                if reported:
                    trouble(node, "")
                    reported = ""
                since_s = loop.time()
                stream = switch.open(node, dialled=True)
                await switch.run(stream, call, call.done_writing)
                num_failures = 0 if loop.time() - since_s >= _STABLE_S else num_failures
            elif reason != reported:
                trouble(node, reason)
                reported = reason
            call.cancel()
        finally:
            await channel.close()
        await asyncio.sleep(redial_s(num_failures, switch.bounds, rng))
        num_failures += 1


def redial_s(num_failures: int, bounds: TransportLimits, rng: np.random.Generator) -> float:
    """Doubling to a bound, each drawn from its upper half, so that many nodes do not come back at once."""
    longest_s = min(bounds.longest_redial_s, bounds.first_redial_s * 2 ** min(num_failures, 16))
    return longest_s * (0.5 + 0.5 * float(rng.random()))


async def _open_stream(
    call: ClientCall, node: str, address: str, identity: Identity | None, bounds: TransportLimits
) -> str:
    """'' once the stream is open, else why it is not."""
    try:
        async with asyncio.timeout(bounds.dial_s):
            stated = dict(await call.initial_metadata())
            if NODE_KEY not in stated:
                status, details = str((await call.code()).name), await call.details()
                if status != "UNAVAILABLE":
                    return f"{address} refuses: {details or status}"
                return await explain_failure(node, address, identity, details)
    except TimeoutError:
        return f"no answer from {address} within {bounds.dial_s:g} s"
    if stated[NODE_KEY] != node:
        return f"{address} is {stated[NODE_KEY]}, not {node}"
    return ""
