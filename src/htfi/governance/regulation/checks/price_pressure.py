"""Ramping, momentum ignition and marking the close: a party's own trades that carry the price.

Each compares the price's move with its usual one over the same time, and the party's volume with the market's.
"""

import math
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from htfi.domain.orders import Liquidity, MarketSnapshot, OrderFilled, SessionPhase, TimeInForce
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.regulation.check import Check
from htfi.governance.regulation.findings import FindingLog, Severity, Where
from htfi.governance.regulation.record import Observation, RecordReader, TrackedOrder
from htfi.governance.regulation.tape import MarketTape
from htfi.governance.regulation.thresholds import CloseThresholds, IgnitionThresholds, RampThresholds

MAX_PARTIES = 20_000
MAX_FILLS = 512
NO_MARKET = "no market data of the instrument before the trade, or too little to know its usual move"
NO_LIQUIDITY = "fills that do not say whether they took liquidity"


class OwnFill(NamedTuple):
    """A fill of the party that took liquidity."""

    at_ns: int
    side: int
    price: float
    quantity: int
    order_id: str


@dataclass(slots=True)
class _Recent:
    """A party's newest aggressive fills in an instrument."""

    fills: deque[OwnFill] = field(default_factory=lambda: deque[OwnFill](maxlen=MAX_FILLS))
    quiet_until_ns: int = 0
    day: int = 0
    of_day: int = 0  # lots
    bursts: "list[_Burst]" = field(default_factory=list["_Burst"])


@dataclass(slots=True)
class _Burst:
    """A burst that moved the price, and what was traded back since."""

    start_ns: int
    end_ns: int
    side: int
    quantity: int
    average: float
    sigmas: float
    share: float
    orders: tuple[str, ...]
    reversed: int = 0
    reversed_value: float = 0.0


class AggressiveFlowCheck(Check, ABC):
    """Base: hands each aggressive fill with the party's recent ones and the market's tape to `take`."""

    def __init__(self, log: FindingLog, reader: RecordReader, window_ns: int) -> None:
        super().__init__(log, reader)
        self._window_ns = window_ns
        self.recent: OrderedDict[tuple[str, str, str], _Recent] = OrderedDict()

    def order(self, seen: Observation) -> None:
        event, order = seen.event, seen.order
        if isinstance(event, MarketSnapshot):
            self.market(event)
        if not isinstance(event, OrderFilled) or order is None or seen.illegal:
            return
        if event.liquidity is None:
            self.log.cannot_judge(NO_LIQUIDITY)
            return
        key = (order.party, order.new.instrument, order.new.venue)
        recent = self.recent.setdefault(key, _Recent())
        self.recent.move_to_end(key)
        if len(self.recent) > MAX_PARTIES:
            self.recent.popitem(last=False)
            self.log.cannot_judge("more parties and instruments than can be followed at once")
        fill = OwnFill(
            seen.at_ns, order.new.side.sign, float(event.price), event.quantity, order.new.order_id
        )
        self.any_fill(key, recent, fill)
        if not self.is_aggressive(event.liquidity, order, seen):
            return
        recent.fills.append(fill)
        while recent.fills[0].at_ns < seen.at_ns - self._window_ns:
            recent.fills.popleft()
        tape = self.reader.tapes.get(key[1:])
        if tape is None or tape.usual_move(NS_PER_S) is None:
            self.log.cannot_judge(NO_MARKET)
            return
        self.take(key, recent, tape)

    def is_aggressive(self, liquidity: Liquidity, order: TrackedOrder, seen: Observation) -> bool:
        del order, seen
        return liquidity is Liquidity.REMOVED

    def market(self, event: MarketSnapshot) -> None:
        """Market data."""

    def any_fill(self, key: tuple[str, str, str], recent: _Recent, fill: OwnFill) -> None:
        """A fill, aggressive or not, before it joins the recent ones."""

    @abstractmethod
    def take(self, key: tuple[str, str, str], recent: _Recent, tape: MarketTape) -> None:
        """The newest of `recent.fills` has just come."""


