"""Opens what `htfi audit fairness` reads: runs, tables, client decisions; and the library that measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.adapters.fairlearn.metrics import FairlearnMetrics
from htfi.arrow.columns import INT, floats, one_chunk
from htfi.arrow.failures import DamagedFile
from htfi.arrow.table_files import read_csv_table, read_parquet_table
from htfi.domain.decision import Rung
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.forecasting.scores import crps
from htfi.governance.fairness.client_decisions import ClientAudit, ClientDecisions, audit_decisions
from htfi.governance.fairness.findings import NOT_REPORTED, Correction, adjust
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
from htfi.governance.fairness.proxies import ProxyFigure, proxy_figure
from htfi.narrative.facts.assets import AssetKind, asset_of
from htfi.wiring.authorisation import record_owner
from htfi.wiring.outputs import ReleasedLine, open_recorded

TENANT = "tenant"  # the attribute, and its column in a table of decisions
MAX_GROUPS = 200  # values of a protected column
MAX_NUMERIC_GROUPS = 10  # a column of numbers with more values is cut at its quartiles
_MAX_TABLE_BYTES = 1 << 30
_FAVOURABLE = ("1", "1.0", "true", "yes", "y", "approved", "approve")
_UNFAVOURABLE = ("0", "0.0", "false", "no", "n", "denied", "deny")


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column, and the value of it that is favourable; empty where its values say so themselves."""

    name: str
    favourable: str = ""

    @classmethod
    def parse(cls, text: str) -> "NamedColumn":
        """Of 'COL' or 'COL=VALUE'."""
        name, _, value = text.partition("=")
        return cls(name.strip(), value.strip())


@dataclass(frozen=True, slots=True)
class TableAudit:
    """The audit of one table. `num_set_aside` rows lack an outcome, a decision or a score."""

    origin: str
    num_rows: int
    num_set_aside: int
    correction: Correction
    metrics: str  # name and version of the libraries
    audit: ClientAudit
    proxies: list[ProxyFigure]


def audit_table(
    file: Path,
    protected: Sequence[str],
    decision: NamedColumn | None,
    outcome: NamedColumn | None,
    score: NamedColumn | None,
    correction: Correction,
) -> TableAudit:
    """Raises: InvalidInput, DependencyUnavailable, MissingExtra."""
    metrics = FairlearnMetrics()
    table = read_columns_of(file)
    if table.num_rows == 0:
        raise InvalidInput(f"{file}: has no rows")
    try:
        known = np.ones(table.num_rows, np.bool_)
        flags: list[NDArray[np.bool_] | None] = []
        for named in (decision, outcome):
            if named is None:
                flags.append(None)
                continue
            found, is_known = favourable_rows(column_of(table, named.name), named)
            flags.append(found)
            known &= is_known
        scores = None
        if score is not None:
            scores, is_known = _numbers(column_of(table, score.name), score.name)
            known &= is_known
            _check_score(scores[known], score.name)
        groups = {name: group_labels(column_of(table, name), name) for name in protected}
        if not known.any():
            raise InvalidInput("no row has all of the named columns filled")
        kept = ClientDecisions(
            {
                name: [one for one, inside in zip(labels, known.tolist(), strict=True) if inside]
                for name, labels in groups.items()
            },
            decision=None if flags[0] is None else flags[0][known],
            outcome=None if flags[1] is None else flags[1][known],
            score=None if scores is None else scores[known],
        )
        audit = audit_decisions(kept, metrics, correction)
        proxies = _client_proxies(kept, correction)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error
    return TableAudit(
        str(file), table.num_rows, int((~known).sum()), correction, metrics.version, audit, proxies
    )


def read_columns_of(file: Path) -> Any:
    """The table (arro3.core.Table) in a file of Parquet or CSV. Raises: InvalidInput, DependencyUnavailable."""
    try:
        if file.stat().st_size > _MAX_TABLE_BYTES:
            raise InvalidInput(f"{file} is larger than 1 GiB: cut it, or take a sample of its rows")
        if file.suffix.lower() in (".parquet", ".pq"):
            return read_parquet_table(file)
        if file.suffix.lower() in (".csv", ".tsv", ".txt"):
            head = file.read_text(encoding="utf-8-sig", errors="replace").partition("\n")[0]
            separator = max(",;\t", key=head.count)
            return read_csv_table(file, separator)
    except OSError as error:
        raise DependencyUnavailable(f"{file}: cannot be read: {error.strerror or error}") from error
    except DamagedFile as error:
        raise InvalidInput(f"{file}: is not a table: {error}") from error
    raise InvalidInput(f"{file}: its name must end in .parquet or .csv")


def column_of(table: Any, name: str) -> Any:
    """A column by its name. Raises: InvalidInput with the names that there are."""
    if name not in table.column_names:
        raise InvalidInput(
            f"there is no column '{name}': the columns are {', '.join(table.column_names[:40])}"
        )
    return table.column(name)


