"""Layering, spoofing and wash trades: patterns of orders and of counterparties.

A party's episode begins when it trades on one side while it shows much more on the other. It counts where what it
showed is taken back within seconds and hardly traded. Both need several episodes, and a share of the party's trades.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field
from statistics import median

from htfi.domain.orders import Liquidity, NewOrder, OrderFilled
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.regulation.check import Check
from htfi.governance.regulation.findings import FindingLog, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader, TrackedOrder
from htfi.governance.regulation.thresholds import PressureThresholds, WashThresholds

MAX_PARTIES = 20_000  # with an instrument each
MAX_SHOWN_ORDERS = 2_000
MAX_KEPT = 64
MAX_MATCHES = 20_000
TOO_MANY = "more parties and instruments than can be followed at once"


@dataclass(slots=True)
class _Episode:
    """A trade on one side with orders shown on the other."""

    at_ns: int
    side: int
    ratio: float
    shown: dict[str, int]  # order → lots
    num_levels: int
    first_entered_ns: int
    cancelled: int = 0
    filled: int = 0
    last_cancel_ns: int = 0


@dataclass(slots=True)
class _Confirmed:
    """What of an episode a finding states."""

    start_ns: int
    end_ns: int
    ratio: float
    num_levels: int
    delay_s: float
    orders: tuple[str, ...]


@dataclass(slots=True)
class _PartyDay:
    """A party in an instrument and day."""

    day: int
    sides: dict[int, dict[str, TrackedOrder]] = field(default_factory=lambda: {1: {}, -1: {}})
    open: list[_Episode] = field(default_factory=list[_Episode])
    confirmed: list[_Confirmed] = field(default_factory=list[_Confirmed])
    num_confirmed: int = 0
    num_trades: int = 0
    last_trade_ns: dict[int, int] = field(default_factory=dict[int, int])


class PressureCheck(Check, ABC):
    """Base of layering and spoofing, which differ in the number of price levels."""

    name = ""

    def __init__(
        self, log: FindingLog, reader: RecordReader, thresholds: PressureThresholds | None = None
    ) -> None:
        super().__init__(log, reader)
        self._limits = thresholds or PressureThresholds()
        self._parties: OrderedDict[tuple[str, str], _PartyDay] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        if order is None or seen.illegal:
            return
        party = self._party((order.party, order.new.instrument), seen.at_ns)
        if party.open and seen.at_ns > party.open[0].at_ns + self._limits.window_ns:
            self._end_episodes(party, seen.at_ns)
        order_id, side = order.new.order_id, order.new.side.sign
        if isinstance(event, NewOrder):
            if len(party.sides[side]) < MAX_SHOWN_ORDERS:
                party.sides[side][order_id] = order
        elif isinstance(event, OrderFilled):
            self._take_fill(party, order, event.quantity, seen.at_ns)
        elif not order.state.is_open and seen.before is not None:
            for episode in party.open:
                if order_id in episode.shown:
                    episode.cancelled += seen.before.leaves
                    episode.last_cancel_ns = seen.at_ns
        if not order.state.is_open:
            party.sides[side].pop(order_id, None)

    def finish(self, end_ns: int) -> None:
        for (name, instrument), party in self._parties.items():
            self._end_episodes(party, end_ns + NS_PER_DAY)
            self._report(name, instrument, party)
        self._parties.clear()

    @abstractmethod
    def has_levels(self, num: int) -> bool:
        """Whether an episode of so many price levels is of this pattern."""

    def _party(self, key: tuple[str, str], at_ns: int) -> _PartyDay:
        day = at_ns // NS_PER_DAY
        found = self._parties.get(key)
        if found is None or found.day != day:
            fresh = _PartyDay(day)
            if found is not None:
                self._end_episodes(found, at_ns)
                self._report(*key, found)
                fresh.sides = found.sides
            found = self._parties[key] = fresh
        self._parties.move_to_end(key)
        if len(self._parties) > MAX_PARTIES:
            (name, instrument), oldest = self._parties.popitem(last=False)
            self._report(name, instrument, oldest)
            self.log.cannot_judge(TOO_MANY)
        return found

    def _take_fill(self, party: _PartyDay, order: TrackedOrder, quantity: int, at_ns: int) -> None:
        order_id, side = order.new.order_id, order.new.side.sign
        for episode in party.open:
            if order_id in episode.shown:
                episode.filled += quantity
        if at_ns - party.last_trade_ns.get(side, 0) > NS_PER_S:
            party.num_trades += 1
        party.last_trade_ns[side] = at_ns
        if any(episode.side == side for episode in party.open) or len(party.open) >= MAX_KEPT:
            return
        oldest_ns = at_ns - self._limits.max_age_ns
        shown = {
            one: other
            for one, other in party.sides[-side].items()
            if other.entered_ns >= oldest_ns and not other.state.filled
        }
        opposite = sum(other.state.leaves for other in shown.values())
        own = sum(other.state.leaves for one, other in party.sides[side].items() if one != order_id)
        own += order.state.quantity
        if not shown or opposite < self._limits.min_ratio * own:
            return
        levels = len({other.price for other in shown.values()})
        party.open.append(
            _Episode(
                at_ns,
                side,
                opposite / own,
                {one: other.state.leaves for one, other in shown.items()},
                levels,
                min(other.entered_ns for other in shown.values()),
            )
        )

    def _end_episodes(self, party: _PartyDay, now_ns: int) -> None:
        limits = self._limits
        left: list[_Episode] = []
        for episode in party.open:
            if now_ns <= episode.at_ns + limits.window_ns:
                left.append(episode)
                continue
            total = sum(episode.shown.values())
            if (
                self.has_levels(episode.num_levels)
                and episode.cancelled >= limits.min_cancelled_share * total
                and episode.filled <= limits.max_filled_share * total
            ):
                party.num_confirmed += 1
                if len(party.confirmed) < MAX_KEPT:
                    delay_s = (episode.last_cancel_ns - episode.at_ns) / NS_PER_S
                    party.confirmed.append(
                        _Confirmed(
                            episode.first_entered_ns,
                            episode.last_cancel_ns,
                            episode.ratio,
                            episode.num_levels,
                            delay_s,
                            tuple(episode.shown)[:4],
                        )
                    )
        party.open = left

    def _report(self, name: str, instrument: str, party: _PartyDay) -> None:
        if not party.num_trades:
            return
        self.log.judged()
        share = party.num_confirmed / party.num_trades
        if party.num_confirmed < self._limits.min_episodes or share < self._limits.min_episode_share:
            return
        kept = party.confirmed
        self.log.found(
            Severity.REVIEW,
            f"{self.name}: {party.num_confirmed} times {name} traded on one side while it showed "
            f"{median(one.ratio for one in kept):.1f} times as much on the other, and took that back within "
            f"{max(one.delay_s for one in kept):.1f} s",
            Where(
                kept[0].start_ns,
                kept[-1].end_ns,
                tuple(order for one in kept for order in one.orders)[:20],
                instrument,
                party=name,
            ),
            {
                "episodes": party.num_confirmed,
                "trades": party.num_trades,
                "median_ratio": round(median(one.ratio for one in kept), 3),
                "median_levels": median(one.num_levels for one in kept),
                "median_cancel_s": round(median(one.delay_s for one in kept), 3),
            },
        )


class LayeringCheck(PressureCheck):
    """Several orders at several prices on one side."""

    name = "layering"

    def has_levels(self, num: int) -> bool:
        return num >= self._limits.min_levels


class SpoofingCheck(PressureCheck):
    """A large order or two on one side."""

    name = "spoofing"

    def has_levels(self, num: int) -> bool:
        return 0 < num < self._limits.min_levels


@dataclass(slots=True)
class _Fill:
    at_ns: int
    side: int
    price: float
    quantity: int
    order_id: str
    is_paired: bool = False


@dataclass(slots=True)
class _WashDay:
    """A party's fills in an instrument and day, and what of them was with itself."""

    day: int
    recent: list[_Fill] = field(default_factory=list[_Fill])
    volume: int = 0
    num_matched: int = 0
    matched: int = 0
    num_inferred: int = 0
    inferred: int = 0
    has_matches: bool = False
    orders: list[str] = field(default_factory=list[str])
    first_ns: int = 0
    last_ns: int = 0


