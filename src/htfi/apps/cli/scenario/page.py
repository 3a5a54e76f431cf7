"""The page of `htfi scenario --html`: today, the batch compared, then each scenario; no script, no network."""

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from htfi.apps.cli.scenario.charts import batch_rows, book_plot, position_plot, strip
from htfi.apps.cli.scenario.text import shown_places
from htfi.apps.display.page import fill_template, page_html, resource
from htfi.domain.time import format_ns
from htfi.forecasting.scenarios.measures import LEVELS, ScenarioComparison, padded_range
from htfi.library.charts.figures import bar_rows, heat_table, legend_entry
from htfi.library.charts.specs import BarChart, HeatMap
from htfi.library.scenarios.rationale import bars as bars_ahead
from htfi.library.scenarios.rationale import (
    chance_figure,
    known_moves,
    money,
    percent,
    scenario_rationale,
    simple,
    size,
)
from htfi.pipeline.scenarios.answers import ScenarioAnswer, ScenarioAnswers
from htfi.pipeline.scenarios.basis import ScenarioBasis

MAX_ROWS = 40  # positions in a scenario's table; all are in the JSON
MAX_BARS = 10
MAX_COLUMNS = 12
_Q05, _Q50, _Q95 = LEVELS.index(0.05), LEVELS.index(0.5), LEVELS.index(0.95)


def page(ground: ScenarioBasis, answers: ScenarioAnswers) -> str:
    """The whole page."""
    ahead = bars_ahead(answers.today.horizon, ground.interval)
    parts = {
        "frame": escape(f"{ground.origin} · {format_ns(ground.as_of_ns)} · {ahead} ahead"),
        "today": escape(scenario_rationale(ground, answers, None).text),
        "notes": "".join(f'<p class="note">{escape(note)}</p>' for note in answers.notes),
        "batch": _batch(answers) if len(answers.answers) > 1 else "",
        "scenarios": "".join(_scenario(ground, answers, answer) for answer in answers.answers),
        "draws": f"{len(answers.today.returns):,}",
    }
    own = "htfi.apps.cli.scenario"
    body = fill_template(resource(own, "page.html"), parts)
    return page_html("HTFI what if", body, style=resource(own, "page.css"))


def _batch(answers: ScenarioAnswers) -> str:
    """All scenarios, worst for the book first, and the median of each position in each."""
    ranked = sorted(answers.answers, key=lambda answer: _comparison(answer).portfolio_after.mean)
    rows = [(_name(answer), _comparison(answer).portfolio_after) for answer in ranked]
    sizes = np.abs(answers.positions.portfolio.notionals)
    held = [int(place) for place in np.argsort(-sizes, kind="stable") if sizes[place] > 0.0]
    places = held[:MAX_COLUMNS]
    names = [answers.today.series[place].rpartition("/")[0] for place in places]  # of one interval all
    medians = [_comparison(answer).after[places, _Q50].tolist() for answer in ranked]
    heat = HeatMap("", "", [_name(answer) for answer in ranked], names, medians)
    scales = (4.0 * answers.today.sigma[places]).tolist()
    more = f" The {len(places)} largest positions of {len(held)}." if len(held) > len(places) else ""
    return (
        "<section><h2>All scenarios</h2>"
        '<p class="note">Profit of the book: 98% line, 90% and 50% bands, mean; worst first. '
        "Dashed: today’s VaR 99%.</p>"
        f"{batch_rows(rows, answers.book_before, _unit(answers), _writer(answers))}"
        "<h3>Return of each position</h3>"
        f'<p class="note">Median return, coloured by its size in today’s standard deviations.{more}</p>'
        f"{heat_table(heat, scales, simple)}"
        "</section>"
    )


