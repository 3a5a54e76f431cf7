"""decisions.parquet: the ledger's decisions as one typed table, for people who query; made when a run ends.

One row for each ledger entry. Quantile columns hold natural-log returns: `h5_q95` is the 95% quantile of the
return over the next 5 bars. A decision that policy kept back has its outcome, its reasons and no forecast.
`amends` is the id of the row that an amendment takes the place of: the same numbers with another view weighed into
them. Where forecasts are counted, one of the two is left out. A run that answered news between two bars has a column
`trigger`, 'news' in the rows of those decisions: their horizons end where those of the row on the bar before do.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import arro3.core
import msgspec
import numpy as np
from arro3.core import DataType, Field
from msgspec import UNSET

from htfi.adapters.stores.journal_check import ExpectedRows, LedgerEntries, RowDifferences, compare_rows
from htfi.arrow.columns import (
    FLOAT,
    INT,
    NAMES,
    TEXT,
    UTC_NS,
    Column,
    Kind,
    is_dictionary,
    number_column,
    plain,
    text_column,
)
from htfi.arrow.failures import DamagedFile
from htfi.arrow.parquet_file import Batch, ParquetFile, Schema
from htfi.arrow.streams import write_parquet as write_batches
from htfi.domain.content_marking import FIELD, marking_metadata
from htfi.domain.decision import PolicyOutcome, Receipt
from htfi.domain.errors import DependencyUnavailable, IntegrityError, UnreadableEntry
from htfi.domain.files import atomic_writer
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.pipeline.record.decoded_once import Decode
from htfi.pipeline.record.entry import entry_axes

arrow: Any = arro3.core  # whose types are not complete

TABLE = "decisions.parquet"
_ROWS_AT_ONCE = 256  # entries with all that was considered of their news, as Python has them: some 40 kB each
_ROWS_PER_GROUP = 16 * _ROWS_AT_ONCE  # as Arrow has them: less than 1 kB each
_TEXTS = DataType.list(Field("element", TEXT))

_OUTCOME_COLUMN, _REASONS_COLUMN = 9, 10  # of `_schema`


class _Columns(NamedTuple):
    """The columns that depend on what a run's entries hold: its horizons and levels; whether news triggered any."""

    cells: "list[QuantileKey]"
    has_triggers: bool


QuantileKey = tuple[int, float]  # horizon, level


def write_parquet(folder: Path, entries: LedgerEntries) -> Path:
    """Make decisions.parquet from the ledger in constant memory; the old one stays until it is whole.

    Raises: DependencyUnavailable where the folder cannot be written, UnreadableEntry.
    """
    target = folder / TABLE
    try:
        columns = _columns(entries)
        schema = _schema(columns)
        notes = {key.decode(): value.decode() for key, value in marking_metadata().items()}
        with atomic_writer(target) as file:
            batches = _batches(entries, columns, schema)
            write_batches(file, schema, batches, group_rows=_ROWS_PER_GROUP, notes=notes)
    except OSError as error:
        raise DependencyUnavailable(
            f"{target}: cannot be written: {error.strerror or error}; every decision is recorded, "
            "free some disk space and run the same command again"
        ) from error
    return target


def read_decisions(entries: LedgerEntries) -> Any:
    """The same table in memory, an arro3.core.Table. Raises: UnreadableEntry."""
    columns = _columns(entries)
    schema = _schema(columns)
    return arrow.Table.from_batches(list(_batches(entries, columns, schema)), schema=schema)


def check_parquet(folder: Path, entries: LedgerEntries) -> RowDifferences | None:
    """How the table differs from the ledger; None where there is none.

    Raises: DependencyUnavailable, UnreadableEntry, IntegrityError where it is not a table of decisions.
    """
    path = folder / TABLE
    try:
        if not path.exists():
            return None
        columns = _columns(entries)
        schema = _schema(columns)
        with ParquetFile(path) as file:
            if file.names != schema.names:
                raise IntegrityError(f"{path}: its columns are not those of the decisions")
            alike = all(
                _is_same(found, made)
                for found, made in zip(_read(file), _batches(entries, columns, schema), strict=False)
            )
            if alike and file.num_rows <= entries.size:
                return RowDifferences(num_rows=file.num_rows, num_accounted=file.num_rows)

            def row(index: int) -> tuple[Any, ...]:
                return next(_rows([_batch([entries.entry(index)], columns, schema, entries.decode)]))

            made = _rows(_batches(entries, columns, schema))
            return compare_rows(
                _rows(_read(file)), ExpectedRows(entries.size, made, row, lambda row: row[0], _always_false)
            )
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error
    except DamagedFile as error:
        raise IntegrityError(f"{path}: is not a table of decisions: {error}") from error


def is_marked(path: Path) -> bool:
    """Whether a table's schema says that it holds generated text."""
    try:
        with ParquetFile(path) as file:
            return FIELD in file.footer.notes
    except (OSError, DamagedFile):
        return False


def _always_false(_: tuple[Any, ...]) -> bool:
    return False


def _read(file: ParquetFile) -> Iterator[Batch]:
    """The file's rows as they are made, however it is cut itself."""
    return file.batches(0, _ROWS_AT_ONCE)


def _is_same(found: Batch, made: Batch) -> bool:
    """The same values: the same names may be numbered otherwise, and what a list holds be named otherwise."""
    return all(_plain(one) == _plain(other) for one, other in zip(found.columns, made.columns, strict=True))