def favourable_rows(column: Any, named: NamedColumn) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows hold the favourable value, and which hold a value at all, [N] each. Raises: InvalidInput."""
    texts = [_text(value) for value in column.to_pylist()]
    known = np.array([text != "" for text in texts], np.bool_)
    values = sorted({text for text in texts if text})
    if len(values) > 2:
        raise InvalidInput(
            f"column '{named.name}' is not binary: it holds {len(values)} values "
            f"({', '.join(values[:4])}, …); name another column, or recode it"
        )
    favourable = _same_number(named.favourable, values)
    if not favourable:
        favourable = next((value for value in values if value.casefold() in _FAVOURABLE), "")
        opposite = [value for value in values if value != favourable]
        if not favourable and all(value.casefold() in _UNFAVOURABLE for value in opposite):
            favourable = "1"
        elif not favourable or any(value.casefold() not in _UNFAVOURABLE for value in opposite):
            raise InvalidInput(
                f"column '{named.name}' holds {' and '.join(values) or 'nothing'}: say which value is favourable, "
                f"as {named.name}={values[-1] if values else 'VALUE'}"
            )
    elif favourable not in values:
        raise InvalidInput(
            f"column '{named.name}' never holds {named.favourable}: it holds {' and '.join(values)}"
        )
    return np.array([text == favourable for text in texts], np.bool_), known


def group_labels(column: Any, name: str) -> list[str]:
    """The group of each row: the value, or the quarter of a column of many numbers. Raises: InvalidInput."""
    values = column.to_pylist()
    texts = [_text(value) for value in values]
    distinct = {text for text in texts if text}
    if not distinct:
        raise InvalidInput(f"column '{name}' is empty")
    is_numeric = all(isinstance(value, int | float) or value is None for value in values)
    if is_numeric and len(distinct) > MAX_NUMERIC_GROUPS:
        return _quarters(np.array([np.nan if value is None else float(value) for value in values]))
    if len(distinct) > MAX_GROUPS:
        raise InvalidInput(
            f"column '{name}' holds {len(distinct):,} different values: {MAX_GROUPS} groups at most are compared"
        )
    return [text or NOT_REPORTED for text in texts]


def _quarters(values: NDArray[np.float64]) -> list[str]:
    known = np.isfinite(values)
    edges = np.unique(np.quantile(values[known], [0.25, 0.5, 0.75]))
    names = [f"≤ {edges[0]:g}"]
    names += [f"{low:g} < … ≤ {high:g}" for low, high in pairwise(edges)]
    names.append(f"> {edges[-1]:g}")
    places = np.searchsorted(edges, np.where(known, values, 0.0), side="left")
    return [
        names[place] if is_known else NOT_REPORTED
        for place, is_known in zip(places.tolist(), known.tolist(), strict=True)
    ]


def _numbers(column: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    try:
        values = np.array(
            [np.nan if value is None else float(value) for value in column.to_pylist()], np.float64
        )
    except (TypeError, ValueError):
        raise InvalidInput(f"column '{name}' is not a column of numbers") from None
    return values, np.isfinite(values)


def _check_score(scores: NDArray[np.float64], name: str) -> None:
    if scores.size and (scores.min() < 0.0 or scores.max() > 1.0):
        raise InvalidInput(
            f"column '{name}' runs from {scores.min():g} to {scores.max():g}: a score must be the chance, 0 to 1, "
            "of a favourable outcome"
        )


def _text(value: Any) -> str:
    """A cell in words; nothing where it is empty or no number."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _same_number(text: str, values: Sequence[str]) -> str:
    """`text` as the column writes it: 1.0 is 1."""
    if text in values or not text:
        return text
    return next((value for value in values if value.casefold() == text.casefold()), text)


def _client_proxies(table: ClientDecisions, correction: Correction) -> list[ProxyFigure]:
    """How well decision and score predict each group."""
    columns = [
        np.asarray(column, np.float64) for column in (table.decision, table.score) if column is not None
    ]
    if not columns:
        return []
    units = [str(place) for place in range(len(columns[0]))]
    return _proxies(np.column_stack(columns), table.groups, dict.fromkeys(table.groups, units), correction)


def _proxies(
    columns: NDArray[np.float64],
    groups: Mapping[str, Sequence[str]],
    units: Mapping[str, Sequence[str]],
    correction: Correction,
) -> list[ProxyFigure]:
    found = [
        proxy_figure(attribute, group, columns, labels, units[attribute])
        for attribute, labels in groups.items()
        for group in _predicted(labels)
    ]
    adjusted = adjust([one.p for one in found], correction)
    return [replace(one, adjusted_p=p) for one, p in zip(found, adjusted, strict=True)]


def _predicted(labels: Sequence[str]) -> list[str]:
    """The groups to predict; of two, the rarer alone: the other is its opposite."""
    groups = sorted(set(labels) - {NOT_REPORTED})
    return groups if len(groups) != 2 else [min(groups, key=list(labels).count)]


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
    proxies = _proxies(columns, labels, units, correction)
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
        names = [_text(value) for value in column_of(table, "symbol").to_pylist()]
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
            np.nan, np.nan if rung is None else float(rung != Rung.TEMPLATE.value), _text(tenant),
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