def move_in_sigmas(tape: MarketTape, start_ns: int, end_ns: int, side: int) -> float | None:
    """The price's move from just before an instant, in usual moves over the time, towards `side`."""
    before, now = tape.mid_at(start_ns - NS_PER_S), tape.mid_at(end_ns)
    usual = tape.usual_move(end_ns - start_ns + NS_PER_S)
    if before is None or now is None or not usual:
        return None
    return side * math.log(now / before) / usual


class RampingCheck(AggressiveFlowCheck):
    """Ramping: over minutes a party takes most of the volume on one side, trade by trade at a farther price.

    A large order that has to be done looks alike, but is kept: where the party trades back soon, less is asked.
    """

    def __init__(
        self, log: FindingLog, reader: RecordReader, thresholds: RampThresholds | None = None
    ) -> None:
        self._limits = thresholds or RampThresholds()
        super().__init__(log, reader, self._limits.window_ns)

    def any_fill(self, key: tuple[str, str, str], recent: _Recent, fill: OwnFill) -> None:
        left: list[_Burst] = []
        for ramp in recent.bursts:
            if fill.at_ns > ramp.end_ns + self._limits.reversal_ns:
                continue
            if fill.side == -ramp.side:
                ramp.reversed += fill.quantity
                if ramp.reversed >= self._limits.min_reversed * ramp.quantity:
                    self._report(key, recent, ramp, fill.at_ns)
                    continue
            left.append(ramp)
        recent.bursts = left

    def take(self, key: tuple[str, str, str], recent: _Recent, tape: MarketTape) -> None:
        limits, fills = self._limits, recent.fills
        newest = fills[-1]
        self.log.judged()
        if len(fills) < limits.min_fills or newest.at_ns < recent.quiet_until_ns:
            return
        side = newest.side
        total = sum(fill.quantity for fill in fills)
        own = [fill for fill in fills if fill.side == side]
        quantity = sum(fill.quantity for fill in own)
        if len(own) < limits.min_fills or quantity < limits.min_one_sided * total:
            return
        share = quantity / max(tape.volume_since(own[0].at_ns), quantity)
        if share < limits.min_share_reversed:
            return
        sigmas = move_in_sigmas(tape, own[0].at_ns, newest.at_ns, side)
        if sigmas is None or sigmas < limits.min_sigmas_reversed:
            return
        extreme, num_extremes = -math.inf, 0
        for fill in own:
            num_extremes += side * fill.price >= extreme
            extreme = max(extreme, side * fill.price)
        if num_extremes < limits.min_extremes * len(own):
            return
        average = sum(fill.quantity * fill.price for fill in own) / quantity
        orders = tuple(fill.order_id for fill in own)[:20]
        ramp = _Burst(own[0].at_ns, newest.at_ns, side, quantity, average, sigmas, share, orders)
        if share >= limits.min_share and sigmas >= limits.min_sigmas:
            self._report(key, recent, ramp, newest.at_ns)
            return
        last = recent.bursts[-1] if recent.bursts else None
        if last is not None and last.side == side and ramp.start_ns <= last.end_ns:
            recent.bursts.pop()  # the ramp goes on
        recent.bursts = [*recent.bursts[-7:], ramp]

    def _report(self, key: tuple[str, str, str], recent: _Recent, ramp: _Burst, end_ns: int) -> None:
        recent.quiet_until_ns = ramp.end_ns + self._limits.window_ns
        back = f", and traded {ramp.reversed / ramp.quantity:.0%} of it back" if ramp.reversed else ""
        self.log.found(
            Severity.REVIEW,
            f"ramping: {key[0]} {'bought' if ramp.side == 1 else 'sold'} {ramp.share:.0%} of the volume in "
            f"{(ramp.end_ns - ramp.start_ns) / NS_PER_S:.0f} s while the price moved by {ramp.sigmas:.1f} of its usual "
            f"moves{back}",
            Where(ramp.start_ns, end_ns, ramp.orders, key[1], key[2], key[0]),
            {
                "lots": ramp.quantity, "share_of_volume": round(ramp.share, 4), "sigmas": round(ramp.sigmas, 3),
                "lots_back": ramp.reversed,
            },
        )  # fmt: skip


