"""Whether the market is known, and an order's price near it."""

from htfi.domain.orders import SessionPhase, TimeInForce
from htfi.domain.time import NS_PER_S
from htfi.execution.gate.asked import AskedOrder
from htfi.execution.gate.limits import SHARE
from htfi.execution.gate.objections import GateCheck, Objection
from htfi.execution.gate.state import GateState

TOO_COARSE = ", or none that reaches its tick of"
_OPEN_PHASES = frozenset(
    {SessionPhase.CONTINUOUS, SessionPhase.OPENING_AUCTION, SessionPhase.CLOSING_AUCTION}
)
_FOR_AUCTIONS = frozenset({TimeInForce.AT_THE_OPENING, TimeInForce.AT_THE_CLOSE})


def check_market(state: GateState, asked: AskedOrder) -> Objection | None:
    """A price is known, is fresh, is not crossed, and the venue takes orders."""
    market = asked.market
    if market is None or not asked.reference:
        what = f"no price of {asked.symbol} at {asked.venue or 'its venue'} is known"
        instrument = state.instruments.get(asked.symbol)
        if market is not None and instrument is not None:
            what += f"{TOO_COARSE} {instrument.tick.normalize():f}"
        return Objection(GateCheck.MARKET_MISSING, what)
    oldest = asked.tightest.max_market_age_ns
    if oldest is not None and asked.at_ns - market.at_ns > oldest:
        age_s = (asked.at_ns - market.at_ns) / NS_PER_S
        return Objection(
            GateCheck.MARKET_AGE, f"the market data is {age_s:.3f} s old, {oldest / NS_PER_S:g} s are allowed"
        )
    if market.bid and market.ask and market.bid >= market.ask:
        return Objection(GateCheck.MARKET_CROSSED, "its bid is not below its ask")
    if market.phase is not None and market.phase not in _OPEN_PHASES:
        stated = asked.new if asked.new is not None else asked.order.new if asked.order else None
        is_waiting = stated is not None and stated.time_in_force in _FOR_AUCTIONS
        if not (is_waiting and market.phase is SessionPhase.PRE_OPEN):
            return Objection(GateCheck.MARKET_PHASE, f"the venue is {market.phase.value}")
    return None


def check_collar(state: GateState, asked: AskedOrder) -> Objection | None:
    """The price is near the market."""
    del state
    price, reference = asked.price, asked.reference
    if price is None:
        return Objection(GateCheck.UNPRICED, "an order at market has no price for a collar: state a limit")
    if not reference:
        return None  # said by `check_market`
    collar = asked.tightest.price_collar
    if collar is not None and abs(2 * price - reference) * SHARE > collar * reference:
        return Objection(
            GateCheck.PRICE_COLLAR,
            f"its price lies {_share_text(abs(2 * price - reference), reference)} from the market, "
            f"{collar / SHARE:.3%} are allowed",
        )
    return None


def check_window_collar(state: GateState, asked: AskedOrder) -> Objection | None:
    """The price is near the market of some minutes ago."""
    del state
    price, market = asked.price, asked.market
    if price is None or market is None or not market.references:
        return None
    for window_ns, collar in asked.party.window_collars:
        since_ns, reference = asked.at_ns - window_ns, 0
        for at_ns, one in market.references:
            if at_ns >= since_ns:
                reference = one
                break
        if reference and abs(2 * price - reference) * SHARE > collar * reference:
            return Objection(
                GateCheck.WINDOW_COLLAR,
                f"its price lies {_share_text(abs(2 * price - reference), reference)} from that of "
                f"{window_ns / NS_PER_S:g} s ago, {collar / SHARE:.3%} are allowed",
            )
    return None


def check_book_distance(state: GateState, asked: AskedOrder) -> Objection | None:
    """The price does not reach too far beyond the opposite best."""
    del state
    price, market, limit = asked.price, asked.market, asked.tightest.max_book_distance
    if price is None or market is None or limit is None:
        return None
    opposite = market.ask if asked.sign > 0 else market.bid
    beyond = asked.sign * (price - opposite)
    if opposite and beyond * SHARE > limit * opposite:
        return Objection(
            GateCheck.BOOK_DISTANCE,
            f"its price reaches {_share_text(beyond, opposite)} beyond the opposite best price, "
            f"{limit / SHARE:.3%} are allowed",
        )
    return None


def _share_text(part: int, whole: int) -> str:
    return f"{part / whole:.3%}"
