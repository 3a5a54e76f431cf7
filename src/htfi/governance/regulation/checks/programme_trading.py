"""China's thresholds of programme trading, by account and day of Asia/Shanghai, and the patterns that exchanges watch.

The marks of programme trading and of high frequency are numbers of the rules. For the four patterns the rules give no
numbers: the thresholds here are the monitor's own, and what they find is for review.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from htfi.domain.orders import (
    CancelRequest,
    Liquidity,
    MarketSnapshot,
    NewOrder,
    OrderCanceled,
    OrderFilled,
    ReplaceRequest,
)
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.regulation.check import Check, CheckDefinition
from htfi.governance.regulation.findings import FindingLog, RuleRegime, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader

SHANGHAI_OFFSET_NS = 8 * 3600 * NS_PER_S  # no summer time
ORDERS_IN_A_SECOND, OCCASIONS_A_DAY = 5, 5
HIGH_FREQUENCY_PER_S, HIGH_FREQUENCY_PER_DAY = 300, 20_000
MAX_ACCOUNTS = 20_000

BURST_ORDERS = 50  # of one account within a second
RAPID_CANCEL_NS = NS_PER_S
RAPID_CANCELS_A_DAY, RAPID_CANCEL_SHARE = 50, 0.8
PUSH_WINDOW_NS, PUSH_MOVE, PUSHES_A_DAY = 60 * NS_PER_S, 0.01, 3
LARGE_WINDOW_NS, LARGE_SHARE, MIN_MARKET_TRADES = 60 * NS_PER_S, 0.5, 20


def shanghai_day(at_ns: int) -> int:
    """Days since 1970-01-01 in Shanghai."""
    return (at_ns + SHANGHAI_OFFSET_NS) // NS_PER_DAY


@dataclass(slots=True)
class _AccountDay:
    """What an account has done in its current day."""

    day: int
    first_ns: int
    last_ns: int = 0
    num: int = 0  # orders and cancels
    num_orders: int = 0
    num_occasions: int = 0
    num_rapid_cancels: int = 0
    most_in_a_second: int = 0
    burst_ns: int = 0
    recent_orders: deque[int] = field(default_factory=lambda: deque[int](maxlen=ORDERS_IN_A_SECOND))
    recent: deque[int] = field(default_factory=lambda: deque[int](maxlen=HIGH_FREQUENCY_PER_S))
    burst: deque[int] = field(default_factory=lambda: deque[int](maxlen=BURST_ORDERS))


class _ByAccount(Check, ABC):
    """Keeps a day for each account and calls `close_day` when it ends."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self._days: OrderedDict[str, _AccountDay] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        if order is None or not isinstance(event, NewOrder | ReplaceRequest | CancelRequest | OrderCanceled):
            return
        if not order.new.account and not order.new.client:
            self.log.cannot_judge("an order names neither account nor client")
            return
        account = order.new.account or order.new.client
        day = self._day(account, seen.at_ns)
        day.last_ns = seen.at_ns
        self.take(day, seen)

    def finish(self, end_ns: int) -> None:
        del end_ns
        for account, day in self._days.items():
            self.log.judged()
            self.close_day(account, day)
        self._days.clear()

    @abstractmethod
    def take(self, day: _AccountDay, seen: Observation) -> None:
        """An order, replace, cancel or its report."""

    @abstractmethod
    def close_day(self, account: str, day: _AccountDay) -> None:
        """The account's day is over."""

    def where(self, account: str, day: _AccountDay) -> Where:
        return Where(day.first_ns, day.last_ns, party=f"account:{account}")

    def _day(self, account: str, at_ns: int) -> _AccountDay:
        today = shanghai_day(at_ns)
        found = self._days.get(account)
        if found is None or found.day != today:
            if found is not None:
                self.log.judged()
                self.close_day(account, found)
            found = self._days[account] = _AccountDay(today, at_ns)
        self._days.move_to_end(account)
        if len(self._days) > MAX_ACCOUNTS:
            self._days.popitem(last=False)
            self.log.cannot_judge("more accounts a day than can be counted at once")
        return found


class ProgrammeTradingCheck(_ByAccount):
    """Five orders or more within one second on five occasions or more in a day mark programme trading.

    An occasion is a second that begins with its first order; the next begins after it.
    """

    def take(self, day: _AccountDay, seen: Observation) -> None:
        if not isinstance(seen.event, NewOrder):
            return
        times = day.recent_orders
        times.append(seen.at_ns)
        if len(times) == ORDERS_IN_A_SECOND and seen.at_ns - times[0] < NS_PER_S:
            day.num_occasions += 1
            times.clear()

    def close_day(self, account: str, day: _AccountDay) -> None:
        if day.num_occasions >= OCCASIONS_A_DAY:
            self.log.found(
                Severity.NOTICE,
                f"account {account} traded by programme: {day.num_occasions} seconds with {ORDERS_IN_A_SECOND} orders "
                "or more; it has to be reported before it trades",
                self.where(account, day),
                {"occasions": day.num_occasions, "orders_in_a_second": ORDERS_IN_A_SECOND},
            )


