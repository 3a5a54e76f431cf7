"""decisions.parquet: the journal as one typed table, for people who query; made when a run ends.

One row for each ledger entry. Quantile columns hold natural-log returns: `h5_q95` is the 95% quantile of the
return over the next 5 bars. A decision that policy kept back has its outcome, its reasons and no forecast.
"""

import os
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import pyarrow.parquet

from htfi.adapters.stores.decisions import JOURNAL, Released, Withheld, read_decisions, subject
from htfi.domain.decision import Outcome
from htfi.domain.errors import DependencyUnavailable

pa: Any = pyarrow  # ships no types
pq: Any = pyarrow.parquet

TABLE = "decisions.parquet"
_ROWS_PER_GROUP = 8192

_FACTS: list[tuple[str, Any]] = [
    ("index", pa.int64()),
    ("id", pa.string()),
    ("symbol", pa.string()),
    ("interval", pa.string()),
    ("as_of", pa.timestamp("ns", "UTC")),
    ("last_price", pa.float64()),
    ("regime", pa.string()),
    ("rung", pa.string()),
    ("outcome", pa.string()),
    ("reasons", pa.list_(pa.string())),
    ("rationale", pa.string()),
    ("leaf_hash", pa.string()),
]

Shape = tuple[tuple[int, ...], tuple[float, ...]]  # horizons, levels


class _Axes(msgspec.Struct):
    horizons: tuple[int, ...]
    levels: tuple[float, ...]


class _Shaped(msgspec.Struct):
    forecast: _Axes


class _Line(msgspec.Struct):
    decision: _Shaped | None = None


def write_parquet(folder: Path) -> Path:
    """Make decisions.parquet from the journal in constant memory; the old one stays until it is whole.

    Raises: DependencyUnavailable where the folder cannot be written, IntegrityError at a broken line.
    """
    target = folder / TABLE
    unfinished = folder / f".{TABLE}.tmp"
    names = _quantile_names(folder)
    schema = pa.schema([*_FACTS, *((name, pa.float64()) for name in names)])
    lines = read_decisions(folder)
    try:
        with pq.ParquetWriter(unfinished, schema, compression="zstd") as writer:
            while group := list(islice(lines, _ROWS_PER_GROUP)):
                # a column that a row lacks, such as a forecast that was kept back, becomes a null
                writer.write_table(pa.Table.from_pylist([_row(line) for line in group], schema=schema))
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise DependencyUnavailable(f"{target}: cannot be written: {error.strerror or error}") from error
    return target


def _quantile_names(folder: Path) -> list[str]:
    """Columns for every horizon and level that any decision has, in order."""
    decoder = msgspec.json.Decoder(_Line)
    shapes: set[Shape] = set()
    with (folder / JOURNAL).open("rb") as file:
        for line in file:
            if line.endswith(b"\n") and (decision := decoder.decode(line).decision) is not None:
                shapes.add((decision.forecast.horizons, decision.forecast.levels))
    cells = {(horizon, level) for horizons, levels in shapes for horizon in horizons for level in levels}
    return [_name(horizon, level) for horizon, level in sorted(cells)]


def _name(horizon: int, level: float) -> str:
    """'h1_q05' for the 5% quantile one bar ahead; 'h1_q99_5' for 99.5%."""
    whole, _, rest = f"{level * 100:.6g}".partition(".")
    return f"h{horizon}_q{whole:0>2}" + (f"_{rest}" if rest else "")


def _row(line: Released | Withheld) -> dict[str, Any]:
    about = subject(line)
    row: dict[str, Any] = {
        "index": line.index,
        "leaf_hash": line.leaf_hash,
        "id": about.id,
        "symbol": about.symbol,
        "interval": about.interval,
        "as_of": about.as_of_ns,
        "last_price": about.last_price,
        "regime": about.regime.value,
    }
    if isinstance(line, Withheld):
        return row | {"outcome": Outcome.WITHHOLD.value, "reasons": line.reasons}
    decision, forecast = line.decision, line.decision.forecast
    row |= {
        "rung": decision.plan.rung.value,
        "outcome": decision.verdict.outcome.value,
        "reasons": decision.verdict.reasons,
        "rationale": decision.rationale.text,
    }
    for horizon, quantiles in zip(forecast.horizons, forecast.quantiles, strict=True):
        for level, value in zip(forecast.levels, quantiles, strict=True):
            row[_name(horizon, level)] = value
    return row
