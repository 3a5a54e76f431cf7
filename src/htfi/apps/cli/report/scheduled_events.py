"""The page's section on scheduled events: what their kinds do to the bands, and what surprises did to the bars."""

from html import escape

from htfi.domain.time import format_duration
from htfi.forecasting.known_variance.event_facts import MAX_KINDS, KindFacts, SeriesFacts, SurpriseFacts
from htfi.forecasting.known_variance.surprise_effects import Slope
from htfi.wiring.event_file import EventFile
from htfi.wiring.outputs import EVENTS

_WIDTH, _HEIGHT, _RANGE = 132, 14, 1.5  # of the drawn interval, in px and σ


def scheduled_events_html(found: EventFile | None) -> str:
    """The whole section; empty where the run held no event of a calendar."""
    if found is None or not found.kinds:
        return ""
    rows = "".join(_kind_rows(one) for one in found.kinds)
    head = (
        "<th>event</th><th>bars</th><th>seen</th><th>band, prior</th><th>band, learnt</th><th>surprises</th>"
        f"<th>move, σ</th><th>90% interval</th><th>−{_RANGE} to {_RANGE} σ</th><th>variance</th><th>90% interval</th>"
    )
    left_out = " The kinds with the largest factors are shown." if len(found.kinds) == MAX_KINDS else ""
    return (
        "<section>\n  <h2>Scheduled events</h2>\n"
        '  <p class="note">“Band” is the factor of its width for the bar that holds the event: before the run, and as '
        "the run has learnt it. “Move” is what a surprise of one usual size above its forecast did to the return of "
        "that bar, in σ of the band: in a kind's row, of the event's own currency where series are pairs of them; "
        "in a series' row, of its price. “Variance” is its factor over that of no surprise. Both are drawn to no "
        "effect while surprises are few, and neither enters a forecast: when a surprise is known, the price has moved. "
        f"Read from <code>{EVENTS}</code>, which the run wrote at its end.{left_out}</p>\n"
        f'  <div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>\n</section>'
    )


def _kind_rows(one: KindFacts) -> str:
    cells = (
        f"<th>{escape(_words(one.kind))}</th><td>{escape(format_duration(one.length_ns))}</td><td>{one.num_seen:,}</td>"
        f"<td>{one.prior_factor:.2f}</td><td>{one.learnt_factor:.2f}</td>{_surprise_cells(one.surprise)}"
    )
    return f'<tr class="strong">{cells}</tr>' + "".join(map(_series_row, one.series))


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _series_row(one: SeriesFacts) -> str:
    return (
        f'<tr><th class="part">{escape(one.series)}</th><td></td><td></td><td></td><td>{one.factor:.2f}</td>'
        f"{_surprise_cells(one.surprise)}</tr>"
    )


def _surprise_cells(one: SurpriseFacts | None) -> str:
    if one is None:
        return "<td>–</td>" * 6
    move, variance = one.move, one.variance
    return (
        f"<td>{one.num:,}</td><td>{_signed(move.value)}</td><td>{_signed(move.low)} to {_signed(move.high)}</td>"
        f"<td>{_drawn(move)}</td><td>× {variance.value:.2f}</td><td>{variance.low:.2f} to {variance.high:.2f}</td>"
    )


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def _drawn(move: Slope) -> str:
    """The interval as a line and the estimate as a dot, beside a line at none."""
    low, value, high = (_place(each) for each in (move.low, move.value, move.high))
    middle, shown = _HEIGHT / 2, "clear" if move.low > 0.0 or move.high < 0.0 else "unclear"
    return (
        f'<svg class="interval {shown}" width="{_WIDTH}" height="{_HEIGHT}" aria-hidden="true">'
        f'<line class="none" x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
        f'<circle cx="{value:.1f}" cy="{middle}" r="3.5"/></svg>'
    )


def _place(sigmas: float) -> float:
    return (max(-_RANGE, min(_RANGE, sigmas)) / _RANGE + 1.0) / 2.0 * (_WIDTH - 8) + 4
