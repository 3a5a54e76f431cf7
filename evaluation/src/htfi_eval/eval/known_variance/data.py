"""Staged calendars as scheduled events, and the panels that priors are learnt on."""

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from htfi.calendar.recognition import event_kind
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_MS, NS_PER_US, parse_duration
from htfi_eval.eval.price_grid import FIELDS, Prices, on_grid
from htfi_eval.eval.prices import read_rows

_BACK_FILLED = "epsoft"  # rows that the vendor added years later: no one knew of them then
_IMPACTS: dict[str, Literal["", "low", "medium", "high"]] = {"High": "high", "Medium": "medium", "Low": "low"}


def releases(data: Path) -> list[ScheduledEvent]:
    """The economic calendar of 2007 to 2019-10, impact for judging only; `previous` is left out: it holds revisions."""
    rows = read_rows(data / "calendar" / "ff_merged_2007_201910.parquet")
    stamps = rows["published_at"].astype("datetime64[us]").astype(np.int64) * NS_PER_US
    late = _added_late(rows["source"], stamps)
    columns = [
        rows[name].tolist()
        for name in ("currency", "event", "impact", "actual_num", "forecast_num", "time_exact")
    ]
    return [
        ScheduledEvent(
            time_ns=time_ns,
            kind=event_kind(name, "" if currency == "All" else currency, "", time_ns),
            name=name,
            currency="" if currency == "All" else currency,
            impact=_IMPACTS.get(impact, ""),
            is_exact=bool(is_exact),
            actual=_number(actual),
            forecast=_number(forecast),
        )
        for time_ns, currency, name, impact, actual, forecast, is_exact, is_late in zip(
            stamps.tolist(), *columns, late.tolist(), strict=True
        )
        if not is_late
    ]


def reports(data: Path) -> list[ScheduledEvent]:
    """Companies' earnings, before the session at 7:00 or after it at 16:05 New York, as the staged file has them."""
    rows = read_rows(data / "calendar" / "earnings_us_2012_2017.parquet")
    stamps = rows["published_at"].astype("datetime64[us]").astype(np.int64) * NS_PER_US
    return [
        ScheduledEvent(time_ns=time_ns, kind="earnings", name="earnings", symbol=symbol)
        for time_ns, symbol in zip(stamps.tolist(), rows["symbol"].tolist(), strict=True)
    ]


def euro_dollar(data: Path) -> Prices:
    """EURUSD by the hour from 2007 on, the middle of bid and ask."""
    rows = read_rows(data / "panels" / "eurusd_hourly_bidask_2007_2018.parquet")
    fields = {name: 0.5 * (rows[f"bid_{name}"] + rows[f"ask_{name}"]) for name in FIELDS}
    ends_ns = rows["ts"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS + parse_duration("1h")
    return on_grid("eurusd", rows["symbol"], ends_ns, ends_ns, fields, (), "1h")


def _added_late(sources: NDArray[np.object_], stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
    first = np.datetime64("2007-01-07", "ns").astype(np.int64)
    return np.array([_BACK_FILLED in source for source in sources.tolist()]) & (stamps >= first)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
