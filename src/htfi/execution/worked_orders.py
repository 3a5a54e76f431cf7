"""Parent orders that are being worked: their terms, their plan, and the children that are open of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from htfi.domain.orders import OrderSide
from htfi.execution.algorithms.planning import ParentSpec, PlanState
from htfi.execution.intents import OrderIntent


@dataclass(frozen=True, slots=True)
class ParentTerms:
    """In whose name and on which decision an algorithm works an order."""

    order_id: str
    instrument: str
    side: OrderSide
    lots: int
    limit_ticks: int
    order: OrderIntent  # as it would be sent whole: its names and its receipt are the children's


@dataclass(slots=True)
class ChildOrder:
    """An order of a parent at one venue."""

    order_id: str
    venue: str
    lots: int
    ticks: int
    is_take: bool
    sent_ns: int
    expected: float
    filled: int = 0
    is_cancelling: bool = False
    is_answered: bool = False
    cancel_from_ns: int = 0  # after the venue has refused a cancel

    @property
    def leaves(self) -> int:
        return max(0, self.lots - self.filled)


@dataclass(slots=True)
class WorkedOrder:
    """A parent order and what is open of it."""

    terms: ParentTerms
    spec: ParentSpec
    plan: PlanState
    children: dict[str, ChildOrder] = field(default_factory=dict[str, ChildOrder])
    num_children: int = 0
    num_refused: int = 0
    wake_ns: int = 0
    retry_ns: int = 0  # until when nothing is sent, after the gate has refused something
    is_stopped: bool = False

    @property
    def left(self) -> int:
        """Lots that are not filled."""
        return self.spec.lots - self.plan.filled


def leaves_by_venue(children: Iterable[ChildOrder]) -> dict[str, int]:
    """Lots that children still have open, by venue."""
    found: dict[str, int] = {}
    for one in children:
        found[one.venue] = found.get(one.venue, 0) + one.leaves
    return found
