"""The context cache's tier on this machine: an LMDB file that several processes share. Wiring opens one.

What fails is a miss, and is reported once; a file that is damaged is thrown away, for it can all be worked out again.
Values are not synced to the disk: what the kernel of an earlier start wrote last may be missing, so the file of one is
thrown away too, unless it was closed.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lmdb

from htfi.adapters.lmdb.layout import LmdbLayout
from htfi.domain.files import make_private, open_private, write_atomically
from htfi.narrative.caching.tier import CacheEntry

_LMDB: Any = lmdb  # which ships no types
_LMDB_ERRORS: tuple[type[Exception], ...] = (_LMDB.Error, OSError, ValueError, ArithmeticError)
_DATA, _LOCK, _OPENED, _COUNTER = "data.mdb", "lock.mdb", "opened", "forgotten"
_COUNTER_BYTES = 8
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_VALUES_SHARE = 0.55  # of the file; the rest is for tables, and for the pages that a write replaces
_MAX_TOUCHED = 256
_CHECK_S = 20.0
_CHECK_SCRIPT = (
    "import sys; from htfi.adapters.lmdb.layout import read_all_pages; read_all_pages(sys.argv[1])"
)


class LmdbTier:
    """Bounded by `max_bytes`, the size of its file. `now_ns` is the time of events; `notify` gets the first trouble.

    A file that is there is opened at once, a new one at the first use. Not for several threads at once.
    """

    name = "lmdb"

    def __init__(
        self, folder: Path, max_bytes: int, now_ns: Callable[[], int], notify: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._now_ns = now_ns
        self._notify = notify
        self._environment: Any = None
        self._layout: LmdbLayout | None = None
        self._has_notified = self._is_disabled = False
        self._last_forgotten = 0  # the last number of what was forgotten that is known here
        self._counter = -1  # a file that shows it to every process
        self._touched: dict[bytes, None] = {}
        if (folder / _DATA).exists():
            self._open()

    def get_many(self, keys: Sequence[bytes], about: Sequence[Sequence[str]]) -> list[bytes | None]:
        layout = self._open()
        if layout is None:
            return [None] * len(keys)
        now_ns = self._now_ns()
        try:
            with self._environment.begin() as txn:
                found = [layout.find(txn, key, names, now_ns) for key, names in zip(keys, about, strict=True)]
        except _LMDB_ERRORS as error:
            self._failed(error)
            return [None] * len(keys)
        if len(self._touched) < _MAX_TOUCHED:
            self._touched |= dict.fromkeys(
                key for key, value in zip(keys, found, strict=True) if value is not None
            )
        return found

    def put_many(self, entries: Sequence[CacheEntry]) -> None:
        layout = self._open()
        if layout is None:
            return
        try:
            try:
                self._write(layout, entries)
            except _LMDB.MapFullError:
                self._halve(layout)
                self._write(layout, entries)
        except _LMDB.MapFullError:
            self._recreate()
        except _LMDB_ERRORS as error:
            self._failed(error)

    def forget(self, about: Sequence[str]) -> bool:
        layout = self._open()
        if layout is None:
            return True
        try:
            with self._environment.begin(write=True) as txn:
                layout.forget(txn, about)
                self._last_forgotten = layout.last_forgotten(txn)
            os.pwrite(self._counter, self._last_forgotten.to_bytes(_COUNTER_BYTES, "big"), 0)
        except _LMDB_ERRORS as error:  # no space to write it down: what must go goes with all the rest
            self._failed(error)
            self._is_disabled = True
            self._recreate()
        return True

    def forgotten(self) -> Sequence[str] | None:
        if self._layout is None:
            return ()
        try:
            last = int.from_bytes(os.pread(self._counter, _COUNTER_BYTES, 0), "big")
            if last == self._last_forgotten:
                return ()
            with self._environment.begin() as txn:
                names = self._layout.forgotten_since(txn, self._last_forgotten)
                self._last_forgotten = last
        except _LMDB_ERRORS as error:
            self._failed(error)
            return ()
        return names

    def clear(self) -> None:
        if self._open() is not None:
            self._recreate()

    def drain(self, timeout_s: float) -> bool:
        """What was put is written already."""
        del timeout_s
        return True

    def close(self) -> None:
        if self._environment is None:
            return
        try:
            self._environment.sync(True)
            (self._folder / _OPENED).unlink(missing_ok=True)
        except _LMDB_ERRORS as error:
            self._failed(error)
        self._close()

    def _write(self, layout: LmdbLayout, entries: Sequence[CacheEntry]) -> None:
        now_ns = self._now_ns()
        with self._environment.begin(write=True) as txn:
            for key in self._touched:
                layout.touch(txn, key)
            for entry in entries:
                layout.put(txn, entry.key, entry.value, now_ns + entry.ttl_ns, entry.about)
                layout.make_space(txn)
        self._touched.clear()

    def _halve(self, layout: LmdbLayout) -> None:
        """Pages that a write frees are free for the one after the next."""
        with self._environment.begin(write=True) as txn:
            layout.make_space(txn, 0.5)
        with self._environment.begin(write=True) as txn:
            layout.make_space(txn, 0.49)

    def _open(self) -> LmdbLayout | None:
        if self._layout is not None or self._is_disabled:
            return self._layout
        try:
            make_private(self._folder)
            for name in (_DATA, _LOCK):
                if (self._folder / name).is_symlink():
                    raise OSError(errno.ELOOP, f"{name} is a link")
            self._check()
            self._environment = _LMDB.open(
                str(self._folder),
                map_size=self._max_bytes,
                max_dbs=8,
                sync=False,
                mode=0o600,
                max_spare_txns=2,
            )
            self._environment.reader_check()  # those of processes that were killed
            self._layout = LmdbLayout(self._environment, int(_VALUES_SHARE * self._max_bytes))
            write_atomically(self._folder / _OPENED, _boot_id().encode())
            self._counter = open_private(self._folder / _COUNTER, os.O_RDWR)
            with self._environment.begin() as txn:
                self._last_forgotten = self._layout.last_forgotten(txn)
            if not os.pread(self._counter, _COUNTER_BYTES, 0):
                os.pwrite(self._counter, self._last_forgotten.to_bytes(_COUNTER_BYTES, "big"), 0)
        except _LMDB_ERRORS as error:
            self._failed(error)
            self._is_disabled = True
            self._layout = None
            self._close()
        return self._layout

    def _check(self) -> None:
        """Throw away a file that may be damaged. LMDB ends a process that walks into one, so another walks first."""
        data, opened = self._folder / _DATA, self._folder / _OPENED
        if not data.exists():
            return
        if opened.exists() and opened.read_text(errors="replace") != _boot_id():
            self._remove()
            return
        try:
            walked = subprocess.run(
                [sys.executable, "-c", _CHECK_SCRIPT, str(self._folder)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            walked = None
        if walked is None or walked.returncode != 0:
            self._notify_once("is damaged and begins again")
            self._remove()

    def _remove(self) -> None:
        for name in (_DATA, _LOCK, _OPENED, _COUNTER):
            (self._folder / name).unlink(missing_ok=True)

    def _recreate(self) -> None:
        self._close()
        try:
            self._remove()
        except OSError as error:
            self._is_disabled = True
            self._failed(error)

    def _close(self) -> None:
        self._layout = None
        if self._counter >= 0:
            os.close(self._counter)
            self._counter = -1
        if self._environment is not None:
            self._environment.close()
            self._environment = None

    def _failed(self, error: Exception) -> None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        self._notify_once(f"cannot be used ({lines[0]}): continues without it")

    def _notify_once(self, what: str) -> None:
        if not self._has_notified:
            self._has_notified = True
            self._notify(f"context cache in {self._folder} {what}")


def _boot_id() -> str:
    """Names this start of the machine."""
    try:
        return _BOOT_ID_FILE.read_text().strip()
    except OSError:
        return "unknown"
