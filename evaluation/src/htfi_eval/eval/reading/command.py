"""`htfi eval reading`: what the reader of news understands, on labelled lines, figures, official texts and prices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
from msgspec.structs import replace

from htfi.domain.errors import InvalidInput
from htfi.library.charts.specs import Chart
from htfi.narrative.config import EncodingConfig
from htfi.narrative.facts.fact_reader import FactReader
from htfi.wiring.facts import open_fact_reader
from htfi_eval.commands import ProgressLine, beside_option, data_option, output_options, quick_option
from htfi_eval.encoder_weights import NO_FULL_WEIGHTS, full_weights_option
from htfi_eval.eval.prices import STAGED
from htfi_eval.eval.reading import charts
from htfi_eval.eval.reading.comparisons import (
    ComparisonFigures,
    earnings_comparisons,
    judge_comparisons,
    release_comparisons,
)
from htfi_eval.eval.reading.event_study import FIRST_UNSEEN_YEAR, SignStudy, as_table, kind_rows, study_signs
from htfi_eval.eval.reading.intraday import study_hours
from htfi_eval.eval.reading.labelled import (
    ROWS_PER_SET,
    labelled_metrics,
    load_labelled,
    read_labelled,
    set_rows,
    silence_rows,
    worst_rows,
)
from htfi_eval.eval.reading.labelled import kind_rows as labelled_kind_rows
from htfi_eval.eval.reading.moves import measure_moves
from htfi_eval.eval.reading.official import evaluate_official
from htfi_eval.eval.reading.overnight import (
    AS_READ,
    EarnedEvents,
    OvernightScores,
    earned_events,
    pooled,
    score_overnight,
)
from htfi_eval.eval.reading.own_lines import action_text, judge_own_lines
from htfi_eval.eval.reading.policy import evaluate_policy
from htfi_eval.eval.reading.precision import measure_int8
from htfi_eval.eval.reading.staged_news import LOADERS, read_events, sampled
from htfi_eval.report import write_outputs
from htfi_eval.results import Card, Evaluation, TitledTable, read_metrics

# Figures at the top of the page: metric, label, and what it must reach; `True` where more is better.
_FIGURES = (
    ("sign_right", "of signs right, unseen sources", 0.88, True),
    ("three_class", "of lines right in three classes", 0.70, True),
    ("fires_on_neutral", "of neutral lines with a view", 0.25, False),
    ("fires_on_irrelevant", "of irrelevant tagged lines with a view", 0.03, False),
    ("role_right", "of roles right", 0.90, True),
    ("surprise_right", "of surprises right", 0.97, True),
    ("policy_action_right", "of decisions on rates right", 0.97, True),
    ("confidence_ece", "calibration error", 0.05, False),
    ("official_held", "of official documents held back", 0.001, False),
    ("sign_flips_int8", "of views turned round by int8", 0.005, False),
    ("overnight_strong_crps_gain", "of CRPS gained after strong overnight items", 0.005, True),
)
_NUM_WORST, _MAX_SHOWN = 30, 160
_QUICK_COMPARISONS, _QUICK_ITEMS = 5_000, 12_000
_MAX_POSTS = 12_000  # of StockNet's, most of which say little
_HOW = (
    "reader: as `htfi news` reads, asked for the line's entity where it has one; nothing was trained on any of these "
    "sets; heads alone: the encoder's heads for sentiment; TF-IDF learnt from the project's own lines; all sets alike: "
    f"each set counts like {ROWS_PER_SET:,} rows at most",
    "mistakes are shown of one half of the lines; figures that end in unseen_half are of the other half",
    "sign right: of views up or down at lines labelled up or down; right of all views: one at a neutral line is wrong; "
    "confidence_ece is of the former, confidence_ece_of_all_views of the latter",
)


@dataclass(slots=True)
class Findings:
    """What the sections found so far; those that did not run say what is missing."""

    metrics: dict[str, float | None] = field(default_factory=dict[str, float | None])
    rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    tables: list[TitledTable] = field(default_factory=list[TitledTable])
    charts: list[Chart] = field(default_factory=list[Chart])
    notes: list[str] = field(default_factory=list[str])

    def skip(self, section: str, missing: str) -> None:
        self.notes.append(f"skipped: {section}: {missing} is not in the folder of staged data")
        click.echo(self.notes[-1], err=True)

    def table(self, title: str, rows: Sequence[Mapping[str, object]]) -> None:
        if rows:
            self.tables.append(TitledTable(title, [_plain(row) for row in rows]))


_EPILOG = """\b
Examples:
  htfi eval reading --quick                     1,000 lines a set, few prices
  htfi eval reading --html build/reading.html   everything, and a page of it
