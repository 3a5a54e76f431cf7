"""`htfi eval execution`: algorithms and smart routing against naive routing, on recorded quotes of several venues."""

from collections.abc import Sequence
from pathlib import Path

import click

from htfi.domain.errors import InvalidInput
from htfi.domain.orders import OrderSide
from htfi.domain.time import NS_PER_S
from htfi.execution.algorithms.config import AlgorithmConfig
from htfi.execution.algorithms.planning import Algorithm
from htfi_eval.commands import ProgressLine, data_option, output_options, quick_option, seed_option
from htfi_eval.eval.execution import assumed_venues, data
from htfi_eval.eval.execution.charts import charts_of
from htfi_eval.eval.execution.judging import (
    SMART,
    Costs,
    Judged,
    best_single,
    costs_of,
    gain_interval,
    joined,
    mean_interval,
)
from htfi_eval.eval.execution.runs import OrderWindow, work_day
from htfi_eval.eval.prices import data_folder
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation, TitledTable

ALGORITHMS = tuple(one for one in Algorithm if one is not Algorithm.DIRECT)
MAIN = Algorithm.VWAP  # the venues are compared by it: its schedule is the same wherever it routes
DURATION_S = 300
EVERY_S = {"BAC": 1800, "IBM": 900, "TAQ": 300}
VOLUME_SHARE = 0.05  # of what trades in a window on average, on the tuning days
MIN_FILL_RATE = 0.95
NUM_SINGLE = 3  # venues, those with most quotes, that are tried alone
_SESSION_S = 23_400

_EPILOG = """\b
Examples:
  htfi eval execution --html build/execution.html
  htfi eval execution IBM
  htfi eval execution --tuning      the days of tuning
"""


@click.command(
    "execution", short_help="Algorithms and routing, on real quotes of several venues.", epilog=_EPILOG
)
@click.argument("symbols", nargs=-1, type=click.Choice(list(EVERY_S)), metavar="[BAC|IBM|TAQ]...")
@data_option
@click.option(
    "--tuning", is_flag=True, help="Use the days on which constants were chosen, not the unseen ones."
)
@seed_option(0, "the bootstraps")
@quick_option
@output_options
def command(
    symbols: tuple[str, ...], data: Path | None, tuning: bool, seed: int, quick: bool, html_file: Path | None,
    json_file: Path | None,
) -> None:  # fmt: skip
    """Work parent orders through recorded sessions of three stocks, by each algorithm, with smart and naive routing.

    Every parent is a five-minute order of 5% of the usual volume, for both sides of each window, worked by the code of
    `htfi trade` with its gate at simulated venues. Naive routing sends everything to one venue. Without the staged data
    nothing is measured.
    """
    folder = data or data_folder()
    if folder is None or not (folder / "hf").is_dir():
        if data is not None:
            raise InvalidInput(f"{data} has no folder 'hf': name the folder of staged data")
        click.echo(
            "htfi eval execution: skipped, since ../shared/data is missing: name the staged data with --data",
            err=True,
        )
        return
    judged = [_judge(folder, one, tuning=tuning, quick=quick) for one in symbols or EVERY_S]
    write_outputs(
        _evaluation(judged, seed, tuning=tuning, quick=quick), json_file=json_file, html_file=html_file
    )