class HighFrequencyCheck(_ByAccount):
    """300 orders and cancels or more in one second, or 20,000 or more in a day, are high-frequency trading."""

    def take(self, day: _AccountDay, seen: Observation) -> None:
        if not isinstance(seen.event, NewOrder | ReplaceRequest | CancelRequest):
            return
        day.num += 1
        times = day.recent
        times.append(seen.at_ns)
        if len(times) == HIGH_FREQUENCY_PER_S and seen.at_ns - times[0] < NS_PER_S:
            day.most_in_a_second = HIGH_FREQUENCY_PER_S
            day.burst_ns = day.burst_ns or seen.at_ns

    def close_day(self, account: str, day: _AccountDay) -> None:
        if day.most_in_a_second or day.num >= HIGH_FREQUENCY_PER_DAY:
            why = (
                f"{HIGH_FREQUENCY_PER_S} or more orders and cancels in one second"
                if day.most_in_a_second
                else f"{day.num:,} orders and cancels in the day"
            )
            self.log.found(
                Severity.NOTICE,
                f"account {account} trades at high frequency: {why}; stricter reporting and fees apply",
                self.where(account, day),
                {"messages_a_day": day.num, "in_a_second": day.most_in_a_second},
            )


class OrderBurstCheck(_ByAccount):
    """Abnormal rate of orders: very many of one account within a second."""

    def take(self, day: _AccountDay, seen: Observation) -> None:
        if isinstance(seen.event, NewOrder):
            day.burst.append(seen.at_ns)
            if len(day.burst) == BURST_ORDERS and seen.at_ns - day.burst[0] < NS_PER_S:
                day.num_occasions += 1
                day.burst.clear()

    def close_day(self, account: str, day: _AccountDay) -> None:
        if day.num_occasions:
            self.log.found(
                Severity.REVIEW,
                f"account {account} sent {BURST_ORDERS} orders or more within a second, {day.num_occasions} times",
                self.where(account, day),
                {"occasions": day.num_occasions, "orders_in_a_second": BURST_ORDERS},
            )


class RapidCancelCheck(_ByAccount):
    """Orders cancelled within a second of their entry, often, with hardly any left to trade."""

    def take(self, day: _AccountDay, seen: Observation) -> None:
        if isinstance(seen.event, NewOrder):
            day.num_orders += 1
        elif (
            isinstance(seen.event, OrderCanceled)
            and seen.order is not None
            and not seen.illegal
            and seen.order.state.filled == 0
            and seen.at_ns - seen.order.entered_ns <= RAPID_CANCEL_NS
        ):
            day.num_rapid_cancels += 1

    def close_day(self, account: str, day: _AccountDay) -> None:
        share = day.num_rapid_cancels / max(1, day.num_orders)
        if day.num_rapid_cancels >= RAPID_CANCELS_A_DAY and share >= RAPID_CANCEL_SHARE:
            self.log.found(
                Severity.REVIEW,
                f"account {account} cancelled {day.num_rapid_cancels:,} orders within a second of their entry",
                self.where(account, day),
                {"rapid_cancels": day.num_rapid_cancels, "share_of_orders": round(share, 4)},
            )


@dataclass(slots=True)
class _Minute:
    """An account's trades in one instrument over the newest minute."""

    fills: deque[tuple[int, int, float, int]]  # at, side, price, quantity
    day: int
    num_pushes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    blocked_until_ns: int = 0


class _ByInstrument(Check, ABC):
    """An account's fills in an instrument over the newest minute, with those of the market."""

    def __init__(self, log: FindingLog, reader: RecordReader) -> None:
        super().__init__(log, reader)
        self.minutes: OrderedDict[tuple[str, str], _Minute] = OrderedDict()
        self.market: OrderedDict[str, deque[tuple[int, int]]] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        if isinstance(event, MarketSnapshot):
            if event.last_quantity > 0:
                trades = self.market.setdefault(event.instrument, deque(maxlen=10_000))
                trades.append((seen.at_ns, event.last_quantity))
                if len(self.market) > MAX_ACCOUNTS:
                    self.market.popitem(last=False)
            return
        if order is None or not isinstance(event, OrderFilled) or seen.illegal:
            return
        account = order.new.account or order.new.client
        if not account:
            self.log.cannot_judge("an order names neither account nor client")
            return
        key = (account, order.new.instrument)
        minute = self.minutes.get(key)
        if minute is None:
            minute = self.minutes[key] = _Minute(deque(maxlen=2_000), shanghai_day(seen.at_ns))
        self.minutes.move_to_end(key)
        if len(self.minutes) > MAX_ACCOUNTS:
            self.minutes.popitem(last=False)
            self.log.cannot_judge("more accounts and instruments than can be followed at once")
        minute.fills.append((seen.at_ns, order.new.side.sign, float(event.price), event.quantity))
        while minute.fills[0][0] < seen.at_ns - PUSH_WINDOW_NS:
            minute.fills.popleft()
        self.log.judged()
        self.take(key, minute, seen.at_ns, event.liquidity)

    @abstractmethod
    def take(self, key: tuple[str, str], minute: _Minute, at_ns: int, liquidity: Liquidity | None) -> None:
        """A fill of the account in the instrument, the newest of `minute.fills`."""


