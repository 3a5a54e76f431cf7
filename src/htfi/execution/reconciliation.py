"""Our fills and positions against what the other side says: a drop copy of executions, a statement of positions. Pure.

A break is anything that both do not have alike. Executions are matched by their id; what was busted or corrected counts
as it stands in the end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from htfi.domain.orders import OrderEvent, OrderFilled
from htfi.execution.accounting import Accounts

PositionKey = tuple[str, str]  # account, instrument


class BreakKind(StrEnum):
    """What both sides do not have alike."""

    MISSING_HERE = "missing fill"  # of an order of ours: the run has not recorded it
    MISSING_THERE = "fill they do not have"
    UNKNOWN = "unknown execution"  # of no order of the run
    SIDE = "side differs"
    INSTRUMENT = "instrument differs"
    QUANTITY = "quantity differs"
    PRICE = "price differs"
    POSITION = "position differs"


@dataclass(frozen=True, slots=True)
class Execution:
    """A fill as a side has it in the end. `sign`: 1 bought, -1 sold; `order_id`: the run's, or another's ClOrdID."""

    exec_id: str
    order_id: str
    instrument: str
    sign: int
    lots: int
    price: Decimal

    def words(self) -> str:
        """For people."""
        done = "bought" if self.sign > 0 else "sold"
        return f"{done} {self.lots:,} {self.instrument} at {self.price.normalize():f}"


@dataclass(frozen=True, slots=True)
class Break:
    """A difference, with what each side has; empty: nothing."""

    kind: BreakKind
    subject: str
    ours: str = ""
    theirs: str = ""


def executions_of(accounts: Accounts, first_ns: int = 0, end_ns: int = 1 << 63) -> list[Execution]:
    """Fills of a run that were made within [first_ns, end_ns), by the venue's time where it is known."""
    return [
        Execution(
            fill.exec_id,
            order.new.order_id,
            order.new.instrument,
            order.new.side.sign,
            fill.quantity,
            fill.price,
        )
        for order in accounts.orders.values()
        for fill in order.fills.values()
        if first_ns <= time_of_fill(fill) < end_ns
    ]


def time_of_fill(fill: OrderFilled) -> int:
    """When the venue made it, else when the run took it."""
    return fill.venue_at_ns or fill.at_ns


def events_until(events: Iterable[OrderEvent], end_ns: int) -> Iterable[OrderEvent]:
    """Events without fills that were made from an instant on."""
    return (one for one in events if not isinstance(one, OrderFilled) or time_of_fill(one) < end_ns)


def compare_executions(
    ours: Iterable[Execution], theirs: Iterable[Execution], orders: Iterable[str]
) -> list[Break]:
    """Breaks between both; `orders` are the ids of the run's orders."""
    own = {one.exec_id: one for one in ours}
    known, breaks = set(orders), list[Break]()
    for their in theirs:
        our = own.pop(their.exec_id, None)
        if our is None:
            kind = BreakKind.MISSING_HERE if their.order_id in known else BreakKind.UNKNOWN
            breaks.append(Break(kind, _subject(their), "", their.words()))
            continue
        for kind, name in (
            (BreakKind.INSTRUMENT, "instrument"),
            (BreakKind.SIDE, "sign"),
            (BreakKind.QUANTITY, "lots"),
            (BreakKind.PRICE, "price"),
        ):
            if getattr(our, name) != getattr(their, name):
                breaks.append(Break(kind, _subject(our), our.words(), their.words()))
    breaks += [Break(BreakKind.MISSING_THERE, _subject(our), our.words()) for our in own.values()]
    return breaks


def compare_positions(
    ours: Mapping[PositionKey, int], theirs: Mapping[PositionKey, int], *, with_accounts: bool
) -> list[Break]:
    """Breaks between positions in lots; without accounts those of all accounts together. Nothing held is 0."""
    if not with_accounts:
        ours, theirs = _without_accounts(ours), _without_accounts(theirs)
    breaks: list[Break] = []
    for key in dict.fromkeys([*ours, *theirs]):
        our, their = ours.get(key, 0), theirs.get(key, 0)
        if our != their:
            subject = " ".join(part for part in key if part)
            breaks.append(Break(BreakKind.POSITION, subject, f"{our:,} lots", f"{their:,} lots"))
    return breaks


def _subject(execution: Execution) -> str:
    return f"{execution.exec_id} of order {execution.order_id or 'none'}"


def _without_accounts(positions: Mapping[PositionKey, int]) -> dict[PositionKey, int]:
    found: dict[PositionKey, int] = {}
    for (_, instrument), lots in positions.items():
        found["", instrument] = found.get(("", instrument), 0) + lots
    return found
