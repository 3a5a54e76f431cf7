"""What is usual for each series: a running mean of each feature's magnitude. The loop asks, then teaches."""

from collections.abc import Mapping
from typing import Any

from htfi.narrative.config import NarrativeConfig

_NOTHING: Mapping[str, float] = {}


class Usual:
    """Per series, the plain mean of |feature| at first and its exponentially weighted mean later on."""

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        config = config or NarrativeConfig()
        self._min_bars = config.usual_min_bars
        self._slowest = 1.0 - 2.0 ** (-1.0 / config.usual_half_life_bars)
        self._means: dict[str, dict[str, float]] = {}
        self._num_bars: dict[str, int] = {}

    def of(self, series: str) -> Mapping[str, float]:
        """Mean magnitude by feature; empty until `usual_min_bars` bars were learnt."""
        return self._means[series] if self._num_bars.get(series, 0) >= self._min_bars else _NOTHING

    def learn(self, series: str, features: Mapping[str, float]) -> None:
        """Take in the features of one bar; finite values only."""
        num_bars = self._num_bars[series] = self._num_bars.get(series, 0) + 1
        gain = max(1.0 / num_bars, self._slowest)
        means = self._means.get(series)
        if means is None:
            means = self._means[series] = {}
        for name, value in features.items():
            mean = means.get(name)
            size = value if value >= 0.0 else -value
            means[name] = size if mean is None else mean + gain * (size - mean)

    def state(self) -> dict[str, Any]:
        return {
            "means": {name: dict(means) for name, means in self._means.items()},
            "num_bars": dict(self._num_bars),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._means = {name: dict(means) for name, means in state["means"].items()}
        self._num_bars = dict(state["num_bars"])
