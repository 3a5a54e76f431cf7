"""`htfi eval calendar`: forecasts of hourly bars that hold a high-impact release, with and without the calendar."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import InvalidInput
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.evaluation.cells import ratios_by_cell, shares_by_cell
from htfi.wiring.settings import load_settings
from htfi_eval.commands import ProgressLine, data_option, output_options
from htfi_eval.eval.calendar.walks import NextBarScores, score_next_bars
from htfi_eval.eval.prices import Prices, data_folder, load_prices
from htfi_eval.eval.returns.command import with_settings
from htfi_eval.eval.returns.judging import first_scored
from htfi_eval.eval.scheduled_events import (
    FIRST_VENDOR,
    SECOND_VENDOR,
    holds_event,
    recognised_share,
    staged_events,
)
from htfi_eval.eval.trials import digest_of, record_trial, trials_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation

Mask = NDArray[np.bool_]

SET = "fx_hourly"
GAIN_FROM = "2014-01-01"
QUICK_SYMBOLS, QUICK_SPAN = 4, ("2014-06-01", "2016-12-31")
_QUIET_HOUR = 12  # UTC

_EPILOG = """\b
Examples:
  htfi eval calendar           ten pairs, 2012 to 2019-10; four minutes
  htfi eval calendar --quick   four pairs, 2014-06 to 2016; a minute
"""


@click.command("calendar", short_help="Forecasts of bars that hold a release.", epilog=_EPILOG)
@data_option
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of [forecasting]; repeatable."
)
@click.option("--quick", is_flag=True, help="Four pairs over three years: for development.")
@trials_option
@output_options
def command(
    data: Path | None, settings: tuple[str, ...], quick: bool, trials: Path,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Walk hourly bars of currencies through the live forecaster, with a calendar of releases and without it.

    Judged are the bars in which a high-impact event of an own currency falls, forecast when the bar before closed.
    """
    folder = data_folder(data)
    if folder is None:
        raise InvalidInput(
            "no folder of staged data: name it with --data; this evaluation needs its calendar"
        )
    config = with_settings(load_settings(), settings).forecasting
    prices = load_prices(SET, folder)
    if quick:
        prices = prices.cut(prices.symbols[::3][:QUICK_SYMBOLS], *QUICK_SPAN)
    events = staged_events(folder)
    plain, informed = _both_walks(prices, config, events)
    evaluation = judge(prices, events, plain, informed, quick=quick)
    vendors = {file: recognised_share(staged_events(folder, file)) for file in (FIRST_VENDOR, SECOND_VENDOR)}
    evaluation.metrics["recognised"] = min(share for share, _ in vendors.values())
    evaluation.notes += [
        f"{file}: {share:.1%} of {num:,} high-impact lines have a known kind"
        for file, (share, num) in vendors.items()
    ]
    digest = digest_of(list(prices.symbols), prices.ends_ns, prices.close)
    scores = {key: value for key, value in evaluation.metrics.items() if value is not None}
    num = record_trial("calendar", digest, {"forecasting": asdict(config)}, scores, folder=trials)
    evaluation.notes.append(f"{num:,} configurations have been evaluated so far, this one included")
    write_outputs(evaluation, json_file=json_file, html_file=html_file)


def _both_walks(
    prices: Prices, config: ForecastConfig, events: Sequence[ScheduledEvent]
) -> tuple[NextBarScores, NextBarScores]:
    """Without and with the calendar, at once where there are two processors."""
    if (os.cpu_count() or 1) < 2:
        return _walk(prices, config), _walk(prices, config, events)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = pool.submit(_walk, prices, config), pool.submit(_walk, prices, config, events)
        return waiting[0].result(), waiting[1].result()


def _walk(prices: Prices, config: ForecastConfig, events: Sequence[ScheduledEvent] = ()) -> NextBarScores:
    line = ProgressLine("with the calendar" if events else "without the calendar")
    return score_next_bars(prices, config, events, line)


