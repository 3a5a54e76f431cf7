"""The staged calendars as scheduled events, and which bars hold one.

Left out, as their README says: lines that were added years later with forecasts filled in, and `previous`, which holds
the revision published with the figure. Lines without an exact time stay, marked as such. `impact` is the vendor's label
of today, not of the time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from htfi.calendar.recognition import event_kind
from htfi.domain.errors import MissingExtra
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, parse_duration
from htfi.forecasting.known_variance.event_table import CLOSED, HALF_DAY
from htfi.forecasting.known_variance.relations import HOME
from htfi.wiring.calendar import open_calendar
from htfi_eval.eval.prices import Prices, read_rows

Instants = NDArray[np.int64]
Mask = NDArray[np.bool_]

FIRST_VENDOR = "calendar/ff_merged_2007_201910.parquet"
EARNINGS = "calendar/earnings_us_2012_2017.parquet"
SECOND_VENDOR = "calendar/dailyfx_200910_201810.parquet"

_Impact = Literal["", "low", "medium", "high"]
_FILLED_IN_LATER = ("epsoft", np.datetime64("2007-01-07"))
_CURRENCY = 3


def staged_events(data: Path, file: str = FIRST_VENDOR) -> list[ScheduledEvent]:
    """One vendor's calendar in order of time. Raises: DependencyUnavailable."""
    rows = read_rows(data / file)
    days = rows["published_at"].astype("datetime64[ms]")
    source, late = _FILLED_IN_LATER
    later = np.array([str(name).endswith(source) for name in rows["source"].tolist()]) & (days > late)
    times_ns = days.astype(np.int64) * NS_PER_MS
    fields = [rows[key].tolist() for key in ("event", "currency", "impact", "time_exact")]
    figures = [rows[f"{key}_num"].astype(np.float64).tolist() for key in ("actual", "forecast")]
    events: list[ScheduledEvent] = []
    for place in np.flatnonzero(~later).tolist():
        name, currency, impact, exact = (column[place] for column in fields)
        actual, forecast = (_figure(column[place]) for column in figures)
        events.append(
            ScheduledEvent(
                time_ns=int(times_ns[place]),
                kind=event_kind(str(name), str(currency or ""), time_ns=int(times_ns[place])),
                name=str(name),
                currency=str(currency or ""),
                impact=_impact(impact),
                is_exact=bool(exact),
                actual=actual,
                forecast=forecast,
            )
        )
    return sorted(events, key=lambda event: event.time_ns)


def recognised_share(events: Sequence[ScheduledEvent]) -> tuple[float, int]:
    """The share of high-impact lines whose kind is known, and how many there are."""
    high = [event for event in events if event.impact == "high"]
    return sum(bool(event.kind) for event in high) / max(len(high), 1), len(high)


def own_currencies(symbol: str) -> tuple[str, ...]:
    """The currencies of a pair such as EURUSD or XAUUSD; none of a symbol that is not one."""
    if len(symbol) != 2 * _CURRENCY or not symbol.isalpha():
        return ()
    return symbol[:_CURRENCY], symbol[_CURRENCY:]


def earnings_events(data: Path) -> list[ScheduledEvent]:
    """Companies' results 2012-07 to 2017, at their usual times after the close or before the open."""
    rows = read_rows(data / EARNINGS)
    times_ns = rows["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    return [
        ScheduledEvent(time_ns=time_ns, kind="earnings", name="earnings", symbol=str(symbol), impact="high")
        for time_ns, symbol in zip(times_ns.tolist(), rows["symbol"].tolist(), strict=True)
    ]


def with_staged_calendar(prices: Prices, data: Path) -> Prices:
    """The prices with the calendar that a desk would have for them, and a note of it: staged releases where a series
    is a pair of currencies, results of the companies, and the days off of the New York exchange.

    Days of results are those on which they came: a desk knows most of them some weeks before, not all.
    Raises: DependencyUnavailable.
    """
    symbols = {symbol.upper() for symbol in prices.symbols}
    pairs = any(own_currencies(symbol) for symbol in prices.symbols)
    releases = staged_events(data) if pairs else []
    results = [event for event in earnings_events(data) if event.symbol.upper() in symbols]
    days = [] if pairs else _days_off(prices)
    num = len({event.symbol for event in results})
    parts = [
        (f"{len(releases):,} releases and decisions", len(releases)),
        (f"{len(results):,} results of {num:,} companies", len(results)),
        (f"{len(days):,} days off and half days of the New York exchange", len(days)),
    ]
    told = " and ".join(text for text, there in parts if there) or "nothing"
    note = f"{prices.name}: our forecasts know {told}; peers know prices alone"
    return replace(prices, events=(*releases, *results, *days), notes=(*prices.notes, note))


def _days_off(prices: Prices) -> list[ScheduledEvent]:
    """Those of the New York exchange over the span of the prices and two months beyond; none without the library."""
    first_ns, last_ns = int(prices.ends_ns[0]), int(prices.ends_ns[-1]) + 62 * NS_PER_DAY
    try:
        days = open_calendar("recurring").events
    except MissingExtra:
        return []
    return [
        event
        for event in days
        if event.kind in (CLOSED, HALF_DAY)
        and event.currency == HOME
        and first_ns <= event.time_ns <= last_ns
    ]


def next_bars_ns(prices: Prices) -> tuple[Instants, Instants]:
    """When the next bar of each series begins and ends after each instant, [T, N]; both 0 where there is none.

    Bars of a day and longer begin where the one before ended, so that a weekend's events count for Monday.
    """
    length_ns = parse_duration(prices.interval)
    there = np.isfinite(prices.close)
    never = np.iinfo(np.int64).max
    ends = np.where(there, prices.ends_ns[:, None], never)
    following = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
    after = np.concatenate([following[1:], np.full((1, ends.shape[1]), never)])
    known = after < never
    after = np.where(known, after, 0)
    starts = (
        np.broadcast_to(prices.ends_ns[:, None], after.shape)
        if length_ns >= NS_PER_DAY
        else after - length_ns
    )
    return np.where(known, starts, 0), after


def holds_event(
    prices: Prices, events: Sequence[ScheduledEvent], chosen: Callable[[ScheduledEvent], bool]
) -> Mask:
    """Whether the bar after each instant holds a chosen event of its symbol or currencies at an exact time, [T, N]."""
    starts_ns, ends_ns = next_bars_ns(prices)
    times: dict[str, list[int]] = {}
    for event in events:
        if event.is_exact and chosen(event):
            times.setdefault(event.symbol or event.currency, []).append(event.time_ns)
    holds = np.zeros(starts_ns.shape, np.bool_)
    for n, symbol in enumerate(prices.symbols):
        for owner in (symbol, *own_currencies(symbol)):
            at = np.array(sorted(times.get(owner, ())), np.int64)
            first = np.searchsorted(at, starts_ns[:, n], "left")
            holds[:, n] |= np.searchsorted(at, ends_ns[:, n], "left") > first
    return holds


def _impact(value: Any) -> _Impact:
    text = str(value or "").lower()
    return cast("_Impact", text) if text in ("low", "medium", "high") else ""


def _figure(value: float) -> float | None:
    return value if np.isfinite(value) else None