def _scenario(ground: ScenarioBasis, answers: ScenarioAnswers, answer: ScenarioAnswer) -> str:
    comparison, write = _comparison(answer), _writer(answers)
    before, after = comparison.portfolio_before, comparison.portfolio_after
    order = shown_places(answers, answer)
    gains = [(answers.today.series[k], after.means[k] - before.means[k]) for k in order]
    moved = [row for row in gains if abs(row[1]) > 1e-9 * max(answers.positions.gross, 1e-12)][:MAX_BARS]
    bars = BarChart("", "", [series for series, _ in moved], [gain for _, gain in moved], unit=_unit(answers))
    name = (
        f"{escape(answer.asked.name)} — {escape(answer.title)}" if answer.asked.name else escape(answer.title)
    )
    at_full = '<p class="note">Drawn at full weight, as if the reader were right.</p>' if answer.full else ""
    contributions = (
        "<h3>Contribution of each position</h3>"
        '<p class="note">To the change of the book’s mean profit.</p>'
        f"<figure>{bar_rows(bars, write)}</figure>"
        if moved
        else ""
    )
    return (
        f'<section><h2><span class="kind">{answer.asked.kind.value}</span>{name}</h2>'
        f'<p class="lead">{escape(scenario_rationale(ground, answers, answer).text)}</p>{at_full}'
        f"{_glance(answers, answer)}"
        '<div class="two"><div><h3>Profit of the book</h3>'
        f'<p class="legend">{legend_entry("today", "today")}{legend_entry("then", "then")}'
        '<span class="quiet">dashed: VaR 99%, dotted: ES 97.5%</span></p>'
        f"<figure>{book_plot(before, after, _unit(answers), write)}</figure></div><div>{contributions}</div></div>"
        f"{_densities(answers, answer, order)}{_views(answer)}{_positions(answers, answer, order)}</section>"
    )


def _glance(answers: ScenarioAnswers, answer: ScenarioAnswer) -> str:
    comparison, write = _comparison(answer), _writer(answers)
    before, after = comparison.portfolio_before, comparison.portfolio_after
    moved = after.mean - before.mean
    found = [
        ("down" if moved < 0.0 else "up", write(after.mean), f"mean of the book, today {write(before.mean)}"),
        (
            "",
            size(answers.positions.gross, answers),
            f"the book, gross; net {size(answers.positions.net, answers)}",
        ),
        ("", money(after.var99, answers), f"VaR 99%, today {money(before.var99, answers)}"),
        ("", money(after.es975, answers), f"ES 97.5%, today {money(before.es975, answers)}"),
    ]
    if comparison.probability is not None:
        side = "more" if moved > 0.0 else "less"
        found.append(
            (
                "",
                chance_figure(comparison.probability),
                f"chance of the book at {write(after.mean)} or {side}",
            )
        )
    if answer.chance is not None:
        num = len(known_moves(answer.ways))
        what = "a move at least this large" if num == 1 else f"{num} moves together, at least this large"
        found.append(("", chance_figure(answer.chance), f"chance of {what}"))
    if answer.full is not None:
        found.append(
            (
                "",
                write(answer.change.portfolio_after.mean),
                f"mean at the earned weight, {percent(answer.weight)}",
            )
        )
    cells = "".join(
        f'<div class="{style}"><b>{escape(figure)}</b><span>{escape(label)}</span></div>'
        for style, figure, label in found
    )
    return f'<div class="figures">{cells}</div>'


def _densities(answers: ScenarioAnswers, answer: ScenarioAnswer, order: Sequence[int]) -> str:
    figures: list[str] = []
    for place in [place for place in order if place in answer.draws]:
        today, then = np.expm1(answers.today.returns[:, place]), np.expm1(answer.draws[place])
        way = answer.ways[place].value
        caption = f"<figcaption>{escape(answers.today.series[place])}<span>{escape(way)}</span></figcaption>"
        figures.append(f"<figure>{caption}{position_plot(today, then, simple)}</figure>")
    return f'<div class="many">{"".join(figures)}</div>'


