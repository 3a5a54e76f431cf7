"""Settings of execution algorithms: how long they work an order, how patiently, and within which bounds."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import PositiveShare, check_bounds, setting
from htfi.domain.time import NS_PER_S

_Seconds = Annotated[float, Meta(gt=0.0, le=86_400.0)]
_Urgency = Annotated[float, Meta(ge=-10.0, le=20.0)]


@dataclass(frozen=True, slots=True)
class AlgorithmConfig:
    """Table `[algorithms]`: what `trading.algorithm` works parent orders by.

    Urgency 0 follows the schedule of the algorithm; above it lots come sooner, below it later.
    """

    duration_s: _Seconds = setting(300.0, "how long an algorithm works a parent order")
    patience_s: _Seconds = setting(
        10.0, "how long lots wait in a queue, after they are due, before they take what is displayed"
    )
    participation: PositiveShare = setting(0.10, "part of the market's volume that pov follows", "0–1")
    risk_aversion: Annotated[float, Meta(ge=0.0, le=1e3)] = setting(
        0.01, "of implementation shortfall: cost worth a unit of variance", "1/currency"
    )
    min_urgency: _Urgency = setting(-2.0, "least urgency that a forecast or news may ask for", "urgency")
    max_urgency: _Urgency = setting(6.0, "most urgency that they may ask for", "urgency")
    urgency_per_sigma: Annotated[float, Meta(ge=0.0, le=100.0)] = setting(
        2.0,
        "urgency that a forecast adds whose mean lies one standard deviation on the order's side",
        "urgency",
    )

    def __post_init__(self) -> None:
        check_bounds("algorithms", self)
        if not self.min_urgency <= 0.0 <= self.max_urgency:
            raise InvalidInput(
                f"algorithms.min_urgency is {self.min_urgency:g} and max_urgency {self.max_urgency:g}: 0 must lie "
                "between them"
            )

    @property
    def duration_ns(self) -> int:
        return round(self.duration_s * NS_PER_S)

    @property
    def patience_ns(self) -> int:
        return round(self.patience_s * NS_PER_S)
