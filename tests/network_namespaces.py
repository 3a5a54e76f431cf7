"""Network namespaces with real addresses, joined by a switch of their own: for tests of links between machines.

Nothing of the host's network is touched. Linux, `ip` and root are needed; `skip_unless_possible` says what is missing.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

_COMMAND_S = 10.0
_counter = itertools.count()


@dataclass(frozen=True)
class Machine:
    """One namespace. `address` is its own, on the network that it shares with the others."""

    name: str
    address: str
    port: str  # of the switch
    switch: str

    def start(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
        # `ip netns exec` becomes the command itself: its process id is the command's
        return subprocess.Popen(["ip", "netns", "exec", self.name, *command], **options)

    def run(self, command: Sequence[str], timeout_s: float = _COMMAND_S) -> str:
        """What it printed. Raises where it fails."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.name, *command], capture_output=True, timeout=timeout_s, check=True
        )
        return done.stdout.decode()

    def cut(self) -> None:
        """Silence: what is sent to it or by it is lost, and nobody is told."""
        _ip("-n", self.switch, "link", "set", self.port, "down")

    def mend(self) -> None:
        _ip("-n", self.switch, "link", "set", self.port, "up")

    def delay(self, one_way_ms: float) -> None:
        """What is sent to it comes so much later. Raises where the kernel has no netem: see `can_delay`."""
        _run(
            *("ip", "netns", "exec", self.switch, "tc", "qdisc", "replace", "dev", self.port, "root"),
            *("netem", "delay", f"{one_way_ms}ms"),
        )


def why_not() -> str:
    """Why there can be no namespaces here; '' where there can."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's"
    if shutil.which("ip") is None:
        return "there is no `ip` (iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with network_namespaces(1):
            return ""
    except (OSError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", b"") or b""
        return f"network namespaces do not work here: {words.decode(errors='replace').strip() or error}"


def skip_unless_possible() -> None:
    if words := why_not():
        pytest.skip(words)


def can_delay(machine: Machine) -> bool:
    """Whether this kernel has netem."""
    try:
        machine.delay(0)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


@contextlib.contextmanager
def network_namespaces(num: int = 2) -> Iterator[list[Machine]]:
    """So many machines on one network, 10.77.x.1 on. At the end their processes are killed and they are gone."""
    mark = next(_counter)
    stem = f"htfi{os.getpid()}n{mark}"
    switch = f"{stem}sw"
    machines = [Machine(f"{stem}m{k}", f"10.77.{mark % 256}.{k + 1}", f"port{k}", switch) for k in range(num)]
    made: list[str] = []
    try:
        for name in (switch, *(machine.name for machine in machines)):
            _ip("netns", "add", name)
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", switch, "link", "set", "switch", "up")
        for machine in machines:
            _join(machine)
        yield machines
    finally:
        for name in made:
            _remove(name)


def _join(machine: Machine) -> None:
    name, port, switch = machine.name, machine.port, machine.switch
    ends = ("link", "add", port, "netns", switch, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip(*ends)
    _ip("-n", switch, "link", "set", port, "master", "switch", "up")
    _ip("-n", name, "address", "add", f"{machine.address}/24", "dev", "eth0")
    _ip("-n", name, "link", "set", "eth0", "up")


def _remove(name: str) -> None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        for pid in _run("ip", "netns", "pids", name).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        _ip("netns", "del", name)


def _ip(*words: str) -> None:
    _run("ip", *words)


def _run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, timeout=_COMMAND_S, check=True).stdout.decode()
