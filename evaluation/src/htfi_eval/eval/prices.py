"""Prices by the name of a staged set or by path; every evaluation reads them here.

Known flaws of the staged sets are corrected or left out: `Prices.notes` says how.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi import sample
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_MS, NS_PER_S, SystemClock, parse_duration, to_ns
from htfi.market.config import MarketConfig
from htfi.pipeline.intake.spec import SourceSpec
from htfi.wiring.feeds import open_feed, resolve
from htfi.wiring.in_memory_run import MemoryQuarantine
from htfi_eval.eval.adjusted_bars import adjust_bars
from htfi_eval.eval.price_grid import FIELDS, VOLUME, Fields, Instants, Prices, on_grid

_NEW_YORK = ZoneInfo("America/New_York")
_HELSINKI, _BERLIN = ZoneInfo("Europe/Helsinki"), ZoneInfo("Europe/Berlin")
_LAST_PRINT_DELAY_NS = (
    15 * 60 * 1_000_000_000
)  # the last prints of a session arrive within 15 minutes of its close
_LONGEST_PAUSE_DAYS = 45


def _us_equities(data: Path) -> Prices:
    rows = read_rows(data / "panels" / "us_equities_daily_2006_2017.parquet")
    return on_grid(
        "us_equities",
        rows["symbol"],
        *_sessions(rows["date"]),
        _fields(rows),
        (
            "us_equities: listed at the end of 2017 only (survivorship), without dividends; 218 daily moves above "
            "50% are unverified and kept; highs and lows of 0 count as missing",
        ),
    )


def _fx_daily(data: Path) -> Prices:
    rows = read_rows(data / "panels" / "fx_daily_2012_201910.parquet")
    ends_ns = _at(rows["date"], 17, 0)
    return on_grid(
        "fx_daily",
        rows["symbol"],
        ends_ns,
        ends_ns,
        _fields(rows),
        ("fx_daily: a day ends at 17:00 New York",),
    )


_SERVER_EAST = timedelta(hours=7)  # of New York's clock: the server clock that the staged conversion assumed
_PAIRS_MOVED = np.datetime64("2014-11-22")  # from then on the server of the pairs kept eastern European time


def _fx_hourly(data: Path) -> Prices:
    rows = read_rows(data / "panels" / "fx_hourly_2012_201910.parquet")
    hourly = rows["res"] == "h1"
    rows = {key: column[hourly] for key, column in rows.items()}
    starts_ns = _server_stamps(_stamps(rows["ts"]), rows["symbol"] == "XAUUSD")
    ends_ns = starts_ns + parse_duration("1h")
    notes = (
        "fx_hourly: EURUSD and EURCHF are left out: their bars are four hours long",
        "fx_hourly: staged stamps assume that the server kept New York's summer time; releases show that it kept "
        "Europe's, and that until 2014-11-22 the pairs' server (not gold's) was an hour further west: corrected",
    )
    return on_grid("fx_hourly", rows["symbol"], ends_ns, ends_ns, _fields(rows), notes, "1h")


def _server_stamps(staged_ns: Instants, is_gold: NDArray[np.bool_]) -> Instants:
    """The true instants of hourly stamps that were converted as if the server's clock were New York's plus 7 hours."""
    hours, place = np.unique(staged_ns, return_inverse=True)
    as_helsinki, as_berlin = np.empty_like(hours), np.empty_like(hours)
    for at, hour in enumerate(hours.tolist()):
        moment = datetime.fromtimestamp(hour // NS_PER_S, UTC).astimezone(_NEW_YORK)
        server = moment.replace(tzinfo=None) + _SERVER_EAST
        as_helsinki[at] = to_ns(server.replace(tzinfo=_HELSINKI))
        as_berlin[at] = to_ns(server.replace(tzinfo=_BERLIN))
    early = (hours < _PAIRS_MOVED.astype("datetime64[ns]").astype(np.int64))[place] & ~is_gold
    return np.where(early, as_berlin[place], as_helsinki[place])


def _vix(data: Path) -> Prices:
    rows = read_rows(data / "macro" / "macro_daily_monthly.parquet")
    columns = {key: rows["series"] == f"VIX_{key}" for key in FIELDS}
    close = columns["close"]
    dates = rows["date"][close]
    fields: Fields = {}
    for key, chosen in columns.items():
        known = dict(zip(rows["date"][chosen].tolist(), rows["value"][chosen].tolist(), strict=True))
        fields[key] = np.array([known.get(day, np.nan) for day in dates.tolist()], np.float64)
    note = "vix: the index itself, which cannot be traded; in its first years the open is the previous close"
    return on_grid("vix", np.full(len(dates), "VIX"), *_sessions(dates), fields, (note,))


_TICKER_REUSED_FROM = {"FB": "2012-05-18", "BNO": "2010-06-02", "USO": "2006-04-10", "WM": "2009-08-05"}
_ENDED = {"GOOG": "2014-04-02"}  # then another share class took the name
_EARLIER_NAMES = {"UW": "WM", "WMI": "WM"}  # one company, three tickers


def _etf(data: Path) -> Prices:
    """ETFs and large stocks 1998–2021, adjusted for splits and dividends by each day's factor up to the next event."""
    rows = read_rows(data / "panels" / "us_equity_etf_daily_lean.parquet")
    days = _stamps(rows["ts"]).astype("datetime64[ns]").astype("datetime64[D]")  # midnight New York
    factors = read_rows(data / "panels" / "us_equity_lean_factors.parquet")
    events = np.array(factors["date"], "datetime64[D]")
    product = factors["price_factor"] * factors["split_factor"]
    symbols = np.array([_EARLIER_NAMES.get(name, name) for name in rows["symbol"].tolist()])
    fields = _fields(rows)
    usable = np.zeros(len(days), np.bool_)
    for symbol in sorted(set(symbols.tolist())):
        mine = np.flatnonzero(symbols == symbol)
        own = factors["symbol"] == symbol
        if own.sum() == 0 or len(mine) < 250:
            continue
        if symbol in _TICKER_REUSED_FROM:
            others = np.isin(
                rows["symbol"][mine], [name for name, of in _EARLIER_NAMES.items() if of == symbol]
            )
            mine = mine[others | (days[mine] >= np.datetime64(_TICKER_REUSED_FROM[symbol]))]
        mine = mine[days[mine] <= np.datetime64(_ENDED.get(symbol, "2100-01-01"))]
        mine = mine[np.argsort(days[mine], kind="stable")]
        pauses = np.flatnonzero(np.diff(days[mine]).astype(int) > _LONGEST_PAUSE_DAYS)
        mine = mine[pauses[-1] + 1 :] if len(pauses) else mine
        place = np.minimum(np.searchsorted(events[own], days[mine]), int(own.sum()) - 1)
        for key in FIELDS:
            fields[key][mine] *= product[own][place]
        usable[mine] = True
    note = (
        "etf: splits and dividends by the vendor's factors; reused tickers start at their current "
        "listing, and series with a gap of months after the gap"
    )
    chosen = {key: column[usable] for key, column in fields.items()}
    return on_grid("etf", symbols[usable], *_sessions(days[usable].astype(object)), chosen, (note,))


