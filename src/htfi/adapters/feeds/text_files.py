"""CSV and JSONL files, plain or gzipped, as blocks of parsed rows. Wiring opens them, the merge reads."""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from htfi.adapters.feeds.json_documents import document_lines, may_be_document
from htfi.adapters.feeds.records import (
    CHUNK_BYTES,
    MAX_ROW_BYTES,
    CsvRecords,
    CsvRows,
    JsonRows,
    LineReader,
    ParsedRows,
    Record,
    parse_record,
    split_record,
)
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.text_encodings import UTF8, decoded, encoding_of
from htfi.domain.written_days import DayOrder, day_order_of, is_either_way
from htfi.pipeline.intake.bar_spacing import BarSpacings, BarSurvey
from htfi.pipeline.intake.bare_columns import is_data, name_columns
from htfi.pipeline.intake.cells import Row
from htfi.pipeline.intake.columns import ColumnLayout, require_layout
from htfi.pipeline.intake.file_profile import (
    HEAD_ROWS,
    LONG_HEAD_ROWS,
    NUM_PROBES,
    PROBE_ROWS,
    profile_file,
    survey_rows,
)
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, RowRefused
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.source import ReadPosition, RowBlock
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.intake.symbol_columns import SymbolColumns, find_symbol_columns, read_two_levels
from htfi.pipeline.intake.written_numbers import number_style

_BOM = b"\xef\xbb\xbf"
_MAX_DOCUMENT_BYTES = 1 << 30  # a document is held in memory
_HEAD_BYTES = 4096  # that show an encoding
_DELIMITERS = ",;\t|"
_SIGNS = tuple(sign.encode() for sign in _DELIMITERS)
_MAX_TITLES = 20  # lines above a header


