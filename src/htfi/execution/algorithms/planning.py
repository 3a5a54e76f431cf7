"""The planner: how much of a parent order should rest in a queue, and how much should take, at an instant. Pure.

`advance(state, event)` takes in what happened; `target(spec, state, at_ns)` says what should stand. A planner states
targets, not requests: whoever works the order sends and cancels what leads there, so that a late fill, a refusal or a
lost request corrects itself. Prices in ticks, quantities in lots.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from htfi.domain.orders import PaceBound
from htfi.execution.algorithms.schedules import curve_at, share_due

SNIPER_PRESSURE = 0.8  # of displayed size on the own side, from which the other side is about to move away
PACE_STEPS = 20
_ROUND_UP = 1.0 - 1e-9


class Algorithm(StrEnum):
    """How an order is executed. `direct`: whole, at once, at its limit."""

    DIRECT = "direct"
    TWAP = "twap"
    VWAP = "vwap"
    POV = "pov"
    SHORTFALL = "shortfall"
    PEG = "peg"
    SNIPER = "sniper"


SCHEDULED = frozenset({Algorithm.TWAP, Algorithm.VWAP, Algorithm.SHORTFALL})


@dataclass(frozen=True, slots=True)
class ParentSpec:
    """What is to be executed. `sign` is 1 for a buy; `curve` is the expected cumulative volume over its time.

    `finish_ns` before the end, what is left takes what is displayed. `base_urgency` is the algorithm's own, to which
    that of forecasts and news is added.
    """

    algorithm: Algorithm
    sign: int
    lots: int
    start_ns: int
    end_ns: int
    limit_ticks: int
    patience_ns: int
    participation: float = 0.1
    base_urgency: float = 0.0
    min_urgency: float = 0.0
    max_urgency: float = 0.0
    curve: tuple[float, ...] = ()

    @property
    def finish_ns(self) -> int:
        """From when on the rest is taken."""
        return self.end_ns - min(self.patience_ns, (self.end_ns - self.start_ns) // 4)

    def clamped(self, urgency: float) -> float:
        return min(self.max_urgency, max(self.min_urgency, urgency))


class Market(NamedTuple):
    """Best protected prices over all venues and what is displayed at them; 0: not known."""

    bid: int = 0
    bid_lots: int = 0
    ask: int = 0
    ask_lots: int = 0


class PlanState(NamedTuple):
    """What a planner knows: the market, what is filled, the market's volume since the start, and the urgency."""

    market: Market = Market()
    filled: int = 0
    volume: int = 0
    urgency: float = 0.0
    arrival: int = 0  # twice the middle of the first market that was seen


class MarketMoved(NamedTuple):
    """The best protected prices are others."""

    market: Market


class VolumeTraded(NamedTuple):
    """Others, or we, have traded so many lots."""

    lots: int


class LotsFilled(NamedTuple):
    """Children were filled; negative where a fill was taken back."""

    lots: int


class UrgencyAsked(NamedTuple):
    """A forecast or news asks for another urgency."""

    urgency: float


PlanEvent = MarketMoved | VolumeTraded | LotsFilled | UrgencyAsked


class Target(NamedTuple):
    """What should stand now: lots that take at `take_ticks` or better, lots that rest at `rest_ticks`."""

    take_lots: int = 0
    take_ticks: int = 0
    rest_lots: int = 0
    rest_ticks: int = 0


NOTHING = Target()


def start(spec: ParentSpec) -> PlanState:
    """The state before anything happened."""
    return PlanState(urgency=spec.clamped(spec.base_urgency))


def advance(spec: ParentSpec, state: PlanState, event: PlanEvent) -> PlanState:
    """Take in an event. An urgency out of the order's bounds becomes the nearest bound."""
    match event:
        case MarketMoved():
            market = event.market
            known = bool(market.bid and market.ask)
            arrival = state.arrival or (market.bid + market.ask if known else 0)
            return state._replace(market=market, arrival=arrival)
        case VolumeTraded():
            return state._replace(volume=state.volume + event.lots)
        case LotsFilled():
            return state._replace(filled=state.filled + event.lots)
        case UrgencyAsked():
            return state._replace(urgency=spec.clamped(event.urgency))