SETS: dict[str, Callable[[Path], Prices]] = {
    "us_equities": _us_equities,
    "fx_daily": _fx_daily,
    "vix": _vix,
    "etf": _etf,
    "fx_hourly": _fx_hourly,
}


def read_rows(path: Path) -> dict[str, NDArray[Any]]:
    """The columns of a Parquet file by name. Raises: DependencyUnavailable."""
    try:
        table: Any = import_module("pyarrow.parquet").read_table(path)
    except OSError as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        raise DependencyUnavailable(f"{path} {why}: check the folder named by --data") from error
    return {name: table[name].to_numpy() for name in table.column_names}


def _fields(rows: dict[str, NDArray[Any]]) -> Fields:
    return {key: rows[key].astype(np.float64) for key in (*FIELDS, VOLUME) if key in rows}


def _sessions(dates: NDArray[Any]) -> tuple[Instants, Instants]:
    """Close of a New York session and when its bar is known."""
    ends_ns = _at(dates, 16, 0)
    return ends_ns, ends_ns + _LAST_PRINT_DELAY_NS


def _at(dates: NDArray[Any], hour: int, minute: int) -> Instants:
    """The instants of a New York time of day on dates."""
    days, place = np.unique(np.array(dates, "datetime64[D]"), return_inverse=True)
    moments = [
        to_ns(datetime(day.year, day.month, day.day, hour, minute, tzinfo=_NEW_YORK))
        for day in days.astype(object).tolist()
    ]
    return np.array(moments, np.int64)[place]


