"""Settings of forecasting, checked once. wiring composes them; every module of this room reads them."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
EXPERTS = ("ewma", "historical_simulation", "log_range_har", "market_har", "random_walk")


@dataclass(frozen=True, slots=True)
class ForecastConfig:
    """What is forecast, and how fast each part forgets. Windows and half-lives count bars of the series."""

    horizons: tuple[int, ...] = (1, 5, 22)
    levels: tuple[float, ...] = LEVELS
    experts: tuple[str, ...] = EXPERTS
    foundation: str = ""  # folder of the model that the expert 'chronos' asks
    history_bars: int = 20
    ewma_decay: float = 0.94
    residual_window_bars: int = 500
    residual_half_trust: float = 50.0
    usual_window_bars: int = 250
    session_gap_bars: float = 5.0
    weight_half_life_bars: float = 500.0
    calibration_gain: float = 0.002
    shared_calibration_gain: float = 0.03

    def __post_init__(self) -> None:
        _require(bool(self.horizons), "horizons", "name at least one")
        _require(
            all(h >= 1 for h in self.horizons) and list(self.horizons) == sorted(set(self.horizons)),
            "horizons",
            "must be whole bars ≥ 1, rising",
        )
        _require(
            len(self.levels) >= 3
            and all(0 < level < 1 for level in self.levels)
            and list(self.levels) == sorted(set(self.levels)),
            "levels",
            "must be three or more, rising, strictly between 0 and 1",
        )
        _require({0.05, 0.5, 0.95} <= set(self.levels), "levels", "must hold 0.05, 0.5 and 0.95")
        _require(
            bool(self.experts) and len(set(self.experts)) == len(self.experts),
            "experts",
            "name one or more, each once",
        )
        _require(self.history_bars >= 2, "history_bars", "must be ≥ 2")
        _require(0 < self.ewma_decay < 1, "ewma_decay", "must lie strictly between 0 and 1")
        _require(
            self.residual_window_bars >= self.history_bars, "residual_window_bars", "must be ≥ history_bars"
        )
        _require(self.residual_half_trust > 0, "residual_half_trust", "must be > 0")
        _require(self.usual_window_bars >= 2, "usual_window_bars", "must be ≥ 2")
        _require(self.session_gap_bars > 0, "session_gap_bars", "must be > 0")
        _require(0 <= self.calibration_gain <= 0.1, "calibration_gain", "must lie between 0 and 0.1")
        _require(
            0 <= self.shared_calibration_gain <= 0.5, "shared_calibration_gain", "must lie between 0 and 0.5"
        )
        _require(self.weight_half_life_bars > 0, "weight_half_life_bars", "must be > 0")


def _require(holds: bool, key: str, what: str) -> None:
    if not holds:
        raise InvalidInput(f"forecasting.{key} {what}")
