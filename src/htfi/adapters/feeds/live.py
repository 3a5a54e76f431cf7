"""Live sources: what arrives is written to an inbox before it is used, and read back as blocks of parsed rows.

`DIR/inbox/NAME.jsonl` holds one line for each row: `{"at":arrival in ns,"row":"the row as it came","sum":"…"}`. So a
run that is killed continues from its saved place in this file, without a row lost or taken twice. A thread
(standard input, WebSocket) appends; the merge reads.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from htfi.adapters.feeds.rate_limits import RateLimiter
from htfi.adapters.feeds.records import (
    CHUNK_BYTES,
    MAX_ROW_BYTES,
    JsonRows,
    LineReader,
    ParsedRows,
    parse_record,
    truncate_row,
)
from htfi.domain.errors import DependencyUnavailable, HtfiError, IntegrityError
from htfi.domain.files import add_checksum, checksum_holds, make_private, open_private
from htfi.domain.time import Clock
from htfi.pipeline.intake.quarantine_reasons import TruncatedRow
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.source import ReadPosition, RowBlock
from htfi.pipeline.intake.spec import SourceSpec

MAX_LINE_BYTES = 8_000_000  # a row of the longest kind, with every character escaped
_BLOCK_BYTES = 1 << 18
_FIRST_DELAY_S, _MAX_DELAY_S = 0.1, 30.0


class InboxRow(msgspec.Struct, omit_defaults=True):
    """One row as it came: text, or hexadecimal where it is not UTF-8; its length and digest where it was cut.

    A row of a bus has its message's partition and place, and how many rows of that message stand before and follow.
    """

    at: int
    row: str = ""
    hex: str = ""
    num_bytes: int = 0
    sha256: str = ""
    partition: int = 0
    place: int = -1
    before: int = 0
    more: int = 0

    @property
    def content(self) -> bytes:
        content = bytes.fromhex(self.hex) if self.hex else self.row.encode()
        return TruncatedRow.of(content, self.sha256) if self.sha256 else content


class RowOrigin(NamedTuple):
    """The message of a bus that a row came in, as `InboxRow` has it."""

    partition: int = 0
    place: int = -1
    before: int = 0
    more: int = 0


NO_ORIGIN = RowOrigin()


class Inbox:
    """One writer thread, one reader thread. `bell` rings when rows have come or the source has ended."""

    def __init__(self, path: Path, clock: Clock, bell: threading.Event, not_before_ns: int) -> None:
        self.path = path
        self.wakeup = bell
        self._clock = clock
        self._lock = threading.Lock()
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(InboxRow).decode
        self._is_finished = False
        self._error: HtfiError | None = None
        try:
            make_private(path.parent)
            self._file = open_private(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
            self.num_bytes = self._truncate_partial_line()
        except OSError as error:
            raise self._write_error(error) from error
        newest = max((arrival.at for arrival in self.rows(last_only=True)), default=0)
        self._latest_ns = max(newest, not_before_ns)

    def append(self, rows: Sequence[tuple[bytes, int]], origins: Sequence[RowOrigin] = ()) -> None:
        """Write rows down, each with its content and its true length, of a bus with their origins too.

        Rows of a bus have a time each, a nanosecond apart: two that are alike have places of their own and both count.
        Raises: DependencyUnavailable.
        """
        with self._lock:
            at, apart_ns = self._now_ns(), 1 if origins else 0
            whole = bytearray()
            for (content, num_bytes), origin in zip(rows, origins or repeat(NO_ORIGIN), strict=False):
                line = self._line(at, content, num_bytes, origin)
                at += apart_ns
                whole += add_checksum(line, self.num_bytes + len(whole)) + b"\n"
            self._latest_ns = at
            lines = bytes(whole)
            try:
                while lines:
                    num_written = os.write(self._file, lines)
                    lines = lines[num_written:]
                    self.num_bytes += num_written
            except OSError as error:
                raise self._write_error(error) from error
        self.wakeup.set()

    def sync(self) -> None:
        """All rows are on the disk, whatever happens to the machine. Raises: DependencyUnavailable."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._write_error(error) from error

    def state(self) -> tuple[int, int, bool]:
        """Bytes written, a time before which no further row is stamped, and whether none will come at all.

        Raises: what made the writer give up.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            return self.num_bytes, self._now_ns(), self._is_finished

    def read(self, offset: int, num_bytes: int) -> bytes:
        try:
            return os.pread(self._file, num_bytes, offset)
        except OSError as error:
            raise self._write_error(error) from error

    def rows(self, last_only: bool = False) -> Iterator[InboxRow]:
        """The rows written so far, oldest first."""
        at = max(self.num_bytes - MAX_LINE_BYTES, 0) if last_only else 0
        end, first_may_be_cut = self.num_bytes, at > 0

        def read(num_bytes: int) -> bytes:
            nonlocal at
            chunk = self.read(at, min(num_bytes, end - at))
            at += len(chunk)
            return chunk

        lines = LineReader(read, at, MAX_LINE_BYTES)
        newest: tuple[bytes, int] | None = None
        while (batch := lines.next(_BLOCK_BYTES)) is not None:
            for place, content, _ in batch:
                if first_may_be_cut:
                    first_may_be_cut = False
                elif last_only:
                    newest = content, place
                else:
                    yield self.row(content, place)
        if newest is not None:
            yield self.row(*newest)

    def row(self, line: bytes, place: int) -> InboxRow:
        """The row of a line that begins at that byte. Raises: IntegrityError where it is not as it was written."""
        try:
            arrival = self._decode(line) if checksum_holds(line, place) else None
            if arrival is not None:
                _ = arrival.content  # raises where its figures are none
                return arrival
        except (msgspec.DecodeError, ValueError):
            pass
        raise IntegrityError(
            f"inbox {self.path}, byte {place}: a row was changed: restore the file, or use a new folder"
        )

    def finish(self, error: HtfiError | None = None) -> None:
        """The writer's last word: the source has ended, or why it gave up."""
        with self._lock:
            self._is_finished, self._error = True, error
        self.wakeup.set()

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _now_ns(self) -> int:
        self._latest_ns = max(self._latest_ns, self._clock.now_ns())
        return self._latest_ns

    def _line(self, at: int, content: bytes, num_bytes: int, origin: RowOrigin) -> bytes:
        cut = num_bytes if num_bytes > len(content) else 0
        digest = content.sha256 if isinstance(content, TruncatedRow) else ""
        try:
            return self._encode(InboxRow(at, content.decode(), "", cut, digest, *origin))
        except UnicodeDecodeError:
            return self._encode(InboxRow(at, "", content.hex(), cut, digest, *origin))

    def _truncate_partial_line(self) -> int:
        """Take away a line that a crash left half written; nothing has read it."""
        end = os.fstat(self._file).st_size
        while end:
            begin = max(end - _BLOCK_BYTES, 0)
            found = os.pread(self._file, end - begin, begin).rfind(b"\n")
            if found >= 0:
                end = begin + found + 1
                break
            end = begin
        os.ftruncate(self._file, end)
        return end

    def _write_error(self, error: OSError) -> DependencyUnavailable:
        why = error.strerror or str(error)
        return DependencyUnavailable(
            f"inbox {self.path}: {why}: free some disk space or choose another folder"
        )


