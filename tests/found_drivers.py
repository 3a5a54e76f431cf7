"""The features that stand out of one series, from plain values."""

from collections.abc import Mapping

import numpy as np

from htfi.domain.decision import FeatureDriver
from htfi.narrative.rationale.drivers import MAX_DRIVERS, FeatureBaseline


def learn(baseline: FeatureBaseline, series: str, features: Mapping[str, float]) -> None:
    """Let a baseline learn one bar of one series."""
    baseline.learn([series], tuple(features), np.array(list(features.values())))


def drivers_of(
    baseline: FeatureBaseline, series: str, features: Mapping[str, float]
) -> list[FeatureDriver] | None:
    """The drivers of a series with these features; None where nothing is usual yet."""
    found, usual, counts = np.zeros(MAX_DRIVERS, np.int64), np.zeros(MAX_DRIVERS), np.zeros(1, np.int8)
    names = tuple(features)
    baseline.find_drivers([series], names, np.array(list(features.values())), found, usual, counts)
    if counts[0] < 0:
        return None
    chosen = [names[place] for place in found[: counts[0]].tolist()]
    return [
        FeatureDriver(name, features[name], mean, abs(features[name]) / mean)
        for name, mean in zip(chosen, usual.tolist(), strict=False)
    ]


def find_drivers(features: Mapping[str, float], usual: Mapping[str, float]) -> list[FeatureDriver]:
    """The drivers of features whose usual magnitudes are these."""
    baseline = FeatureBaseline()
    baseline.restore({"means": {"s": dict(usual)}, "num_bars": {"s": 1_000_000}})
    found = drivers_of(baseline, "s", features)
    assert found is not None
    return found
