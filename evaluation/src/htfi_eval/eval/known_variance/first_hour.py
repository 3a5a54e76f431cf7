"""Judges the hour that holds a release: the live forecaster with the calendar, and without it, on staged currencies.

`python -m htfi_eval.eval.known_variance.first_hour` prints the table. Impact is a label of later years: it chooses what
is judged and never enters a forecast. The priors saw nothing after 2013.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import parse_duration
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.known_variance.relations import currencies_of
from htfi.forecasting.scores import crps
from htfi_eval.eval.known_variance.data import releases
from htfi_eval.eval.prices import STAGED, Prices, load_prices
from htfi_eval.eval.walk import Walk, measure_outcomes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FIRST, LAST = "2014-01-01", "2019-10-31"  # what is judged: no prior saw it
_PAUSE_BARS = 24
_HOURS = (0, 8, 13, 21)


@dataclass(frozen=True, slots=True)
class JudgedHours:
    """Forecasts of one kind of hour: coverage of the 90% band without and with the calendar, and the gain of CRPS."""

    name: str
    num: int
    coverage_without: float
    coverage: float
    crps_gain: float


def judge(prices: Prices, events: Sequence[ScheduledEvent], first: str = FIRST) -> list[JudgedHours]:
    """Both forecasters on the same bars, one bar ahead."""
    config = ForecastConfig()
    outcomes = measure_outcomes(prices, config).outcomes[:, :, 0]
    without, with_events = (_quantiles(prices, config, known) for known in ((), events))
    judged = np.isfinite(outcomes) & np.isfinite(without[:, :, 0]) & np.isfinite(with_events[:, :, 0])
    judged &= (prices.ends_ns >= np.datetime64(first, "ns").astype(np.int64))[:, None]
    levels = np.array(config.levels)
    rows: list[JudgedHours] = []
    for name, mask in _hours(prices, events):
        chosen = mask & judged
        if not chosen.any():
            continue
        y, both = outcomes[chosen], [each[chosen] for each in (without, with_events)]
        low, high = config.levels.index(0.05), config.levels.index(0.95)
        coverage = [float(((y >= q[:, low]) & (y <= q[:, high])).mean()) for q in both]
        losses = [float(crps(q, y, levels).mean()) for q in both]
        gain = 1.0 - losses[1] / losses[0]
        rows.append(JudgedHours(name, int(chosen.sum()), coverage[0], coverage[1], gain))
    return rows


def metrics(rows: Sequence[JudgedHours]) -> dict[str, float]:
    """The figures of `make goals`."""
    (hour,) = [row for row in rows if row.name == "high impact"]
    return {"coverage90_first_hour": hour.coverage, "crps_gain_first_hour": hour.crps_gain}


def _quantiles(prices: Prices, config: ForecastConfig, events: Sequence[ScheduledEvent]) -> Array:
    found = np.full((*prices.close.shape, len(config.levels)), np.nan)
    for instant in Walk(prices, config, events=events).instants():
        found[instant.t, instant.places] = instant.quantiles[0][:, 0]
    return found


def _hours(prices: Prices, events: Sequence[ScheduledEvent]) -> Iterator[tuple[str, Mask]]:
    """Names and masks [T, N] of forecasts, by what their next bar is."""
    following = _next_bars(prices)
    exact = [event for event in events if event.is_exact]
    any_event = _with(prices, following, exact, lambda _: True)
    yield "all", following >= 0
    yield "high impact", _with(prices, following, exact, lambda event: event.impact == "high")
    yield "other releases", any_event & ~_with(prices, following, exact, lambda event: event.impact == "high")
    yield "none", (following >= 0) & ~any_event
    for kind in ("us_payrolls", "fomc_decision", "us_cpi", "ecb_press_conference"):
        yield kind, _with(prices, following, exact, lambda event, kind=kind: event.kind == kind)
    length_ns = parse_duration(prices.interval)
    starts = prices.ends_ns[np.maximum(following, 0)] - length_ns
    yield (
        "after a pause of a day",
        (following >= 0) & (starts - prices.ends_ns[:, None] > _PAUSE_BARS * length_ns),
    )
    for hour in _HOURS:
        yield f"{hour:02d}h UTC", (following >= 0) & (starts // parse_duration("1h") % 24 == hour)
    years = prices.ends_ns.astype("datetime64[ns]").astype("datetime64[Y]").astype(int) + 1970
    high = _with(prices, following, exact, lambda event: event.impact == "high")
    for year in sorted(set(years.tolist())):
        yield f"high impact, {year}", high & (years == year)[:, None]


def _next_bars(prices: Prices) -> NDArray[np.intp]:
    """The instant [T, N] of each series' next bar, −1 where there is none."""
    found = np.full(prices.close.shape, -1)
    for place in range(len(prices.symbols)):
        there = np.flatnonzero(np.isfinite(prices.close[:, place]))
        found[there[:-1], place] = there[1:]
    return found


def _with(
    prices: Prices,
    following: NDArray[np.intp],
    events: Sequence[ScheduledEvent],
    counts: Callable[[ScheduledEvent], bool],
) -> Mask:
    """Whether the next bar holds an event that counts, of a currency of its own."""
    length_ns = parse_duration(prices.interval)
    held = np.zeros(prices.close.shape, np.bool_)
    for place, symbol in enumerate(prices.symbols):
        own = currencies_of(symbol)
        times = np.array([one.time_ns for one in events if one.currency in own and counts(one)], np.int64)
        bar = np.searchsorted(prices.ends_ns, times, "right")
        inside = bar < len(prices.ends_ns)
        bar, times = bar[inside], times[inside]
        held[bar[prices.ends_ns[bar] - length_ns <= times], place] = True
    found = held[np.maximum(following, 0), np.arange(len(prices.symbols))]
    return found & (following >= 0)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=STAGED, help="Folder of the staged data.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures here as well.")
def main(data: Path, json_file: Path | None) -> None:
    """Coverage and CRPS of the hour that holds a release, ten currencies, 2014 to 2019-10."""
    prices = load_prices("fx_hourly", data).cut(None, None, LAST)
    rows = judge(prices, releases(data))
    click.echo(f"{'hour':<28}{'n':>9}{'90% band without':>18}{'with':>8}{'CRPS gain':>11}")
    for row in rows:
        click.echo(
            f"{row.name:<28}{row.num:>9,}{row.coverage_without:>18.1%}{row.coverage:>8.1%}{row.crps_gain:>11.2%}"
        )
    if json_file is not None:
        json_file.write_text(json.dumps(metrics(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