class MomentumIgnitionCheck(AggressiveFlowCheck):
    """Momentum ignition: a burst moves the price, and the party trades back into those who follow, at a profit."""

    def __init__(
        self, log: FindingLog, reader: RecordReader, thresholds: IgnitionThresholds | None = None
    ) -> None:
        self._limits = thresholds or IgnitionThresholds()
        super().__init__(log, reader, self._limits.burst_ns)

    def any_fill(self, key: tuple[str, str, str], recent: _Recent, fill: OwnFill) -> None:
        limits = self._limits
        left: list[_Burst] = []
        for burst in recent.bursts:
            if fill.at_ns > burst.end_ns + limits.reversal_ns:
                continue
            if fill.side == -burst.side:
                burst.reversed += fill.quantity
                burst.reversed_value += fill.quantity * fill.price
                gained = burst.side * (burst.reversed_value / burst.reversed - burst.average)
                if burst.reversed >= limits.min_reversed * burst.quantity and gained > 0.0:
                    self._report(key, burst, fill)
                    continue
            left.append(burst)
        recent.bursts = left

    def take(self, key: tuple[str, str, str], recent: _Recent, tape: MarketTape) -> None:
        del key
        limits, fills = self._limits, recent.fills
        newest = fills[-1]
        self.log.judged()
        own = [fill for fill in fills if fill.side == newest.side]
        if len(own) < limits.min_fills or len(own) < len(fills):
            return
        quantity = sum(fill.quantity for fill in own)
        share = quantity / max(tape.volume_since(own[0].at_ns), quantity)
        sigmas = move_in_sigmas(tape, own[0].at_ns, newest.at_ns, newest.side)
        if share < limits.min_share or sigmas is None or sigmas < limits.min_sigmas:
            return
        average = sum(fill.quantity * fill.price for fill in own) / quantity
        orders = tuple(fill.order_id for fill in own)[:20]
        burst = _Burst(own[0].at_ns, newest.at_ns, newest.side, quantity, average, sigmas, share, orders)
        last = recent.bursts[-1] if recent.bursts else None
        if last is not None and last.side == burst.side and burst.start_ns <= last.end_ns:
            recent.bursts.pop()  # the burst goes on
        recent.bursts = [*recent.bursts[-7:], burst]

    def _report(self, key: tuple[str, str, str], burst: _Burst, fill: OwnFill) -> None:
        self.log.found(
            Severity.REVIEW,
            f"momentum ignition: {key[0]} moved the price by {burst.sigmas:.1f} of its usual moves within "
            f"{(burst.end_ns - burst.start_ns) / NS_PER_S:.1f} s and traded {burst.reversed / burst.quantity:.0%} "
            "of it back at a profit",
            Where(burst.start_ns, fill.at_ns, (*burst.orders, fill.order_id), key[1], key[2], key[0]),
            {
                "lots": burst.quantity, "lots_back": burst.reversed, "sigmas": round(burst.sigmas, 3),
                "share_of_volume": round(burst.share, 4), "back_after_s": (fill.at_ns - burst.end_ns) / NS_PER_S,
            },
        )  # fmt: skip


