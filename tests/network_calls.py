"""Runs a command in which every attempt to reach another machine fails and is noted, its children's and threads' too.

A seccomp filter hands each `socket` of the internet and each `connect` to the process that started the command; no
root and no package is needed (Linux 5.0 or later). Run as a script it is the launcher: it puts the filter on and
becomes the command.
"""

import array
import ctypes
import fcntl
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# Numbers of the machine: AUDIT_ARCH, and of the system calls seccomp, socket and connect.
_NUMBERS = {"x86_64": (0xC000003E, 317, 41, 42), "aarch64": (0xC00000B7, 277, 198, 203)}
_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000  # what a filter returns
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, _SEND
_FILTER, _NEW_LISTENER, _NO_NEW_PRIVS = 1, 8, 38
_ENETUNREACH = 101
_NETLINK = 16
# libc looks here for users' names and for hosts'; where it is refused, it asks for a host's over the internet.
_NAMES_OF_USERS = "connect /var/run/nscd/socket"


class Outcome(NamedTuple):
    """How a command ended, what it wrote, and every attempt: 'python: connect 10.0.0.1:53'."""

    status: int
    output: str
    attempts: list[str]


class Watched:
    """A command under way."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *command],
                env=dict(env),
                cwd=cwd,
                pass_fds=[theirs.fileno()],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            theirs.close()
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        assert descriptors, "the launcher gave no listener: does the kernel have seccomp's user notification?"
        self._listener = descriptors[0]
        self.attempts: list[str] = []
        self.has_attempted = threading.Event()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float = 300.0) -> Outcome:
        """Its end; one that does not end in time is killed, and raises."""
        try:
            output, _ = self.process.communicate(timeout=timeout_s)
        finally:
            self.process.kill()
            self.process.wait()
            self._is_over.set()
            self._thread.join()
            os.close(self._listener)
        return Outcome(self.process.returncode, output, self.attempts)

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while True:
            ready = poll.poll(50)
            if not ready and self._is_over.is_set():
                return
            if ready and ready[0][1] & select.POLLIN:
                self._note()
            elif ready:  # nobody is left who has the filter
                return

    def _note(self) -> None:
        asked = bytearray(80)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, asked)
        except OSError:  # it died meanwhile
            return
        name, pid, _, number, _, _, *arguments = struct.unpack("<QIIiIQ6Q", asked)
        is_socket = number == _NUMBERS[platform.machine()][2]
        what = _socket(arguments) if is_socket else _connect(pid, arguments)
        if what != _NAMES_OF_USERS:
            self.attempts.append(f"{_program(pid)}: {what}")
            self.has_attempted.set()
        with suppress(OSError):
            fcntl.ioctl(self._listener, _ANSWER, struct.pack("<QqiI", name, 0, -_ENETUNREACH, 0))


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "?"


def _socket(arguments: Sequence[int]) -> str:
    return f"socket of family {arguments[0]}"


def _connect(pid: int, arguments: Sequence[int]) -> str:
    _, address, length, *_ = arguments
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            told = memory.read(min(length, 128))
    except OSError:
        return "connect"
    family = int.from_bytes(told[:2], "little")
    return (
        f"connect {told[2:].split(bytes(1))[0].decode()}" if family == socket.AF_UNIX else f"connect {told!r}"
    )


def _become(channel: int, command: Sequence[str]) -> None:
    """Put the filter on, send its listener, become the command."""
    arch, seccomp, new_socket, connect = _NUMBERS[platform.machine()]
    steps = [
        (_LOAD, 0, 0, 4),  # 0: the architecture
        (_EQUAL, 0, 7, arch),  # to 9 for another
        (_LOAD, 0, 0, 0),  # 2: the number of the call
        (_EQUAL, 4, 0, connect),  # to 8
        (_EQUAL, 0, 4, new_socket),  # to 9 for any other
        (_LOAD, 0, 0, 16),  # 5: the socket's family
        (_EQUAL, 2, 0, socket.AF_UNIX),  # to 9
        (_EQUAL, 1, 0, _NETLINK),  # to 9: asks the kernel, not the network
        (_RETURN, 0, 0, _NOTIFY),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("<HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(held)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    listener = libc.syscall(seccomp, _FILTER, _NEW_LISTENER, program)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    with socket.socket(fileno=channel) as to_parent:
        to_parent.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)
    os.execvp(command[0], list(command))


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
