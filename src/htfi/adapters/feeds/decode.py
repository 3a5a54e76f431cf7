"""Records of bytes into events or rejections: JSON objects and CSV cells. Text and live readers call it."""

import csv
from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import cast

import msgspec

from htfi.adapters.feeds.framing import MAX_ROW_BYTES, Record
from htfi.domain.events import Event, Rejection
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.identity import identity
from htfi.pipeline.intake.reasons import Reason, Refusal
from htfi.pipeline.intake.rows import RowParser

_REASONS = frozenset(reason.value for reason in Reason)
_SHORT_BYTES = 256
_HINT = ": where fields span lines, state `multiline = true` in the mapping"
csv.field_size_limit(MAX_ROW_BYTES)  # a cell may be as long as a row: its own limit is 131,072


class Parsed:
    """Items of consecutive rows with an identity for each event (None for a rejection)."""

    def __init__(self) -> None:
        self.items: list[Event | Rejection] = []
        self.identities: list[Hashable] = []

    def add(self, item: Event | Rejection, content: bytes) -> None:
        self.items.append(item)
        if isinstance(item, Rejection):
            self.identities.append(None)
        else:
            short = len(content) <= _SHORT_BYTES
            self.identities.append(
                identity(item, content if short else blake2b(content, digest_size=16).digest())
            )


class JsonRows:
    """One JSON object a line."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder().decode

    def cells(self, content: bytes) -> Row | None:
        """A line's fields; None for a blank line. Raises: Refusal."""
        try:
            row = self._decode(content)
        except UnicodeDecodeError as error:
            raise Refusal(Reason.BAD_ENCODING, f"not UTF-8 at byte {error.start}") from error
        except (msgspec.DecodeError, RecursionError) as error:
            if not content.strip():
                return None
            raise Refusal(_encoding_reason(content), f"no JSON: {error}") from error
        if type(row) is not dict:
            raise Refusal(Reason.MALFORMED, "the line is JSON but no object")
        return cast("dict[str, object]", row)


class WebRows(JsonRows):
    """Rows of a web source: one that it had to refuse says so itself."""

    def cells(self, content: bytes) -> Row | None:
        row = super().cells(content)
        refused = None if row is None else row.get("refused")
        if row is not None and isinstance(refused, str) and refused in _REASONS:
            raise Refusal(Reason(refused), str(row.get("detail", "")), str(row.get("raw", "")))
        return row


class CsvRows:
    """One record of cells a line, under the names of a header."""

    def __init__(self, header: Sequence[str], delimiter: str) -> None:
        self._header = tuple(header)
        self._delimiter = delimiter

    def cells(self, content: bytes) -> Row | None:
        """A record's cells by column; None for a blank line. Raises: Refusal."""
        values = split_record(content, self._delimiter)
        if values is None:
            return None
        if len(values) != len(self._header):
            raise Refusal(Reason.MALFORMED, f"{len(values)} cells under a header of {len(self._header)}")
        return dict(zip(self._header, values, strict=True))


def split_record(content: bytes, delimiter: str) -> list[str] | None:
    """The cells of one CSV record; None for a blank line. Raises: Refusal."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(Reason.BAD_ENCODING, f"not UTF-8 at byte {error.start}") from error
    text = text.rstrip("\r\n")
    if not text.strip():
        return None
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        if text.count('"') % 2:
            raise Refusal(Reason.MALFORMED, f"a quote stays open{_HINT}") from error
        raise Refusal(Reason.MALFORMED, f"no CSV record: {error}") from error


def parse_record(
    rows: JsonRows | CsvRows, parser: RowParser, record: Record, number: int, arrival_ns: int | None = None
) -> Event | Rejection | None:
    """What one record holds; None where it is blank or not wanted."""
    _, content, num_bytes = record
    if num_bytes > MAX_ROW_BYTES:
        detail = f"{num_bytes} bytes: a row has at most {MAX_ROW_BYTES}"
        return parser.reject(number, Reason.TOO_LONG, detail, content, num_bytes)
    try:
        cells = rows.cells(content)
    except Refusal as refusal:
        return parser.reject(number, refusal.reason, refusal.detail, refusal.raw or content)
    return None if cells is None else parser.parse(cells, number, content, arrival_ns)


def _encoding_reason(content: bytes) -> Reason:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return Reason.BAD_ENCODING
    return Reason.MALFORMED
