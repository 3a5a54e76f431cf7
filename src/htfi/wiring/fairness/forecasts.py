"""Audits the forecasts of runs by groups of their symbols and by tenant."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.arrow.columns import INT, floats, one_chunk
from htfi.domain.decision import Rung
from htfi.domain.errors import InvalidInput
from htfi.forecasting.scores import crps
from htfi.governance.fairness.findings import NOT_REPORTED, Correction
from htfi.governance.fairness.forecasts import (
    COVERAGE,
    ERROR,
    MODEL_READ,
    WAITING,
    WIDTH,
    WITHHELD,
    ForecastAudit,
    ScoredForecasts,
    audit_forecasts,
)
from htfi.governance.fairness.proxies import ProxyFigure
from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.wiring.authorisation import record_owner
from htfi.wiring.fairness.columns import cell_text, column_of, group_labels, read_columns_of
from htfi.wiring.fairness.proxies import proxies_of
from htfi.wiring.outputs import ReleasedLine, open_recorded

TENANT = "tenant"  # the attribute, and its column in a table of decisions


@dataclass(frozen=True, slots=True)
class RunAudit:
    """The audit of the forecasts of runs one bar ahead; `groups` gives the group of each symbol by each attribute of
    symbols.
    """

    origin: str
    num_forecasts: int
    num_symbols: int
    correction: Correction
    groups: dict[str, dict[str, str]]
    audit: ForecastAudit
    proxies: list[ProxyFigure]

    @property
    def coverage_gap(self) -> float:
        return self.audit.coverage_gap


@dataclass(slots=True)
class _Forecast:
    """One forecast on a bar, before its outcome."""

    symbol: str
    series: str
    at_ns: int
    last_price: float
    quantiles: NDArray[np.float64] | None  # [Q], None where it was withheld
    waiting_ms: float
    is_model_read: float
    tenant: str = ""  # whose record it is of

    @property
    def unit(self) -> str:
        """What counts once: a company for a tenant."""
        return f"{self.tenant}\0{self.symbol}"


def audit_runs(
    sources: Sequence[Path], groups_file: Path | None, protected: Sequence[str], correction: Correction
) -> RunAudit:
    """Of runs' folders, or their decisions.parquet. Forecasts are compared by groups of their symbols, and by tenant.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    made, levels = _of_all(sources)
    named = ", ".join(map(str, sources))
    scored, columns, kept = _scored(made, levels)
    symbols = sorted({one.symbol for one in made})
    groups = symbol_groups(symbols, groups_file)
    labels = {
        name: [of.get(made[place].symbol, NOT_REPORTED) for place in kept] for name, of in groups.items()
    }
    units = {name: [made[place].symbol for place in kept] for name in groups}
    if TENANT not in labels:
        labels[TENANT] = [made[place].tenant or NOT_REPORTED for place in kept]
        units[TENANT] = [made[place].unit for place in kept]
    for name in protected:
        if name not in labels:
            raise InvalidInput(
                f"there is no attribute '{name}': there are {', '.join(labels)}; --groups FILE adds columns"
            )
    labels = {
        name: of
        for name, of in labels.items()
        if (not protected or name in protected) and len(set(of) - {NOT_REPORTED}) > 1
    }
    if not labels:
        raise InvalidInput(
            f"{named}: no attribute has two groups among {len(symbols)} symbol(s): give --groups FILE with a column "
            "symbol and others, such as size and sector, or the runs of several tenants"
        )
    try:
        audit = audit_forecasts(scored, labels, correction)
    except InvalidInput as error:
        raise InvalidInput(f"{named}: {error}") from error
    proxies = proxies_of(columns, labels, units, correction)
    groups = {name: of for name, of in groups.items() if name in labels}
    return RunAudit(named, len(kept), len(symbols), correction, groups, audit, proxies)


