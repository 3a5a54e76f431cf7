"""Bytes into records, with bounded memory: lines, and CSV records that span lines. Text readers call it."""

from collections.abc import Callable, Iterator
from hashlib import sha256

from htfi.pipeline.intake.reasons import CutRow

MAX_ROW_BYTES = 1_000_000
CHUNK_BYTES = 1 << 18
_KEPT_BYTES = 400

Record = tuple[int, bytes, int]  # offset of its first byte, content, length in bytes


class Lines:
    """Lines of a stream from `offset` on, without their line feed.

    A line over `max_bytes` comes cut to a few hundred bytes with its true length and digest (`CutRow`), so that
    memory stays bounded. `read` gives b'' where nothing more has come; at the end `finish` gives the last line.
    """

    def __init__(self, read: Callable[[int], bytes], offset: int = 0, max_bytes: int = MAX_ROW_BYTES) -> None:
        self._read = read
        self._max_bytes = max_bytes
        self._offset = offset  # of the first byte of `_rest`
        self._rest = b""
        self._skipped = 0  # bytes of an over-long line after those in `_rest`
        self._digest = sha256()  # of such a line

    @property
    def offset_read(self) -> int:
        """Where the next byte to read stands."""
        return self._offset + len(self._rest) + self._skipped

    def next(self, num_bytes: int = CHUNK_BYTES) -> list[Record] | None:
        """The lines that one more read completes; None where the stream gives nothing more."""
        chunk = self._read(num_bytes)
        if not chunk:
            return None
        if self._skipped:
            return self._skip(chunk)
        return self._split(chunk)

    def _split(self, chunk: bytes) -> list[Record]:
        parts = (self._rest + chunk).split(b"\n")
        rest = parts.pop()
        records: list[Record] = []
        offset = self._offset
        for part in parts:
            length = len(part)
            records.append((offset, part if length <= self._max_bytes else cut_row(part), length))
            offset += length + 1
        self._offset, self._rest = offset, rest
        if len(rest) > self._max_bytes:
            self._digest = sha256(rest)
            self._rest = rest[:_KEPT_BYTES]
            self._skipped = len(rest) - len(self._rest)
        return records

    def finish(self) -> list[Record]:
        """The last line, where the stream ends without a line feed."""
        length = len(self._rest) + self._skipped
        record = (self._offset, self._last(), length)
        self._offset += length
        return [record] if length else []

    def _last(self) -> bytes:
        """What is held of the line in hand, which has ended."""
        rest, skipped = self._rest, self._skipped
        self._rest, self._skipped = b"", 0
        return CutRow.of(rest, self._digest.hexdigest()) if skipped else rest

    def _skip(self, chunk: bytes) -> list[Record]:
        end = chunk.find(b"\n")
        if end < 0:
            self._digest.update(chunk)
            self._skipped += len(chunk)
            return []
        self._digest.update(chunk[:end])
        length = len(self._rest) + self._skipped + end
        record = (self._offset, self._last(), length)
        self._offset += length + 1
        return [record, *self._split(chunk[end + 1 :])]


def cut_row(content: bytes) -> CutRow:
    """The beginning of a row that is too long to keep, with the digest of all of it."""
    return CutRow.of(content[:_KEPT_BYTES], sha256(content).hexdigest())


class CsvRecords:
    """Joins lines whose quotes stay open (RFC 4180), up to `MAX_ROW_BYTES`, for a file whose fields span lines.

    A quote that never closes costs its own line only: the lines after it are read again on their own.
    """

    def __init__(self) -> None:
        self._open: list[Record] = []
        self._open_bytes = 0

    def join(self, lines: list[Record]) -> Iterator[Record]:
        """The records that these lines complete."""
        for line in lines:
            yield from self._add(line)

    def finish(self) -> Iterator[Record]:
        """What is left open at the end of the stream, line by line."""
        yield from self._give_up()

    def _add(self, line: Record) -> Iterator[Record]:
        closes = line[1].count(b'"') % 2 == 1
        if not self._open and not closes:
            yield line
        elif self._open_bytes + line[2] > MAX_ROW_BYTES:
            yield from self._give_up()
            yield from self._add(line) if line[2] <= MAX_ROW_BYTES else (line,)
        elif self._open and closes:
            offset = self._open[0][0]
            content = b"\n".join((*(part for _, part, _ in self._open), line[1]))
            self._open, self._open_bytes = [], 0
            yield offset, content, len(content)
        else:
            self._open.append(line)
            self._open_bytes += line[2] + 1

    def _give_up(self) -> Iterator[Record]:
        lines, self._open, self._open_bytes = self._open, [], 0
        yield from lines  # after the first, none has an odd quote: it would have closed the record
