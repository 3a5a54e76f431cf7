"""Lays one frame of the terminal view out for a width and height. Pure: `LiveView` prints what it returns."""

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

from rich.text import Text

from htfi.apps.cli.view.nodes import count_states, nodes
from htfi.apps.cli.view.state import SEVERITY, DecisionStatus, SeriesView, ViewState
from htfi.apps.display.drawing import (
    INNER,
    MUTED,
    REGIME_STYLE,
    band,
    expert_styles,
    fan_chart,
    flow_facts,
    format_percent,
    printable,
    sparkline,
    stacked_bar,
    truncate_end,
    truncate_middle,
)
from htfi.domain.decision import Regime
from htfi.domain.time import NS_PER_S, format_ns
from htfi.library.charts.fan import format_price

_LEFT = " "
_WIDE = 100
_CHART_ROWS, _MIN_CHART_ROWS = 16, 6
_TABLE_EXTRA = 4  # a blank line, the head, the count of the rest, the legend
_ROWS_BEFORE_CHART = 8  # a chart must leave room for so many series
_MAX_RATIONALE_LINES = 3
_MIN_NODE_LINES, _EARLY_NODE_LINES = 5, 14  # lines: always, and where nothing else needs them
_COUNTER_LINES = 2
_STATUS_MARKS = {DecisionStatus.FINAL: " ", DecisionStatus.PROVISIONAL: "~", DecisionStatus.AMENDED: "✓"}
_BAR_DONE, _BAR_LEFT = "━", "─"


