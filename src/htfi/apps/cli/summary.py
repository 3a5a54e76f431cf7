"""What a run says at its end: how good the forecasts were, how much was done, and where everything is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from htfi.apps.cli.orders.view import summary_line
from htfi.apps.cli.view.state import RunCounters
from htfi.apps.display.drawing import MUTED, REGIME_STYLE, printable, truncate_middle
from htfi.apps.display.tables import hanging_lines, has_width
from htfi.domain.counts import counted
from htfi.domain.decision import Regime, Rung
from htfi.domain.generation import SpeculationStats
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting.config import DEFAULT_COVARIATES
from htfi.forecasting.kinds import KindChoice
from htfi.forecasting.known_variance.event_facts import KindFacts
from htfi.forecasting.known_variance.relations import is_day_of_others
from htfi.forecasting.known_variance.stated_events import MIN_CHANGE
from htfi.forecasting.scores import ScoreRow, beside_best
from htfi.forecasting.track_record import TrackRecordRow
from htfi.governance.checkpoints.state import FINAL_PHASES, CheckpointPhase
from htfi.governance.control.state import bundle_words, held_words
from htfi.narrative.calendar.prefetching import PrefetchStats
from htfi.narrative.rationale.units import reader_names

if TYPE_CHECKING:
    from htfi.wiring.run import OpenRun

BASELINE = "random_walk"
_READS_COVARIATES = "market_har"
_INDENT, _MIN_NAME = 12, 20
_GROUP_WIDTH, _NARROW_GROUP_WIDTH = 28, 17
_MAX_RETURNING = 3
_MAX_EVENTS = 3
_COVERAGE = (0.88, 0.92)  # what an honest 90% band is expected to hold
_BETTER, _WORSE = REGIME_STYLE[Regime.NORMAL], REGIME_STYLE[Regime.STRESSED]


@dataclass(frozen=True, slots=True)
class RunTotals:
    """A whole run in figures; `num_resumed` decisions were made before this start. `nodes`: of a run with peers."""

    scores: Sequence[ScoreRow]
    num_events: int
    num_decisions: int
    num_resumed: int
    num_withheld: int
    elapsed_s: float
    quarantine: Mapping[str, int]
    ledger_size: int
    ledger_root: str
    outputs: Sequence[Path]
    speculation: Mapping[Rung, SpeculationStats] = field(default_factory=dict[Rung, SpeculationStats])
    nodes: RunCounters | None = None
    narrators: Sequence[TrackRecordRow] = ()
    num_deepened: int = 0
    prepared: PrefetchStats = field(default_factory=PrefetchStats)  # of the calendar's releases
    num_verified: int = 0
    num_borne_out: int = 0
    num_deep_reads_skipped: int = 0
    num_held: int = 0  # news in quarantine
    asked: Mapping[CheckpointPhase, int] = field(default_factory=dict[CheckpointPhase, int])  # of people
    num_answers: int = 0  # decisions between bars, because of news
    suppressed: Mapping[str, int] = field(default_factory=dict[str, int])  # news left to the bars, by rule
    num_dropped_rows: int = 0  # of calendars, that could not matter
    num_repaired: int = 0  # rows used with a field put right
    bundle: str = ""  # which policy bundle is in force; empty where nothing is governed
    held: str = ""  # what is stopped and which breakers are not closed
    refused: Sequence[str] = ()  # a line on each source whose every row was quarantined
    choices: Sequence[KindChoice] = ()  # of experts, by kind of series
    returning: Sequence[str] = ()  # series that return to a level
    covariates: Sequence[str] = ()  # series that inform the volatility of the others
    missing_covariates: Sequence[str] = ()  # those that the settings name and the run has not
    orders: str = ""  # orders, fills and the result of a run that trades
    events: Sequence[KindFacts] = ()  # of a calendar that bars held, the largest factor first
    num_scheduled: int = 0  # events of the calendar
    num_days_of_others: int = 0  # series with bars of a day or longer that are no pairs of currencies
    has_other_bars: bool = False
    has_results_between_sessions: bool = (
        False  # of companies whose bars are shorter than a day; no bar holds them
    )


def print_summary(
    console: Console,
    run: "OpenRun",
    outputs: Sequence[Path],
    elapsed_s: float,
    nodes: RunCounters | None = None,
) -> None:
    """Print the summary of a run that has ended; `outputs` are the files worth naming, `nodes` its last counters."""
    recorder, preparing = run.loop.recorder, run.loop.components.prepared
    governed = run.loop.components.governance
    forecaster = run.loop.components.forecaster
    named = forecaster.covariates if _READS_COVARIATES in forecaster.models else ()
    missing = [name for name in forecaster.missing_covariates if name in named]
    num_days_of_others = sum(map(is_day_of_others, forecaster.series))
    totals = RunTotals(
        scores=forecaster.scores(),
        num_events=run.loop.num_events,
        num_decisions=recorder.num_decided,
        num_resumed=run.num_resumed,
        num_withheld=recorder.num_withheld,
        elapsed_s=elapsed_s,
        quarantine=run.quarantine.counts(),
        ledger_size=run.ledger.size,
        ledger_root=run.ledger.root().hex(),
        outputs=outputs,
        speculation=run.loop.components.views.speculation_stats,
        nodes=nodes,
        narrators=forecaster.track_records(),
        choices=forecaster.choices,
        returning=forecaster.returning,
        num_deepened=recorder.num_amended - preparing.num_verified if nodes is None else 0,
        prepared=preparing.prefetcher.stats,
        num_verified=preparing.num_verified,
        num_borne_out=preparing.num_confirmed,
        num_deep_reads_skipped=run.loop.num_deep_reads_skipped,
        num_held=run.loop.held_news.num_held,
        asked=run.loop.components.governance.waiting.counts(),
        num_answers=run.loop.triggers.num_decided,
        suppressed=run.loop.triggers.suppressed,
        num_dropped_rows=run.loop.components.news.num_dropped_rows,
        num_repaired=run.quarantine.num_repaired(),
        bundle=bundle_words(governed.state_now) if governed.is_governed else "",
        held=held_words(governed.state_now),
        refused=run.rejected_sources(),
        covariates=[name for name in named if name not in missing],
        missing_covariates=missing if named != DEFAULT_COVARIATES else [],
        events=forecaster.event_facts(),
        num_scheduled=len(run.events),
        num_days_of_others=num_days_of_others,
        has_other_bars=num_days_of_others < len(forecaster.series),
        has_results_between_sessions=has_results_within_days(run.events, forecaster.series),
        orders="" if run.orders is None else summary_line(run.orders.accounts()),
    )
    for line in summary(totals, console.width, wraps=console.is_terminal or has_width()):
        console.print(line, soft_wrap=True)


def summary(totals: RunTotals, width: int, *, wraps: bool = True) -> list[Text]:
    """The lines to print on a terminal of `width` columns; in a file facts need not wrap."""
    lines = [Text(), *score_table(totals.scores, width), Text()]
    for name, value in _facts(totals):
        block = hanging_lines(name, value, width - 1 if wraps else len(value) + _INDENT, _INDENT)
        lines += [Text(f" {line[:_INDENT]}", MUTED).append(line[_INDENT:], "") for line in block]
    return lines


def score_table(scores: Sequence[ScoreRow], width: int) -> list[Text]:
    """CRPS beside the random walk's and 90% coverage, a row a name and a group of columns a horizon."""
    if not scores:
        return [Text(" No outcome is known yet: there is nothing to score.", MUTED)]
    horizons = sorted({row.horizon for row in scores})
    names = list(dict.fromkeys(row.name for row in scores))
    name_width = min(max(len(name) for name in names), max(_MIN_NAME, width - 2 - _NARROW_GROUP_WIDTH)) + 1
    wide = 1 + name_width + len(horizons) * _GROUP_WIDTH <= width
    beside = len(horizons) if wide else max(1, (width - 1 - name_width) // _NARROW_GROUP_WIDTH)
    lines: list[Text] = []
    for first in range(0, len(horizons), beside):
        lines += _score_part(scores, names, horizons[first : first + beside], name_width, wide)
    return lines


def _score_part(
    scores: Sequence[ScoreRow], names: Sequence[str], horizons: Sequence[int], name_width: int, wide: bool
) -> list[Text]:
    cells = {(row.name, row.horizon): row for row in scores}
    first, second = Text(f" {'':<{name_width}}"), Text(f" {'':<{name_width}}", MUTED)
    for horizon in horizons:
        num = max(row.num for row in scores if row.horizon == horizon)
        head = f"{horizon} bar{'s' if horizon > 1 else ''} ahead, n = {num:,}" if wide else f"{horizon} ahead"
        first.append(f"{head:>{_GROUP_WIDTH if wide else _NARROW_GROUP_WIDTH}}", "bold")
        second.append((f"{'CRPS':>11}" if wide else "") + f"{'vs walk':>9}{'90% in':>8}")
    lines = [first, second]
    for name in names:
        shown_name = truncate_middle(name.replace("_", " "), name_width - 1)
        line = Text(f" {shown_name:<{name_width}}", "bold" if name == names[0] else "")
        for horizon in horizons:
            _append_score(line, cells.get((name, horizon)), cells.get((BASELINE, horizon)), wide)
        lines.append(line)
    return lines


def _append_score(line: Text, row: ScoreRow | None, baseline: ScoreRow | None, wide: bool) -> None:
    if row is None:
        line.append((f"{'–':>11}" if wide else "") + f"{'–':>9}{'–':>8}", MUTED)
        return
    if wide:
        line.append(f"{row.crps:>11.5f}")
    if (
        baseline is None or baseline.crps <= 0 or baseline.num != row.num
    ):  # of other forecasts no ratio means much
        line.append(f"{'–':>9}", MUTED)
    else:
        ratio = row.crps / baseline.crps
        style = MUTED if row is baseline else _BETTER if ratio < 0.9995 else _WORSE if ratio > 1.0005 else ""
        line.append(f"{ratio:>9.3f}", style)
    honest = _COVERAGE[0] <= row.coverage90 <= _COVERAGE[1]
    line.append(f"{row.coverage90:>8.1%}", "" if honest else _WORSE)


def words_beside_best(scores: Sequence[ScoreRow]) -> str:
    """The fused forecast's CRPS over that of the expert that turned out best, on the same forecasts, by horizon."""
    parts: list[str] = []
    for horizon in sorted({row.horizon for row in scores}):
        ratio, name = beside_best(scores, horizon)
        if name:
            parts.append(f"{ratio:.4f} of {name.replace('_', ' ')}'s {counted(horizon, 'bar')} ahead")
    return ", ".join(parts)


def _choice_lines(totals: RunTotals) -> list[tuple[str, str]]:
    """Which experts all series have, which only some kinds, and why."""
    if not totals.choices:
        return []
    shared = [
        name for name in totals.choices[0].experts if all(name in one.experts for one in totals.choices)
    ]
    parts = ", ".join(shared) + " for all"
    more: dict[tuple[str, ...], list[str]] = {}
    for choice in totals.choices:
        others = tuple(name for name in choice.experts if name not in shared)
        kind = f"{counted(choice.num_series, 'series', 'series')} {choice.why} ({printable(choice.example)})"
        more.setdefault(others, []).append(kind)
    for others, kinds in more.items():
        if others:
            parts += f"; {', '.join(others)} for " + " and ".join(kinds)
    lines = [("experts", parts.replace("_", " "))]
    if totals.returning:
        names = ", ".join(printable(name) for name in totals.returning[:_MAX_RETURNING])
        more_of_them = len(totals.returning) - _MAX_RETURNING
        names += f" and {more_of_them:,} more" if more_of_them > 0 else ""
        lines.append(("", f"moves back to their level are expected of {names}, whose prices have shown them"))
    return lines


def _speculation_lines(stats: SpeculationStats) -> str:
    """What a model wrote, and how far its draft spared it passes."""
    counts = f"{counted(stats.num_answers, 'answer')} of {counted(stats.num_tokens, 'token')}"
    if not stats.acceptance:
        return counts
    rate = stats.num_tokens / stats.num_passes
    return f"{counts}, {rate:.1f} tokens per pass of the target; {stats.acceptance:.0%} of drafted tokens accepted"


def _placement_lines(nodes: RunCounters) -> list[tuple[str, str]]:
    """Where answers were written, and what became of those that the target did not write in time."""
    places: list[str] = []
    for peer in nodes.peers:
        ways = ", ".join(f"{num:,} {printable(way)}" for way, num in peer.routes.items() if num)
        if peer.num_placed:
            places.append(f"{printable(peer.name)} {peer.num_placed:,}" + (f" ({ways})" if ways else ""))
    if nodes.num_answered_locally:
        places.append(f"local {nodes.num_answered_locally:,}")
    late = f"{nodes.num_provisional:,} provisional, {nodes.num_amended:,} amended"
    if nodes.num_pending:
        late += f", {nodes.num_pending:,} without an answer of the target"
    return [("placed", "; ".join(places) or "nothing"), ("late", f"{late}; {nodes.num_lost:,} lost")]


def _track_record_lines(totals: RunTotals) -> list[tuple[str, str]]:
    """What views were worth at the first horizon, and how many were read again in depth."""
    first = min((row.horizon for row in totals.narrators), default=0)
    rows = [row for row in totals.narrators if row.horizon == first]
    names = reader_names([row.narrator for row in rows])
    facts = [
        (
            "weighed",
            f"{counted(row.num, 'view')} by {names[row.narrator]}: CRPS "
            f"{row.tilted_crps / row.plain_crps - 1 if row.plain_crps else 0.0:+.1%} against numbers alone "
            f"(lower is better); weight at the end {row.weight:.0%}",
        )
        for row in rows
    ]
    if totals.num_deepened or totals.num_deep_reads_skipped:
        left = (
            f"; {totals.num_deep_reads_skipped:,} more were due but there was no time"
            if totals.num_deep_reads_skipped
            else ""
        )
        facts.append(
            ("in depth", f"{counted(totals.num_deepened, 'decision')} read again in depth and amended{left}")
        )
    if totals.prepared.num_opened:
        facts.append(("prepared", _preparation_lines(totals)))
    return facts


def _preparation_lines(totals: RunTotals) -> str:
    """What became of the calendar's releases, and of the decisions that were served with what was read ahead."""
    tally = totals.prepared
    return (
        f"{counted(tally.num_opened, 'announcement')}, {tally.num_reported:,} published; "
        f"{counted(tally.num_served, 'decision')} used a "
        f"prepared view, {totals.num_verified:,} of them read again, {totals.num_borne_out:,} with the same direction"
    )


def _answer_line(totals: RunTotals) -> str:
    """How many decisions answered news between two bars, and what quiet rules left to the bars."""
    line = f"{counted(totals.num_answers, 'decision')} between bars, because of news"
    if totals.suppressed:
        rules = ", ".join(f"{rule} {num:,}" for rule, num in sorted(totals.suppressed.items()))
        line += f"; {counted(sum(totals.suppressed.values()), 'item')} left to the next bar: {rules}"
    return line


def _approval_line(asked: Mapping[CheckpointPhase, int]) -> str:
    """What became of decisions that waited for people."""
    expired = sum(
        asked.get(phase, 0)
        for phase in (CheckpointPhase.EXPIRED_WITHHELD, CheckpointPhase.EXPIRED_LOWER_RUNG)
    )
    num_open = sum(num for phase, num in asked.items() if phase not in FINAL_PHASES)
    line = (
        f"{counted(sum(asked.values()), 'decision')} put to people: "
        f"{asked.get(CheckpointPhase.APPROVED, 0):,} approved, {asked.get(CheckpointPhase.DENIED, 0):,} denied, "
        f"{expired:,} expired, {num_open:,} waiting"
    )
    return line + ("; answer with htfi approvals, then run the same command again" if num_open else "")


def _covariate_lines(totals: RunTotals) -> list[tuple[str, str]]:
    lines: list[str] = []
    if totals.covariates:
        lines.append(f"{', '.join(map(printable, totals.covariates))} in the volatility of the others")
    if totals.missing_covariates:
        names = ", ".join(map(printable, totals.missing_covariates))
        lines.append(f"no bar of {names}, which forecasting.covariates names")
    return [("covariates", "; ".join(lines))] if lines else []


def _events_line(totals: RunTotals) -> str:
    """The kinds of scheduled events that move bands most, and how many surprises were learnt from; or why none does."""
    kinds = [one for one in totals.events if abs(one.learnt_factor - 1.0) >= MIN_CHANGE]
    if not kinds and totals.has_results_between_sessions:
        return (
            "results of a company widen the hours of the session that follows; of what bars held no event moves them: "
            f"{_why_none(totals)}"
        )
    if not kinds:
        return f"no event of the calendar moves the bands of these series: {_why_none(totals)}"
    parts: list[str] = []
    wider = [one for one in kinds if one.learnt_factor > 1.0]
    narrower = [one for one in kinds if one.learnt_factor < 1.0]
    for word, ordered in (("wider", wider), ("narrower", narrower[::-1])):
        named = ", ".join(
            f"{printable(one.kind.replace('_', ' '))} × {one.learnt_factor:.1f} ({one.num_seen:,} seen)"
            for one in ordered[:_MAX_EVENTS]
        )
        if named:
            parts.append(f"{word} bands before {named}")
    num = sum(one.surprise.num for one in totals.events if one.surprise is not None)
    return "; ".join([*parts, *([f"{counted(num, 'surprise')} learnt from"] if num else [])])


def has_results_within_days(events: Sequence[ScheduledEvent], series: Sequence[str]) -> bool:
    """Whether a calendar states results with their hour of a company with bars shorter than a day."""
    symbols = {name.rpartition("/")[0].upper() for name in series if not is_day_of_others(name)}
    return any(
        event.kind == "earnings" and event.is_exact and event.symbol.upper() in symbols for event in events
    )


def _why_none(totals: RunTotals) -> str:
    if totals.events:
        return f"what their bars held, {counted(len(totals.events), 'kind')}, changes none by a tenth"
    others = "none of their bars held one with an effect"
    if totals.num_days_of_others:
        others = (
            "none of their other bars held one with an effect"
            if totals.has_other_bars
            else "it states none in this time"
        )
        return f"of daily bars of what is no pair of currencies results of the company alone do, and {others}"
    return others


def _facts(totals: RunTotals) -> list[tuple[str, str]]:
    num_here = totals.num_decisions - totals.num_resumed
    rate = num_here / totals.elapsed_s if totals.elapsed_s > 0 else 0.0
    done = f"{counted(totals.num_events, 'event')}, {counted(totals.num_decisions, 'decision')}"
    if totals.num_resumed:
        done += f", {totals.num_resumed:,} of them in earlier starts"
    facts = [("done", f"{done}; {num_here:,} in {totals.elapsed_s:.1f} s, {rate:,.0f} per second")]
    facts += _choice_lines(totals)
    best = words_beside_best(totals.scores)
    if best:
        facts.append(("fused CRPS", best))
    if totals.num_scheduled:
        facts.append(("events", _events_line(totals)))
    if totals.num_withheld:
        facts.append(("withheld", f"{totals.num_withheld:,} by policy, recorded but not released"))
    if totals.bundle:
        facts.append(("governance", totals.bundle))
    if totals.orders:
        facts.append(("traded", totals.orders))
    if totals.held:
        facts.append(("held back", totals.held))
    if totals.asked:
        facts.append(("people", _approval_line(totals.asked)))
    for rung, stats in totals.speculation.items():
        facts.append((rung.value, _speculation_lines(stats)))
        if stats.rule == "entropy_aware":
            facts.append(("", "the entropy-aware rule changes the distribution of these answers"))
        if stats.alarm:
            facts.append(("", stats.alarm))
    facts += _covariate_lines(totals)
    facts += _track_record_lines(totals)
    if totals.num_answers or totals.suppressed:
        facts.append(("answered", _answer_line(totals)))
    if totals.nodes is not None and totals.nodes.peers:
        facts += _placement_lines(totals.nodes)
    reasons = sorted(totals.quarantine.items(), key=lambda item: -item[1])
    aside = "; ".join(f"{count:,} {printable(reason)}" for reason, count in reasons)
    facts.append(
        ("quarantine", counted(sum(totals.quarantine.values()), "row") + (f": {aside}" if aside else ""))
    )
    facts += [("", line) for line in totals.refused]
    if totals.num_repaired:
        facts.append(
            (
                "repaired",
                f"{totals.num_repaired:,} {'bar was' if totals.num_repaired == 1 else 'bars were'} repaired and used; "
                "quarantine.jsonl lists the changes",
            )
        )
    if totals.num_dropped_rows:
        facts.append(
            ("", f"{counted(totals.num_dropped_rows, 'row')} of a calendar that could not matter: not read")
        )
    if totals.num_held:
        facts.append(
            ("", f"{counted(totals.num_held, 'news item')} in quarantine: list with `htfi quarantine list`")
        )
    facts.append(("ledger", f"{counted(totals.ledger_size, 'entry', 'entries')}, root {totals.ledger_root}"))
    return facts + [("" if k else "files", str(path)) for k, path in enumerate(totals.outputs)]
