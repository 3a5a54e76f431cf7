"""What a confined process does to itself before it runs what is not trusted: limits, file rules, the call filter."""

import contextlib
import ctypes
import resource
import socket
from collections.abc import Sequence
from pathlib import Path

from htfi.adapters.sandbox.landlock import allow_reading_only
from htfi.adapters.sandbox.seccomp import install_filter
from htfi.adapters.sandbox.syscalls import system_calls
from htfi.domain.errors import DependencyUnavailable

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_MAX_OPEN_FILES = 4_096  # weights are mapped a tensor at a time


def lock_process(
    control: int,
    memory_bytes: int,
    processor_s: float,
    readable: Sequence[Path] | None,
    home: Path | None = None,
) -> list[str]:
    """Lock this process for good; what could be set: 'limits', 'landlock', 'network', 'seccomp'.

    Where `readable` is given the process is in no namespaces: it leaves the network, and sets its own file rules:
    of the baited `home` it can open files, which is noticed, and list nothing. The descriptor of the filter's reports
    is sent over the socket `control`, which is closed.
    """
    done: list[str] = []
    with contextlib.suppress(OSError, ValueError):
        _limit(memory_bytes, processor_s)
        done.append("limits")
    if readable is not None:
        if _leave_network():
            done.append("network")
        with contextlib.suppress(DependencyUnavailable, AttributeError):
            allow_reading_only(readable, [home] if home is not None else [])
            done.append("landlock")
    calls = system_calls()
    with socket.socket(fileno=control) as channel:
        if calls is not None:
            with contextlib.suppress(DependencyUnavailable, AttributeError):
                listener = install_filter(calls)
                done.append("seccomp")
                if listener is not None:
                    socket.send_fds(channel, [b"."], [listener])
    return done


def _limit(memory_bytes: int, processor_s: float) -> None:
    """Bounds of this process alone: what it has mapped already comes on top of its memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    bounds = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + memory_bytes,
        resource.RLIMIT_CPU: max(int(processor_s), 1),
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
    }
    for kind, value in bounds.items():
        _, hard = resource.getrlimit(kind)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))


def _leave_network() -> bool:
    try:
        return ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER | _NEW_NETWORK) == 0
    except AttributeError:
        return False