def frame(state: ViewState, width: int, height: int) -> list[Text]:
    """The whole view, at most `height` lines of at most `width` columns."""
    top = [_title_line(state, width), *_counter_lines(state, width)]
    bottom = _footer(state, width)
    spare = height - len(top) - len(bottom) - _TABLE_EXTRA - min(_ROWS_BEFORE_CHART, len(state.series))
    bottom = [
        *_nodes(state, width, max(_MIN_NODE_LINES, height // 3, min(_EARLY_NODE_LINES, spare))),
        *bottom,
    ]
    num_lines = height - len(top) - len(bottom)
    middle: list[Text] = []
    if state.series:
        rows_first = _TABLE_EXTRA + min(_ROWS_BEFORE_CHART, len(state.series))
        rows_all = _table_rows(state, width)  # what the table does not need the chart may have
        chart_rows = max(
            min(_CHART_ROWS, num_lines - 2 - rows_first), min(width // 3, num_lines - 2 - rows_all)
        )
        if chart_rows >= _MIN_CHART_ROWS:
            middle += [
                Text(),
                _chart_title(state.series[0], width),
                *_chart(state.series[0], width, chart_rows),
            ]
        middle += _table(state, width, num_lines - len(middle))
    lines = [*top, *middle, *bottom][:height]
    for line in lines:
        line.truncate(width)
        line.no_wrap = True
    return lines


def one_line(state: ViewState) -> str:
    """The view where there is no terminal: one plain line."""
    counters = state.counters
    worst = max((s.regime for s in state.series), key=SEVERITY.__getitem__, default=None)
    parts = [
        _clock(state),
        f"{counters.fraction_done:4.0%}" if counters.fraction_done is not None else "",
        f"{counters.num_events:,} events" + _rate(state.events_per_s),
        f"{counters.num_decisions:,} decisions" + _rate(state.decisions_per_s),
        f"{state.num_series} series" + (f", worst {worst.value}" if worst else ""),
        f"ledger {counters.ledger_size:,} {counters.ledger_root[:8]}".rstrip(),
        f"{sum(counters.quarantine.values()):,} quarantined",
        f"{counters.num_repaired:,} repaired" if counters.num_repaired else "",
        f"{counters.num_withheld:,} withheld" if counters.num_withheld else "",
        f"held back: {counters.held}" if counters.held else "",
        f"orders {counters.orders}" if counters.orders else "",
        *(f"{num:,} {name}" for name, num in _late(state) if num),
        f"nodes {count_states(counters.peers)}" if counters.peers else "",
    ]
    return "  ".join(part for part in parts if part)


def _nodes(state: ViewState, width: int, num_lines: int) -> list[Text]:
    counters = state.counters
    totals = [("edge alone", counters.num_answered_locally), *_late(state)]
    return nodes(counters.peers, counters.changes, totals, state.utc_ns, width, num_lines)


def _late(state: ViewState) -> list[tuple[str, int]]:
    """What became of answers that the target could not write in time."""
    counters = state.counters
    return [
        ("provisional", counters.num_provisional),
        ("amended", counters.num_amended),
        ("awaited", counters.num_pending),
        ("lost", counters.num_lost),
    ]


def _rate(per_s: float) -> str:
    return f" ({_short(per_s)}/s)" if per_s > 0 else ""


def format_seconds(seconds: float) -> str:
    """0:08, 12:34, 3:05:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _title_line(state: ViewState, width: int) -> Text:
    text = Text(_LEFT)
    text.append("HTFI", "bold")
    text.append(f"  {truncate_middle(state.title, width // 3)}  ", MUTED)
    text.append(_clock(state), "bold")
    done = state.counters.fraction_done
    if done is None:
        return text
    tail = f" {done:4.0%}"
    if state.eta_s is not None and done < 1:
        tail += f"  {format_seconds(state.eta_s)} left"
    cells = min(44, width - len(text) - len(tail) - 4)
    if cells < 6:
        return text
    text.append(" " * (width - len(text) - len(tail) - cells - 1))
    reached = round(cells * min(done, 1.0))
    text.append(_BAR_DONE * reached, INNER)
    text.append(_BAR_LEFT * (cells - reached), MUTED)
    text.append(tail)
    return text


def _counter_lines(state: ViewState, width: int) -> list[Text]:
    """One line or two, every figure whole; what stands beside figures is left out before a third line is begun."""
    counters = state.counters
    facts = [
        (
            "events",
            f"{counters.num_events:,}",
            f"{_short(state.events_per_s)}/s" if state.events_per_s else "",
        ),
        (
            "decisions",
            f"{counters.num_decisions:,}",
            f"{_short(state.decisions_per_s)}/s" if state.decisions_per_s else "",
        ),
        ("ledger", f"{counters.ledger_size:,}", counters.ledger_root[:8]),
    ]
    if counters.num_withheld:
        facts.append(("withheld", f"{counters.num_withheld:,}", ""))
    if counters.held:
        facts.append(("held back", truncate_end(counters.held, width - 12), ""))
    if counters.orders:
        facts.append(("orders", counters.orders, ""))
    if not counters.peers:  # their panel shows it
        facts += [(name, f"{num:,}", "") for name, num in _late(state) if num]
    if counters.num_repaired:
        facts.append(("repaired", f"{counters.num_repaired:,}", ""))
    num_aside = sum(counters.quarantine.values())
    facts.append(("quarantine", f"{num_aside:,}", ""))
    lines = flow_facts(facts, width)
    if len(lines) > _COUNTER_LINES:
        lines = flow_facts([(name, value, "") for name, value, _ in facts], width)
    if num_aside:
        lines[-1].stylize(REGIME_STYLE[Regime.STRESSED], len(lines[-1]) - len(f"{num_aside:,}"))
    reasons = sorted(counters.quarantine.items(), key=lambda item: -item[1])
    for reason, count in reasons:
        note = f"  {truncate_end(reason, 28)} {count:,}"
        if len(lines[-1]) + len(note) > width:
            break
        lines[-1].append(note, MUTED)
    return lines


def _chart_title(series: SeriesView, width: int) -> Text:
    text = Text(_LEFT)
    text.append(truncate_middle(series.name, 40), "bold")
    text.append(f"  {format_price(series.last_price)}  ")
    text.append(format_percent(series.change), _move_style(series.change))
    text.append(f"  ■ {series.regime.value}", REGIME_STYLE[series.regime])
    if series.status is not DecisionStatus.FINAL:
        text.append(f"  {_STATUS_MARKS[series.status]} {series.status.value}", "bold")
    tail = f"   next {series.horizons[-1]} bars: outer band 90%, inner 50%"
    return text.append(tail, MUTED) if len(text) + len(tail) <= width else text


def _chart(series: SeriesView, width: int, rows: int) -> list[Text]:
    return [Text(_LEFT).append_text(line) for line in fan_chart(series, width - 2 * len(_LEFT), rows)]


def _table(state: ViewState, width: int, num_lines: int) -> list[Text]:
    """One row a series under a head, and a last line for what is not shown. Names come first: what else there is gives
    way to them.
    """
    wide = width >= _WIDE
    all_fit = _table_rows(state, width) <= num_lines
    num_rows = len(state.series) if all_fit else min(len(state.series), max(1, num_lines - _TABLE_EXTRA))
    shown = state.series[:num_rows]
    look = _choose_columns(max(6, *(len(s.name) for s in shown)), width)
    styles = expert_styles(sorted({name for s in state.series for name in s.weights}))
    reach = max((max(abs(s.bands[0][0]), abs(s.bands[0][-1])) for s in shown), default=0.0)
    head = f"{_LEFT}{'series':<{look.name}}  {'last':>11}  " + (f"{'change':>8}  " if look.change else "")
    head += f"{'regime' if look.shows_regime_word else '':<{look.regime}}"
    head += f"{'recent':<{look.spark + 2}}" if look.spark else ""
    horizon = shown[0].horizons[0]
    ahead = f"next {horizon} bars: 90%, 50%" if horizon > 1 else "next bar: 90%, 50%"
    if look.band:
        head += f"{ahead if len(ahead) < look.band else truncate_end(ahead.partition(':')[0], look.band):<{look.band}}"
    head += f"{'90% band':>17}"
    lines = [Text(), Text(head, MUTED)]
    for series in shown:
        row = Text(
            f"{_LEFT}{truncate_middle(series.name, look.name):<{look.name}} {_STATUS_MARKS[series.status]}"
            f"{format_price(series.last_price):>11}  "
        )
        if look.change:
            row.append(f"{format_percent(series.change):>8}  ", _move_style(series.change))
        regime = f"■ {series.regime.value}" if look.shows_regime_word else "■"
        row.append(f"{regime:<{look.regime}}", REGIME_STYLE[series.regime])
        if look.spark:
            row.append(f"{sparkline(series.history, look.spark):<{look.spark}}  ", MUTED)
        if look.band:
            row.append_text(band(series.bands[0], reach, look.band))
        row.append(f"{format_percent(series.bands[0][0]):>8} {format_percent(series.bands[0][-1]):>8}")
        if look.weights:
            row.append("  ").append_text(stacked_bar(series.weights, styles, look.weights))
        lines.append(row)
    rest = state.num_series - num_rows
    if rest > 0:
        lines.append(Text(f"{_LEFT}and {rest:,} more, with less volatility", MUTED))
    marks = _marks({series.status for series in shown})
    if wide:
        lines.append(_legend(styles, shown[0].weights if look.weights else {}, marks, width))
    elif marks:
        lines.append(Text(f"{_LEFT}{marks}", MUTED))
    return lines


def _table_rows(state: ViewState, width: int) -> int:
    """Lines of a table that leaves no series out."""
    foot = width >= _WIDE or any(one.status is not DecisionStatus.FINAL for one in state.series)
    return 2 + len(state.series) + (state.num_series > len(state.series)) + foot


class _TableColumns(NamedTuple):
    """Columns of the table's parts; 0 where there is no room for one."""

    name: int
    change: int = 0
    regime: int = 2
    spark: int = 0
    band: int = 0
    weights: int = 0

    @property
    def shows_regime_word(self) -> bool:
        return self.regime > 2


def _choose_columns(longest: int, width: int) -> _TableColumns:
    """What fits beside names of `longest` characters: drawings give way first, then words, then figures, then names."""
    figures = len(_LEFT) + 2 + 11 + 2 + 17
    looks = [
        _TableColumns(longest, 10, 12, 20, 11, 14),
        _TableColumns(longest, 10, 12, 20, 11),
        _TableColumns(longest, 10, 12, 0, 11),
        _TableColumns(longest, 10, 12),
        _TableColumns(longest, 10),
        _TableColumns(longest),
    ]
    for look in looks if width >= _WIDE else looks[2:]:
        beside = look.change + look.regime + (look.spark + 2 if look.spark else 0)
        beside += look.weights + 2 if look.weights else 0
        spare = width - 1 - figures - longest - beside
        if spare >= look.band:
            drawn = min(41, spare) if look.band else 0
            return look._replace(band=drawn - (1 - drawn % 2) if drawn else 0)  # an odd width has a middle
    return _TableColumns(max(6, width - 1 - figures - 2))


def _marks(standings: set[DecisionStatus]) -> str:
    """What the marks beside names mean, those that are used."""
    marks = {
        DecisionStatus.PROVISIONAL: "provisional, being read again",
        DecisionStatus.AMENDED: "amended since",
    }
    return "  ".join(f"{_STATUS_MARKS[mark]} {words}" for mark, words in marks.items() if mark in standings)


def _legend(styles: Mapping[str, str], weights: Mapping[str, float], marks: str, width: int) -> Text:
    """The greatest weights first, as many as fit; no name is cut."""
    text = Text(f"{_LEFT}{marks}   " if marks else _LEFT, MUTED)
    if not weights:
        return text
    text.append("weights of the first row  ", MUTED)
    for name in sorted(styles, key=lambda name: -weights.get(name, 0.0)):
        entry = Text("━━ ", styles[name]).append(f"{printable(name)} {weights.get(name, 0.0):.0%}  ", MUTED)
        if len(text) + len(entry) > width:
            break
        text.append_text(entry)
    return text


def _footer(state: ViewState, width: int) -> list[Text]:
    lines: list[Text] = []
    rows = (
        ("news", state.news, 1),
        ("read", state.reading, 2),
        ("why", state.rationale, _MAX_RATIONALE_LINES),
    )
    for label, words, most in rows:
        wrapped = textwrap.wrap(
            printable(words), width - 8, max_lines=most, placeholder=" …", break_on_hyphens=False
        )
        for k, line in enumerate(wrapped):
            lines.append(Text(f"{_LEFT}{'' if k else label:<5}", MUTED).append(line, ""))
    return [Text(), *lines] if lines else []


def _clock(state: ViewState) -> str:
    """The event clock, to the second."""
    if not state.counters.clock_ns:
        return "waiting for the first event"
    return format_ns(state.counters.clock_ns // NS_PER_S * NS_PER_S).replace("T", " ").replace("Z", " UTC")


def _move_style(change: float) -> str:
    if change == 0:
        return MUTED
    return REGIME_STYLE[Regime.NORMAL] if change > 0 else REGIME_STYLE[Regime.SHOCK]


def _short(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"
