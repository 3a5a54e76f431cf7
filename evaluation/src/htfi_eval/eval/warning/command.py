"""`htfi eval warning`: the probability of market stress within a month, and alerts on a budget."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from htfi.apps.options import FiniteRange
from htfi.domain.errors import InvalidInput
from htfi.forecasting.warning.events import StressEvents, drawdown_events, level_events
from htfi.forecasting.warning.walk_forward import WalkForwardConfig
from htfi_eval.commands import data_option, output_options
from htfi_eval.eval.trials import digest_of, record_trials, trials_option
from htfi_eval.eval.warning import charts as warning_charts
from htfi_eval.eval.warning.data import INDEX, VIX, WarningMarket, features_of, load_market
from htfi_eval.eval.warning.judging import (
    MAIN_BUDGET,
    PLANTED_LEAK,
    WARNING,
    WarningJudgement,
    check_leaks,
    judge,
    metrics_of,
    rows_of,
    trials_of,
)
from htfi_eval.report import write_outputs
from htfi_eval.results import Evaluation

FEAR_AT, FEAR_BELOW = 30.0, 25.0  # levels of the VIX

_HOW = (
    "three figures with slashes are for budgets of 2, 4 and 12 false alarms a year; detected: an alert before the "
    "onset came true; lead: median sessions from the first such alert to the onset; intervals: 95%, bootstrap of "
    "one-year blocks; 5 and 22 in names of models are sessions"
)
_EPILOG = """\b
Examples:
  htfi eval warning                                   the S&P 500 fund and VIX
  htfi eval warning --html build/warning.html         and a page of it
  htfi eval warning --depth 0.1 --within 44           deeper falls
  htfi eval warning --index mine.csv --vix fear.csv   your own daily closes
"""


@click.command("warning", short_help="Early warning of market stress, on a budget of alerts.", epilog=_EPILOG)
@data_option
@click.option("--index", type=click.Path(path_type=Path, dir_okay=False), help="Daily closes of your index.")
@click.option(
    "--vix", type=click.Path(path_type=Path, dir_okay=False), help="Daily implied volatility, in percent."
)
@click.option(
    "--depth",
    default=0.08,
    show_default=True,
    type=FiniteRange(0, 1, min_open=True, max_open=True),
    help="Fall of the index that counts as an event, as a share.",
)
@click.option(
    "--within",
    "horizon",
    default=22,
    show_default=True,
    type=click.IntRange(1, 252),
    help="Horizon of an event, in sessions.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the bootstrap and the leak check.")
@trials_option
@output_options
def command(
    data: Path | None, index: Path | None, vix: Path | None, depth: float, horizon: int, seed: int, trials: Path,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Walk forward through the years and evaluate early warnings of market stress.

    An event is a close DEPTH below today's within the given sessions; where there is a VIX, also its rise to 30 from
    below 25. Sessions within an event do not count. Models are refitted each year on labels known by then, and alert
    thresholds follow past probabilities. Events are few, so the intervals are wide; they are the result.
    """
    market = load_market(data, index, vix)
    write_outputs(evaluate(market, depth, horizon, seed, trials), json_file=json_file, html_file=html_file)


def evaluate(market: WarningMarket, depth: float, horizon: int, seed: int, trials: Path) -> Evaluation:
    """Both kinds of event scored and checked for leaks. Raises InvalidInput if the data have too few."""
    config = WalkForwardConfig(embargo=horizon)
    features = features_of(market)
    judged: list[WarningJudgement] = []
    kinds = _kinds(market, depth, horizon)
    notes = [_HOW, *market.notes]
    for name, description, make in kinds:
        found = judge(name, description, market, features, make(market), config, seed, _progress)
        if found is None:
            notes.append(f"{description}: left out, too few sessions or events")
        else:
            judged.append(found)
    if not judged:
        raise InvalidInput(
            f"{len(market.days):,} sessions have too few events to evaluate a warning; use longer series"
        )
    rows: list[dict[str, Any]] = []
    metrics: dict[str, float | None] = {}
    tried: list[tuple[dict[str, Any], dict[str, float]]] = []
    for place, one in enumerate(judged):
        rows += rows_of(one)
        metrics |= metrics_of(one, "" if place == 0 else f"{one.name}_")
        tried += trials_of(one, config)
        notes.append(_describe_events(one))
    make = next(make for name, _, make in kinds if name == judged[0].name)
    _progress("leak check")
    leaks = check_leaks(market, make, config, seed)
    metrics["leaks"] = float(WARNING in leaks)
    metrics["planted_leak_caught"] = float(PLANTED_LEAK in leaks)
    honest = f"A LEAK from {leaks[WARNING]}" if WARNING in leaks else "no probability changed with the future"
    caught = "the planted leak was detected" if PLANTED_LEAK in leaks else "THE PLANTED LEAK WAS NOT DETECTED"
    notes.append(f"leak check: {honest}; {caught}")
    num = record_trials("warning", digest_of(market.closes), tried, folder=trials)
    notes.append(f"{num:,} configurations have been evaluated so far, these included")
    return Evaluation(
        name="warning",
        title="Early warning of market stress",
        lead=warning_charts.lead(judged[0]),
        metrics=metrics,
        cards=warning_charts.cards(judged[0]),
        charts=warning_charts.charts(judged),
        rows=rows,
        notes=notes,
        seed=seed,
    )


def _kinds(
    market: WarningMarket, depth: float, horizon: int
) -> list[tuple[str, str, Callable[[WarningMarket], StressEvents]]]:
    """Name, description and function of each kind of event that the data allow."""
    kinds: list[tuple[str, str, Callable[[WarningMarket], StressEvents]]] = []
    if INDEX in market.names:
        description = f"a fall of {depth:.0%} within {horizon} sessions"
        kinds.append(("fall", description, lambda of: drawdown_events(of.column(INDEX), depth, horizon)))
    if VIX in market.names:
        description = f"VIX at {FEAR_AT:g} within {horizon} sessions, from below {FEAR_BELOW:g}"
        kinds.append(
            ("fear", description, lambda of: level_events(of.column(VIX), FEAR_AT, FEAR_BELOW, horizon))
        )
    return kinds


def _describe_events(judged: WarningJudgement) -> str:
    events, days = judged.events, judged.market.days
    raised = judged.warning.raised[MAIN_BUDGET]
    caught = {int(events.onset[t]) for t in raised[events.label[raised] == 1.0].tolist()}
    onsets = ", ".join(f"{days[t]}{' ✓' if t in caught else ''}" for t in judged.onsets.tolist())
    share, num = judged.label.mean(), len(judged.label)
    return f"{judged.description}: {share:.1%} of {num:,} sessions at risk; onsets (✓ detected): {onsets}"


def _progress(stage: str) -> None:
    click.echo(f"warning: {stage} …", err=True)
