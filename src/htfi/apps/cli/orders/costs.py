"""`htfi orders costs`: what trading cost, as tables, as JSON and as one page of plots."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import click
import msgspec

from htfi.apps.display.page import page_html
from htfi.domain.content_marking import FIELD, content_marking
from htfi.execution.instruments import NANOS
from htfi.execution.trade_costs import (
    COST_KEYS,
    MARKOUTS_S,
    CostGroup,
    CostSurvey,
    OrderCosts,
    group_costs,
    sum_costs,
)
from htfi.library.charts.figures import chart_html
from htfi.library.charts.specs import BarChart, Chart, Curve, CurveChart, DotChart, DotGroup, TimeLines
from htfi.library.html import table_html

NUM_VENUES = 5  # RTS 28 asks for the five that most was sent to
MAX_BARS = 20
MAX_ROWS = 100  # of a table on the page, the last; all are in the JSON
_COLUMNS = (
    "orders", "refused", "lots filled", "value", "slippage", "spread", "move", "fees", "missed", "cost",
    f"after {'/'.join(map(str, MARKOUTS_S))} s", "taking", "wait",
)  # fmt: skip
_MEANING = (
    "All in basis points. Slippage is against the middle of the market when the order was sent: the spread that fills "
    "paid, and the move until they came. Missed is what unfilled lots lost until the order ended, of what was wanted; "
    "cost is all of it with fees. After n s is how far the middle went in the order's favour from the fill: below zero "
    "is adverse selection. The record holds the market some seconds apart, so these middles may be some seconds old."
)


def show_costs(survey: CostSurvey, folder: Path, by: str, html_file: Path | None, *, as_json: bool) -> None:
    """A row for each value of `by`, and all together."""
    from htfi.apps.display.tables import print_line, print_table

    costs = survey.costs()
    if html_file is not None:
        html_file.write_text(costs_page(costs, folder.name), encoding="utf-8")
    if as_json:
        click.echo(msgspec.json.encode(_as_json(costs, by)).decode())
        return
    if not costs:
        click.echo(f"{folder}: no order was sent")
        return
    groups = [*group_costs(costs, COST_KEYS[by]), sum_costs("all", costs)]
    print_table((by, *_COLUMNS), [(one.name, *_cells(one, _currency(costs))) for one in groups])
    print_line(_MEANING)
    if html_file is not None:
        print_line(f"page written to {html_file}")


def costs_page(costs: Sequence[OrderCosts], name: str) -> str:
    """The whole page; no script, no network."""
    total, currency = sum_costs("all", costs), _currency(costs)
    days = f"{costs[0].day} to {costs[-1].day}" if costs else "no order was sent"
    tables = "".join(
        f"<section><h2>By {by}</h2>"
        f"{_table((by, *_COLUMNS), group_costs(costs, COST_KEYS[by])[-MAX_ROWS:], currency)}</section>"
        for by in ("day", "venue", "algorithm", "instrument")
    )
    body = (
        f"<header><h1>Trading costs</h1><p>{escape(name)} · {escape(days)}</p></header><main>"
        f'<p class="note">{escape(_MEANING)}</p>'
        f'<section class="figures">{_figures(total)}</section>'
        f"<section><h2>Where costs came from</h2>{''.join(chart_html(chart) for chart in _charts(costs))}</section>"
        f"<section><h2>Venues</h2><p class='note'>The {NUM_VENUES} venues that most was sent to, by share of value and "
        "of orders, with the shares that took liquidity, after RTS 28.</p>"
        f"{_plain_table(*_venue_shares(costs))}</section>"
        "<section><h2>Quality of execution</h2><p class='note'>By venue and instrument, after RTS 27: how likely an "
        f"order is filled, how soon, at what spread.</p>{_plain_table(*_quality(costs))}</section>"
        f"{tables}</main>"
    )
    return page_html("HTFI trading costs", body, style="td,th{white-space:nowrap}", is_generated=False)


def _as_json(costs: Sequence[OrderCosts], by: str) -> dict[str, Any]:
    return {
        "kind": "trading-costs",
        "version": 1,
        "by": by,
        "markouts_s": MARKOUTS_S,
        "groups": [asdict(one) for one in group_costs(costs, COST_KEYS[by])],
        "all": asdict(sum_costs("all", costs)),
        "venues": _venue_shares(costs)[1],
        FIELD: content_marking(is_generated=False),
    }


def _charts(costs: Sequence[OrderCosts]) -> list[Chart]:
    by_algo = group_costs(costs, COST_KEYS["algorithm"])
    parts = (("spread", "spread_bps"), ("move", "move_bps"), ("fees", "fees_bps"))
    worst = sorted((one for one in costs if one.wanted_value), key=lambda one: -one.cost / one.wanted_value)[
        : MAX_BARS // 2
    ]
    return [
        DotChart(
            "What fills cost, by algorithm",
            "Basis points of the value filled.",
            [one.name for one in by_algo],
            [DotGroup(name, [getattr(one, field) for one in by_algo]) for name, field in parts],
            zero=0.0,
            unit=" bp",
        ),
        CurveChart(
            "How prices went on after a fill",
            "In the order's favour, basis points; falling lines are adverse selection.",
            [0.0, *map(float, MARKOUTS_S)],
            [Curve(one.name, [_no_spread(one), *one.markouts_bps]) for one in by_algo],
            "seconds after the fill",
            "bp",
        ),
        *([_costs_so_far(costs)] if _currency(costs) else []),
        BarChart(
            "The costliest orders",
            "All costs, as a part of what was wanted.",
            [one.order_id for one in worst],
            [one.cost / one.wanted_value * 1e4 for one in worst],
            unit=" bp",
        ),
    ]


def _no_spread(one: CostGroup) -> float | None:
    """The middle against the price of the fill, at the fill: what was paid for the spread, lost at once."""
    return None if one.spread_bps is None else -one.spread_bps


def _costs_so_far(costs: Sequence[OrderCosts]) -> TimeLines:
    days = sorted({one.day for one in costs})
    parts: tuple[tuple[str, Callable[[OrderCosts], int]], ...] = (
        ("spread and move", lambda one: one.spread + one.move),
        ("fees", lambda one: one.fees),
        ("missed", lambda one: one.missed),
    )
    curves: list[Curve] = []
    for name, amount in parts:
        by_day = dict.fromkeys(days, 0)
        for one in costs:
            by_day[one.day] += amount(one)
        curves.append(Curve(name, [total / NANOS for total in accumulate(by_day.values())]))
    return TimeLines(
        "Costs so far", f"By the day on which orders were sent, {_currency(costs)}.", days, curves, level=0.0
    )


def _venue_shares(costs: Sequence[OrderCosts]) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    columns = ("venue", "share of value", "share of orders", "taking liquidity", "adding liquidity")
    value, num = sum(one.wanted_value for one in costs), sum(not one.is_refused for one in costs)
    rows: list[dict[str, Any]] = []
    for group in group_costs([one for one in costs if not one.is_refused], COST_KEYS["venue"]):
        own = [one for one in costs if one.venue == group.name and not one.is_refused]
        taking = group.taken_share
        rows.append({
            "venue": group.name,
            "share of value": _share(sum(one.wanted_value for one in own), value),
            "share of orders": _share(len(own), num),
            "taking liquidity": "–" if taking is None else f"{taking:.1%}",
            "adding liquidity": "–" if taking is None else f"{1 - taking:.1%}",
        })  # fmt: skip
    rows.sort(key=lambda row: -float(row["share of value"].rstrip("%")))
    return columns, rows[:NUM_VENUES]


def _quality(costs: Sequence[OrderCosts]) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    columns = (
        "venue",
        "instrument",
        "orders",
        "refused",
        "fills",
        "lots filled",
        "first fill after",
        "spread paid",
    )
    rows = [
        {
            "venue": venue,
            "instrument": group.name,
            "orders": f"{group.num_orders:,}",
            "refused": f"{group.num_refused:,}",
            "fills": f"{group.num_fills:,}",
            "lots filled": f"{group.filled_share:.1%}",
            "first fill after": _seconds(group.wait_s),
            "spread paid": _bps(group.spread_bps),
        }
        for venue in sorted({one.venue for one in costs})
        for group in group_costs([one for one in costs if one.venue == venue], COST_KEYS["instrument"])
    ]
    return columns, rows


def _figures(total: CostGroup) -> str:
    cells = (
        (f"{total.num_orders:,}", "orders"),
        (f"{total.num_refused:,}", "refused"),
        (f"{total.filled_share:.0%}", "of lots filled"),
        (_unit(total.slippage_bps), f"slippage{_error(total)}"),
        (_unit(total.fees_bps), "fees"),
        (_unit(total.missed_bps), "missed, of what was wanted"),
        (_unit(total.markouts_bps[-1]), f"after {MARKOUTS_S[-1]} s"),
    )
    return "".join(
        f"<div><b>{escape(figure)}</b><span>{escape(label)}</span></div>" for figure, label in cells
    )


def _error(one: CostGroup) -> str:
    return "" if one.error_bps is None else f" ± {one.error_bps:.2f} (standard error)"


def _cells(one: CostGroup, currency: str) -> tuple[str, ...]:
    return (
        f"{one.num_orders:,}",
        f"{one.num_refused:,}",
        f"{one.filled_share:.1%}",
        f"{one.value / NANOS:,.0f} {currency}" if currency else "–",
        f"{_bps(one.slippage_bps)}" + ("" if one.error_bps is None else f" ±{one.error_bps:.2f}"),
        *(
            _bps(value)
            for value in (one.spread_bps, one.move_bps, one.fees_bps, one.missed_bps, one.cost_bps)
        ),
        "/".join(map(_bps, one.markouts_bps)),
        "–" if one.taken_share is None else f"{one.taken_share:.0%}",
        _seconds(one.wait_s),
    )


def _table(columns: Sequence[str], groups: Sequence[CostGroup], currency: str) -> str:
    rows = [dict(zip(columns, (one.name, *_cells(one, currency)), strict=True)) for one in groups]
    return _plain_table(columns, rows)


def _plain_table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return '<p class="empty">No order was sent.</p>'
    cells = ([str(row[name]) for name in columns] for row in rows)
    return f'<div class="scroll">{table_html(columns, cells)}</div>'


def _currency(costs: Sequence[OrderCosts]) -> str:
    """That of all orders; empty where there are several, which are not converted."""
    found = {one.currency for one in costs}
    return found.pop() if len(found) == 1 else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0.0%"


def _bps(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}"


def _unit(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f} bp"


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.3g} s"
