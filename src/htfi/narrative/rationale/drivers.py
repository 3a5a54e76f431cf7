"""Finds the features that stand out: those furthest from their usual magnitude, which is learnt per series.

Compiled where a compiler is at hand (drivers.pxd): the same values either way.
"""

from collections.abc import Mapping
from typing import Any

from htfi.domain.decision import FeatureDriver
from htfi.narrative.config import USUAL_HALF_LIFE_BARS, USUAL_MIN_BARS, NarrativeConfig
from htfi.narrative.rationale.units import feature_family

_NO_MAGNITUDES: Mapping[str, float] = {}


class FeatureBaseline:
    """The mean of |feature| per series: plain at first, exponentially weighted later on."""

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        config = config or NarrativeConfig()
        self._min_bars = USUAL_MIN_BARS
        self._min_gain = 1.0 - 2.0 ** (-1.0 / USUAL_HALF_LIFE_BARS)
        self._means: dict[str, dict[str, float]] = {}
        self._num_bars: dict[str, int] = {}

    def magnitudes(self, series: str) -> Mapping[str, float]:
        """Mean magnitude by feature; empty until `usual_min_bars` bars were learnt."""
        return self._means[series] if self._num_bars.get(series, 0) >= self._min_bars else _NO_MAGNITUDES

    def learn(self, series: str, features: Mapping[str, float]) -> None:
        """Learn the features of one bar; finite values only."""
        num_bars = self._num_bars[series] = self._num_bars.get(series, 0) + 1
        gain = max(1.0 / num_bars, self._min_gain)
        means = self._means.get(series)
        if means is None:
            means = self._means[series] = {}
        for name, value in features.items():
            size = value if value >= 0.0 else -value
            known = means.get(name)
            if known is None:
                means[name] = size
            else:
                before = known
                means[name] = before + gain * (size - before)

    def state(self) -> dict[str, Any]:
        return {
            "means": {name: dict(means) for name, means in self._means.items()},
            "num_bars": dict(self._num_bars),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._means = {name: dict(means) for name, means in state["means"].items()}
        self._num_bars = dict(state["num_bars"])


MIN_RATIO = 1.25  # nearer to usual than this, either way, a feature does not stand out
MAX_RATIO = (
    1e6  # beyond it the ratio is not a measure: the mean has decayed to nothing, or the value is out of range
)
_MAX_RATIO_BELOW = 1.0 / MIN_RATIO
_RETURN_PREFIX = "return"  # a small last move is not a driver


def find_drivers(
    features: Mapping[str, float], usual: Mapping[str, float], limit: int = 3
) -> list[FeatureDriver]:
    """At most `limit` features, by |log(|value| / usual)|, largest first, and one of each family.

    Units: those of the features; `usual` holds mean magnitudes. Where either is 0, or one is more than `MAX_RATIO`
    times the other, there is no ratio.
    """
    found: list[tuple[float, str]] = []
    for name, value in features.items():
        mean = usual.get(name)
        if mean:
            usually = mean
            size = value if value >= 0.0 else -value
            if MAX_RATIO * usually >= size >= MIN_RATIO * usually:
                found.append((size / usually, name))
            elif usually / MAX_RATIO <= size <= _MAX_RATIO_BELOW * usually and not name.startswith(
                _RETURN_PREFIX
            ):
                found.append((usually / size, name))
    found.sort(reverse=True)
    chosen: list[FeatureDriver] = []
    stories: set[str] = set()
    for _, name in found:
        if len(chosen) == limit:
            break
        story = feature_family(name)
        if story is not None and story not in stories:
            stories.add(story)
            value, mean = features[name], usual[name]
            chosen.append(FeatureDriver(name, value, mean, abs(value) / mean))
    return chosen
