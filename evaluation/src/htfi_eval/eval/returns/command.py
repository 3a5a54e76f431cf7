"""`htfi eval returns`: the fused forecast of returns against its experts and peers, out of sample, on real data."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np

from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.forecasting.evaluation.coverage_tables import RULE
from htfi.market.config import MarketConfig
from htfi.wiring.settings import Settings, load_settings, override
from htfi_eval.commands import ProgressLine, data_option, output_options, seed_option
from htfi_eval.eval.peers import EWMA, HISTVOL
from htfi_eval.eval.prices import NAMES, Prices, data_folder, load_prices
from htfi_eval.eval.returns.charts import charts
from htfi_eval.eval.returns.judging import (
    GARCH,
    DatasetJudgement,
    WalkOptions,
    correct_p_values,
    judge,
    metrics_of,
    worst_regime,
)
from htfi_eval.eval.returns.leaks import LeakReport, check_leaks
from htfi_eval.eval.returns.short_streams import (
    BestExpertRatio,
    best_expert_ratios,
    short_stream_ratios,
    worst_ratio,
)
from htfi_eval.eval.returns.speed import measure_speed
from htfi_eval.eval.returns.tables import (
    HorizonTable,
    coverage_charts,
    coverage_tables,
    left_tail_1pct,
    table_rows,
)
from htfi_eval.eval.scheduled_events import with_staged_calendar
from htfi_eval.eval.trials import digest_of, record_trial, trials_option
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation, TitledTable

MAIN_SET = "us_equities"  # the metrics are its own

_EPILOG = """\b
Examples:
  htfi eval returns                                  every staged set
  htfi eval returns us_equities --symbols 40 --fast  no fitted peers
  htfi eval returns prices.csv --html build/r.html   your own bars
"""


_OPTIONS = (
    click.argument("sets", metavar="[SET|FILE]...", nargs=-1),
    data_option,
    click.option(
        "--symbols",
        "num_symbols",
        type=click.IntRange(1),
        help="Maximum number of symbols of a set, spread evenly.",
    ),
    click.option(
        "--from",
        "first",
        help="Compare from this date on.  [default: 2012 for us_equities, else after one year]",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of [forecasting]; repeatable.",
    ),
    click.option(
        "--settings",
        "settings_file",
        type=click.Path(path_type=Path),
        help="TOML file of settings, such as a run's: [forecasting], and market.renames and market.splits of a FILE.",
    ),
    click.option(
        "--fresh", is_flag=True, help="Fit the peers again, ignoring fits cached in build/eval-cache."
    ),
    trials_option,
    seed_option(0, "the simulated paths, bootstraps and samples"),
    output_options,
)


def walk_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that walks prices through the forecaster."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("returns", short_help="Forecasts of returns against peers, on real data.", epilog=_EPILOG)
@walk_options
@click.option(
    "--calendar/--no-calendar",
    default=True,
    show_default=True,
    help="Give our forecasts the staged calendar of releases and results, and the exchange's days off.",
)
@click.option("--fast", is_flag=True, help="No fitted peers, no short streams, no leak check, no timing.")
@click.option(
    "--processes",
    default=2,
    show_default=True,
    type=click.IntRange(1, 16),
    help="Sets walked at once; at most one for each processor.",
)
def command(
    sets: tuple[str, ...], data: Path | None, num_symbols: int | None, first: str | None, settings: tuple[str, ...],
    settings_file: Path | None, calendar: bool, fast: bool, processes: int, fresh: bool, trials: Path, seed: int,
    html_file: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Walk bars through the live forecaster, in order of availability, and score every forecast against its outcome.

    SET is us_equities, fx_daily, vix, etf, fx_hourly or sample; FILE holds bars of your own. The fused forecast is
    compared with its experts, 20-day historical volatility (histvol20), RiskMetrics' EWMA, GARCH(1,1)-t of arch,
    refitted yearly, and statsforecast's AutoARIMA, AutoETS and GARCH. Differences are tested by Diebold-Mariano with
    errors that allow for overlap, corrected for the number of comparisons.

    Our forecasts of a staged SET know the staged calendar, as a desk's do; peers know prices alone, and experts of the
    mix (random_walk, log_range_har, …) what the mix knows. --no-calendar leaves it out.
    """
    loaded = with_settings(load_settings(settings_file), settings)
    options = WalkOptions(
        loaded.forecasting, first, with_fitted=not fast, with_calendar=calendar, fresh=fresh, seed=seed
    )
    notes: list[str] = []
    evaluation, judged = evaluate(
        sets or default_sets(data, notes),
        data,
        num_symbols,
        options,
        notes,
        fast=fast,
        processes=min(processes, os.cpu_count() or 1),
        market=loaded.market,
    )
    evaluation.notes.append(
        record_run("returns", options, [one.scores.prices for one in judged], evaluation.metrics, trials)
    )
    write_outputs(evaluation, json_file=json_file, html_file=html_file)


