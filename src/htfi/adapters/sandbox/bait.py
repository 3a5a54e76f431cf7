"""A home folder that holds nothing but bait: files that look like secrets, each with a mark that is known.

A confined process has no reason to open them. Who does is noticed (inotify), and so is the mark in what it prints.
"""

import ctypes
import os
import secrets
import struct
from pathlib import Path, PurePosixPath

_OPENED, _IS_FOLDER = 0x20, 0x40000000  # IN_OPEN, IN_ISDIR
_NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC
_FILES = (".ssh/id_ed25519", ".aws/credentials", ".htfi/signing.key", ".netrc", "passwords.txt")
SECRET_VARIABLE = "AWS_SECRET_ACCESS_KEY"
_HEAD = struct.Struct("=iIII")  # watch, mask, cookie, length of the name


class BaitedHome:
    """The bait's content by file name, and who watches it. `mark` is in every file of it and in the environment."""

    def __init__(self) -> None:
        self.mark = f"bait-{secrets.token_hex(16)}"
        self.files = dict.fromkeys(_FILES, f"PRIVATE+KEY+{self.mark}\n".encode())
        self.descriptor = -1
        self._names: dict[int, str] = {}
        self._sees_folders = True

    def write(self, folder: Path) -> None:
        """Lay the bait in a folder that is there."""
        for name, content in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)

    def watch(self, folder: Path, *, is_private: bool) -> bool:
        """Begin to watch the bait in a folder; whether this system can.

        Where the folder is not `private` to the process, others of this machine may list it, and only files count.
        """
        self._sees_folders = is_private
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            self.descriptor = int(libc.inotify_init1(_NONBLOCK))
        except AttributeError:  # not Linux
            return False
        if self.descriptor < 0:
            return False
        for name in ("", *sorted({str(PurePosixPath(file).parent) for file in self.files} - {"."})):
            found = int(libc.inotify_add_watch(self.descriptor, os.fsencode(folder / name), _OPENED))
            if found < 0:
                self.close()
                return False
            self._names[found] = name
        return True

    def opened(self) -> str:
        """The name of the first bait that was opened since; '' for none."""
        try:
            events = os.read(self.descriptor, 1 << 14) if self.descriptor >= 0 else b""
        except BlockingIOError:
            return ""
        at = 0
        while at < len(events):
            watch, mask, _, length = _HEAD.unpack_from(events, at)
            at += _HEAD.size + length
            name = events[at - length : at].rstrip(b"\0").decode(errors="replace")
            if not mask & _OPENED:  # its file system is gone, with the process
                continue
            folder = self._names.get(watch, "")
            is_bait = f"{folder}/{name}".lstrip("/") in self.files
            if is_bait or (self._sees_folders and mask & _IS_FOLDER and not name):
                return str(PurePosixPath("~", folder, name))
        return ""

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
