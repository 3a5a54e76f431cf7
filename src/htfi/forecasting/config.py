"""Settings of forecasting, checked once. wiring composes them; every module of this room reads them."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Bars, InnerShare, check_bounds

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
MAX_QUANTILES = 3_000  # of one decision: some 40 kB of the 64 that an entry of the ledger holds
Horizon = Annotated[int, Meta(ge=1, le=1_000)]
EXPERTS = ("ewma", "historical_simulation", "log_range_har", "market_har", "random_walk")


@dataclass(frozen=True, slots=True)
class ForecastConfig:
    """What is forecast, and how fast each part forgets. Windows and half-lives count bars of the series."""

    horizons: Annotated[tuple[Horizon, ...], Meta(min_length=1, max_length=16)] = (1, 5, 22)
    levels: Annotated[tuple[InnerShare, ...], Meta(min_length=3, max_length=99)] = LEVELS
    experts: Annotated[tuple[str, ...], Meta(min_length=1, max_length=64)] = EXPERTS
    foundation: str = ""  # folder of the model that the expert 'chronos' asks
    history_bars: Annotated[int, Meta(ge=2, le=10_000)] = 20
    ewma_decay: InnerShare = 0.94
    residual_window_bars: Annotated[int, Meta(ge=2, le=20_000)] = 500
    residual_half_trust: Bars = 50.0
    usual_window_bars: Annotated[int, Meta(ge=2, le=1_000_000)] = 250
    session_gap_bars: Bars = 5.0
    weight_half_life_bars: Bars = 500.0
    calibration_gain: Annotated[float, Meta(ge=0.0, le=0.1)] = 0.002
    shared_calibration_gain: Annotated[float, Meta(ge=0.0, le=0.5)] = 0.03

    def __post_init__(self) -> None:
        check_bounds("forecasting", self)
        _require_setting(list(self.horizons) == sorted(set(self.horizons)), "horizons", "must rise")
        _require_setting(list(self.levels) == sorted(set(self.levels)), "levels", "must rise")
        _require_setting({0.05, 0.5, 0.95} <= set(self.levels), "levels", "must hold 0.05, 0.5 and 0.95")
        _require_setting(len(set(self.experts)) == len(self.experts), "experts", "must name each once")
        num = len(self.horizons) * len(self.levels) * len(self.experts)
        _require_setting(
            num <= MAX_QUANTILES,
            "horizons",
            f"times levels times experts are {num:,} quantiles: a decision records {MAX_QUANTILES:,} at most",
        )
        _require_setting(
            self.residual_window_bars >= self.history_bars, "residual_window_bars", "must be ≥ history_bars"
        )


def _require_setting(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"forecasting.{key} {what}")