def record_run(
    command: str,
    options: WalkOptions,
    data: Sequence[Prices],
    metrics: Mapping[str, float | None],
    folder: Path,
) -> str:
    """Record the configuration as a trial, and report how many there are."""
    digest = digest_of(
        *(part for prices in data for part in (list(prices.symbols), prices.ends_ns, prices.close))
    )
    settings = {
        "forecasting": asdict(options.config),
        "from": options.first or "",
        "seed": options.seed,
        "calendar": options.with_calendar,
    }
    scores = {key: value for key, value in metrics.items() if value is not None}
    num = record_trial(command, digest, settings, scores, folder=folder)
    return f"{num:,} configurations have been evaluated so far, this one included"


def evaluate(
    sets: Sequence[str],
    data: Path | None,
    num_symbols: int | None,
    options: WalkOptions,
    notes: list[str],
    *,
    fast: bool,
    processes: int = 1,
    market: MarketConfig | None = None,
) -> tuple[Evaluation, list[DatasetJudgement]]:
    """All data sets scored, checked for leaks and timed, as one evaluation."""
    metrics: dict[str, float | None] = {}
    main_set = MAIN_SET if MAIN_SET in sets else sets[0]
    leak_set = MAIN_SET if MAIN_SET in sets else sets[-1]
    tasks = [
        _SetTask(
            name,
            data,
            num_symbols,
            replace(options, with_mini=not fast and name == main_set),
            fast,
            name == leak_set,
            market,
        )
        for name in sets
    ]
    found = _walk_sets(tasks, min(processes, len(tasks)))
    judged = [one.judged for one in found]
    tables = [table for one in found for table in one.tables]
    behind = [ratio for one in found for ratio in one.behind]
    leaks: list[dict[str, Any]] = []
    for one in found:
        if one.leaks is not None:
            leaks = one.leaks.rows(one.judged.scores.prices.name)
            metrics["leaks"] = float(len(one.leaks.honest))
            metrics["planted_leak_caught"] = float(one.leaks.found_planted_leak)
    correct_p_values(judged)
    main = next((one for one in judged if one.scores.prices.name == MAIN_SET), judged[0])
    metrics = {**metrics_of(main), **metrics}
    worst = worst_regime(judged)
    if worst is not None:
        metrics["coverage90_worst_regime"] = worst[0]
        notes.append(f"coverage90_worst_regime: {worst[1]}")
    metrics |= _tail_and_fusion(main, tables, behind, notes)
    rows = [row for one in judged for row in one.rows] + leaks
    notes += [note for one in judged for note in one.notes]
    if not fast:
        timed, figures, speed_notes = measure_speed(options.config, options.seed)
        rows, metrics, notes = rows + timed, metrics | figures, notes + speed_notes
    evaluation = Evaluation(
        name="returns",
        title="Forecasts of returns",
        lead=_lead(main),
        metrics=metrics,
        cards=_cards(metrics),
        charts=[
            chart
            for one in judged
            for chart in (
                *charts(one.scores, full=one is main),
                *coverage_charts(
                    one.scores, [table for table in tables if table.data == one.scores.prices.name]
                ),
            )
        ],
        rows=rows,
        tables=[
            TitledTable("fused forecast against the best expert in hindsight", [one.row for one in behind]),
            TitledTable("cells that are off", table_rows(tables, only_off=True)),
            TitledTable("coverage, CRPS and left tail by cell", table_rows(tables), page_only=True),
        ],
        notes=[*notes, RULE],
        seed=options.seed,
    )
    return evaluation, judged


@dataclass(frozen=True, slots=True)
class _SetTask:
    """What a process needs to evaluate one set."""

    name: str
    data: Path | None
    num_symbols: int | None
    options: WalkOptions
    fast: bool
    with_leaks: bool
    market: MarketConfig | None  # that renames and adjusts the series of a file


@dataclass(frozen=True, slots=True)
class _SetFindings:
    judged: DatasetJudgement
    tables: list[HorizonTable]
    behind: list[BestExpertRatio]
    leaks: LeakReport | None


def _walk_sets(tasks: Sequence[_SetTask], processes: int) -> list[_SetFindings]:
    """Evaluate the sets, several at once where there are processes for it; figures do not depend on how many."""
    if processes < 2:
        return [_walk_set(task) for task in tasks]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_walk_set, tasks))