def _views(answer: ScenarioAnswer) -> str:
    speaking = {series: view for series, view in (answer.views or {}).items() if view.confidence > 0.0}
    if not speaking:
        return ""
    names = ("series", "direction", "size, sigmas of one bar", "volatility", "confidence", "cause")
    rows = [
        (
            escape(series),
            _way(view.direction),
            f"{view.size_sigmas:g}",
            f"{view.volatility_multiplier:g}×",
            f"{100.0 * view.confidence:.0f}%",
            escape(view.cause.replace("_", " ")),
        )
        for series, view in list(speaking.items())[:MAX_ROWS]
    ]
    return f"<h3>What the reading model expects</h3>{_table(names, rows)}"


def _positions(answers: ScenarioAnswers, answer: ScenarioAnswer, order: Sequence[int]) -> str:
    comparison, write = _comparison(answer), _writer(answers)
    shown = list(order[:MAX_ROWS])
    low, high = padded_range(*(comparison.before[k, [_Q05, _Q95]].tolist() for k in shown), *(
        comparison.after[k, [_Q05, _Q95]].tolist() for k in shown
    ), [0.0])  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for k in shown:
        before, after = comparison.before[k].tolist(), comparison.after[k].tolist()
        gain = comparison.portfolio_after.means[k] - comparison.portfolio_before.means[k]
        rows.append(
            (
                escape(answers.today.series[k]),
                money(answers.positions.portfolio.notionals[k], answers),
                f"{simple(before[_Q05])} … {simple(before[_Q95])}",
                f"{simple(after[_Q05])} … {simple(after[_Q95])}",
                simple(after[_Q50]),
                strip(before, after, low, high),
                f'<b class="{_side(gain)}">{write(gain)}</b>',
                money(comparison.portfolio_after.shares_of_es[k], answers),
                escape(answer.ways[k].value),
                *_next(answer, k),
            )
        )
    after = comparison.portfolio_after
    gross, net = size(answers.positions.gross, answers), size(answers.positions.net, answers)
    gain = write(after.mean - comparison.portfolio_before.mean)
    total = (f"book, gross {gross}", f"net {net}", "", "", "", "", gain, money(after.es975, answers), "")
    hidden = len(order) - len(shown)
    more = f'<p class="note">{hidden:,} more positions are in the JSON.</p>' if hidden > 0 else ""
    names = (
        "series", "holding", "today 5% … 95%", "then 5% … 95%", "median", "today above, then below", "profit",
        "share of ES", "reached", *(("the bar after, 5% … 95%", "regime") if answer.next_forecast else ()),
    )  # fmt: skip
    return f"<h3>Positions</h3>{_table(names, rows, (*total, *[''] * len(_next(answer, 0))))}{more}"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], total: Sequence[str] = ()) -> str:
    """Cells are HTML. On a narrow screen a row becomes a card, each cell with the name of its column."""

    def line(cells: Sequence[str], style: str = "") -> str:
        named = [
            f'<td data-label="{escape(name)}">{cell}</td>' for name, cell in zip(names, cells, strict=True)
        ]
        return f"<tr{style}>{''.join(named)}</tr>"

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    last = line(total, ' class="total"') if total else ""
    return f'<table class="cards"><tr>{head}</tr>{"".join(line(row) for row in rows)}{last}</table>'


def _next(answer: ScenarioAnswer, place: int) -> tuple[str, ...]:
    """What the run would say after it, where that was asked."""
    if answer.next_forecast is None:
        return ()
    low, high = answer.next_forecast.bands[place]
    return f"{simple(low)} … {simple(high)}", answer.next_forecast.regimes[place].value


def _comparison(answer: ScenarioAnswer) -> ScenarioComparison:
    return answer.full or answer.change


def _name(answer: ScenarioAnswer) -> str:
    return answer.asked.name or answer.title


def _side(gain: float) -> str:
    return "gain" if gain > 0.0 else "loss" if gain < 0.0 else ""


def _way(direction: float) -> str:
    return "up" if direction > 0.0 else "down" if direction < 0.0 else "none"


def _writer(answers: ScenarioAnswers) -> Callable[[float], str]:
    return lambda value: money(value, answers, signed=True)


def _unit(answers: ScenarioAnswers) -> str:
    """Of the book's axes: shares in percent, money as `_writer` has it."""
    return "" if answers.positions.in_money else "%"