def target(spec: ParentSpec, state: PlanState, at_ns: int) -> Target:
    """What should stand at an instant; nothing before the start, after the end, and without a market."""
    left = spec.lots - state.filled
    bid, ask = state.market.bid, state.market.ask
    if left <= 0 or not spec.start_ns <= at_ns < spec.end_ns or not (bid or ask):
        return NOTHING
    own, opposite = (bid, ask) if spec.sign > 0 else (ask, bid)
    if not own:  # nobody to stand beside: one tick from the other side
        own = opposite - spec.sign
    rest_ticks = own if spec.sign * (own - spec.limit_ticks) <= 0 else spec.limit_ticks
    if at_ns >= spec.finish_ns:
        return Target(left, spec.limit_ticks, 0, rest_ticks)
    match spec.algorithm:
        case Algorithm.DIRECT:
            return Target(left, spec.limit_ticks, 0, rest_ticks)
        case Algorithm.PEG:
            return Target(0, spec.limit_ticks, left, rest_ticks)
        case Algorithm.SNIPER:
            return Target(left if _is_shot(spec, state, opposite) else 0, opposite, 0, rest_ticks)
        case Algorithm.TWAP | Algorithm.VWAP | Algorithm.SHORTFALL | Algorithm.POV:
            before, after = lots_around(spec, state, at_ns)
            overdue = min(left, max(0, before - state.filled))
            due = min(left, max(0, after - state.filled))
            return Target(overdue, spec.limit_ticks, due - overdue, rest_ticks)


def lots_around(spec: ParentSpec, state: PlanState, at_ns: int) -> tuple[int, int]:
    """Lots that were due a patience ago, and that will be in a patience.

    POV's follow the volume that was traded; that it traded evenly since the start, and goes on so, is assumed.
    """
    if spec.algorithm is Algorithm.POV:
        rate = spec.participation * max(0.1, 1.0 + state.urgency / 2)
        share = spec.patience_ns / max(spec.patience_ns, at_ns - spec.start_ns)
        traded = rate * state.volume
        return min(spec.lots, int(traded * (1 - share))), min(spec.lots, int(traded * (1 + share)))
    return lots_due(spec, state, at_ns - spec.patience_ns), lots_due(spec, state, at_ns + spec.patience_ns)


def lots_due(spec: ParentSpec, state: PlanState, at_ns: int) -> int:
    """Lots that the schedule of time, or of the usual volume, has due by an instant."""
    share = (at_ns - spec.start_ns) / max(1, spec.end_ns - spec.start_ns)
    passed = curve_at(spec.curve, share) if spec.algorithm is Algorithm.VWAP else share
    return min(spec.lots, int(spec.lots * share_due(state.urgency, passed) + _ROUND_UP))


def pace_of(spec: ParentSpec) -> tuple[PaceBound, ...]:
    """The most lots that may be open or filled until each instant: the schedule at the greatest urgency.

    Children rest for as long as the patience before they are due. Peg and sniper may have all of it open at once, and
    POV, whose pace is the market's: none of them has bounds but the end.
    """
    if spec.algorithm not in SCHEDULED:
        return ()
    urgent = PlanState(urgency=spec.max_urgency)
    length = spec.finish_ns - spec.start_ns
    bounds: list[PaceBound] = []
    for step in range(1, PACE_STEPS + 1):
        until_ns = spec.start_ns + length * step // PACE_STEPS
        bounds.append(PaceBound(until_ns, lots_due(spec, urgent, until_ns + spec.patience_ns)))
        if bounds[-1].max_lots >= spec.lots:
            break
    return tuple(bounds)


def _is_shot(spec: ParentSpec, state: PlanState, opposite: int) -> bool:
    """Whether a sniper takes: at the arrival's middle or better, or where the other side is about to move away."""
    if not opposite or not state.arrival or spec.sign * (opposite - spec.limit_ticks) > 0:
        return False
    if spec.sign * (2 * opposite - state.arrival) <= 0:
        return True
    market = state.market
    own_lots = market.bid_lots if spec.sign > 0 else market.ask_lots
    both = market.bid_lots + market.ask_lots
    return both > 0 and own_lots >= SNIPER_PRESSURE * both
