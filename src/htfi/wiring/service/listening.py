"""The socket that a service answers at."""

import socket

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.tenancy.config import ServiceConfig

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_BACKLOG = 4_096
SILENT_MS = 120_000  # after which a peer that acknowledges nothing, or takes nothing of what waits, is gone


def listen_at(address: str, *, is_open: bool = False) -> socket.socket:
    """A listening socket at HOST:PORT, of the loopback unless open. Raises: InvalidInput, DependencyUnavailable."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"--listen {address}: write HOST:PORT, such as 127.0.0.1:8350")
    if not is_open and host not in _LOOPBACK:
        raise InvalidInput(
            f"--listen {address}: without keys the service answers this machine alone: 127.0.0.1:{port}"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # accepted sockets inherit it
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_MS)
        found.bind((host, int(port)))
        found.listen(_BACKLOG)
    except OSError as error:
        found.close()
        raise DependencyUnavailable(f"cannot listen at {address}: {error.strerror}") from error
    return found


def check_address(host: str, config: ServiceConfig, *, has_certificate: bool) -> None:
    """Keys go over the network encrypted, or not at all. Raises: InvalidInput."""
    if host not in _LOOPBACK and not has_certificate and not config.proxies:
        raise InvalidInput(
            f"--listen {host}: keys would be sent in clear: give --certificate and --key, "
            "or name the proxies that end TLS in service.toml"
        )