def _of_all(sources: Sequence[Path]) -> tuple[list[_Forecast], NDArray[np.float64]]:
    """The forecasts of all sources, those of each together. Raises: InvalidInput."""
    made: list[_Forecast] = []
    levels = np.empty(0)
    for number, source in enumerate(sources):
        found, own_levels = _of_folder(source) if source.is_dir() else _of_table(source)
        if not found:
            raise InvalidInput(f"{source}: holds no forecast on a bar")
        if levels.size and own_levels.size and not np.array_equal(levels, own_levels):
            raise InvalidInput(f"{source}: has other quantiles than {sources[0]}: audit them apart")
        levels = own_levels if own_levels.size else levels
        for one in found:
            one.series = f"{number}\0{one.tenant}\0{one.series}"
        made += found
    return made, levels


def symbol_groups(symbols: Sequence[str], file: Path | None) -> dict[str, dict[str, str]]:
    """Each attribute's group of each symbol: those of a table of symbols, and what the symbols themselves tell.

    Raises: InvalidInput, DependencyUnavailable.
    """
    assets = {symbol: asset_of(symbol) for symbol in symbols}
    found: dict[str, dict[str, str]] = {
        "asset class": {symbol: asset.kind.value for symbol, asset in assets.items()},
        "country": {symbol: asset.region or NOT_REPORTED for symbol, asset in assets.items()},
        "exchange": {
            symbol: symbol.rpartition(".")[2] if "." in symbol.strip(".") else NOT_REPORTED
            for symbol, asset in assets.items()
            if asset.kind is AssetKind.EQUITY
        },
    }
    if file is None:
        return found
    table = read_columns_of(file)
    try:
        names = [cell_text(value) for value in column_of(table, "symbol").to_pylist()]
        if len(set(names)) != len(names):
            raise InvalidInput("a symbol stands in more than one row")
        for column in table.column_names:
            if column != "symbol":
                labels = group_labels(table.column(column), column)
                found[column] = dict(zip(names, labels, strict=True))
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error
    return found


def _of_folder(folder: Path) -> tuple[list[_Forecast], NDArray[np.float64]]:
    """The forecasts on bars, in the ledger's order, without amendments."""
    found: list[_Forecast] = []
    remaining: list[tuple[str, float]] = []
    levels, tenant = np.empty(0), record_owner(folder).tenant
    with open_recorded(folder) as recorded:
        for line in recorded.lines():
            if line_is_apart(line):
                continue
            if not isinstance(line, ReleasedLine):
                found.append(
                    _Forecast(
                        line.symbol, f"{line.symbol}/{line.interval}", line.as_of_ns, line.last_price, None,
                        np.nan, np.nan,
                    )
                )  # fmt: skip
                remaining.append(("", np.nan))
                continue
            decision = line.decision
            levels = np.array(decision.forecast.levels)
            context = decision.news_context
            budget = None if context is None else context.reading_budget
            remaining.append((decision.settings_digest, np.nan if budget is None else budget.remaining_ms))
            found.append(
                _Forecast(
                    decision.symbol,
                    decision.series,
                    decision.as_of_ns,
                    decision.last_price,
                    np.array(decision.forecast.quantiles[0]),
                    np.nan,
                    np.nan if context is None else float(decision.plan.rung is not Rung.TEMPLATE),
                )
            )
    for one, waiting_ms in zip(found, waiting_times(remaining), strict=True):
        one.waiting_ms, one.tenant = waiting_ms, tenant
    return found, levels


def waiting_times(remaining: Sequence[tuple[str, float]]) -> list[float]:
    """How long each reading waited for its turn, in ms, from the digest of its settings and the time that remained.

    The first reading of an instant has the whole deadline of its settings, which the record does not state otherwise;
    a reading's own deadline is shorter where more of them waited.
    """
    whole: dict[str, float] = {}
    for settings, left_ms in remaining:
        if np.isfinite(left_ms):
            whole[settings] = max(whole.get(settings, left_ms), left_ms)
    return [whole.get(settings, np.nan) - left_ms for settings, left_ms in remaining]