class WashTradeCheck(Check):
    """Trades in which nobody else takes part: one party on both sides, or two parties to and fro."""

    def __init__(
        self, log: FindingLog, reader: RecordReader, thresholds: WashThresholds | None = None
    ) -> None:
        super().__init__(log, reader)
        self._limits = thresholds or WashThresholds()
        self._parties: OrderedDict[tuple[str, str], _WashDay] = OrderedDict()
        self._matches: OrderedDict[str, tuple[str, int, str]] = OrderedDict()  # id → party, side, order
        self._circular: OrderedDict[tuple[str, str, str], list[int]] = (
            OrderedDict()
        )  # trades, lots each way, times

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        if not isinstance(event, OrderFilled) or order is None or seen.illegal:
            return
        key = (order.party, order.new.instrument)
        party = self._party(key, seen.at_ns)
        party.volume += event.quantity
        side = order.new.side.sign
        if event.match_id:
            party.has_matches = True
            self._match(event, order, party, seen.at_ns)
            return
        if event.liquidity is Liquidity.AUCTION:  # both sides of an auction meet the market, at one price
            return
        fill = _Fill(seen.at_ns, side, float(event.price), event.quantity, order.new.order_id)
        party.recent = [
            one for one in party.recent[-MAX_KEPT:] if one.at_ns >= seen.at_ns - self._limits.window_ns
        ]
        for other in party.recent:
            if (
                other.side == -side
                and not other.is_paired
                and other.price == fill.price
                and other.quantity == fill.quantity
            ):
                other.is_paired = fill.is_paired = True
                party.num_inferred += 1
                party.inferred += 2 * fill.quantity
                self._note(party, seen.at_ns, other.order_id, fill.order_id)
                break
        party.recent.append(fill)

    def finish(self, end_ns: int) -> None:
        del end_ns
        for (name, instrument), party in self._parties.items():
            self._report(name, instrument, party)
        for (first, second, instrument), figures in self._circular.items():
            self._report_circular(first, second, instrument, figures)

    def _party(self, key: tuple[str, str], at_ns: int) -> _WashDay:
        day = at_ns // NS_PER_DAY
        found = self._parties.get(key)
        if found is None or found.day != day:
            if found is not None:
                self._report(*key, found)
            found = self._parties[key] = _WashDay(day)
        self._parties.move_to_end(key)
        if len(self._parties) > MAX_PARTIES:
            (name, instrument), oldest = self._parties.popitem(last=False)
            self._report(name, instrument, oldest)
            self.log.cannot_judge(TOO_MANY)
        return found

    def _match(self, event: OrderFilled, order: TrackedOrder, party: _WashDay, at_ns: int) -> None:
        other = self._matches.pop(event.match_id, None)
        side = order.new.side.sign
        if other is None:
            self._matches[event.match_id] = (order.party, side, order.new.order_id)
            if len(self._matches) > MAX_MATCHES:
                self._matches.popitem(last=False)
            return
        name, other_side, other_order = other
        if other_side != -side:
            return
        if name == order.party:
            party.num_matched += 1
            party.matched += 2 * event.quantity
            self._note(party, at_ns, other_order, order.new.order_id)
            return
        first, second = sorted((name, order.party))
        figures = self._circular.setdefault((first, second, order.new.instrument), [0, 0, 0, at_ns, at_ns])
        self._circular.move_to_end((first, second, order.new.instrument))
        if len(self._circular) > MAX_PARTIES:
            self._circular.popitem(last=False)
        buyer = order.party if side == 1 else name
        figures[0] += 1
        figures[1 if buyer == first else 2] += event.quantity
        figures[4] = at_ns

    def _note(self, party: _WashDay, at_ns: int, *orders: str) -> None:
        party.first_ns = party.first_ns or at_ns
        party.last_ns = at_ns
        if len(party.orders) < 20:
            party.orders += orders

    def _report(self, name: str, instrument: str, party: _WashDay) -> None:
        self.log.judged()
        if not party.has_matches:
            self.log.cannot_judge("fills without match ids: pairs are inferred from time, price and quantity")
        limits = self._limits
        for num, least, lots, least_share, how in (
            (party.num_matched, limits.min_matched, party.matched, limits.min_matched_share, "by match id"),
            (
                party.num_inferred,
                limits.min_inferred,
                party.inferred,
                limits.min_inferred_share,
                "by time and price",
            ),
        ):
            share = lots / max(1, party.volume)
            if num >= least and share >= least_share:
                self.log.found(
                    Severity.REVIEW,
                    f"wash trades: {name} was on both sides of {num} trades, {how}",
                    Where(party.first_ns, party.last_ns, tuple(party.orders), instrument, party=name),
                    {"trades": num, "lots": lots, "share_of_volume": round(share, 4)},
                )

    def _report_circular(self, first: str, second: str, instrument: str, figures: list[int]) -> None:
        num, one_way, other_way, start_ns, end_ns = figures
        balance = min(one_way, other_way) / max(one_way, other_way, 1)
        if num < self._limits.min_circular or balance < self._limits.min_circular_balance:
            return
        volume = sum(
            party.volume for (name, symbol), party in self._parties.items()
            if symbol == instrument and name in (first, second)
        )  # fmt: skip
        share = 2 * (one_way + other_way) / max(1, volume)
        if share < self._limits.min_inferred_share:
            return
        self.log.found(
            Severity.REVIEW,
            f"wash trades: {first} and {second} traded with each other {num} times, to and fro",
            Where(start_ns, end_ns, (), instrument, party=f"{first}, {second}"),
            {"trades": num, "balance": round(balance, 4), "share_of_volume": round(share, 4)},
        )