"""


@click.command("reading", short_help="What is understood of real news.", epilog=_EPILOG)
@data_option
@click.option(
    "--corpora",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("corpora"),
    show_default=True,
    help="The project's own templates, for TF-IDF.",
)
@quick_option
@click.option("--seed", default=0, show_default=True, help="Seed of samples, notations and bootstraps.")
@beside_option("htfi bench reading")
@full_weights_option
@output_options
def command(
    data: Path | None,
    corpora: Path,
    quick: bool,
    seed: int,
    beside: Path | None,
    weights: Path | None,
    html_file: Path | None,
    json_file: Path | None,
) -> None:
    """Signs, roles, figures and silence on texts that nothing was learnt from, and what prices did after them.

    A section whose data are not staged is skipped and named.
    """
    result = evaluate(data or STAGED, corpora, seed, weights, quick=quick)
    if beside is not None:
        result = replace(result, metrics=result.metrics | read_metrics(beside))
    write_outputs(result, json_file=json_file, html_file=html_file)


def evaluate(data: Path, corpora: Path, seed: int, weights: Path | None = None, *, quick: bool) -> Evaluation:
    """All sections. Raises: DependencyUnavailable, IntegrityError, MissingExtra."""
    found = Findings()
    reader = _open({})
    _labelled(found, data, corpora, reader, seed, weights, quick=quick)
    _own_lines(found)
    _comparisons(found, data, seed, quick=quick)
    _official(found, data)
    _policy(found, data)
    _prices(found, data, seed, quick=quick)
    metrics = {name: _finite(value) for name, value in found.metrics.items()}
    return Evaluation(
        name="reading",
        title="What is understood of real news",
        lead=lead(metrics),
        metrics=metrics,
        cards=cards(metrics),
        charts=found.charts,
        rows=[_plain(row) for row in found.rows],
        tables=found.tables,
        notes=[*_HOW, *found.notes, f"reader: {reader.version}"],
        seed=seed,
    )


def lead(metrics: Mapping[str, float | None]) -> str:
    """The main result in one sentence."""
    sign, three, fires = (metrics.get(name) for name in ("sign_right", "three_class", "fires_on_neutral"))
    if sign is None or three is None or fires is None:
        return "The labelled sets are not staged: no sign could be held against a label."
    return (
        f"On sources that nothing was learnt from, {sign:.1%} of the signs are right, {three:.1%} of the lines in "
        f"three classes, and {fires:.1%} of neutral lines get a view."
    )


def cards(metrics: Mapping[str, float | None]) -> list[Card]:
    found: list[Card] = []
    for name, label, goal, more in _FIGURES:
        value = metrics.get(name)
        if value is not None:
            found.append(
                Card(
                    f"{value:.2%}" if goal < 0.01 else f"{value:.1%}",
                    label,
                    value >= goal if more else value <= goal,
                )
            )
    return found


def _open(names: Mapping[str, str]) -> FactReader:
    return open_fact_reader(EncodingConfig(), names)


def _labelled(
    found: Findings,
    data: Path,
    corpora: Path,
    reader: FactReader,
    seed: int,
    weights: Path | None,
    *,
    quick: bool,
) -> None:
    try:
        sets = load_labelled(data, ROWS_PER_SET if quick else None, seed)
    except InvalidInput:
        found.skip("labelled sets", "sentiment/financial_sentiment.parquet")
        return
    judged = read_labelled(data, sets, reader, corpora, seed)
    found.metrics |= labelled_metrics(judged)
    found.rows += set_rows(judged)
    found.table("Labelled lines, by kind of event", labelled_kind_rows(judged))
    found.table("Labelled lines: why it says nothing", silence_rows(judged))
    found.table("Labelled lines: the boldest mistakes", worst_rows(judged, _NUM_WORST))
    found.charts += charts.labelled_charts(judged)
    drawn = [
        f"{one.name} {len(one.items):,} of {one.num_whole:,}"
        for one in sets
        if len(one.items) < one.num_whole
    ]
    if drawn:
        found.notes.append(f"rows drawn by the seed: {', '.join(drawn)}")
    if weights is None:
        found.notes.append(NO_FULL_WEIGHTS)
        return
    changes = measure_int8(judged, weights)
    found.metrics |= {"sign_flips_int8": changes.flips, "views_changed_int8": changes.changes}
    found.notes.append(f"int8 against fp32 on {changes.num_lines:,} labelled lines")


def _own_lines(found: Findings) -> None:
    figures = judge_own_lines(_open)
    if not figures.metrics:
        found.notes.append("skipped: the project's own held-out lines are not in this installation")
        return
    found.metrics |= figures.metrics
    found.table("The project's own held-out lines", figures.kinds)
    found.table("Own lines: mistakes", figures.mistakes)
    chart = charts.own_line_chart(figures.kinds)
    if chart is not None:
        found.charts.append(chart)


def _comparisons(found: Findings, data: Path, seed: int, *, quick: bool) -> None:
    sample = _QUICK_COMPARISONS if quick else None
    judged: list[ComparisonFigures] = []
    for name, load in (("releases", release_comparisons), ("earnings", earnings_comparisons)):
        told = load(data, sample, seed)
        if told is None:
            found.skip(f"surprises of {name}", "calendar/")
            continue
        judged.append(judge_comparisons(name, told, seed, ProgressLine(f"surprises: {name}")))
    if not judged:
        return
    found.metrics |= {f"surprise_right_{one.name}": one.right.value for one in judged}
    # Releases and earnings count alike, however many there are of each.
    found.metrics["surprise_right"] = sum(one.right.value for one in judged) / len(judged)
    rows: list[dict[str, object]] = []
    for one in judged:
        rows.append({"set": one.name, "notation": "all", "lines": one.right.num, "right": one.right.text})
        for notation, (num, share) in sorted(one.by_notation.items(), key=lambda pair: pair[1][1]):
            rows.append({"set": one.name, "notation": notation, "lines": num, "right": f"{share:.3f}"})
    found.table("Surprises, by notation", rows)
    found.table("Surprises: mistakes", [mistake for one in judged for mistake in one.mistakes])
    found.charts.append(charts.comparison_chart(judged))


def _official(found: Findings, data: Path) -> None:
    progress = ProgressLine("official documents: screening")
    screened = evaluate_official(data)
    if screened is None:
        found.skip("official documents", "central_bank/")
        return
    progress(screened.num_screened, screened.num_screened)
    found.metrics["official_held"] = screened.held_share
    found.notes.append(
        f"official documents: {len(screened.held)} of {screened.num_screened:,} screenings of "
        f"{screened.num_documents:,} documents, as headline, body and both, from the bank's feed and an unknown one"
    )


def _policy(found: Findings, data: Path) -> None:
    progress = ProgressLine("central banks' decisions: reading")
    read = evaluate_policy(data)
    if read is None:
        found.skip("central banks' decisions", "calendar/ or central_bank/")
        return
    parts = (read.headlines, read.statements, read.prospects)
    progress(1, 1)
    found.metrics["policy_action_right"] = read.right
    found.metrics |= {f"policy_{part.name}_right": part.right for part in parts}
    rows: list[dict[str, object]] = []
    for part in parts:
        rows.append({"texts": part.name, "group": "all", "read": part.num, "right": part.right})
        for group, num in sorted(part.by_group.items()):
            share = part.right_by_group[group] / num
            rows.append({"texts": part.name, "group": group, "read": num, "right": share})
    found.table("Central banks' decisions", rows)
    wrong = [
        {
            "texts": part.name,
            "read": "no decision" if action is None else action_text(action),
            "text": text[:_MAX_SHOWN],
        }
        for part in parts
        for text, action in part.wrong[:_NUM_WORST]
    ]
    found.table("Central banks' decisions: mistakes", wrong)


def _prices(found: Findings, data: Path, seed: int, *, quick: bool) -> None:
    studies: list[SignStudy] = []
    kinds: list[dict[str, object]] = []
    scores: list[OvernightScores] = []
    earlier: EarnedEvents | None = None
    for name, load in LOADERS.items():
        news = load(data)
        if news is None:
            found.skip(f"prices after {name}", "text_price/ or panels/")
            continue
        whole = _MAX_POSTS if name == "StockNet" else None
        num = (_QUICK_ITEMS if name == "Reuters" else _QUICK_ITEMS // 6) if quick else whole
        news = sampled(news, num, seed)
        events = read_events(news, _open(news.names), ProgressLine(f"{name}: reading"))
        moves, table = measure_moves(news.prices), as_table(news, events)
        studies += study_signs(table, moves, seed)
        kinds += kind_rows(table, moves, seed)
        # Sources are in order of time: what one earned counts in the years of the next.
        own = earned_events(table, moves)
        earlier = own if earlier is None else earlier.joined(own)
        progress = ProgressLine(f"{name}: the standing forecast")
        scored = score_overnight(table, news.prices, moves, earlier, seed, progress)
        if scored is not None:
            scores.append(scored)
        found.notes += news.notes
    hours = study_hours(data, _open, ProgressLine, _QUICK_ITEMS // 6 if quick else _MAX_POSTS, seed)
    if hours is None:
        found.skip("signs by the hour", "text_price/ or panels/")
    rows = [*(one.row() for one in studies), *(one.row() for one in hours or ())]
    found.table("Prices: does the sign agree?", rows)
    found.table("Prices: how many times a quiet day's move, by kind of event", kinds)
    chart = charts.sign_chart(studies)
    if chart is not None:
        found.charts.append(chart)
    if scores:
        _overnight(found, scores, seed)


def _overnight(found: Findings, scores: Sequence[OvernightScores], seed: int) -> None:
    gains = [gain for one in (pooled(scores), *scores) for gain in one.gains(seed)]
    main = next(gain for gain in gains if gain.way == AS_READ)
    if main.gain.num:
        found.metrics["overnight_strong_crps_gain"] = main.gain.value
        found.charts.append(charts.overnight_chart([gain for gain in gains if gain.source == main.source]))
    found.table(
        f"Strong items before the open, since {FIRST_UNSEEN_YEAR}: CRPS gained over the standing forecast",
        [gain.row() for gain in gains],
    )


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