class TextFileReader:
    """Implements the port `RowReader` over one file. Marks are [rows before, byte offset of the next]."""

    live = False

    def __init__(self, path: Path, spec: SourceSpec, symbol: str, block_rows: int) -> None:
        self._path = path
        self._spec = spec
        self._is_csv = spec.format != "jsonl"
        self._is_gzipped = path.suffix == ".gz"
        self._block_bytes = min(CHUNK_BYTES, block_rows * 100)
        self._disk = self._open()
        self._file = cast("BinaryIO", gzip.GzipFile(fileobj=self._disk)) if self._is_gzipped else self._disk
        self.num_bytes = path.stat().st_size
        self._sampled_to = 0
        self._begin = 0  # after a byte order mark and the header
        self._rows: JsonRows | CsvRows = JsonRows()
        self._by_symbol: SymbolColumns | None = None  # where a line has the closes of several
        self._bare: list[str] = []  # symbols of these without any close
        try:
            if (lines := self._lines_made()) is not None:
                self._file, self.num_bytes, self._is_gzipped = io.BytesIO(lines), len(lines), False
            layout = self._read_head()
            head = self._sample(HEAD_ROWS)
            findings = profile_file(spec, symbol, layout, head)
            if findings.may_be_stacked:
                findings = profile_file(
                    spec, symbol, layout, self._sample(LONG_HEAD_ROWS), self._sample_rows_later()
                )
            elif layout is None:
                findings = profile_file(spec, symbol, layout, head, self._sample_rows_later())
            clocks = self._measure_bar_intervals(
                RowParser(spec, symbol, layout, None, head), needed=findings.has_bars
            )
        except BaseException:
            self.close()
            raise
        self.needs_sort = findings.stacked or findings.newest_first or clocks.mixed
        self._parser = RowParser(spec, symbol, layout, clocks, head)
        self._records = self._records_from(self._begin)
        self._num_rows = 0
        self._offset = self._begin

    def start(self, mark: ReadPosition | None) -> None:
        self._num_rows, self._offset = (0, self._begin) if mark is None else (mark[0], mark[1])
        self._records = self._records_from(self._offset)

    def read(self) -> RowBlock | None:
        batch = next(self._records, None)
        if batch is None:
            return None
        records, next_offset = batch
        mark = [self._num_rows, self._offset]
        parsed = ParsedRows()
        for record in records:
            if self._by_symbol is not None:
                self._divide(record, self._by_symbol, parsed)
                continue
            item = parse_record(self._rows, self._parser, record, self._num_rows + 1)
            if item is not None:
                self._num_rows += 1
                parsed.add(item, record[1])
        self._offset = next_offset
        return RowBlock(mark, parsed.items, parsed.identities)

    def _divide(self, record: Record, columns: SymbolColumns, parsed: ParsedRows) -> None:
        """Add the rows of every symbol in a line; what cannot be read is refused as one row.

        Symbols without any close are refused with the first line.
        """
        for symbol in self._bare if self._num_rows == 0 else ():
            self._num_rows += 1
            detail = f"{symbol}: none of its closes is a number"
            parsed.add(
                self._parser.reject(self._num_rows, QuarantineReason.MISSING_FIELD, detail, symbol), b""
            )
        try:
            line = self._rows.cells(record[1])
        except RowRefused:
            refused = parse_record(self._rows, self._parser, record, self._num_rows + 1)
            line = None
            if refused is not None:
                self._num_rows += 1
                parsed.add(refused, record[1])
        for row in () if line is None else columns.rows(line):
            item = self._parser.parse(row, self._num_rows + 1, record[1])
            if item is not None:
                self._num_rows += 1
                parsed.add(item, b"%b\n%b" % (row["symbol"].encode(), record[1]))

    def progress(self) -> float | None:
        if self.num_bytes == 0:
            return 1.0
        at = self._disk.tell() if self._is_gzipped else self._offset
        return min(at / self.num_bytes, 1.0)

    def close(self) -> None:
        self._file.close()
        self._disk.close()

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            raise DependencyUnavailable(
                f"{self._path}: {error.strerror}: check the path and its rights"
            ) from error

    def _read(self, num_bytes: int) -> bytes:
        try:
            return self._file.read(num_bytes)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InvalidInput(f"{self._path}: damaged or cut short ({error}): fetch it again") from error
        except OSError as error:
            raise DependencyUnavailable(f"{self._path}: {error.strerror or error}: check the disk") from error

    def _lines_made(self) -> bytes | None:
        """What a file in UTF-16 holds, and the rows of one JSON document, as lines of UTF-8; None for any other file.

        Raises: InvalidInput.
        """
        try:
            in_utf16 = encoding_of(self._file.read(_HEAD_BYTES)) != UTF8
            self._file.seek(0)
            is_made = in_utf16 or (not self._is_csv and self._may_be_document())
            self._file.seek(0)
            content = self._file.read() if is_made else b""
        except (EOFError, OSError, zlib.error):  # said where its rows are read
            return None
        if in_utf16:
            content = decoded(content, str(self._path)).encode()
        lines = document_lines(content, str(self._path)) if is_made and not self._is_csv else None
        return content if lines is None and in_utf16 else lines

    def _may_be_document(self) -> bool:
        if self.num_bytes > _MAX_DOCUMENT_BYTES:
            return False
        lines = iter(partial(self._file.readline, MAX_ROW_BYTES), b"")
        first, rest = islice((*islice(filter(bytes.strip, lines), 2), b"", b""), 2)
        return may_be_document(first, is_whole=not rest)

    def _read_head(self) -> ColumnLayout | None:
        """Past a byte order mark and a header; the layout of a CSV."""
        head = self._read(3)
        self._begin = 3 if head == _BOM else 0
        if not self._is_csv:
            return None
        heads = list(islice(self._heads(), 3))
        return self._read_header(heads) if heads else None

    def _heads(self) -> Iterator[Record]:
        """The header and the lines behind it, without blank ones and without lines of a single cell before it."""
        titles: list[Record] = []
        found = False
        for records, _ in self._records_from(self._begin):
            for record in records:
                _, content, num_bytes = record
                if not content.strip():
                    continue
                if not found and (num_bytes > MAX_ROW_BYTES or b"\r" in content.strip()):
                    raise InvalidInput(
                        f"{self._path}: the header does not end in a line feed: lines must end in LF or CR LF, "
                        f"and a header has at most {MAX_ROW_BYTES} bytes"
                    )
                found = found or len(titles) == _MAX_TITLES or any(sign in content for sign in _SIGNS)
                if found:
                    yield record
                else:
                    titles.append(record)
        if not found:
            yield from titles[:1]

    def _read_header(self, heads: Sequence[Record]) -> ColumnLayout:
        offset, content, num_bytes = heads[0]
        self._begin = offset + num_bytes + 1
        text = content.decode("utf-8", "replace")
        delimiter = max(_DELIMITERS, key=text.count)
        try:
            header = self._names(content, delimiter)
        except RowRefused as refusal:
            raise InvalidInput(f"{self._path}: the header cannot be read: {refusal.detail}") from refusal
        two_levels = None
        with suppress(RowRefused):  # of a row, which is refused where it is read
            two_levels = read_two_levels([header, *(self._names(one[1], delimiter) for one in heads[1:])])
        if two_levels is not None:
            header, self._by_symbol = two_levels
            self._begin = heads[2][0] + heads[2][2] + 1
        elif is_data(header) and not self._spec.columns:
            header, self._begin = self._name_columns(header, delimiter, offset), offset
        if len(set(header)) != len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise InvalidInput(f"{self._path}: two columns are named '{twice}': rename one")
        self._rows = CsvRows(header, delimiter)
        sample = self._sample(HEAD_ROWS)
        if self._by_symbol is None and not self._spec.kind and not self._spec.columns:
            self._by_symbol = find_symbol_columns(header, sample)
            if self._by_symbol is not None:
                sample = self._sample(HEAD_ROWS)
        names = header if self._by_symbol is None else self._by_symbol.names
        layout = require_layout(names, self._spec, str(self._path), sample)
        if self._by_symbol is None:
            self._rows = CsvRows(header, delimiter, number_style(layout, sample, delimiter))
        return layout if layout.day_order else replace(layout, day_order=self._day_order(layout, sample))

    def _names(self, content: bytes, delimiter: str) -> list[str]:
        return [name.strip() for name in split_record(content, delimiter) or []]

    def _name_columns(self, first: list[str], delimiter: str, begin: int) -> list[str]:
        """Names for the columns of a file without a header. Raises: InvalidInput, where they may be something else."""
        self._rows = CsvRows([str(place) for place in range(len(first))], delimiter)
        rows = [
            [str(cell).strip() for cell in row.values()] for row, _ in islice(self._cells(begin), HEAD_ROWS)
        ]
        names = name_columns(rows)
        if names is None:
            raise InvalidInput(
                f"{self._path} has no header, its first line is a row: put the names of its columns above it, such as "
                "ts,open,high,low,close,volume"
            )
        return names

    def _day_order(self, layout: ColumnLayout, sample: Sequence[Row]) -> DayOrder:
        """Which number of '03/04/2021' is the day, by all rows where the first ones do not show it."""
        column = layout.fields.get("ts", "")
        if not any(is_either_way(str(row.get(column, "")).strip()) for row in sample):
            return ""
        return day_order_of(str(row.get(column, "")).strip() for row, _ in self._cells(self._begin))

    def _sample(self, num_rows: int) -> list[Row]:
        """The first rows that can be read at all."""
        head = list(islice(self._cells(self._begin), num_rows))
        self._sampled_to = head[-1][1] if head else self._begin
        return [row for row, _ in head]

    def _sample_rows_later(self) -> Iterator[Row]:
        """A few rows from each of several places after the sample; none of a file that cannot be skipped in."""
        begin = self._sampled_to
        for nth in range(0 if self._is_gzipped or begin >= self.num_bytes else NUM_PROBES):
            place = begin + (self.num_bytes - begin) * nth // NUM_PROBES
            for row, _ in islice(self._cells(place), 1, 1 + PROBE_ROWS):  # the first may be cut
                yield row

    def _measure_bar_intervals(self, parser: RowParser, *, needed: bool) -> BarSpacings:
        """How long the bars of each symbol are, by all of the file; of a damaged one, by what can be read."""
        survey = BarSurvey()
        if needed:
            seen: set[str] = set()
            with suppress(InvalidInput):  # raised again where the rows before the damage have been used
                survey_rows(parser, self._rows_seen(seen), survey)
            if self._by_symbol is not None and not survey.full:
                self._bare = [symbol for symbol in self._by_symbol.by_symbol if symbol not in seen]
        return survey.clocks()

    def _rows_seen(self, symbols: set[str]) -> Iterator[Row]:
        """All rows; notes the symbols of a line's columns."""
        for row, _ in self._cells(self._begin):
            if self._by_symbol is not None:
                symbols.add(row["symbol"])
            yield row

    def _cells(self, offset: int) -> Iterator[tuple[Row, int]]:
        """Rows that can be read, each with the offset after it."""
        for records, _ in self._records_from(offset):
            for begin, content, num_bytes in records:
                try:
                    cells = self._rows.cells(content)
                except RowRefused:
                    continue
                if cells is None:
                    continue
                for row in (cells,) if self._by_symbol is None else self._by_symbol.rows(cells):
                    yield row, begin + num_bytes + 1

    def _records_from(self, offset: int) -> Iterator[tuple[list[Record], int]]:
        """Records in batches, each with the offset of the record after it."""
        try:
            self._file.seek(offset)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(
                f"{self._path}: cannot continue at byte {offset} ({error}): was it changed?"
            ) from error
        lines = LineReader(self._read, offset)
        joiner = CsvRecords() if self._is_csv and self._spec.multiline else None
        while (batch := lines.next(self._block_bytes)) is not None:
            records = batch if joiner is None else list(joiner.join(batch))
            if records:
                yield records, records[-1][0] + records[-1][2] + 1
        last = lines.finish()
        records = last if joiner is None else [*joiner.join(last), *joiner.finish()]
        if records:
            yield records, records[-1][0] + records[-1][2]