class MarkingTheCloseCheck(AggressiveFlowCheck):
    """Marking the close: late aggressive trades of one side that move the closing price.

    Orders at the close that were entered before the late part are what the auction is for, and are left out.
    """

    def __init__(
        self, log: FindingLog, reader: RecordReader, thresholds: CloseThresholds | None = None
    ) -> None:
        self._limits = thresholds or CloseThresholds()
        super().__init__(log, reader, self._limits.window_ns)
        self._phases: OrderedDict[tuple[str, str], tuple[SessionPhase, int]] = OrderedDict()  # since when
        self._has_phases = False

    def is_aggressive(self, liquidity: Liquidity, order: TrackedOrder, seen: Observation) -> bool:
        if liquidity is Liquidity.AUCTION:
            is_late = seen.at_ns - order.entered_ns <= self._limits.late_ns
            return is_late and order.new.time_in_force is not TimeInForce.AT_THE_CLOSE
        return liquidity is Liquidity.REMOVED

    def any_fill(self, key: tuple[str, str, str], recent: _Recent, fill: OwnFill) -> None:
        del key
        day = fill.at_ns // NS_PER_DAY
        if recent.day != day:
            recent.day, recent.of_day = day, 0
        recent.of_day += fill.quantity

    def market(self, event: MarketSnapshot) -> None:
        if event.phase is None:
            return
        self._has_phases = True
        key = (event.instrument, event.venue)
        phase, since_ns = self._phases.get(key, (None, 0))
        if phase is event.phase:
            return
        self._phases[key] = (event.phase, event.at_ns)
        if len(self._phases) > MAX_PARTIES:
            self._phases.popitem(last=False)
        if event.phase is SessionPhase.CLOSED and phase is not None:
            self._close(key, since_ns if phase is SessionPhase.CLOSING_AUCTION else event.at_ns, event.at_ns)

    def take(self, key: tuple[str, str, str], recent: _Recent, tape: MarketTape) -> None:
        """Judged when the session closes."""

    def finish(self, end_ns: int) -> None:
        del end_ns
        if self.recent and not self._has_phases:
            self.log.cannot_judge("the market data states no closing of the session", len(self.recent))

    def _close(self, market: tuple[str, str], continuous_ns: int, closed_ns: int) -> None:
        """A session has closed; its continuous trading had ended at `continuous_ns`."""
        tape = self.reader.tapes.get(market)
        for key, recent in self.recent.items():
            if key[1:] != market:
                continue
            self.log.judged()
            if tape is not None:
                self._judge(key, recent, tape, continuous_ns, closed_ns)

    def _judge(
        self, key: tuple[str, str, str], recent: _Recent, tape: MarketTape, continuous_ns: int, closed_ns: int
    ) -> None:
        limits = self._limits
        fills = [fill for fill in recent.fills if fill.at_ns >= continuous_ns - limits.window_ns]
        net = sum(fill.side * fill.quantity for fill in fills)
        side = 1 if net > 0 else -1
        late = [fill for fill in fills if fill.side == side and fill.at_ns >= continuous_ns - limits.late_ns]
        quantity, total = sum(fill.quantity for fill in late), sum(fill.quantity for fill in fills)
        if len(late) < limits.min_fills or quantity < limits.min_late * total:
            return
        # The auction has a volume of its own, which would hide what was done just before it.
        auction = sum(fill.quantity for fill in late if fill.at_ns > continuous_ns)
        auction_volume = tape.volume_since(continuous_ns + NS_PER_S)
        before_volume = tape.volume_since(late[0].at_ns) - auction_volume
        share = max((quantity - auction) / max(before_volume, 1.0), auction / max(auction_volume, 1.0))
        share = min(1.0, share)
        sigmas = move_in_sigmas(tape, late[0].at_ns, closed_ns, side)
        of_day = total / max(1, recent.of_day)
        if (
            share < limits.min_share
            or of_day < limits.min_of_day
            or sigmas is None
            or sigmas < limits.min_sigmas
        ):
            return
        self.log.found(
            Severity.REVIEW,
            f"marking the close: {key[0]} {'bought' if side == 1 else 'sold'} {share:.0%} of the volume in the last "
            f"{(closed_ns - late[0].at_ns) / NS_PER_S:.0f} s, and the close moved by {sigmas:.1f} of its usual moves",
            Where(late[0].at_ns, closed_ns, tuple(fill.order_id for fill in late)[:20], key[1], key[2], key[0]),
            {
                "fills": len(late), "lots": quantity, "share_of_volume": round(share, 4), "sigmas": round(sigmas, 3),
                "share_of_own_day": round(of_day, 4),
            },
        )  # fmt: skip
