"""Finds the features that moved a forecast: those furthest from what is usual for them. The loop asks."""

from collections.abc import Mapping
from math import log

from htfi.domain.decision import Driver
from htfi.narrative.words import family

MIN_RATIO = 1.25  # nearer to usual than this, a feature explains nothing


def drivers(features: Mapping[str, float], usual: Mapping[str, float], limit: int = 3) -> list[Driver]:
    """At most `limit` features, by |log(|value| / usual)|, largest first, and one of each family.

    Units: those of the features; `usual` holds mean magnitudes. Where either is 0 there is no ratio.
    """
    found: list[tuple[float, str]] = []
    low = 1.0 / MIN_RATIO
    for name, value in features.items():
        mean = usual.get(name, 0.0)
        if mean > 0.0 and value:
            ratio = value / mean
            if ratio < 0.0:
                ratio = -ratio
            if ratio >= MIN_RATIO or 0.0 < ratio <= low:
                found.append((-abs(log(ratio)), name))
    found.sort()
    chosen: list[Driver] = []
    seen: set[str] = set()
    for _, name in found:
        if len(chosen) == limit:
            break
        if (kind := family(name)) is not None and kind not in seen:
            seen.add(kind)
            value, mean = features[name], usual[name]
            chosen.append(Driver(name, value, mean, abs(value) / mean))
    return chosen