def _plain(column: Column) -> Column:
    return column.cast(_TEXTS) if DataType.is_list(column.type) else plain(column)


def _rows(batches: Iterable[Batch]) -> Iterator[tuple[Any, ...]]:
    """Rows as Python has them; instants as nanoseconds, which Python's have no place for."""
    for batch in batches:
        columns = [
            column.cast(INT) if DataType.is_timestamp(column.type) else column for column in batch.columns
        ]
        yield from zip(*(column.to_pylist() for column in columns), strict=True)


def _batches(entries: LedgerEntries, columns: _Columns, schema: Schema) -> Iterator[Batch]:
    found = entries.entries()
    while group := list(islice(found, _ROWS_AT_ONCE)):
        yield _batch(group, columns, schema, entries.decode)


def _columns(entries: LedgerEntries) -> _Columns:
    """Every horizon and level that any decision has, in order, and whether any was made because of news."""
    axes: set[tuple[tuple[int, ...], tuple[float, ...]]] = set()
    has_triggers = False
    for receipt, entry in entries.entries():
        if is_tombstone(entry):
            continue
        try:
            found = entry_axes(entry)
        except msgspec.DecodeError as error:
            raise UnreadableEntry(receipt.index, error) from error
        axes.add((found.horizons, found.levels))
        has_triggers |= found.is_triggered
    cells = {(horizon, level) for horizons, levels in axes for horizon in horizons for level in levels}
    return _Columns(sorted(cells), has_triggers)


def _schema(columns: _Columns) -> Schema:
    kinds = {
        "index": INT,
        "leaf_hash": TEXT,
        "id": TEXT,
        "symbol": NAMES,
        "interval": NAMES,
        "as_of": UTC_NS,
        "last_price": FLOAT,
        "regime": NAMES,
        "rung": NAMES,
        "outcome": NAMES,
        "reasons": _TEXTS,
        "rationale": TEXT,
        "amends": TEXT,
        **({"trigger": NAMES} if columns.has_triggers else {}),
        **{_column_name(cell): FLOAT for cell in columns.cells},
    }
    fields = [Field(name, kind, nullable=True) for name, kind in kinds.items()]
    return arrow.Schema(fields, metadata=marking_metadata())


def _column_name(cell: QuantileKey) -> str:
    """'h1_q05' for the 5% quantile one bar ahead; 'h1_q99_5' for 99.5%."""
    whole, _, rest = f"{cell[1] * 100:.6g}".partition(".")
    return f"h{cell[0]}_q{whole:0>2}" + (f"_{rest}" if rest else "")


def _batch(group: list[tuple[Receipt, bytes]], columns: _Columns, schema: Schema, decode: Decode) -> Batch:
    cells = columns.cells
    place = {cell: k for k, cell in enumerate(cells)}
    quantiles = np.full((len(cells), len(group)), np.nan)
    facts: list[tuple[Any, ...]] = []
    for n, (receipt, entry) in enumerate(group):
        if is_tombstone(entry):
            facts.append(_deleted_row(receipt, len(schema) - len(cells)))
            continue
        try:
            decision = decode(receipt, entry)
        except msgspec.DecodeError as error:
            raise UnreadableEntry(receipt.index, error) from error
        is_withheld = decision.verdict.outcome is PolicyOutcome.WITHHOLD
        if not is_withheld:
            forecast = decision.forecast
            for horizon, row in zip(forecast.horizons, forecast.quantiles, strict=True):
                for level, value in zip(forecast.levels, row, strict=True):
                    quantiles[place[horizon, level], n] = value
        facts.append(
            (
                receipt.index,
                receipt.leaf_hash,
                decision.id,
                decision.symbol,
                decision.interval,
                decision.as_of_ns,
                decision.last_price,
                decision.regime.value,
                None if is_withheld else decision.plan.rung.value,
                decision.verdict.outcome.value,
                decision.verdict.reasons,
                None if is_withheld else decision.rationale.text,
                decision.amends or None,
                *(
                    [None if decision.trigger is UNSET else decision.trigger.value]
                    if columns.has_triggers
                    else []
                ),
            )
        )
    values: list[Any] = [*zip(*facts, strict=True), *quantiles]
    arrays = [column_array(column, kind) for column, kind in zip(values, schema.types, strict=True)]
    return arrow.RecordBatch.from_arrays(arrays, schema=schema)


def _deleted_row(receipt: Receipt, num: int) -> tuple[Any, ...]:
    """The row of an entry whose retention has ended: its place, its leaf hash, and the outcome 'deleted'."""
    row: list[Any] = [receipt.index, receipt.leaf_hash, *[None] * (num - 2)]
    row[_OUTCOME_COLUMN], row[_REASONS_COLUMN] = "deleted", []
    return tuple(row)


def column_array(values: Sequence[Any], kind: Kind) -> Column:
    """An array of one column; None, and a NaN, are values that are not there."""
    if is_dictionary(kind):
        return text_column(values).cast(kind)
    if DataType.is_list(kind):
        ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
        return arrow.list_array(ends, text_column([text for texts in values for text in texts]), type=kind)
    if DataType.is_string(kind):
        return text_column(values)
    if DataType.is_floating(kind):
        numbers = np.array(values, np.float64)  # NaN for None
        return number_column(numbers, np.isnan(numbers))
    return arrow.Array(list(values), INT).cast(kind)
