"""Settings of forecasting, checked once."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.errors import InvalidInput
from htfi.domain.settings import Bars, InnerShare, check_bounds, setting
from htfi.forecasting.kinds import AUTO, EXPERTS_BY_KIND

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
MAX_QUANTILES = 3_000  # of one decision: some 40 kB of the 64 that an entry of the ledger holds
Horizon = Annotated[int, Meta(ge=1, le=1_000)]
DEFAULT_COVARIATES = ("VIX/1d",)
DEFAULT_EXPERTS = ("auto",)


RESIDUAL_HALF_TRUST = 50.0  # of shapes before version 2 of the experts: it stands in digests of settings
OWN_HALF_TRUST = (
    100.0  # independent outcomes after which a series' own residuals weigh as much as the pooled ones
)
USUAL_WINDOW_BARS = 250  # over which the usual volatility is a median
SESSION_GAP_BARS = 5.0  # a pause of so many bars is a night, whose return is not a bar's
CALIBRATION_GAIN = (
    0.001  # of a series' own quantile tracker: 0.001 moves the 90% band by 1% in some 100 misses
)
SHARED_CALIBRATION_GAIN = 0.03  # of the tracker that all series share


@dataclass(frozen=True, slots=True)
class ForecastConfig:
    """What is forecast, by which experts, and how fast they forget."""

    horizons: Annotated[tuple[Horizon, ...], Meta(min_length=1, max_length=16)] = setting(
        (1, 5, 22), "horizons of a forecast", "bars"
    )
    levels: Annotated[tuple[InnerShare, ...], Meta(min_length=3, max_length=99)] = setting(
        LEVELS, "quantile levels of each forecast; 0.05, 0.5 and 0.95 must be among them"
    )
    experts: Annotated[tuple[str, ...], Meta(min_length=1, max_length=64)] = setting(
        DEFAULT_EXPERTS, "models whose forecasts are combined; auto: those that suit the kind of each series"
    )
    covariates: Annotated[tuple[str, ...], Meta(max_length=8)] = setting(
        DEFAULT_COVARIATES,
        "series of the run whose level is itself a volatility, such as VIX/1d, for market_har",
    )
    foundation: str = setting("", "folder of the model for the expert chronos")
    pooled: str = setting("", "folder of the models for the expert pooled, by `htfi models fit`")
    history_bars: Annotated[int, Meta(ge=2, le=10_000)] = setting(
        20, "bars of a series before its first forecast"
    )
    ewma_decay: InnerShare = setting(0.94, "decay of the exponentially weighted volatility", "per bar")
    residual_window_bars: Annotated[int, Meta(ge=2, le=20_000)] = setting(
        500, "past residuals that give the distribution its shape"
    )
    weight_half_life_bars: Bars = setting(500.0, "half-life of the scores that set the experts' weights")

    def __post_init__(self) -> None:
        check_bounds("forecasting", self)
        _require_setting(list(self.horizons) == sorted(set(self.horizons)), "horizons", "must rise")
        _require_setting(list(self.levels) == sorted(set(self.levels)), "levels", "must rise")
        _require_setting({0.05, 0.5, 0.95} <= set(self.levels), "levels", "must hold 0.05, 0.5 and 0.95")
        _require_setting(len(set(self.experts)) == len(self.experts), "experts", "must name each once")
        _require_setting(
            len(set(self.covariates)) == len(self.covariates), "covariates", "must name each once"
        )
        num_experts = len(self.experts) + (max(map(len, EXPERTS_BY_KIND)) - 1 if AUTO in self.experts else 0)
        num = len(self.horizons) * len(self.levels) * num_experts
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