def judge(
    prices: Prices,
    events: Sequence[ScheduledEvent],
    plain: NextBarScores,
    informed: NextBarScores,
    *,
    quick: bool = False,
) -> Evaluation:
    """Rows by kind of bar, and the figures."""
    notes = [*prices.notes, "high impact is the vendor's label of today; bars are judged from a year in"]
    begin, _ = first_scored(prices, None)
    since = (np.arange(len(prices.ends_ns)) >= begin)[:, None]
    recent = since & (prices.ends_ns >= np.datetime64(GAIN_FROM, "ns").astype(np.int64))[:, None]
    rows: list[dict[str, Any]] = []
    for where, chosen in _groups(prices, events).items():
        cells = np.where(chosen & since, 0, -1)
        held = shares_by_cell(informed.held90, cells, 1, 1, 0.9)
        if not held.num[0]:
            continue
        lasting = np.where(chosen & recent, 0, -1)
        ratio = ratios_by_cell(informed.crps, plain.crps, lasting, 1, 1)
        rows.append(
            {
                "bars": where,
                "n": int(held.num[0]),
                "coverage 90": float(held.share[0]),
                "95% interval": f"{held.low[0]:.3f}–{held.high[0]:.3f}",
                "without": _share(plain.held90, cells),
                "below q05": _share(informed.below05, cells),
                "below q01": _share(informed.below01, cells),
                "width": _mean_ratio(informed.width, plain.width, cells),
                "CRPS gain": 1.0 - float(ratio.ratio[0]),
                "gain, 95%": f"{1.0 - ratio.high[0]:+.4f} to {1.0 - ratio.low[0]:+.4f}",
            }
        )
    first = rows[0] if rows else {}
    coverage, gain = first.get("coverage 90"), first.get("CRPS gain")
    metrics = {
        "coverage90_first_hour": coverage,
        "coverage90_first_hour_upper": coverage,
        "crps_gain_first_hour": gain,
    }
    return Evaluation(
        name="calendar",
        title="Forecasts of bars that hold a release",
        lead=_lead(prices, first),
        metrics=metrics,
        cards=_cards(coverage, gain),
        rows=rows,
        notes=notes,
        data="quick" if quick else "",
    )


def _groups(prices: Prices, events: Sequence[ScheduledEvent]) -> dict[str, Mask]:
    """Masks [T, N] of the forecasts of bars of a kind; the first is that of the figures."""

    def of(chosen: Callable[[ScheduledEvent], bool]) -> Mask:
        return holds_event(prices, events, chosen)

    high = of(lambda event: event.impact == "high")
    hours = prices.ends_ns.astype("datetime64[ns]").astype("datetime64[h]").astype(np.int64) % 24
    any_impact = of(lambda event: event.impact != "")
    return {
        "high impact": high,
        "high impact with figures": of(lambda event: event.impact == "high" and event.actual is not None),
        "high impact without figures": of(lambda event: event.impact == "high" and event.actual is None),
        "medium impact": of(lambda event: event.impact == "medium") & ~high,
        "the bar after high impact": _after(prices, high) & ~high,
        "US payrolls": of(lambda event: event.kind == "us_payrolls"),
        "US consumer prices": of(lambda event: event.kind in ("us_cpi", "us_core_cpi")),
        "FOMC decision": of(lambda event: event.kind == "fomc_decision"),
        "no event": ~any_impact,
        f"no event, {_QUIET_HOUR}h UTC": ~any_impact & (hours == _QUIET_HOUR)[:, None],
        "all": np.ones(high.shape, np.bool_),
    }


def _after(prices: Prices, holds: Mask) -> Mask:
    """Forecasts of a bar whose predecessor, the one just closed, held an event."""
    there = np.isfinite(prices.close)
    after = np.zeros(holds.shape, np.bool_)
    for n in range(holds.shape[1]):
        when = np.flatnonzero(there[:, n])
        after[when[1:], n] = holds[when[:-1], n]
    return after


def _share(values: NDArray[np.float64], cells: NDArray[np.int64]) -> float:
    chosen = values[(cells == 0) & np.isfinite(values)]
    return float(chosen.mean()) if chosen.size else float("nan")


def _mean_ratio(first: NDArray[np.float64], second: NDArray[np.float64], cells: NDArray[np.int64]) -> float:
    chosen = (cells == 0) & np.isfinite(first) & np.isfinite(second)
    return float((first[chosen] / second[chosen]).mean()) if chosen.any() else float("nan")


def _lead(prices: Prices, row: dict[str, Any]) -> str:
    if not row:
        return f"{prices.name} has no bar that holds a high-impact event."
    return (
        f"Of {row['n']:,} hourly bars of {len(prices.symbols)} currency pairs that hold a high-impact event of an own "
        f"currency, the 90% band held {row['coverage 90']:.1%}; the calendar gains {row['CRPS gain']:.1%} of CRPS."
    )


def _cards(coverage: float | None, gain: float | None) -> list[Card]:
    if coverage is None or gain is None:
        return []
    return [
        Card(f"{coverage:.3f}", "coverage of 90% bands in release bars", 0.87 <= coverage <= 0.93),
        Card(f"{gain:.3f}", "CRPS gained by the calendar in release bars", gain >= 0.03),
    ]
