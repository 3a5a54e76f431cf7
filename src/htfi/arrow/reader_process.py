"""Batches of a file of Parquet or Arrow, read by a process of its own.

arro3 hands batches out through Arrow's C interface, where a panic of Rust ends the process, and a damaged page makes
it panic. So a process that may end reads the file, and its batches come through a pipe, as Arrow's stream
(docs/decisions/d24-arrow-without-pyarrow.md).
"""

import io
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from weakref import WeakSet

import arro3.core
import arro3.io

from htfi.arrow import reader_program
from htfi.arrow.failures import DamagedFile, failures_as_damage, reason
from htfi.arrow.reader_program import (
    DAMAGED,
    FAILED,
    STARTED,
    UNREADABLE,
    FileWithFooter,
    open_batches,
    reading,
)

Batch = Any  # an arro3.core.RecordBatch
Schema = Any  # an arro3.core.Schema

_IS_WINDOWS = sys.platform == "win32"
_FOLDERS = [str(Path(cast(str, module.__file__)).parents[2]) for module in (arro3.core, arro3.io)]
_PROGRAM = reader_program.__file__
_PIPE_BYTES = 1 << 20
_OUTSIDE_SIGNALS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
_ENDED_FROM_OUTSIDE = (  # exit status; it says nothing about the file
    {1} if _IS_WINDOWS else {-getattr(signal, name) for name in _OUTSIDE_SIGNALS}
)
_FIRST_FREE_FD = 3


class ProcessEnded(OSError):
    """The process that reads a file did not start, or was ended from outside."""

    def __init__(self, why: str) -> None:
        super().__init__(0, f"the process that reads it {why}")


class BatchReader:
    """The batches of a file, in order. `fd` is open on the file, and `path` leads to it.

    Of Parquet, `footer` stands in place of the file's own, behind its first `num_bytes`.

    Raises: DamagedFile; OSError where the file cannot be read; ProcessEnded.
    """

    def __init__(
        self, fd: int, path: Path, form: str, num_bytes: int, footer: bytes = b"", num_rows: int = 0
    ) -> None:
        self._process = _Process(fd, path, form, num_bytes, footer, num_rows) if _can_start() else None
        self._file = self._process or FileWithFooter(reading(fd), num_bytes, footer)
        with self._ending_with_failures():
            if self._process is None:
                self._batches: Any = open_batches(form, cast(FileWithFooter, self._file), num_rows)
            else:
                self._batches = arro3.io.read_ipc_stream(cast(Any, self._process))

    @property
    def schema(self) -> Schema:
        return self._batches.schema

    def next(self) -> Batch | None:
        with self._ending_with_failures():
            batch = next(self._batches, None)
        if batch is None:
            self.close()
        return batch

    def close(self) -> None:
        """End the process. The batches that were handed out stay."""
        if self._process is not None:
            self._process.close()

    @contextmanager
    def _ending_with_failures(self) -> Generator[None]:
        try:
            with failures_as_damage(self._file):
                yield
        except BaseException:
            self.close()
            raise


class _Process:
    """The process, whose output is a file that is read; of a file, what arro3 calls."""

    def __init__(self, fd: int, path: Path, form: str, num_bytes: int, footer: bytes, num_rows: int) -> None:
        self.failure: BaseException | None = None
        with _passed_on(fd, path) as (source, options):
            self._popen = subprocess.Popen(
                (sys.executable, "-I", "-S", _PROGRAM),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "RUST_BACKTRACE": "0"},
                **options,
            )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._out = self._popen.stdout
        _running.add(self)
        try:
            _widen(self._out.fileno())
            request = marshal.dumps((form, source, num_bytes, footer, num_rows, _FOLDERS))
            with suppress(BrokenPipeError), self._popen.stdin as stdin:
                stdin.write(request)
            if self._out.read(1) != STARTED:
                _, said = self._end()
                raise ProcessEnded(f"did not start: {said or sys.executable}")
        except BaseException:
            self.close()
            raise

    def seek(self, _offset: int, _whence: int = io.SEEK_SET) -> int:
        raise io.UnsupportedOperation("a stream goes forward")

    def read(self, size: int) -> bytes:
        """Raises where nothing is left: arro3 does not read on behind the end of the stream."""
        try:
            if self._out.closed:
                raise ProcessEnded(
                    "belongs to the process that this one was forked from: open the file again"
                )
            found = cast(bytes, self._out.read(size))
            if not found:
                raise self._why_ended()
        except BaseException as error:  # an interruption too: arro3 passes neither on
            self.failure = error
            raise
        return found

    def close(self) -> None:
        if self._popen.returncode is None:
            self._popen.kill()
            self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def forget(self) -> None:
        """After a fork: the process is the other one's, and ends when no pipe leads to it."""
        self._popen.returncode = 0
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_popen"):
            self.close()

    def _end(self) -> tuple[int, str]:
        """The exit status, and the last line of what was said."""
        assert self._popen.stderr is not None
        lines = self._popen.stderr.read().decode("utf-8", "replace").strip().splitlines()
        return self._popen.wait(), lines[-1] if lines else ""

    def _why_ended(self) -> Exception:
        status, said = self._end()
        if status == DAMAGED:
            return DamagedFile(reason(said))
        if status == UNREADABLE:
            return OSError(int(said), os.strerror(int(said)))
        if status == FAILED:
            return ProcessEnded(f"failed: {said}")
        if status in _ENDED_FROM_OUTSIDE:
            return ProcessEnded("was ended from outside, or memory ran out")
        return DamagedFile("a page cannot be decoded")


def _can_start() -> bool:
    """Whether the program that runs here is Python's own; in another one the file is read in this process."""
    return not hasattr(sys, "frozen") and Path(sys.executable or "").stem.lower().startswith(
        ("python", "pypy")
    )


@contextmanager
def _passed_on(fd: int, path: Path) -> Generator[tuple[int | str, dict[str, Any]]]:
    """A file as another process is given it, and how that is started: the keyboard interrupts only this one.

    On Windows by its path: nobody replaces a file that is open there.
    """
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
        yield str(path.absolute()), {"creationflags": flags}
        return
    import fcntl

    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE_FD)  # behind those of the standard streams
    try:
        yield copy, {"pass_fds": (copy,), "process_group": 0}
    finally:
        os.close(copy)


def _widen(fd: int) -> None:
    """A pipe holds a batch, where the system allows that."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


_running: WeakSet[_Process] = WeakSet()


def _forget_all() -> None:
    for process in list(_running):
        process.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
