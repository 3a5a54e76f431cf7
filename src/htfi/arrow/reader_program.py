"""The program of `reader_process`: one file read by arro3, written to standard output as Arrow's stream of it.

It imports the standard library and arro3 alone, so that it starts in 10 ms. The request comes through standard input.
"""

import io
import marshal
import os
import sys
from collections.abc import Callable

STARTED = b"\x01"  # stands before the stream: arro3 was found
DAMAGED, UNREADABLE, FAILED = 3, 4, 5  # exit status; standard error ends in why, an errno, an error
PARQUET, ARROW = "Parquet", "Arrow"

_MAX_CHARS = 1000


class FileWithFooter:
    """The first bytes of a file, and behind them a footer of Parquet in place of its own; of a file, what arro3 calls.

    `read_at(offset, size)` reads the file.
    """

    def __init__(self, read_at: Callable[[int, int], bytes], num_bytes: int, footer: bytes) -> None:
        self.failure: BaseException | None = None
        self._read_at = read_at
        self._num_bytes = num_bytes
        self._footer = footer
        self._at = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._num_bytes + len(self._footer))[whence]
        return self._at

    def read(self, size: int) -> bytes:
        begin = self._at - self._num_bytes  # in the footer
        try:
            found = (
                self._read_at(self._at, min(size, -begin))
                if begin < 0
                else self._footer[begin : begin + size]
            )
        except BaseException as error:  # an interruption too: arro3 passes neither on
            self.failure = error
            raise
        self._at += len(found)
        return found


class _Output:
    """Standard output; of a file, what arro3 calls."""

    def __init__(self) -> None:
        self._fd = sys.stdout.fileno()

    def seek(self, _offset: int, _whence: int = io.SEEK_SET) -> int:
        raise io.UnsupportedOperation("a stream goes forward")

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        while left:
            left = left[os.write(self._fd, left) :]
        return len(data)

    def flush(self) -> None: ...


def reading(source: int | str) -> Callable[[int, int], bytes]:
    """How to read a file that is open, whose offset others may share, or that has a path."""
    fd = source if isinstance(source, int) else os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    if hasattr(os, "pread"):
        return lambda offset, size: os.pread(fd, size, offset)

    def read_at(offset: int, size: int) -> bytes:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)

    return read_at


def open_batches(form: str, file: FileWithFooter, num_rows: int) -> object:
    """An arro3.core.RecordBatchReader; of Parquet at most `num_rows` a batch."""
    import arro3.io

    if form == PARQUET:
        return arro3.io.read_parquet(file, batch_size=num_rows)  # pyright: ignore[reportArgumentType]
    return arro3.io.read_ipc(file)  # pyright: ignore[reportArgumentType]


def is_damage(error: BaseException) -> bool:
    """Whether arro3 raised it: plain exceptions, and panics of Rust, whose class cannot be imported."""
    return (
        type(error) is Exception or isinstance(error, ValueError) or type(error).__name__ == "PanicException"
    )


def _write_stream() -> tuple[int, str]:
    """The exit status, and what is to say."""
    form, source, num_bytes, footer, num_rows, folders = marshal.load(sys.stdin.buffer)
    sys.path += folders
    _limit_damage()
    import arro3.io

    out = _Output()
    out.write(STARTED)
    file = FileWithFooter(reading(source), num_bytes, footer)
    try:
        batches = open_batches(form, file, num_rows)
        arro3.io.write_ipc_stream(batches, out, compression=None)  # pyright: ignore[reportArgumentType]
    except BaseException as error:
        if isinstance(file.failure, OSError):
            return UNREADABLE, str(file.failure.errno or 0)
        if is_damage(error):
            return DAMAGED, str(error).strip() or type(error).__name__
        raise
    return 0, ""


def _limit_damage() -> None:
    """A damaged file may ask for any memory, and end this process: no core is dumped, and no window opens."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.SetErrorMode(msvcrt.SEM_FAILCRITICALERRORS | msvcrt.SEM_NOGPFAULTERRORBOX)
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > half:
        try:  # noqa: SIM105 - contextlib takes long to import
            resource.setrlimit(resource.RLIMIT_AS, (half, hard))
        except (OSError, ValueError):
            pass  # macOS may refuse


def main() -> None:
    try:
        status, said = _write_stream()
    except BaseException as error:  # noqa: BLE001 - the status says so
        status, said = FAILED, f"{type(error).__name__}: {error}"
    if said:
        line = said.splitlines()[0][:_MAX_CHARS]
        os.write(sys.stderr.fileno(), f"\n{line}".encode("utf-8", "replace"))
    os._exit(status)  # nothing is left to close, and nothing more is to be said


if __name__ == "__main__":
    main()
