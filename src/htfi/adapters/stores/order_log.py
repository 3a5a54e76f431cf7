"""The order event stream of a run on disk, orders.jsonl: written and synced before an order leaves.

A line is an event as `domain.orders` encodes it. A last line that a crash cut is dropped when the file is opened: its
order never left. A run that is made again from its inputs comes to the same events: those that the file holds are
compared, not written twice.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.files import open_private
from htfi.domain.orders import OrderEvent, decode_order_event, encode_order_event

ORDERS = "orders.jsonl"


class OrderLog:
    """The file of a folder, for appending. `num_events` have been made, or made again, since it was opened."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        """Raises: DependencyUnavailable, IntegrityError where a line before the last is no event."""
        self.path = folder / ORDERS
        self._durable = durable
        self.num_events = 0
        try:
            self._recorded = _whole_lines(self.path)
            self._file = open_private(self.path, os.O_RDWR)
            os.ftruncate(self._file, sum(len(line) + 1 for line in self._recorded))
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise DependencyUnavailable(f"{self.path}: {error.strerror or error}") from error

    @property
    def num_recorded(self) -> int:
        """How many events the file held when it was opened."""
        return len(self._recorded)

    def recorded_lines(self, first: int) -> list[bytes]:
        """The lines that the file held when it was opened, from one on."""
        return self._recorded[first:]

    @property
    def is_replaying(self) -> bool:
        """Whether the file holds what comes next."""
        return self.num_events < len(self._recorded)

    @property
    def holds_newest(self) -> bool:
        """Whether the newest event stood in the file when it was opened."""
        return self.num_events <= len(self._recorded)

    def next_recorded(self) -> OrderEvent | None:
        """What the file holds where the next event will stand; None past its end. Raises: IntegrityError."""
        if not self.is_replaying:
            return None
        return _decoded(self._recorded[self.num_events], self.path, self.num_events + 1)

    def go_to_end(self) -> None:
        """Go behind what the file holds, without making it again."""
        self.num_events = len(self._recorded)

    def append(self, events: Sequence[OrderEvent]) -> None:
        """Record events. Raises: DependencyUnavailable; IntegrityError where the file holds others there."""
        lines = [encode_order_event(event) for event in events]
        while lines and self.is_replaying:
            if lines[0] != self._recorded[self.num_events]:
                raise IntegrityError(
                    f"{self.path} line {self.num_events + 1} holds another event than follows from the inputs: "
                    "the inputs, the settings or the code changed since; use a new folder"
                )
            self.num_events += 1
            del lines[0]
        if not lines:
            return
        data = b"\n".join(lines) + b"\n"
        start = os.lseek(self._file, 0, os.SEEK_END)
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            if self._durable:
                os.fdatasync(self._file)
        except OSError as error:
            with suppress(OSError):  # a cut last line is dropped when the file is opened again
                os.ftruncate(self._file, start)
            raise DependencyUnavailable(
                f"{self.path}: {error.strerror or error}; no order was sent: "
                "solve this and run the same command again"
            ) from error
        self.num_events += len(lines)

    def close(self) -> None:
        os.close(self._file)


def read_order_log(folder: Path) -> Iterator[OrderEvent]:
    """The events of a folder's file. Raises: IntegrityError, naming the line; DependencyUnavailable."""
    path = folder / ORDERS
    try:
        lines = _whole_lines(path)
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        yield _decoded(line, path, number)


def read_events_from(folder: Path, num_bytes: int) -> tuple[list[OrderEvent], int]:
    """The events after so many bytes of a folder's file, and how many bytes those before the next one take.

    Raises: IntegrityError, naming the line after that place; DependencyUnavailable.
    """
    path = folder / ORDERS
    try:
        with path.open("rb") as file:
            file.seek(num_bytes)
            lines = file.read().split(b"\n")[:-1]
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error
    events = [_decoded(line, path, number) for number, line in enumerate(lines, 1)]
    return events, num_bytes + sum(len(line) + 1 for line in lines)


def _decoded(line: bytes, path: Path, number: int) -> OrderEvent:
    try:
        return decode_order_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise IntegrityError(f"{path} line {number} is no order event: {error}") from error


def _whole_lines(path: Path) -> list[bytes]:
    """The lines that end, without their ends."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return lines[:-1]