def _judge(folder: Path, symbol: str, *, tuning: bool, quick: bool) -> Judged:
    found = Judged(symbol)
    parts: dict[tuple[Algorithm, str], list[Costs]] = {}
    equal: dict[str, list[Costs]] = {}
    days: list[data.MarketDay] = []
    volumes: list[float] = []
    for day in data.load_days(folder, symbol):
        is_tuned = day.day in data.TUNING_DAYS
        if is_tuned:
            volumes.append(_volume(day))
        if is_tuned == tuning and (not quick or not days):
            days.append(day)
    lots = max(100, round(VOLUME_SHARE * sum(volumes) / len(volumes) * DURATION_S / _SESSION_S))
    singles = _singles(days)
    config = AlgorithmConfig(duration_s=DURATION_S)
    algorithms = (MAIN,) if quick else ALGORITHMS
    runs: list[tuple[Algorithm, str, bool]] = [(one, SMART, False) for one in algorithms]
    runs += [(MAIN, one, False) for one in singles[: 1 if quick else None]]
    runs += [(one, singles[0], False) for one in algorithms if one is not MAIN]
    progress, done = ProgressLine(f"{symbol}, {len(days)} days, {len(runs)} ways"), 0
    for number, day in enumerate(days):
        windows = _windows(day, lots)[: 6 if quick else None]
        found.days.append(day.day.isoformat())
        for algorithm, routing, _ in runs:
            parts.setdefault((algorithm, routing), []).append(
                _both_sides(day, number, windows, routing, algorithm, config, equal_fees=False)
            )
            done += 1
            progress(done, len(runs) * len(days))
    found.costs = {key: joined(each) for key, each in parts.items()}
    alone = {
        routing: one
        for (algorithm, routing), one in found.costs.items()
        if algorithm is MAIN and routing != SMART
    }
    found.best = best_single(alone, MIN_FILL_RATE)
    for number, day in enumerate(days):
        windows = _windows(day, lots)[: 6 if quick else None]
        for routing in (SMART, found.best):
            equal.setdefault(routing, []).append(
                _both_sides(day, number, windows, routing, MAIN, config, equal_fees=True)
            )
    found.equal_fees = {key: joined(each) for key, each in equal.items()}
    found.names = {one: assumed_venues.venue_of(one, days[0]).name for one in singles}
    return found


def _both_sides(
    day: data.MarketDay,
    number: int,
    windows: Sequence[OrderWindow],
    routing: str,
    algorithm: Algorithm,
    config: AlgorithmConfig,
    *,
    equal_fees: bool,
) -> Costs:
    venues = day.venues if routing == SMART else (routing,)
    return joined([
        costs_of(day, work_day(day, windows, venues, algorithm, side, config, equal_fees=equal_fees), number)
        for side in (OrderSide.BUY, OrderSide.SELL)
    ])  # fmt: skip


def _windows(day: data.MarketDay, lots: int) -> list[OrderWindow]:
    """Windows of the session, from five minutes after its open on."""
    step, length = EVERY_S[day.symbol] * NS_PER_S, DURATION_S * NS_PER_S
    first, last = day.open_ns + 300 * NS_PER_S, day.close_ns - length - 60 * NS_PER_S
    return [OrderWindow(at, at + length, lots) for at in range(first, last, step)]


def _singles(days: Sequence[data.MarketDay]) -> list[str]:
    """The venues with most quotes, that are there on all days."""
    counts: dict[str, int] = {}
    for day in days:
        for item in day.items:
            if isinstance(item, data.Quote):
                counts[item.venue] = counts.get(item.venue, 0) + 1
    common = [one for one in counts if all(one in day.venues for day in days)]
    return sorted(common, key=lambda one: -counts[one])[:NUM_SINGLE]


def _volume(day: data.MarketDay) -> float:
    return sum(
        one.size for one in day.items if isinstance(one, data.Trade) and one.venue != data.OFF_EXCHANGE
    )


