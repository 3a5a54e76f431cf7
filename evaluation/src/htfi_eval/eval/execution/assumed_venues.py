"""Fees and latencies of the venues: assumed, since no recorded data state them.

Fees in dollars a share, near the base rates that the venues published at the time; negative: a rebate. Latencies one
way from a machine in Carteret, New Jersey, with a few switches: what fibre to Mahwah, Secaucus and Weehawken takes.
"""

from dataclasses import dataclass

from htfi.execution.order_routing.venues import VenueTerms
from htfi.simulation.venue.config import VenueConfig
from htfi_eval.eval.execution.data import MarketDay

EQUAL_FEE = 0.0030  # a share taken, where fees are made equal


@dataclass(frozen=True, slots=True)
class AssumedVenue:
    """A venue by its letter in the tape."""

    name: str
    take_fee: float
    make_fee: float
    one_way_ms: float


_2013 = {
    "N": AssumedVenue("NYSE", 0.0025, -0.0015, 0.30),
    "Q": AssumedVenue("Nasdaq", 0.0030, -0.0020, 0.10),
    "P": AssumedVenue("Arca", 0.0030, -0.0021, 0.30),
    "Z": AssumedVenue("BATS", 0.0029, -0.0020, 0.20),
    "Y": AssumedVenue("BATS Y", -0.0002, 0.0003, 0.20),
    "K": AssumedVenue("EDGX", 0.0030, -0.0020, 0.20),
    "J": AssumedVenue("EDGA", -0.0004, 0.0006, 0.20),
    "B": AssumedVenue("Nasdaq BX", -0.0004, 0.0018, 0.10),
    "X": AssumedVenue("PSX", 0.0027, -0.0020, 0.10),
    "C": AssumedVenue("NSX", 0.0030, -0.0026, 0.20),
    "W": AssumedVenue("CBSX", -0.0014, 0.0018, 8.0),
    "M": AssumedVenue("CHX", 0.0030, -0.0020, 0.20),
}
_2018 = _2013 | {
    "N": AssumedVenue("NYSE", 0.00275, -0.0014, 0.30),
    "T": AssumedVenue("Nasdaq", 0.0030, -0.0020, 0.10),
    "Y": AssumedVenue("Cboe BYX", -0.0005, 0.0018, 0.20),
    "J": AssumedVenue("Cboe EDGA", 0.0003, 0.0003, 0.20),
    "B": AssumedVenue("Nasdaq BX", -0.0003, 0.0025, 0.10),
    "V": AssumedVenue("IEX", 0.0003, 0.0, 0.55),
    "A": AssumedVenue("NYSE American", 0.0002, 0.0, 0.65),
}

NOTE = (
    "fees and latencies of venues are assumed (near the base rates of the time; fibre in New Jersey), the data do not "
    "state them; `equal fees` repeats the comparison with the same fee everywhere"
)


def venue_of(letter: str, day: MarketDay) -> AssumedVenue:
    return (_2018 if day.day.year >= 2018 else _2013)[letter]


def config_of(letter: str, day: MarketDay, *, equal_fees: bool = False) -> VenueConfig:
    """The simulated venue. Fees become basis points at the day's first price."""
    one, price = venue_of(letter, day), float(day.bids[0]) / 100
    take, make = (EQUAL_FEE, 0.0) if equal_fees else (one.take_fee, one.make_fee)
    return VenueConfig(
        request_ms=one.one_way_ms,
        report_ms=one.one_way_ms,
        take_fee_bps=take / price * 1e4,
        make_fee_bps=make / price * 1e4,
    )


def terms_of(letter: str, config: VenueConfig) -> VenueTerms:
    """What the router is told: fees, and nothing of the latency, which it learns."""
    return VenueTerms(letter, config.take_fee_bps, config.make_fee_bps)
