"""File rules that a process sets for itself, without rights (Landlock, Linux 5.13 and later).

From then on it can open nothing but what is beneath the named places. Source: landlock(7), linux/landlock.h.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from htfi.adapters.sandbox.seccomp import forbid_new_privileges
from htfi.domain.errors import DependencyUnavailable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_ALL_OF_FIRST_VERSION = (1 << 13) - 1
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # versions 2 and 3


def landlock_version() -> int:
    """The version of the interface; 0 where the kernel has none."""
    found = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _GET_VERSION)
    return max(int(found), 0)


def allow_reading_only(places: Iterable[Path], unlisted: Iterable[Path] = ()) -> None:
    """Let this process read files beneath these places, and open nothing else; folders `unlisted` and beneath them it
    cannot list, and reads only files whose names it knows. Raises: DependencyUnavailable.
    """
    version = landlock_version()
    if version < 1:
        raise DependencyUnavailable("this kernel has no Landlock")
    handled = _ALL_OF_FIRST_VERSION | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = libc.syscall(_CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    if ruleset < 0:
        raise DependencyUnavailable(f"landlock: {os.strerror(ctypes.get_errno())}")
    try:
        for place in places:
            _allow(libc, ruleset, place, _READ_FILE | _EXECUTE | (_READ_FOLDER if place.is_dir() else 0))
        for place in unlisted:
            _allow(libc, ruleset, place, _READ_FILE)
        forbid_new_privileges()
        if libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
            raise DependencyUnavailable(f"landlock: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, place: Path, rights: int) -> None:
    try:
        parent = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, parent), 0) != 0:
            raise DependencyUnavailable(f"landlock, {place}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(parent)
