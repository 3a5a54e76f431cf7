"""Finds the features that moved a forecast: those furthest from what is usual for them. The loop asks."""

from collections.abc import Mapping

from htfi.domain.decision import Driver
from htfi.narrative.words import family

MIN_RATIO = 1.25  # nearer to usual than this, either way, a feature explains nothing
MAX_RATIO = (
    1e6  # further away, what is usual is no measure: a mean that has faded to nothing, a value out of range
)
_MAX_RATIO_BELOW = 1.0 / MIN_RATIO
_QUIET = "return"  # that the last move was small moves nothing


def drivers(features: Mapping[str, float], usual: Mapping[str, float], limit: int = 3) -> list[Driver]:
    """At most `limit` features, by |log(|value| / usual)|, largest first, and one of each family.

    Units: those of the features; `usual` holds mean magnitudes. Where either is 0, or one is more than `MAX_RATIO`
    times the other, there is no ratio.
    """
    found: list[tuple[float, str]] = []
    for name, value in features.items():
        mean = usual.get(name)
        if mean:
            size = value if value >= 0.0 else -value
            if MAX_RATIO * mean >= size >= MIN_RATIO * mean:
                found.append((size / mean, name))
            elif mean / MAX_RATIO <= size <= _MAX_RATIO_BELOW * mean and not name.startswith(_QUIET):
                found.append((mean / size, name))
    found.sort(reverse=True)
    chosen: list[Driver] = []
    told: set[str] = set()
    for _, name in found:
        if len(chosen) == limit:
            break
        story = family(name)
        if story is not None and story not in told:
            told.add(story)
            value, mean = features[name], usual[name]
            chosen.append(Driver(name, value, mean, abs(value) / mean))
    return chosen
