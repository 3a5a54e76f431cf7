"""The page's section on orders: the result over time, positions, refusals by check, costs by venue and algorithm.

Every text is escaped here. One pass over the order log, with a bounded number of points.
"""

from collections import Counter
from collections.abc import Iterable
from html import escape

from htfi.domain.order_states import OrderStatus
from htfi.domain.orders import MarketSnapshot, OrderEvent, OrderFilled, OrderRejected
from htfi.domain.time import format_ns
from htfi.execution.accounting import Accounts, OrderAccount
from htfi.execution.instruments import NANOS
from htfi.library.charts.figures import chart_html
from htfi.library.charts.specs import Curve, TimeLines

MAX_POINTS = 600
_NUM_LISTED = 12


class OrderSurvey:
    """What the section needs of the order events, taken in one by one."""

    def __init__(self) -> None:
        self.accounts = Accounts()
        self.refusals: Counter[str] = Counter()
        self.points: list[tuple[int, int, int]] = []  # time, net result, fees so far; nanos
        self._held: set[str] = set()  # instruments that were filled
        self._stride, self._num = 1, 0

    def take_all(self, events: Iterable[OrderEvent]) -> "OrderSurvey":
        for event in events:
            self.accounts.take(event)
            if isinstance(event, OrderRejected):
                reasons = event.reason.split("; ")
                self.refusals.update({f"{event.by.value}: {one.partition(':')[0]}" for one in reasons})
            elif isinstance(event, OrderFilled) or (
                isinstance(event, MarketSnapshot) and event.instrument in self._held
            ):
                self._held = {instrument for _, instrument in self.accounts.positions}
                self._add_point(event.at_ns)
        return self

    def _add_point(self, at_ns: int) -> None:
        """Keep every so many points, fewer as there are more."""
        self._num += 1
        if self._num % self._stride:
            return
        realised, unrealised, fees = self.accounts.money()
        self.points.append((at_ns, realised + unrealised - fees, fees))
        if len(self.points) >= 2 * MAX_POINTS:
            self.points = self.points[1::2]
            self._stride *= 2


def orders_html(survey: OrderSurvey | None) -> str:
    """The whole section; empty for a run that does not trade."""
    if survey is None or not survey.accounts.orders:
        return ""
    accounts = survey.accounts
    realised, unrealised, fees = accounts.money()
    shortfall = sum(one.shortfall for one in accounts.positions.values())
    figures = [
        ("orders", f"{len(accounts.orders):,}"),
        ("refused", f"{accounts.num_refused:,}"),
        ("fills", f"{accounts.num_fills:,}"),
        ("net result", _money(realised + unrealised - fees)),
        ("fees", _money(fees)),
        ("shortfall", _money(shortfall)),
    ]
    listed = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in figures)
    return (
        '<section>\n  <h2>Orders</h2>\n  <p class="note">Paper trading on the simulated venue. Shortfall is what fills '
        "cost beyond the market's middle when their orders were sent; negative: they were better. It is part of the "
        f'result.</p>\n  <div class="figures">{listed}</div>\n'
        f"{_chart(survey)}{_positions(accounts)}{_costs(accounts)}{_refusals(survey)}</section>"
    )


def _chart(survey: OrderSurvey) -> str:
    if len(survey.points) < 2:
        return ""
    return chart_html(
        TimeLines(
            "Result over time",
            "Realised and unrealised, after fees; fees by themselves.",
            [format_ns(at_ns)[:19] for at_ns, _, _ in survey.points],
            [
                Curve("net result", [net / NANOS for _, net, _ in survey.points]),
                Curve("fees so far", [fees / NANOS for _, _, fees in survey.points], quiet=True),
            ],
            level=0.0,
        )
    )


def _positions(accounts: Accounts) -> str:
    rows = "".join(
        f"<tr><th>{escape(one.instrument)}</th><td>{escape(one.account)}</td><td>{one.lots:,}</td>"
        f"<td>{_money(one.realised)}</td><td>{_money(one.unrealised(accounts.unit(one.instrument)))}</td>"
        f"<td>{_money(one.fees)}</td><td>{_money(one.shortfall)}</td><td>{_money(one.traded)}</td>"
        f"<td>{one.num_fills:,}</td></tr>"
        for one in accounts.positions.values()
    )
    names = (
        "instrument",
        "account",
        "lots held",
        "realised",
        "unrealised",
        "fees",
        "shortfall",
        "traded",
        "fills",
    )
    return _table("Positions", names, rows)


def _costs(accounts: Accounts) -> str:
    """Fill rate and slippage by venue and algorithm."""
    groups: dict[tuple[str, str], list[OrderAccount]] = {}
    for one in accounts.orders.values():
        if one.state.status is not OrderStatus.REJECTED:
            groups.setdefault((one.new.venue, one.new.algo), []).append(one)
    rows = ""
    for (venue, algo), orders in sorted(groups.items()):
        wanted, filled = sum(one.state.quantity for one in orders), sum(one.state.filled for one in orders)
        value = sum(one.filled_value for one in orders if one.arrival)
        cost = sum(
            one.new.side.sign * (one.filled_value - one.arrival * one.state.filled)
            for one in orders
            if one.arrival
        )
        slippage = f"{cost / value * 1e4:+.2f} bp" if value else "–"
        rows += (
            f"<tr><th>{escape(venue)}</th><td>{escape(algo or '–')}</td><td>{len(orders):,}</td>"
            f"<td>{filled / max(1, wanted):.1%}</td><td>{slippage}</td>"
            f"<td>{_money(sum(one.fees for one in orders))}</td></tr>"
        )
    return _table("Costs", ("venue", "algorithm", "orders", "lots filled", "slippage", "fees"), rows)


def _refusals(survey: OrderSurvey) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{num:,}</td></tr>"
        for name, num in survey.refusals.most_common(_NUM_LISTED)
    )
    return _table("Refusals by check", ("check", "orders"), rows)


def _table(title: str, names: tuple[str, ...], rows: str) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<h3>{title}</h3><div class="scroll">{table}</div>\n'


def _money(nanos: int) -> str:
    return f"{nanos / NANOS:,.2f}"
