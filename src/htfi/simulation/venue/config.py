"""Settings of the simulated venue: its latencies, fees and spread."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import check_bounds, setting, setting_from
from htfi.domain.time import NS_PER_MS

_Milliseconds = Annotated[float, Meta(ge=0.0, le=60_000.0)]
_Name = Annotated[str, Meta(max_length=64)]
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

    def __post_init__(self) -> None:
        check_bounds("venue", self)

    @property
    def request_ns(self) -> int:
        return round(self.request_ms * NS_PER_MS)

    @property
    def report_ns(self) -> int:
        return round(self.report_ms * NS_PER_MS)


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
