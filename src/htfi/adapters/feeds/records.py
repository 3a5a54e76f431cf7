"""Turns bytes into records with bounded memory, and records (JSON objects, CSV cells) into events or rejections.

Text and live readers call it. A CSV record may span lines.
"""

import csv
from collections.abc import Callable, Hashable, Iterator, Sequence
from hashlib import blake2b, sha256
from typing import cast

import msgspec

from htfi.domain.events import Event, QuarantinedRow
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, RowRefused, TruncatedRow
from htfi.pipeline.intake.reorder import row_identity
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.written_numbers import PLAIN, NumberStyle

MAX_ROW_BYTES = 1_000_000
CHUNK_BYTES = 1 << 18
_PREVIEW_BYTES = 400

Record = tuple[int, bytes, int]  # offset of its first byte, content, length in bytes


class LineReader:
    """Lines of a stream from `offset` on, without their line feed.

    A line over `max_bytes` comes cut to a few hundred bytes with its true length and digest (`TruncatedRow`), so that
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
            records.append((offset, part if length <= self._max_bytes else truncate_row(part), length))
            offset += length + 1
        self._offset, self._rest = offset, rest
        if len(rest) > self._max_bytes:
            self._digest = sha256(rest)
            self._rest = rest[:_PREVIEW_BYTES]
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
        return TruncatedRow.of(rest, self._digest.hexdigest()) if skipped else rest

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


def truncate_row(content: bytes) -> TruncatedRow:
    """The beginning of a row that is too long to keep, with the digest of all of it."""
    return TruncatedRow.of(content[:_PREVIEW_BYTES], sha256(content).hexdigest())


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
        yield from self._release_lines()

    def _add(self, line: Record) -> Iterator[Record]:
        closes = line[1].count(b'"') % 2 == 1
        if not self._open and not closes:
            yield line
        elif self._open_bytes + line[2] > MAX_ROW_BYTES:
            yield from self._release_lines()
            yield from self._add(line) if line[2] <= MAX_ROW_BYTES else (line,)
        elif self._open and closes:
            offset = self._open[0][0]
            content = b"\n".join((*(part for _, part, _ in self._open), line[1]))
            self._open, self._open_bytes = [], 0
            yield offset, content, len(content)
        else:
            self._open.append(line)
            self._open_bytes += line[2] + 1

    def _release_lines(self) -> Iterator[Record]:
        lines, self._open, self._open_bytes = self._open, [], 0
        yield from lines  # after the first, none has an odd quote: it would have closed the record


_REASONS = frozenset(reason.value for reason in QuarantineReason)
_EXCERPT_BYTES = 256
_MULTILINE_HINT = ": where fields span lines, state `multiline = true` in the mapping"
csv.field_size_limit(MAX_ROW_BYTES)  # a cell may be as long as a row: its own limit is 131,072


class ParsedRows:
    """Items of consecutive rows with an identity for each event (None for a rejection)."""

    def __init__(self) -> None:
        self.items: list[Event | QuarantinedRow] = []
        self.identities: list[Hashable] = []

    def add(self, item: Event | QuarantinedRow, content: bytes) -> None:
        self.items.append(item)
        if isinstance(item, QuarantinedRow):
            self.identities.append(None)
        else:
            short = len(content) <= _EXCERPT_BYTES
            self.identities.append(
                row_identity(item, content if short else blake2b(content, digest_size=16).digest())
            )


class JsonRows:
    """One JSON object a line."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder().decode

    def cells(self, content: bytes) -> Row | None:
        """A line's fields; None for a blank line. Raises: RowRefused."""
        try:
            row = self._decode(content)
        except UnicodeDecodeError as error:
            raise RowRefused(QuarantineReason.BAD_ENCODING, f"not UTF-8 at byte {error.start}") from error
        except (msgspec.DecodeError, RecursionError) as error:
            if not content.strip():
                return None
            raise RowRefused(_encoding_reason(content), f"not JSON: {error}") from error
        if type(row) is not dict:
            raise RowRefused(QuarantineReason.MALFORMED, "the line is JSON but not an object")
        return cast("dict[str, object]", row)


class WebJsonRows(JsonRows):
    """Rows of a web source: one that it had to refuse says so itself."""

    def cells(self, content: bytes) -> Row | None:
        row = super().cells(content)
        refused = None if row is None else row.get("refused")
        if row is not None and isinstance(refused, str) and refused in _REASONS:
            raise RowRefused(QuarantineReason(refused), str(row.get("detail", "")), str(row.get("raw", "")))
        return row


class CsvRows:
    """One record of cells a line, under the names of a header; `numbers` says how its numbers are written."""

    def __init__(self, header: Sequence[str], delimiter: str, numbers: NumberStyle = PLAIN) -> None:
        self._header = tuple(header)
        self._delimiter = delimiter
        self._numbers = numbers

    def cells(self, content: bytes) -> Row | None:
        """A record's cells by column; None for a blank line. Raises: RowRefused."""
        values = split_record(content, self._delimiter)
        if values is None:
            return None
        if len(values) != len(self._header):
            raise RowRefused(
                QuarantineReason.MALFORMED, f"{len(values)} cells under a header of {len(self._header)}"
            )
        row = dict(zip(self._header, values, strict=True))
        return self._numbers.plain(row) if self._numbers.columns else row


def split_record(content: bytes, delimiter: str) -> list[str] | None:
    """The cells of one CSV record; None for a blank line. Raises: RowRefused."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RowRefused(QuarantineReason.BAD_ENCODING, f"not UTF-8 at byte {error.start}") from error
    text = text.rstrip("\r\n")
    if not text.strip():
        return None
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        if text.count('"') % 2:
            raise RowRefused(QuarantineReason.MALFORMED, f"a quote is not closed{_MULTILINE_HINT}") from error
        raise RowRefused(QuarantineReason.MALFORMED, f"not a CSV record: {error}") from error


def parse_record(
    rows: JsonRows | CsvRows, parser: RowParser, record: Record, number: int, arrival_ns: int | None = None
) -> Event | QuarantinedRow | None:
    """What one record holds; None where it is blank or not wanted."""
    _, content, num_bytes = record
    if num_bytes > MAX_ROW_BYTES:
        detail = f"{num_bytes} bytes: a row has at most {MAX_ROW_BYTES}"
        return parser.reject(number, QuarantineReason.TOO_LONG, detail, content, num_bytes)
    try:
        cells = rows.cells(content)
    except RowRefused as refusal:
        return parser.reject(number, refusal.reason, refusal.detail, refusal.raw or content)
    return None if cells is None else parser.parse(cells, number, content, arrival_ns)


def _encoding_reason(content: bytes) -> QuarantineReason:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return QuarantineReason.BAD_ENCODING
    return QuarantineReason.MALFORMED