def reconnect_delay_s(num_failures: int) -> float:
    """Doubling up to 30 s, each drawn from its upper half, so that many clients do not come back at once."""
    delay_s = min(_MAX_DELAY_S, _FIRST_DELAY_S * 2 ** min(num_failures, 16))
    return delay_s * random.uniform(0.5, 1.0)


def message_rows(content: bytes) -> list[tuple[bytes, int]]:
    """The rows of a message, with their true lengths: the parts of a JSON array, or its lines."""
    if content.lstrip().startswith(b"["):
        try:
            parts = [bytes(part) for part in msgspec.json.decode(content, type=list[msgspec.Raw])]
        except msgspec.DecodeError:
            parts = content.split(b"\n")
    else:
        parts = content.split(b"\n")
    return [
        (part if len(part) <= MAX_ROW_BYTES else truncate_row(part), len(part))
        for part in parts
        if part.strip()
    ]


class Receiver(Protocol):
    """A thread that fills the inbox."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FeedContext:
    """What the feeds of one run share. `notify` gets a line when a source begins to fail, and when it is back."""

    rate_limiter: RateLimiter
    notify: Callable[[str], None]


class LiveReader:
    """Implements the port `RowReader`. Marks are [rows before, byte offset in the inbox]."""

    live = True

    def __init__(self, spec: SourceSpec, inbox: Inbox, pump: Receiver, rows: JsonRows | None = None) -> None:
        self._spec = spec
        self._inbox = inbox
        self._receiver = pump
        self._rows = rows or JsonRows()
        self._parser = RowParser(spec, "")
        self._num_rows = self._offset = self._end = 0
        self._lines = LineReader(self._read_lines, 0, MAX_LINE_BYTES)

    def start(self, mark: ReadPosition | None) -> None:
        self._num_rows, self._offset = (0, 0) if mark is None else (mark[0], mark[1])
        if self._offset > self._inbox.num_bytes:
            raise IntegrityError(
                f"inbox {self._inbox.path} is shorter than when the run stopped: "
                "restore it, or use a new folder"
            )
        self._lines = LineReader(self._read_lines, self._offset, MAX_LINE_BYTES)
        self._receiver.start()

    def read(self) -> RowBlock | None:
        self._end, now_ns, ended = self._inbox.state()
        mark = [self._num_rows, self._offset]
        parsed = ParsedRows()
        read_on = True
        while read_on and not parsed.items:
            batch = self._lines.next(CHUNK_BYTES)
            read_on = batch is not None
            for offset, line, num_bytes in batch or []:
                self._parse_row(self._inbox.row(line, offset), parsed)
                self._offset = offset + num_bytes + 1
        if parsed.items:
            return RowBlock(mark, parsed.items, parsed.identities)
        if ended:
            return None
        return RowBlock(mark, [], known_until_ns=now_ns if self._spec.by_arrival else None)

    def progress(self) -> float | None:
        return None

    def close(self) -> None:
        self._receiver.stop()
        self._inbox.close()

    def _parse_row(self, arrival: InboxRow, parsed: ParsedRows) -> None:
        content = arrival.content
        record = (0, content, arrival.num_bytes or len(content))
        item = parse_record(self._rows, self._parser, record, self._num_rows + 1, arrival.at)
        if item is not None:
            self._num_rows += 1
            parsed.add(item, content)

    def _read_lines(self, num_bytes: int) -> bytes:
        at = self._lines.offset_read
        return self._inbox.read(at, min(num_bytes, self._end - at))


_READ_BYTES = 1 << 16
_BATCH_ROWS = 512

_Row = tuple[bytes, int]


class StdinReceiver:
    """After a restart, lines that repeat the inbox from its first on are the same stream again: skipped.

    A stream that begins otherwise is its continuation.
    """

    def __init__(self, inbox: Inbox, descriptor: int = 0) -> None:
        self._inbox = inbox
        self._descriptor = descriptor
        self._stopped = False
        # A daemon: a read that waits for a person's next line must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name="stdin", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True

    def _run(self) -> None:
        try:
            for rows in self._new_rows():
                if self._stopped:
                    return
                self._inbox.append(rows)
            self._inbox.finish()
        except HtfiError as error:
            self._inbox.finish(error)
        except OSError as error:
            why = error.strerror or str(error)
            self._inbox.finish(DependencyUnavailable(f"standard input: {why}: pipe the stream again"))

    def _new_rows(self) -> Iterator[list[_Row]]:
        """What the inbox does not hold yet, in groups as they came."""
        known = (arrival.content for arrival in self._inbox.rows())
        num_same = 0
        comparing = True
        for group in self._row_batches():
            while comparing and group:
                expected = next(known, None)
                if expected == group[0][0]:
                    num_same += 1
                    del group[0]
                    continue
                comparing = False
                if expected is not None and num_same:
                    yield from self._replayed_rows(num_same)
            if group:
                yield group

    def _replayed_rows(self, num_rows: int) -> Iterator[list[_Row]]:
        """The inbox's first rows, which a continuation happened to begin with."""
        rows = (
            (arrival.content, arrival.num_bytes or len(arrival.content)) for arrival in self._inbox.rows()
        )
        first = islice(rows, num_rows)
        while group := list(islice(first, _BATCH_ROWS)):
            yield group

    def _row_batches(self) -> Iterator[list[_Row]]:
        lines = LineReader(lambda num_bytes: os.read(self._descriptor, num_bytes))
        while (batch := lines.next(_READ_BYTES)) is not None:
            yield [(content, num_bytes) for _, content, num_bytes in batch if content.strip()]
        yield [(content, num_bytes) for _, content, num_bytes in lines.finish() if content.strip()]
