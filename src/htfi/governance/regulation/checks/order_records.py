"""The order record itself: who is behind each order, the decision it acts on, legal states, reconciliation."""

from collections import OrderedDict

from htfi.domain.orders import NewOrder, OrderFilled, OrderMessage, Reconciled, ReplaceRequest
from htfi.domain.time import NS_PER_DAY
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import FindingLog, RuleRegime, Severity, Where
from htfi.governance.regulation.record import Observation, RecordedDecision, RecordReader

MAX_RECEIPTS = 200_000  # of the newest decisions, which orders act on
NAMES = ("algo", "trader", "desk", "client")


class AttributionCheck(Check):
    """Each order names the algorithm, trader, desk and client it is of."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._missing: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        self._num: dict[tuple[str, ...], int] = {}

    def order(self, seen: Observation) -> None:
        event = seen.event
        if not isinstance(event, NewOrder):
            return
        self.log.judged()
        missing = tuple(name for name in NAMES if not getattr(event, name))
        if missing:
            first = self._missing.setdefault(missing, [])
            self._num[missing] = self._num.get(missing, 0) + 1
            if len(first) < 10:
                first.append((seen.at_ns, event.order_id))

    def finish(self, end_ns: int) -> None:
        for missing, first in self._missing.items():
            self.log.found(
                Severity.BREACH,
                f"{self._num[missing]:,} orders name no {' and no '.join(missing)}",
                Where(first[0][0], end_ns, tuple(order_id for _, order_id in first)),
                {"orders": self._num[missing]},
            )


class DecisionLinkCheck(Check):
    """Each order names the ledger's receipt of the decision it acts on, recorded before the order was sent."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._receipts: OrderedDict[int, tuple[str, int]] = OrderedDict()
        self._unlinked: list[tuple[int, str]] = []
        self._num_unlinked = 0
        self._has_links = False

    def decision(self, recorded: RecordedDecision) -> None:
        self._receipts[recorded.index] = (recorded.leaf_hash, recorded.decision.as_of_ns)
        if len(self._receipts) > MAX_RECEIPTS:
            self._receipts.popitem(last=False)

    def order(self, seen: Observation) -> None:
        event = seen.event
        if not isinstance(event, NewOrder | ReplaceRequest) or (
            isinstance(event, ReplaceRequest) and event.decision is None
        ):
            return
        if event.decision is None:
            self._num_unlinked += 1
            if len(self._unlinked) < 10:
                self._unlinked.append((seen.at_ns, event.order_id))
            return
        self._has_links = True
        if not self._receipts:
            self.log.cannot_judge("no decision of the ledger comes before the order in the span")
            return
        index, leaf = event.decision.index, event.decision.leaf_hash
        known = self._receipts.get(index)
        if known is None and index < next(iter(self._receipts)):
            self.log.cannot_judge("the decision of an order lies before the span")
            return
        self.log.judged()
        where = Where(seen.at_ns, seen.at_ns, (event.order_id,), entries=(index,))
        if known is None:
            self.log.found(
                Severity.BREACH,
                f"the order acts on entry {index}, which is not in the ledger before it",
                where,
            )
        elif known[0] != leaf:
            self.log.found(
                Severity.BREACH,
                f"the order names another leaf hash than entry {index} of the ledger has",
                where,
            )

    def finish(self, end_ns: int) -> None:
        if not self._num_unlinked:
            if not self._has_links:
                self.log.cannot_judge("no order was sent in the span")
            return
        if self._has_links:
            self.log.judged(self._num_unlinked)
            self.log.found(
                Severity.BREACH,
                f"{self._num_unlinked:,} orders name no decision of the ledger, where others do",
                Where(self._unlinked[0][0], end_ns, tuple(order_id for _, order_id in self._unlinked)),
                {"orders": self._num_unlinked},
            )
        else:
            self.log.cannot_judge("no order names a decision of the ledger", self._num_unlinked)


class LifecycleCheck(Check):
    """Each event is one that FIX allows in the order's state; times do not run backwards."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._known_since_ns = 0

    def order(self, seen: Observation) -> None:
        event = seen.event
        if not isinstance(event, OrderMessage):
            return
        if seen.illegal and seen.before is None:
            self.log.cannot_judge("an event of an order that was sent before the record begins")
            return
        self.log.judged()
        if seen.illegal:
            order = seen.order
            self.log.found(
                Severity.BREACH,
                seen.illegal,
                Where(
                    seen.at_ns, seen.at_ns, (event.order_id,),
                    "" if order is None else order.new.instrument, party="" if order is None else order.party,
                ),
            )  # fmt: skip


class ReconciliationCheck(Check):
    """Every day with fills is reconciled with the other side's record, without differences left."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._days: OrderedDict[int, int] = OrderedDict()  # UTC day → fills
        self._done: set[int] = set()

    def order(self, seen: Observation) -> None:
        event = seen.event
        day = seen.at_ns // NS_PER_DAY
        if isinstance(event, OrderFilled):
            self._days[day] = self._days.get(day, 0) + 1
        elif isinstance(event, Reconciled):
            self.log.judged()
            self._done.add(day)
            if event.num_differences:
                self.log.found(
                    Severity.BREACH,
                    f"{event.num_differences:,} differences from the record of {event.with_whom}",
                    Where(seen.at_ns, seen.at_ns),
                    {
                        "differences": event.num_differences,
                        "orders": event.num_orders,
                        "fills": event.num_fills,
                    },
                )

    def finish(self, end_ns: int) -> None:
        if not self._days:
            return
        if not self._done:
            self.log.cannot_judge("the record holds no reconciliation", len(self._days))
            return
        for day, num in self._days.items():
            # Reconciled on the day or on the next: where the other side reports after the close.
            if day in self._done or day + 1 in self._done:
                continue
            if end_ns // NS_PER_DAY <= day + 1:
                self.log.cannot_judge("the record ends before the day after the fills is over")
                continue
            self.log.judged()
            self.log.found(
                Severity.REVIEW,
                f"{num:,} fills of a day that was not reconciled by the end of the next",
                Where(day * NS_PER_DAY, (day + 1) * NS_PER_DAY - 1),
                {"fills": num},
            )


RECORD_CHECKS = (
    CheckDefinition(
        "attribution", "Each order maps to algorithm, trader, desk and client",
        {RuleRegime.EU: "RTS 6 art. 12(3), 28", RuleRegime.US: "SEC 17a-3(a)(6)"},
        "new", "without orders", AttributionCheck,
    ),
    CheckDefinition(
        "decision-link", "Each order acts on a recorded decision",
        {RuleRegime.EU: "RTS 6 art. 28, Annex II; MiFID II art. 17(2)", RuleRegime.US: "FINRA 15-09"},
        "new, replace, decisions", "where no order names a receipt, or the decision lies before the span",
        DecisionLinkCheck,
    ),
    CheckDefinition(
        "lifecycle", "The order record is possible",
        {RuleRegime.EU: "RTS 6 art. 17(3), 28", RuleRegime.US: "SEC 17a-3(a)(6)"},
        "all order messages", "events of orders from before the record", LifecycleCheck,
    ),
    CheckDefinition(
        "reconciliation", "Fills reconciled with the other side",
        {RuleRegime.EU: "RTS 6 art. 17(3)"},
        "fill, reconciled", "without reconciliations in the record", ReconciliationCheck,
    ),
)  # fmt: skip
