"""Settings of the simulated venue: its latencies, fees and spread."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import check_bounds, setting, setting_from
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.simulation.venue.phases import InstrumentPhase, hours_of

_Milliseconds = Annotated[float, Meta(ge=0.0, le=60_000.0)]
_Name = Annotated[str, Meta(max_length=64)]
_Seconds = Annotated[float, Meta(ge=0.0, le=86_400.0)]
_BasisPoints = Annotated[float, Meta(ge=-100.0, le=1_000.0)]


@dataclass(frozen=True, slots=True)
class SimulatedVenueConfig:
    """What one simulated venue is like."""

    request_ms: _Milliseconds = setting(1.0, "from sending a request to its arrival")
    report_ms: _Milliseconds = setting(1.0, "from an execution to the arrival of its report")
    take_fee_bps: _BasisPoints = setting(0.5, "fee of a fill that removes liquidity", "basis points")
    make_fee_bps: _BasisPoints = setting(
        0.0, "fee of a fill that adds liquidity; negative: a rebate", "basis points"
    )
    half_spread_bps: _BasisPoints = setting(
        1.0, "half the spread of an instrument that has bars and no quotes", "basis points"
    )
    max_bar_share: Annotated[float, Meta(gt=0.0, le=1.0)] = setting(
        0.10, "part of a bar's volume that an order may be filled with", "0–1"
    )

    hours: Annotated[str, Meta(max_length=80)] = setting(
        "", "when it trades, such as '09:30-16:00 America/New_York'; empty: always. For quotes and trades"
    )
    opening_call_s: _Seconds = setting(0.0, "the auction before it opens takes orders for so long")
    closing_call_s: _Seconds = setting(0.0, "the same before it closes")
    band_share: Annotated[float, Meta(ge=0.0, le=1.0)] = setting(
        0.0, "a price so far from the mean of the band's window halts an instrument; 0: none does", "0–1"
    )
    band_window_s: Annotated[float, Meta(gt=0.0, le=86_400.0)] = setting(300.0, "of that mean")
    halt_s: _Seconds = setting(300.0, "how long a halt lasts; an auction ends it")

    def __post_init__(self) -> None:
        check_bounds("venue", self)
        hours_of(self.hours, self.opening_call_s, self.closing_call_s)

    @property
    def request_ns(self) -> int:
        return round(self.request_ms * NS_PER_MS)

    @property
    def report_ns(self) -> int:
        return round(self.report_ms * NS_PER_MS)

    def instrument_phase(self) -> InstrumentPhase:
        """Of an instrument of which nothing is known yet."""
        return InstrumentPhase(
            hours_of(self.hours, self.opening_call_s, self.closing_call_s),
            self.band_share,
            round(self.band_window_s * NS_PER_S),
            round(self.halt_s * NS_PER_S),
        )


@dataclass(frozen=True, slots=True)
class ListedVenueConfig(SimulatedVenueConfig):
    """Table `[venue.by_name.NAME]`: one of several venues, with settings of the same names."""

    feed: _Name = setting("", "the name that the feed's rows give it; empty: its own")
    is_protected: bool = setting(
        True, "whether orders elsewhere may not trade at worse prices than it displays"
    )


@dataclass(frozen=True, slots=True)
class VenueConfig(SimulatedVenueConfig):
    """Table `[venue]`: the venue that paper trading sends orders to, or several."""

    by_name: dict[str, ListedVenueConfig] = setting_from(
        dict[str, ListedVenueConfig], "several venues in place of one, by ISO 10383 code"
    )
