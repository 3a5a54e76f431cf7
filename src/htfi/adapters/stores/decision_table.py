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

import msgspec
import numpy as np
import pyarrow
import pyarrow.parquet
from msgspec import UNSET
from numpy.typing import NDArray

from htfi.adapters.stores.journal_check import ExpectedRows, LedgerEntries, RowDifferences, compare_rows
from htfi.domain.content_marking import FIELD, marking_metadata
from htfi.domain.decision import PolicyOutcome, Receipt
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.files import atomic_writer
from htfi.governance.ledger.tombstones import is_tombstone
from htfi.pipeline.record.entry import decode_entry, entry_axes

pa: Any = pyarrow  # ships no types
pq: Any = pyarrow.parquet

TABLE = "decisions.parquet"
_ROWS_PER_GROUP = (
    256  # entries with all that was considered of their news, as Python has them: some 40 kB each
)

_OUTCOME_COLUMN, _REASONS_COLUMN = 9, 10  # of `_schema`


class _Columns(NamedTuple):
    """The columns that depend on what a run's entries hold: its horizons and levels; whether news triggered any."""

    cells: "list[QuantileKey]"
    has_triggers: bool


QuantileKey = tuple[int, float]  # horizon, level


def write_parquet(folder: Path, entries: LedgerEntries) -> Path:
    """Make decisions.parquet from the ledger in constant memory; the old one stays until it is whole.

    Raises: DependencyUnavailable where the folder cannot be written, IntegrityError where an entry is not a decision.
    """
    target = folder / TABLE
    try:
        columns = _columns(entries)
        schema = _schema(columns)
        with atomic_writer(target) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for table in _tables(entries, columns, schema):
                writer.write_table(table)
    except OSError as error:
        raise DependencyUnavailable(
            f"{target}: cannot be written: {error.strerror or error}; every decision is recorded, "
            "free some disk space and run the same command again"
        ) from error
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{target}: an entry is not a decision: {error}") from error
    return target


def read_decisions(entries: LedgerEntries) -> Any:
    """The same table in memory. Raises: IntegrityError where an entry is not a decision."""
    try:
        columns = _columns(entries)
        schema = _schema(columns)
        return pa.concat_tables([schema.empty_table(), *_tables(entries, columns, schema)])
    except msgspec.DecodeError as error:
        raise IntegrityError(f"an entry is not a decision: {error}") from error


def check_parquet(folder: Path, entries: LedgerEntries) -> RowDifferences | None:
    """How the table differs from the ledger; None where there is none.

    Raises: DependencyUnavailable, IntegrityError where it is not a table of decisions.
    """
    path = folder / TABLE
    try:
        if not path.exists():
            return None
        file = pq.ParquetFile(path)
        columns = _columns(entries)
        schema = _schema(columns)
        if file.schema_arrow.names != schema.names:
            raise IntegrityError(f"{path}: its columns are not those of the decisions")
        alike = all(
            found.equals(made) or _plain(found).equals(_plain(made))
            for found, made in zip(_read(file), _tables(entries, columns, schema), strict=False)
        )
        if alike and file.metadata.num_rows <= entries.size:
            return RowDifferences(num_rows=file.metadata.num_rows, num_accounted=file.metadata.num_rows)

        def row(index: int) -> tuple[Any, ...]:
            return next(_rows([_table([entries.entry(index)], columns, schema)]))

        made = _rows(_tables(entries, columns, schema))
        return compare_rows(
            _rows(_read(file)), ExpectedRows(entries.size, made, row, lambda row: row[0], _always_false)
        )
    except OSError as error:
        raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror or error}") from error
    except (pa.ArrowException, msgspec.DecodeError) as error:
        raise IntegrityError(f"{path}: is not a table of decisions: {error}") from error


def is_marked(path: Path) -> bool:
    """Whether a table's schema says that it holds generated text."""
    try:
        return FIELD.encode() in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException):
        return False


def _always_false(_: tuple[Any, ...]) -> bool:
    return False


def _read(file: Any) -> Iterator[Any]:
    """The file's rows in groups as they are made, however it is cut itself."""
    for batch in file.iter_batches(batch_size=_ROWS_PER_GROUP):
        yield pa.Table.from_batches([batch])