def _walk_set(task: _SetTask) -> _SetFindings:
    prices, options = load_prices(task.name, task.data, task.market), task.options
    if task.num_symbols is not None:
        prices = spread_sample(prices, task.num_symbols)
    if options.with_calendar:
        prices = _with_calendar(prices, task)
    judged = judge(prices, options, ProgressLine(prices.name))
    tables, behind, leaks = coverage_tables(judged.scores, task.data), best_expert_ratios(judged.scores), None
    if not task.fast:
        line = ProgressLine(f"{prices.name}, short streams")
        behind += short_stream_ratios(prices, options.config, judged.scores.first, line)
        leaks = check_leaks(prices, options.config, options.seed) if task.with_leaks else None
    return _SetFindings(judged, tables, behind, leaks)


def _with_calendar(prices: Prices, task: _SetTask) -> Prices:
    """A staged set with the staged calendar; anything else, or without one, as it is."""
    folder = data_folder(task.data)
    if folder is None or task.name not in NAMES:
        return prices
    try:
        return with_staged_calendar(prices, folder)
    except DependencyUnavailable as error:
        return replace(prices, notes=(*prices.notes, f"{prices.name}: without a calendar: {error}"))


def _tail_and_fusion(
    main: DatasetJudgement,
    tables: Sequence[HorizonTable],
    behind: Sequence[BestExpertRatio],
    notes: list[str],
) -> dict[str, float]:
    """The main set's left tail, and the set, stream and horizon where the mix is furthest behind its best expert."""
    found: dict[str, float] = {}
    name = main.scores.prices.name
    tail = left_tail_1pct([table for table in tables if table.data == name])
    if tail is not None:
        found["left_tail_1pct"] = tail[0]
        notes.append(
            f"left_tail_1pct: {name}, {tail[1]} bars, from {main.scores.prices.dates()[main.scores.first]} on"
        )
    worst = worst_ratio(behind)
    if worst is not None:
        found["fused_vs_best_expert"] = worst.ratio
        notes.append(f"fused_vs_best_expert: {worst.data}, {worst.horizon} bars, behind {worst.expert}")
    return found


def with_settings(settings: Settings, pairs: Sequence[str]) -> Settings:
    """The settings with KEY=VALUE pairs of [forecasting] applied. Raises: InvalidInput."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, found, text = pair.partition("=")
        if not found or not key:
            raise InvalidInput(f"--set {pair}: write KEY=VALUE, such as weight_half_life_bars=250")
        try:
            values[key] = msgspec.json.decode(text.encode())
        except msgspec.DecodeError:
            values[key] = text
    return override(settings, "forecasting", **values) if values else settings


def spread_sample(prices: Prices, num: int) -> Prices:
    """`num` of the symbols, evenly spread over their alphabet, so that every run takes the same."""
    spread = np.linspace(0, len(prices.symbols) - 1, min(num, len(prices.symbols)))
    return prices.cut([prices.symbols[round(float(place))] for place in spread])


def default_sets(data: Path | None, notes: list[str]) -> Sequence[str]:
    """Every staged set; the embedded sample where there is no folder of them, which `notes` then says."""
    if data is None and data_folder() is None:
        notes.append("staged data were not found: these figures are of the small embedded sample")
        return ("sample",)
    return NAMES


def _lead(main: DatasetJudgement) -> str:
    scores = main.scores
    scores_in_words = [
        f"{scores.ratio(name, 0):.3f} of {label}"
        for name, label in ((HISTVOL, "20-bar volatility's"), (EWMA, "EWMA's"), (GARCH[0], "GARCH(1,1)-t's"))
        if name in scores.names and scores.both(name, 0).any()
    ]
    return (
        f"One bar ahead on {scores.prices.name}, {len(scores.prices.symbols)} series from "
        f"{scores.prices.dates()[scores.begin]} on, the fused forecast's CRPS is {', '.join(scores_in_words)}."
    )


_GOALS = (
    ("crps_vs_histvol20", "of 20-bar volatility's CRPS, worst horizon", 0.98, None),
    ("crps_vs_ewma", "of EWMA's CRPS, worst horizon", 0.985, None),
    ("crps_vs_garch_t", "of GARCH(1,1)-t's CRPS, worst horizon", 0.99, None),
    ("coverage90", "lowest coverage of 90% intervals over horizons", 0.92, 0.88),
    ("coverage90_worst_regime", "lowest coverage in any regime or crisis", None, 0.85),
    ("speed_vs_arch", "times as fast as arch", None, 100.0),
)


def _cards(metrics: dict[str, float | None]) -> list[Card]:
    cards: list[Card] = []
    for key, label, most, least in _GOALS:
        value = metrics.get(key)
        if value is not None:
            good = (most is None or value <= most) and (least is None or value >= least)
            cards.append(Card(f"{value:.3f}" if value < 10 else f"{value:,.0f}", label, good))
    return cards