def _stamps(column: NDArray[Any]) -> Instants:
    return column.astype("datetime64[ms]").astype(np.int64) * NS_PER_MS


__all__ = ["NAMES", "STAGED", "Prices", "data_folder", "load_prices"]

STAGED = Path("../shared/data")
NAMES = tuple(SETS)


def data_folder(named: Path | None = None) -> Path | None:
    """The folder of staged data: `named`, or `../shared/data`; None if there is none."""
    folder = named or STAGED
    return folder if (folder / "panels").is_dir() else None


def load_prices(name: str | Path, data: Path | None = None, market: MarketConfig | None = None) -> Prices:
    """A staged panel by name (`NAMES`), 'sample' for the embedded one, or a file of bars by path.

    `data` is the staged folder, by default `../shared/data`; `market` renames and adjusts the series of a file.
    Raises: InvalidInput, DependencyUnavailable, MissingExtra: one line with what to do.
    """
    read = SETS.get(str(name))
    if read is not None:
        folder = data_folder(data)
        if folder is None:
            raise InvalidInput(
                f"no folder of staged data at {data or STAGED}: name it with --data, or give a file of bars"
            )
        return read(folder)
    if str(name) == "sample":
        return _sample()
    return _own_file(Path(name), market or MarketConfig())


def _sample() -> Prices:
    specs = [spec for spec in resolve([], sample.MAPPING) if spec.kind == "bar"]
    return _fed("sample", specs, MarketConfig())


def _own_file(path: Path, market: MarketConfig) -> Prices:
    specs = resolve([str(path)])
    if any(spec.live for spec in specs):
        raise InvalidInput(f"{path} is a live source; an evaluation needs a file")
    return _fed(path.name.split(".")[0], specs, market)


def _fed(name: str, specs: Sequence[SourceSpec], market: MarketConfig) -> Prices:
    """Bars of any file that a feed can read. Of several bar lengths, the one with most bars is taken."""
    tray = MemoryQuarantine()
    with TemporaryDirectory() as inbox:
        feed = open_feed(specs, inbox=Path(inbox), quarantine=tray, clock=SystemClock())
        try:
            bars = [item for item in feed if isinstance(item, Bar)]
        finally:
            feed.close()
    if not bars:
        raise InvalidInput(
            f"{name} has no bars: it needs a date, a symbol, and open, high, low and close or close alone"
        )
    lengths = Counter(bar.interval for bar in bars)
    interval = max(sorted(lengths), key=lengths.__getitem__)
    taken = [bar for bar in bars if bar.interval == interval]
    notes: list[str] = []
    num_taken = len(taken)
    taken, adjusted = adjust_bars(name, taken, market)
    if num_taken < len(bars):
        notes.append(f"{name}: {len(bars) - num_taken:,} bars of other lengths than {interval} are left out")
    if num_aside := sum(tray.counts().values()):
        notes.append(f"{name}: {num_aside:,} rows were unusable and left out")
    notes += adjusted
    fields = {key: np.array([getattr(bar, key) for bar in taken], np.float64) for key in (*FIELDS, VOLUME)}
    ends_ns = np.array([bar.end_ns for bar in taken], np.int64)
    available_ns = np.array([bar.available_at_ns for bar in taken], np.int64)
    symbols = np.array([bar.symbol for bar in taken])
    return on_grid(name, symbols, ends_ns, available_ns, fields, tuple(notes), interval)