class PriceLiftingCheck(_ByInstrument):
    """Repeated lifting or suppressing: own trades of one side carry the price far within a minute, time and again."""

    def take(self, key: tuple[str, str], minute: _Minute, at_ns: int, liquidity: Liquidity | None) -> None:
        if minute.day != shanghai_day(at_ns):
            minute.day, minute.num_pushes = shanghai_day(at_ns), 0
        if liquidity is Liquidity.ADDED or at_ns < minute.blocked_until_ns:
            return
        side = minute.fills[-1][1]
        own = [fill for fill in minute.fills if fill[1] == side]
        move = side * (own[-1][2] - own[0][2]) / abs(own[0][2]) if own[0][2] else 0.0
        if len(own) < 5 or len(own) < 0.9 * len(minute.fills) or move < PUSH_MOVE:
            return
        minute.num_pushes += 1
        minute.first_ns = own[0][0] if minute.num_pushes == 1 else minute.first_ns
        minute.blocked_until_ns = at_ns + PUSH_WINDOW_NS
        if minute.num_pushes == PUSHES_A_DAY:
            self.log.found(
                Severity.REVIEW,
                f"account {key[0]} moved {key[1]} by {PUSH_MOVE:.0%} or more within a minute, {PUSHES_A_DAY} times",
                Where(minute.first_ns, at_ns, instrument=key[1], party=f"account:{key[0]}"),
                {"times": minute.num_pushes, "last_move": round(move, 5)},
            )


class LargeVolumeCheck(_ByInstrument):
    """Large volume in a short window: one account has most of an instrument's trades over a minute, on one side."""

    def take(self, key: tuple[str, str], minute: _Minute, at_ns: int, liquidity: Liquidity | None) -> None:
        del liquidity
        trades = self.market.get(key[1])
        if not trades:
            self.log.cannot_judge("no trades of the market before the fill")
            return
        while trades and trades[0][0] < at_ns - LARGE_WINDOW_NS:
            trades.popleft()
        if len(trades) < MIN_MARKET_TRADES or at_ns < minute.blocked_until_ns:
            return
        side = minute.fills[-1][1]
        own = sum(fill[3] for fill in minute.fills if fill[1] == side)
        total = sum(quantity for _, quantity in trades)
        if own > LARGE_SHARE * total:
            minute.blocked_until_ns = at_ns + 10 * LARGE_WINDOW_NS
            self.log.found(
                Severity.REVIEW,
                f"account {key[0]} has {own / total:.0%} of the volume of {key[1]} within a minute, on one side",
                Where(minute.fills[0][0], at_ns, instrument=key[1], party=f"account:{key[0]}"),
                {"share": round(own / total, 4), "own_lots": own, "market_lots": total},
            )


_RULES = "programme trading: exchanges' implementing rules (2025)"
_ACCOUNTS = "orders that name neither account nor client"

PROGRAMME_TRADING_CHECKS = (
    CheckDefinition(
        "programme-trading", "Accounts that trade by programme", {RuleRegime.CN: f"{_RULES}, identification"},
        "new", _ACCOUNTS, ProgrammeTradingCheck,
    ),
    CheckDefinition(
        "high-frequency", "Accounts that trade at high frequency", {RuleRegime.CN: f"{_RULES}, high frequency"},
        "new, replace, cancel", _ACCOUNTS, HighFrequencyCheck,
    ),
    CheckDefinition(
        "order-burst", "Abnormal rate of orders", {RuleRegime.CN: f"{_RULES}, abnormal trading (1)"},
        "new", _ACCOUNTS, OrderBurstCheck,
    ),
    CheckDefinition(
        "rapid-cancels", "Frequent rapid cancels", {RuleRegime.CN: f"{_RULES}, abnormal trading (2)"},
        "new, canceled", _ACCOUNTS, RapidCancelCheck,
    ),
    CheckDefinition(
        "price-lifting", "Repeated lifting or suppressing of a price",
        {RuleRegime.CN: f"{_RULES}, abnormal trading (3)"},
        "fill", _ACCOUNTS, PriceLiftingCheck,
    ),
    CheckDefinition(
        "large-volume", "Large volume in a short window", {RuleRegime.CN: f"{_RULES}, abnormal trading (4)"},
        "fill, market", f"{_ACCOUNTS}; without trades of the market", LargeVolumeCheck,
    ),
)  # fmt: skip