def _plain(table: Any) -> Any:
    """Without dictionaries: the same names may be numbered otherwise."""
    columns = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _rows(tables: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    for table in tables:
        for row in table.to_pylist():
            yield tuple(row.values())


def _tables(entries: LedgerEntries, columns: _Columns, schema: Any) -> Iterator[Any]:
    found = entries.entries()
    while group := list(islice(found, _ROWS_PER_GROUP)):
        yield _table(group, columns, schema)


def _columns(entries: LedgerEntries) -> _Columns:
    """Every horizon and level that any decision has, in order, and whether any was made because of news."""
    axes: set[tuple[tuple[int, ...], tuple[float, ...]]] = set()
    has_triggers = False
    for _, entry in entries.entries():
        if is_tombstone(entry):
            continue
        found = entry_axes(entry)
        axes.add((found.horizons, found.levels))
        has_triggers |= found.is_triggered
    cells = {(horizon, level) for horizons, levels in axes for horizon in horizons for level in levels}
    return _Columns(sorted(cells), has_triggers)


def _schema(columns: _Columns) -> Any:
    text = pa.string()
    names = pa.dictionary(pa.int32(), text)
    return pa.schema(
        [
            ("index", pa.int64()),
            ("leaf_hash", text),
            ("id", text),
            ("symbol", names),
            ("interval", names),
            ("as_of", pa.timestamp("ns", "UTC")),
            ("last_price", pa.float64()),
            ("regime", names),
            ("rung", names),
            ("outcome", names),
            ("reasons", pa.list_(text)),
            ("rationale", text),
            ("amends", text),
            *([("trigger", names)] if columns.has_triggers else []),
            *((_column_name(cell), pa.float64()) for cell in columns.cells),
        ],
        metadata=marking_metadata(),
    )


def _column_name(cell: QuantileKey) -> str:
    """'h1_q05' for the 5% quantile one bar ahead; 'h1_q99_5' for 99.5%."""
    whole, _, rest = f"{cell[1] * 100:.6g}".partition(".")
    return f"h{cell[0]}_q{whole:0>2}" + (f"_{rest}" if rest else "")


def _table(group: list[tuple[Receipt, bytes]], columns: _Columns, schema: Any) -> Any:
    cells = columns.cells
    place = {cell: k for k, cell in enumerate(cells)}
    quantiles = np.full((len(cells), len(group)), np.nan)
    facts: list[tuple[Any, ...]] = []
    for n, (receipt, entry) in enumerate(group):
        if is_tombstone(entry):
            facts.append(_deleted_row(receipt, len(schema) - len(cells)))
            continue
        decision = decode_entry(entry, with_experts=False)
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
    arrays = [column_array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _deleted_row(receipt: Receipt, num: int) -> tuple[Any, ...]:
    """The row of an entry whose retention has ended: its place, its leaf hash, and the outcome 'deleted'."""
    row: list[Any] = [receipt.index, receipt.leaf_hash, *[None] * (num - 2)]
    row[_OUTCOME_COLUMN], row[_REASONS_COLUMN] = "deleted", []
    return tuple(row)


def column_array(values: Sequence[Any], kind: Any) -> Any:
    """An array of one column; None, and a NaN, are values that are not there.

    Of buffers: `pyarrow.array` imports pandas where that is installed, which takes longer than a short run.
    """
    if pa.types.is_dictionary(kind):
        spelled = [name for name in dict.fromkeys(values) if name is not None]
        names = {name: place for place, name in enumerate(spelled)}
        places = np.array([names.get(name, 0) for name in values], np.int32)
        known = np.array([name is not None for name in values])
        codes = pa.Array.from_buffers(pa.int32(), len(values), [_validity(known), pa.py_buffer(places)])
        return pa.DictionaryArray.from_arrays(codes, _texts(spelled))
    if pa.types.is_list(kind):
        starts = np.cumsum([0, *map(len, values)], dtype=np.int32)
        offsets = pa.Array.from_buffers(pa.int32(), len(starts), [None, pa.py_buffer(starts)])
        return pa.ListArray.from_arrays(offsets, _texts([text for texts in values for text in texts]))
    if pa.types.is_string(kind):
        return _texts(values)
    dtype = np.float64 if pa.types.is_floating(kind) else np.int64
    if not isinstance(values, np.ndarray) and None in values:
        known = np.array([value is not None for value in values])
        filled = np.array([0 if value is None else value for value in values], dtype)
        return pa.Array.from_buffers(kind, len(values), [_validity(known), pa.py_buffer(filled)])
    numbers = np.array(values, dtype)
    return pa.Array.from_buffers(kind, len(values), [_validity(numbers == numbers), pa.py_buffer(numbers)])


def _texts(values: Sequence[str | None]) -> Any:
    encoded = [b"" if text is None else text.encode() for text in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    known = np.array([text is not None for text in values], np.bool_)
    buffers = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)), _validity(known)
    return pa.StringArray.from_buffers(len(values), *buffers)


def _validity(known: NDArray[np.bool_]) -> Any:
    """The bits of the values that are there; None where all are."""
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
