"""The router: a child order split over venues. Pure functions of what is known of them (`venues.RouterState`).

Taking: price comes first. Nothing is sent at a price while a better protected price, anywhere, has displayed lots that
are not asked for in the same instant (Regulation NMS, rule 611, and its sweep orders). Among venues at one price the
cheaper one comes first: fee, and what a miss would cost. Resting: lots go where a lot more is worth most: the chance of
a fill, by the queue ahead and the trades that use it up, times what a fill saves against taking later.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from htfi.execution.order_routing.venues import RouterState, VenueState

REST_PARTS = 8  # pieces in which lots are given to venues
_BPS = 1e-4
_NO_LOTS: Mapping[str, int] = {}


class VenueRoute(NamedTuple):
    """Lots for one venue at a limit, and the share of them that is expected to be filled."""

    venue: str
    lots: int
    ticks: int
    expected: float


def route_take(
    state: RouterState,
    sign: int,
    lots: int,
    limit_ticks: int,
    at_ns: int,
    *,
    asked: Mapping[str, int] = _NO_LOTS,
    max_levels: int = 1,
) -> list[VenueRoute]:
    """Split what takes over venues; each route's limit is the price that the venue displays.

    `asked` are lots that are on their way to venues already. At most `max_levels` prices are swept; what they do not
    hold is not routed. An unprotected venue is used where its price is no worse than the best protected one.
    """
    routes: list[VenueRoute] = []
    left = lots
    usable = state.usable(at_ns)
    for ticks in _levels(usable, sign, limit_ticks)[:max_levels]:
        there = [
            (one, remaining)
            for one in usable
            if one.opposite(sign)[0] == ticks
            and (remaining := one.opposite(sign)[1] - asked.get(one.terms.name, 0)) > 0
        ]
        there.sort(key=lambda pair: (_take_cost(pair[0], ticks, at_ns), pair[0].terms.name))
        for venue, remaining in there:
            if left <= 0:
                return routes
            sent = min(left, remaining)
            routes.append(VenueRoute(venue.terms.name, sent, ticks, venue.take_chance(at_ns)))
            left -= sent
    return routes


def route_rest(
    state: RouterState,
    sign: int,
    lots: int,
    ticks: int,
    at_ns: int,
    for_s: float,
    *,
    resting: Mapping[str, int] = _NO_LOTS,
) -> list[VenueRoute]:
    """Split what rests at a price over venues; `resting` are our own lots that wait at venues already.

    What is not worth resting is left: where the market moved against earlier fills by more than they saved.
    Nothing rests at a price that would trade with, or lock, a protected price of the other side.
    """
    opposite, _ = state.best(sign)
    usable = state.usable(at_ns)
    if not usable or (opposite and sign * (ticks - opposite) >= 0):
        return []
    saving = min(one.terms.take_fee_bps for one in usable)
    spread = sign * (opposite - ticks) if opposite else 1
    piece = max(1, lots // REST_PARTS)
    given: dict[str, int] = {}
    left = lots
    while left > 0:
        more = min(piece, left)
        worths: list[tuple[float, str]] = []
        for venue in usable:
            name = venue.terms.name
            joined = resting.get(name, 0) + given.get(name, 0) + more
            saved = spread + (saving - venue.terms.make_fee_bps) * _BPS * ticks - venue.adverse.mean
            worths.append((venue.rest_chance(sign, ticks, joined, at_ns, for_s) * saved, name))
        worth, name = max(worths)
        if worth <= 0.0:
            break
        given[name] = given.get(name, 0) + more
        left -= more
    return [
        VenueRoute(
            name,
            sent,
            ticks,
            state.venues[name].rest_chance(sign, ticks, resting.get(name, 0) + sent, at_ns, for_s),
        )
        for name, sent in given.items()
    ]


def _levels(usable: Sequence[VenueState], sign: int, limit_ticks: int) -> list[int]:
    """Displayed prices within the limit, the best first, as far as protected venues display them."""
    protected = {
        one.opposite(sign)[0]
        for one in usable
        if one.terms.is_protected and one.opposite(sign)[0] and one.opposite(sign)[1]
    }
    if not protected:
        return []
    best = min(protected, key=lambda ticks: sign * ticks)
    beyond = {
        ticks
        for one in usable
        if not one.terms.is_protected
        and (ticks := one.opposite(sign)[0])
        and one.opposite(sign)[1]
        and sign * (ticks - best) < 0
    }
    found = [ticks for ticks in protected | beyond if sign * (ticks - limit_ticks) <= 0]
    return sorted(found, key=lambda ticks: sign * ticks)


def _take_cost(venue: VenueState, ticks: int, at_ns: int) -> float:
    """Expected cost of a lot that is sent there, in ticks: its fee, and a tick for a miss."""
    chance = venue.take_chance(at_ns)
    return chance * venue.terms.take_fee_bps * _BPS * ticks + (1.0 - chance)