def line_is_apart(line: Any) -> bool:
    """Whether a line is an amendment or a decision between two bars."""
    name = line.decision.id if isinstance(line, ReleasedLine) else line.id
    return name.endswith(("/amended", "/news"))


def _of_table(file: Path) -> tuple[list[_Forecast], NDArray[np.float64]]:
    """The same of decisions.parquet, which does not tell how long a reading waited."""
    table = read_columns_of(file)
    columns = [name for name in table.column_names if name.startswith("h1_q")]
    if not columns:
        raise InvalidInput(
            f"{file}: is no decisions.parquet, as it has no quantiles of one bar ahead (columns h1_q…); of client "
            "decisions name --decision, --outcome or --score"
        )
    try:
        for name in ("id", "symbol", "interval", "as_of", "last_price", "rung"):
            column_of(table, name)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error
    levels = np.array([float(name[4:].replace("_", ".")) / 100.0 for name in columns])
    stamps = table.column("as_of").cast(INT).to_pylist()
    quantiles = np.column_stack([floats(one_chunk(table.column(name))) for name in columns])
    names = ("id", "symbol", "interval", "last_price", "rung")
    has_tenants = TENANT in table.column_names
    tenants = table.column(TENANT).to_pylist() if has_tenants else [""] * table.num_rows
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return [
        _Forecast(
            symbol, f"{symbol}/{interval}", at_ns, price,
            row if np.isfinite(row).all() else None,
            np.nan, np.nan if rung is None else float(rung != Rung.TEMPLATE.value), cell_text(tenant),
        )
        for (name, symbol, interval, price, rung), at_ns, row, tenant in zip(
            rows, stamps, quantiles, tenants, strict=True
        )
        if not name.endswith(("/amended", "/news"))
    ], levels  # fmt: skip


def _scored(
    made: Sequence[_Forecast], levels: NDArray[np.float64]
) -> tuple[ScoredForecasts, NDArray[np.float64], list[int]]:
    """The forecasts whose next bar is known, with their measures; what decisions show [N, 4]; and their places."""
    outcomes = np.full(len(made), np.nan)
    newest: dict[str, int] = {}
    for place, one in enumerate(made):
        before = newest.get(one.series)
        if before is not None and one.last_price > 0.0 and made[before].last_price > 0.0:
            outcomes[before] = np.log(one.last_price / made[before].last_price)
        newest[one.series] = place
    kept = [place for place in range(len(made)) if np.isfinite(outcomes[place])]
    usual: dict[str, float] = {}
    for series in {made[place].series for place in kept}:
        usual[series] = float(
            np.mean([abs(outcomes[place]) for place in kept if made[place].series == series])
        )
    order = {at_ns: place for place, at_ns in enumerate(sorted({made[place].at_ns for place in kept}))}
    values = {
        name: np.full(len(kept), np.nan) for name in (COVERAGE, WIDTH, ERROR, WAITING, MODEL_READ, WITHHELD)
    }
    columns = np.full((len(kept), 4), np.nan)
    for row, place in enumerate(kept):
        one, scale = made[place], usual[made[place].series]
        values[WAITING][row], values[MODEL_READ][row] = one.waiting_ms, one.is_model_read
        values[WITHHELD][row] = float(one.quantiles is None)
        if one.quantiles is None or not scale > 0.0:
            continue
        low, median, high = (float(end) for end in np.interp([0.05, 0.5, 0.95], levels, one.quantiles))
        values[COVERAGE][row] = float(low <= outcomes[place] <= high)
        values[WIDTH][row] = (high - low) / scale
        values[ERROR][row] = float(crps(one.quantiles, outcomes[place : place + 1][0], levels)) / scale
        model = one.is_model_read if np.isfinite(one.is_model_read) else 0.0
        columns[row] = median / scale, (high - low) / scale, (high + low - 2 * median) / scale, model
    instants = np.array([order[made[place].at_ns] for place in kept], np.int64)
    return ScoredForecasts([made[place].symbol for place in kept], instants, values), columns, kept
