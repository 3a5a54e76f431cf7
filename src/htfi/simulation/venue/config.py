"""Settings of the simulated venue: its latencies, fees and spread."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import check_bounds, setting
from htfi.domain.time import NS_PER_MS

_Milliseconds = Annotated[float, Meta(ge=0.0, le=60_000.0)]
_BasisPoints = Annotated[float, Meta(ge=-100.0, le=1_000.0)]


@dataclass(frozen=True, slots=True)
class VenueConfig:
    """Table `[venue]`: the venue that paper trading sends orders to."""

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
