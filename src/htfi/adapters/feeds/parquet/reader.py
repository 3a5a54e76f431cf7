"""Rows of Arrow columns as blocks of parsed rows, in constant memory. Wiring opens them; the merge reads them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.feeds.parquet.arrow_columns import (
    Batch,
    is_one_of,
    row_cells,
    row_hashes,
    take_rows,
    text_bytes,
    truncate_texts,
)
from htfi.adapters.feeds.parquet.columnwise import ColumnwiseParser
from htfi.adapters.feeds.parquet.rows import ArrowRows, ParquetRows
from htfi.adapters.feeds.records import MAX_ROW_BYTES
from htfi.arrow.columns import null_mask
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Event, QuarantinedRow
from htfi.pipeline.intake.bar_spacing import BarSpacings, BarSurvey
from htfi.pipeline.intake.cells import show_row
from htfi.pipeline.intake.columns import ColumnLayout, recognise_layout, require_layout
from htfi.pipeline.intake.file_profile import (
    HEAD_ROWS,
    LONG_HEAD_ROWS,
    NUM_PROBES,
    PROBE_ROWS,
    profile_file,
    survey_rows,
)
from htfi.pipeline.intake.quarantine_reasons import MAX_RAW_CHARS, QuarantineReason
from htfi.pipeline.intake.reorder import SortedSpan, row_identity
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.source import ReadPosition, RowBlock
from htfi.pipeline.intake.spec import SourceSpec

_NEWS_ROWS = 1024  # long rows
_SAMPLED_ROWS = 65_536
_BLOCK_BYTES = 16_000_000


class ArrowReader:
    """Implements the port `RowReader` over Arrow columns. Marks are [rows before, rows of the source before]."""

    live = False

    def __init__(self, rows: ArrowRows, spec: SourceSpec, symbol: str, block_rows: int) -> None:
        self._rows = rows
        self._spec = spec
        self._block_rows = block_rows
        self.num_rows = rows.num_rows
        names = rows.names
        self._columns = names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            self.close()
            raise InvalidInput(f"{rows}: two columns are named '{twice}': rename one")
        likely = recognise_layout(names, spec)
        if likely is not None and likely.kind == "news":
            rows.hold_texts_once()
            self._block_rows = min(block_rows, _NEWS_ROWS, rows.rows_of(_BLOCK_BYTES))
        try:
            head = self._sample(HEAD_ROWS)
            self._layout: ColumnLayout = require_layout(names, spec, str(rows), head)
            findings = profile_file(spec, symbol, self._layout, head)
            if findings.may_be_stacked:
                head = self._sample(LONG_HEAD_ROWS)
                findings = profile_file(spec, symbol, self._layout, head, self._sample_rows_later(len(head)))
            clocks = self._measure_bar_intervals(RowParser(spec, symbol, self._layout))
        except BaseException:
            self.close()
            raise
        self.needs_sort = findings.stacked or findings.newest_first or clocks.mixed
        self._parser = RowParser(spec, symbol, self._layout, clocks)
        self._columnwise = ColumnwiseParser(self._parser, self._layout)
        if spec.duplicates == "keep":
            used = self._layout.columns
            self._columns = [name for name in names if name in used]
        self._batches: Iterator[Batch] = iter(())
        self._num_numbered = self._num_read = 0

    def start(self, mark: ReadPosition | None) -> None:
        self._num_numbered, self._num_read = (0, 0) if mark is None else (mark[0], mark[1])
        self._batches = self._batches_from(self._num_read, self._block_rows)

    def read(self) -> RowBlock | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        mark = [self._num_numbered, self._num_read]
        self._num_read += batch.num_rows
        batch = self._wanted(batch)
        block = self._parse(batch, mark)
        self._num_numbered += len(block.items)
        return block

    def progress(self) -> float | None:
        return self._num_read / self.num_rows if self.num_rows else 1.0

    def close(self) -> None:
        self._rows.close()

    def _batches_from(self, first_row: int, num_rows: int, fields: Sequence[str] = ()) -> Iterator[Batch]:
        """Batches of `num_rows` from a row on, of these fields where some are named."""
        columns = self._columns
        if fields:
            wanted = {self._layout.clock, *(self._layout.fields.get(name) for name in fields)}
            wanted |= {name for one in self._layout.made.values() for name in one.columns}
            columns = [name for name in columns if name in wanted]
        return self._rows.batches(first_row, num_rows, columns)

    def _sample(self, num_rows: int) -> list[dict[str, Any]]:
        rows_at_once = num_rows if self._block_rows >= _NEWS_ROWS else min(num_rows, self._block_rows)
        batch = next(self._batches_from(0, rows_at_once), None)
        return [] if batch is None else row_cells(truncate_texts(batch, MAX_ROW_BYTES, MAX_RAW_CHARS))

    def _sample_rows_later(self, after_row: int) -> Iterator[dict[str, Any]]:
        """A few rows from each of several places after the head; only the columns that a stack shows in."""
        stride = max((self.num_rows - after_row) // NUM_PROBES, PROBE_ROWS)
        for batch in self._batches_from(after_row, stride, ("ts", "available_at", "symbol", "series")):
            yield from row_cells(batch.slice(0, min(PROBE_ROWS, batch.num_rows)))

    def _measure_bar_intervals(self, parser: RowParser) -> BarSpacings:
        """How long the bars of each symbol are, by all of the file; of a damaged one, by what can be read."""
        survey = BarSurvey()
        if self._layout.kind == "bar":
            columnwise = ColumnwiseParser(parser, self._layout)
            with suppress(InvalidInput):  # raised again where the rows before the damage have been used
                for batch in self._batches_from(0, _SAMPLED_ROWS, ("ts", "symbol", "interval")):
                    if not columnwise.measure_bar_intervals(batch, survey):
                        survey_rows(parser, row_cells(batch), survey)
                    if survey.full:
                        break
        return survey.clocks()

    def _wanted(self, batch: Batch) -> Batch:
        """Rows of the symbols or series that the mapping asks for; a row without one stays, to be refused."""
        column = self._layout.fields.get("series" if self._layout.kind == "macro" else "symbol")
        if not self._spec.only or self._layout.kind == "news" or column in self._layout.made:
            return batch
        if column is None:
            return batch if self._parser.symbol in self._spec.only else batch.slice(0, 0)
        names = batch.column(column)
        kept = null_mask(names) | is_one_of(names, self._spec.only)
        return batch if kept.all() else take_rows(batch, np.flatnonzero(kept))

    def _parse(self, batch: Batch, mark: ReadPosition) -> RowBlock:
        num_rows = batch.num_rows
        long: dict[int, int] = {}  # bytes of the rows that are too long
        if batch.nbytes > MAX_ROW_BYTES:
            sizes = text_bytes(batch)
            places = np.flatnonzero(sizes > MAX_ROW_BYTES).tolist()
            if places:
                long = {place: int(sizes[place]) for place in places}
                batch = truncate_texts(batch, MAX_ROW_BYTES, MAX_RAW_CHARS)
        hashes = None if self._spec.duplicates == "keep" else row_hashes(batch).tolist()
        columnwise = self._columnwise.read(batch) if num_rows and not long else None
        if columnwise is None:
            items, hashes = self._row_by_row(batch, mark[0], hashes, long)
            return RowBlock(mark, items, _identities(items, hashes))
        clean, available_ns, build = columnwise
        if clean.all():
            events = build(slice(None), range(mark[0] + 1, mark[0] + num_rows + 1))
            return RowBlock(mark, events, _identities(events, hashes), _order(available_ns))
        items = self._parse_mixed(batch, mark[0], np.flatnonzero(clean), np.flatnonzero(~clean), build)
        return RowBlock(mark, items, _identities(items, hashes))

    def _parse_mixed(
        self, batch: Batch, num_before: int, clean: Any, doubted: Any, build: Any
    ) -> list[Event | QuarantinedRow]:
        items: list[Any] = [None] * batch.num_rows
        for place, event in zip(clean.tolist(), build(clean, (clean + num_before + 1).tolist()), strict=True):
            items[place] = event
        for place, row in zip(doubted.tolist(), row_cells(take_rows(batch, doubted)), strict=True):
            items[place] = self._parser.parse(row, num_before + place + 1)
        return items

    def _row_by_row(
        self, batch: Batch, num_before: int, hashes: list[int] | None, long: Mapping[int, int]
    ) -> tuple[list[Event | QuarantinedRow], list[int] | None]:
        items: list[Event | QuarantinedRow] = []
        kept: list[int] = []
        for place, row in enumerate(row_cells(batch)):
            number = num_before + len(items) + 1
            if place in long:
                detail = f"{long[place]} bytes of text: a row has at most {MAX_ROW_BYTES}"
                item = self._parser.reject(
                    number, QuarantineReason.TOO_LONG, detail, show_row(row)[:MAX_RAW_CHARS], long[place]
                )
            else:
                item = self._parser.parse(row, number)
            if item is not None:
                items.append(item)
                kept.append(place)
        return items, None if hashes is None else [hashes[place] for place in kept]


def _identities(items: list[Any], hashes: list[int] | None) -> list[Any] | None:
    if hashes is None:
        return None
    return [
        None if type(item) is QuarantinedRow else row_identity(item, content)
        for item, content in zip(items, hashes, strict=True)
    ]


def _order(available_ns: NDArray[np.int64]) -> SortedSpan | None:
    steps = np.diff(available_ns, prepend=available_ns[0])
    if steps.min() < 0:
        return None
    return SortedSpan(int(available_ns[0]), int(available_ns[-1]), int(steps.max()))


class ParquetReader(ArrowReader):
    """The reader of a Parquet file. Raises: InvalidInput, DependencyUnavailable."""

    def __init__(self, path: Path, spec: SourceSpec, symbol: str, block_rows: int) -> None:
        super().__init__(ParquetRows(path), spec, symbol, block_rows)
