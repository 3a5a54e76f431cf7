"""A home folder that holds nothing but bait: files that look like secrets, each with a mark that is known.

A confined process has no reason to open them. Who does is noticed (inotify), and so is the mark in what it prints.
"""

import ctypes
import os
import secrets
import struct
from pathlib import Path

_OPENED = 0x20  # IN_OPEN
_NONBLOCK = os.O_NONBLOCK | os.O_CLOEXEC
_FILES = (".ssh/id_ed25519", ".aws/credentials", ".htfi/signing.key", ".netrc", "passwords.txt")
SECRET_VARIABLE = "AWS_SECRET_ACCESS_KEY"


class BaitedHome:
    """The folder, and who watches it. `mark` is in every file of it and in the environment."""

    def __init__(self, folder: Path) -> None:
        """`folder` is empty and made already."""
        self.folder = folder
        self.mark = f"bait-{secrets.token_hex(16)}"
        for name in _FILES:
            place = folder / name
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"PRIVATE+KEY+{self.mark}\n")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._names: dict[int, str] = {}
        self.descriptor = -1

    def watch(self) -> bool:
        """Begin to watch; whether this system can."""
        try:
            self.descriptor = int(self._libc.inotify_init1(_NONBLOCK))
        except AttributeError:  # not Linux
            return False
        if self.descriptor < 0:
            return False
        for place in (self.folder, *(self.folder / name for name in (".ssh", ".aws", ".htfi"))):
            found = int(self._libc.inotify_add_watch(self.descriptor, os.fsencode(place), _OPENED))
            if found < 0:
                return False
            self._names[found] = str(place.relative_to(self.folder))
        return True

    def opened(self) -> str:
        """The name of the first bait that was opened since; '' for none."""
        try:
            events = os.read(self.descriptor, 4096) if self.descriptor >= 0 else b""
        except BlockingIOError:
            return ""
        if not events:
            return ""
        watch, _, _, length = struct.unpack_from("=iIII", events)
        name = events[16 : 16 + length].rstrip(b"\0").decode(errors="replace")
        return str(Path("~", self._names.get(watch, ""), name))

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
