"""The system-call filter of a confined process: a classic BPF program, its installation, and what it reports.

A forbidden call is not made. Where the kernel allows it (5.0 and later) it is reported to the process outside, which
learns its number and answers for the kernel; else the process is killed. Source: seccomp(2), seccomp_unotify(2),
linux/filter.h, linux/seccomp.h.
"""

import ctypes
import errno
import fcntl
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from htfi.adapters.sandbox.syscalls import SystemCalls
from htfi.domain.errors import DependencyUnavailable

_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_KILL_PROCESS, _ERRNO, _USER_NOTIFY, _ALLOW = 0x80000000, 0x00050000, 0x7FC00000, 0x7FFF0000
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # places in struct seccomp_data
_X32 = 0x40000000  # the other ABI of x86-64 has numbers of its own from here on
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PR_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _NEW_LISTENER = 38, 1, 8
_SECCOMP = {0xC000003E: 317, 0xC00000B7: 277}
_NOTIFY_RECEIVE, _NOTIFY_SEND, _NOTIFY_BYTES = 0xC0502100, 0xC0182101, 80
_ARGUMENTS = 32  # in struct seccomp_notif: 16 bytes of its own, then seccomp_data


def filter_program(calls: SystemCalls, *, reports: bool) -> bytes:
    """The BPF program (an array of struct sock_filter): forbidden calls and opening to write are not made.

    Another architecture's calls kill the process. openat2, whose flags are out of reach, is answered as not known.
    """
    refuse = _USER_NOTIFY if reports else _KILL_PROCESS
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, calls.audit_arch),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_JUMP_EQUAL, 0, 1, calls.openat2),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for number in sorted(set(calls.forbidden.values())):
        lines += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    for number, argument in calls.open_flags.values():
        lines += [
            (_JUMP_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument),
            (_JUMP_ANY_BIT, 0, 1, _WRITES),
            (_RETURN, 0, 0, refuse),
            (_RETURN, 0, 0, _ALLOW),
        ]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def forbid_new_privileges() -> None:
    """This process and its children can gain no rights by running a program. Raises: DependencyUnavailable."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise DependencyUnavailable(f"prctl(PR_SET_NO_NEW_PRIVS): {os.strerror(ctypes.get_errno())}")


def install_filter(calls: SystemCalls) -> int | None:
    """Filter this process's calls from now on; the descriptor that reports them, None where they kill it instead.

    Raises: DependencyUnavailable where the kernel has no filters.
    """
    forbid_new_privileges()
    libc = ctypes.CDLL(None, use_errno=True)
    for reports in (True, False):
        program = filter_program(calls, reports=reports)
        code = ctypes.create_string_buffer(program, len(program))
        head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
        found = libc.syscall(
            _SECCOMP[calls.audit_arch], _SET_MODE_FILTER, _NEW_LISTENER if reports else 0, head
        )
        if found >= 0:
            return found if reports else None
    raise DependencyUnavailable(f"seccomp: {os.strerror(ctypes.get_errno())}")


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A forbidden call that a process asked for; `path` of a file to open, where it could be read."""

    number: int
    path: str


def refuse_reported_call(listener: int, calls: SystemCalls) -> RefusedCall:
    """Take one report and refuse the call with EPERM. Raises: OSError where its process is gone."""
    report = bytearray(_NOTIFY_BYTES)
    fcntl.ioctl(listener, _NOTIFY_RECEIVE, report)
    ident, process, _, number = struct.unpack_from("=QIIi", report)
    path = ""
    for opens, argument in calls.open_flags.values():
        if number == opens:
            (place,) = struct.unpack_from("=Q", report, _ARGUMENTS + 8 * (argument - 1))
            path = _text_of(process, place)
    with suppress(FileNotFoundError):  # it was killed meanwhile
        fcntl.ioctl(listener, _NOTIFY_SEND, struct.pack("=QqiI", ident, 0, -errno.EPERM, 0))
    return RefusedCall(number, path)


def _text_of(process: int, place: int) -> str:
    """Text in another process's memory, for a message alone: the process may change it."""
    with suppress(OSError), Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        return os.pread(memory.fileno(), 200, place).split(b"\0")[0].decode(errors="replace")
    return ""
