"""`htfi eval returns`: the fused forecast of returns beside its experts and peers, out of sample, on real data."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from htfi.apps.eval.prices import NAMES, Prices, data_folder, load_prices

OUT_OF_SAMPLE = {"us_equities": "2012-01-01"}
_YEAR_BARS = 250
_HISTVOL, _EWMA, _GARCH, _HAR = "random_walk", "ewma_gaussian", "garch_t", "log_range_har"

_EPILOG = """\b
Examples:
  htfi eval returns                              every staged set, all symbols
  htfi eval returns us_equities --symbols 40     fast: 40 of the symbols
  htfi eval returns prices.csv                   your own bars: date, (symbol,) open, high, low, close
"""


@click.command("returns", short_help="Forecasts of returns beside peers, on real data.", epilog=_EPILOG)
@click.argument("sets", metavar="[SET|FILE]...", nargs=-1)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the staged data.")
@click.option(
    "--symbols", "num_symbols", type=click.IntRange(1), help="Only so many symbols of a set, spread evenly."
)
@click.option(
    "--from", "first", help="Score from this date on.  [default: 2012 for us_equities, else a year in]"
)
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to FILE."
)
def command(
    sets: tuple[str, ...], data: Path | None, num_symbols: int | None, first: str | None, seed: int,
    json_file: Path | None,
) -> None:  # fmt: skip
    """Walk bars through the live forecaster and score every forecast by what came."""
    from htfi.wiring.figures import report

    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    metrics: dict[str, float] = {}
    for name in sets or _default_sets(data, notes):
        prices = load_prices(name, data)
        notes += prices.notes
        if num_symbols is not None:
            prices = some(prices, num_symbols)
        done, figures = judge(prices, first)
        rows += done
        metrics |= figures if prices.name == "us_equities" or len(sets) == 1 else {}
    report("returns", metrics, rows, seed=seed, json_file=json_file, kind="eval", notes=notes)


def judge(prices: Prices, first: str | None) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Rows and metrics of one data set."""
    from htfi.apps.eval.peers import classical
    from htfi.apps.eval.returns_scores import score
    from htfi.apps.eval.walk import FUSED, Walk, measure
    from htfi.wiring.settings import load_settings

    config = load_settings().forecasting
    start = first_scored(prices, first)
    peers = classical(len(prices.symbols), config, start)
    walk = Walk(prices, config, peers)
    measured = measure(prices, config)
    scores = score(walk, measured, start, walk.names, _Progress(prices.name))
    rows: list[dict[str, Any]] = []
    for j, horizon in enumerate(scores.horizons):
        for name in scores.names:
            cover50, _ = scores.coverage(name, j, 50)
            cover90, num = scores.coverage(name, j, 90)
            row: dict[str, Any] = {
                "data": prices.name, "bars": horizon, "forecaster": name, "n": num,
                "CRPS, bp": 1e4 * scores.mean_crps(name, j), "fused/it": scores.ratio(name, j),
                "WQL": scores.wql(name, j), "cover 50": cover50, "cover 90": cover90,
            }  # fmt: skip
            if name != FUSED:
                found = scores.difference(name, j)
                row |= {"DM": found.statistic, "p": found.p}
            rows.append(row)
    places = range(len(scores.horizons))
    metrics = {
        "crps_vs_histvol20": max(scores.ratio(_HISTVOL, j) for j in places),
        "crps_vs_ewma": max(scores.ratio(_EWMA, j) for j in places),
        "crps1_vs_har_fhs": scores.ratio(_HAR, 0),
        "coverage90": min(scores.coverage(FUSED, j)[0] for j in places),
        "coverage90_upper": max(scores.coverage(FUSED, j)[0] for j in places),
    }
    return rows, {key: value for key, value in metrics.items() if math.isfinite(value)}


def first_scored(prices: Prices, first: str | None) -> int:
    """The instant from which forecasts are scored: by date, or a year in (a quarter of a short file)."""
    stated = first or OUT_OF_SAMPLE.get(prices.name)
    if stated is not None:
        return int(np.searchsorted(prices.ends_ns, np.datetime64(stated, "ns").astype(np.int64)))
    year_ns = 365 * 86_400 * 10**9
    year = int(np.searchsorted(prices.ends_ns, prices.ends_ns[0] + year_ns))
    return min(year, len(prices.ends_ns) // 4)


def some(prices: Prices, num: int) -> Prices:
    """`num` of the symbols, evenly spread over their alphabet, so that every run takes the same."""
    places = np.unique(
        np.linspace(0, len(prices.symbols) - 1, min(num, len(prices.symbols))).round().astype(int)
    )
    return prices.cut([prices.symbols[place] for place in places.tolist()])


def _default_sets(data: Path | None, notes: list[str]) -> Sequence[str]:
    if data_folder(data) is not None:
        return NAMES
    notes.append("no staged data was found: these are figures of the small embedded sample")
    return ("sample",)


class _Progress:
    """Tells on stderr how far a walk is, at most every five seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began_s = self._told_s = time.monotonic()

    def __call__(self, done: int, num: int) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s >= 5.0:
            self._told_s = now_s
            click.echo(f"{self._name}: {done:,} of {num:,} instants, {now_s - self._began_s:.0f} s", err=True)