def _evaluation(judged: Sequence[Judged], seed: int, *, tuning: bool, quick: bool) -> Evaluation:
    result = Evaluation(
        name="execution", title="Execution algorithms and smart routing", metrics={}, seed=seed,
        data="quick" if quick else "tuning" if tuning else "",
    )  # fmt: skip
    routing_rows: list[dict[str, object]] = []
    lows: list[float] = []
    equal_lows: list[float] = []
    for one in judged:
        result.rows += [_row(one, algorithm, routing, seed) for algorithm, routing in one.costs]
        smart = one.costs[MAIN, SMART]
        for routing, naive in ((r, c) for (a, r), c in one.costs.items() if a is MAIN and r != SMART):
            gain, low, high = gain_interval(smart, naive, seed)
            is_best = routing == one.best
            routing_rows.append({
                "stock": one.symbol, "against": one.names[routing], "best single": "yes" if is_best else "",
                "its fill rate": naive.fill_rate, "saved, share": gain, "low": low, "high": high, "fees": "assumed",
            })  # fmt: skip
            if is_best:
                lows.append(low)
                key = one.symbol.lower()
                result.metrics |= {f"routing_gain_{key}": gain, f"routing_gain_{key}_low": low}
        gain, low, high = gain_interval(one.equal_fees[SMART], one.equal_fees[one.best], seed)
        equal_lows.append(low)
        routing_rows.append({
            "stock": one.symbol, "against": one.names[one.best], "best single": "yes",
            "its fill rate": one.equal_fees[one.best].fill_rate, "saved, share": gain, "low": low, "high": high,
            "fees": "equal",
        })  # fmt: skip
    result.metrics = {
        "routing_gain_worst": min(lows), "routing_gain_equal_fees_worst": min(equal_lows), **result.metrics,
    }  # fmt: skip
    result.tables.append(TitledTable(f"Routing, {MAIN.value}: share of the shortfall saved", routing_rows))
    result.charts = charts_of(judged, seed)
    result.lead = _lead(result, judged)
    result.cards = [_card(result, one) for one in judged]
    which = "days on which constants were chosen" if tuning else "days unseen in tuning"
    result.notes += [
        *(f"{one.symbol}: {', '.join(one.days)} ({which})" for one in judged),
        f"parents: {DURATION_S} s, {VOLUME_SHARE:.0%} of the usual volume, both sides of each window; what is left at "
        "the end is charged at the best displayed price of all venues and a full fee, whatever its size",
        "shortfall: against the middle at the arrival, fees included; vwap: against the average of exchange trades in "
        "the window, without fees; adverse: how far the market moved within 10 s against fills that had rested",
        "intervals: 95%, block bootstrap of hours; the best single venue is chosen on the very days that it is judged "
        f"on, among those that fill {MIN_FILL_RATE:.0%}, which favours it",
        "over five minutes the curve of volume, whose steps are five minutes, is straight: vwap is twap here",
        *data.NOTES,
        assumed_venues.NOTE,
    ]
    return result


def _card(result: Evaluation, one: Judged) -> Card:
    key = f"routing_gain_{one.symbol.lower()}"
    gain, low = result.metrics[key] or 0.0, result.metrics[f"{key}_low"] or 0.0
    return Card(f"{gain:+.1%}", f"{one.symbol}: shortfall saved against {one.names[one.best]} alone", low > 0)


def _row(one: Judged, algorithm: Algorithm, routing: str, seed: int) -> dict[str, object]:
    costs = one.costs[algorithm, routing]
    shortfall, low, high = mean_interval(costs.shortfall, costs.blocks, seed)
    vwap, vwap_low, vwap_high = mean_interval(costs.vwap, costs.blocks, seed)
    adverse, _, _ = mean_interval(costs.adverse, costs.blocks, seed)
    return {
        "stock": one.symbol, "algorithm": algorithm.value, "routing": one.names.get(routing, routing),
        "shortfall, bp": shortfall, "from": low, "to": high, "vwap, bp": vwap, "vwap from": vwap_low,
        "vwap to": vwap_high, "filled": costs.fill_rate, "rested": costs.rested_share, "adverse, bp": adverse,
        "children": float(costs.num_children.mean()), "parents": len(costs.lots),
    }  # fmt: skip


def _lead(result: Evaluation, judged: Sequence[Judged]) -> str:
    parts = [
        f"{result.metrics[f'routing_gain_{one.symbol.lower()}'] or 0.0:.0%} of {one.symbol}'s (from "
        f"{result.metrics[f'routing_gain_{one.symbol.lower()}_low'] or 0.0:.0%})"
        for one in judged
    ]
    return f"Against the best single venue, smart routing saves of the shortfall: {', '.join(parts)}."
