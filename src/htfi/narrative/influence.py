"""How far the news may move a forecast, whatever its reader's track record: by item, by reading, and all of them
together.

An item may move a share of the 90% band, depending on its source and on how many sources confirm it
(`Sanitiser.max_influence`). A view may move as much as the most that one of its readings may. All readings with at most
a given share move no more than that share together: many new sources move no further than one, and one source no
further by many items.
"""

from collections.abc import Mapping, Sequence
from math import floor
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import MEDIAN_SHARE
from htfi.domain.news import NewsContext, Route, Screening
from htfi.domain.news_view import NewsView, ViewPart
from htfi.narrative.merging import part_weight, rederive, remaining_share
from htfi.narrative.sanitising.config import SanitiserConfig

_HALF_BAND_SIGMAS = 1.6448536269514722  # from the median to the end of a 90% band
_TRUST_UNITS = 1e6  # trust is cut to millionths
_TOLERANCE = 1e-5


class InfluenceLimits(NamedTuple):
    """Shares of the 90% band: what each item may move, by id, and what the model's reading of all its items may.

    Which item moved a model is unknown, so its reading may move as little as the least of its items may.
    """

    by_item: Mapping[str, float]
    reading: float


def limits_of(by_item: Mapping[str, float], read: Sequence[str]) -> InfluenceLimits:
    """`read` holds the ids of the items that a model reads."""
    return InfluenceLimits(by_item, min((by_item.get(name, 0.0) for name in read), default=0.0))


def recorded_limits(news_context: NewsContext | None) -> InfluenceLimits:
    """The limits as a decision recorded them."""
    considered = news_context.considered if news_context is not None else ()
    by_item = {item.id: item.max_moved for item in considered if item.max_moved is not UNSET}
    return limits_of(by_item, [item.id for item in considered if item.route is not Route.ENCODER])


def max_view_influence(view: NewsView, limits: InfluenceLimits) -> float:
    """The share of the band that a view may move."""
    if not view.parts:
        return limits.reading
    return max(_max_part_influence(part, limits) for part in view.parts)


def bound_view(view: NewsView, limits: InfluenceLimits) -> NewsView:
    """A merged view with the trust in its readings cut to their limits, and the numbers that follow."""
    if len(view.parts) < 2:
        return view
    parts = tuple(bound_parts(view.parts, limits, view.as_of_ns))
    return view if parts == view.parts else rederive(replace(view, parts=parts))


def influence_problems(view: NewsView | None, news_context: NewsContext | None) -> list[str]:
    """Whether the readings of a recorded view move more together than they may."""
    if view is None or len(view.parts) < 2:
        return []
    limits, moved = recorded_limits(news_context), 0.0
    for share, own in sorted(
        (_max_part_influence(part, limits), _influence(part, view.as_of_ns)) for part in view.parts
    ):
        moved += own
        if own > _TOLERANCE and moved > share + _TOLERANCE * len(view.parts):
            return ["readings with small limits move more together than they may"]
    return []


def limit_problems(news_context: NewsContext, config: SanitiserConfig) -> list[str]:
    """Items whose recorded limit is above what the settings allow."""
    found: list[str] = []
    for item in news_context.considered:
        allowed = config.max_influence_confirmed * (item.trust if item.verdict is Screening.DISCOUNT else 1.0)
        if item.max_moved is not UNSET and not 0.0 <= item.max_moved <= allowed + _TOLERANCE:
            found.append(f"{item.id} may move more of the band than the settings allow")
    return found


def bound_parts(parts: Sequence[ViewPart], limits: InfluenceLimits, as_of_ns: int) -> list[ViewPart]:
    """Readings with their trust cut to what they may have beside each other; a single one keeps its own."""
    if len(parts) < 2:
        return list(parts)
    shares = [_max_part_influence(part, limits) for part in parts]
    kept, moved = list(parts), 0.0
    for index in sorted(range(len(parts)), key=lambda index: (shares[index], index)):
        own, remaining = _influence(parts[index], as_of_ns), max(shares[index] - moved, 0.0)
        if own > remaining:
            trust = floor(parts[index].trust * remaining / own * _TRUST_UNITS) / _TRUST_UNITS
            kept[index] = replace(parts[index], trust=trust)
        moved += min(own, remaining)
    return kept


def _max_part_influence(part: ViewPart, limits: InfluenceLimits) -> float:
    if part.is_worded:
        return limits.reading
    return min((limits.by_item.get(name, 0.0) for name in part.cited), default=0.0)


def _influence(part: ViewPart, as_of_ns: int) -> float:
    """The share of the band at the first horizon that a reading moves at full weight, by shift and stretch together."""
    if part.calibrated_effects:
        left = part.trust * remaining_share(part.as_of_ns, part.half_life_ns, as_of_ns)
        return left * max(
            _band_share(abs(one.shift_sigmas), abs(one.stretch - 1.0)) for one in part.calibrated_effects
        )
    weight = part_weight(part, as_of_ns)
    return weight * _band_share(abs(part.direction * part.size_sigmas), abs(part.volatility_multiplier - 1.0))


def _band_share(sigmas: float, wider: float) -> float:
    """The share that a shift and a stretch use up: by the median or by an end of the band, whichever is more."""
    bands = sigmas / (2.0 * _HALF_BAND_SIGMAS)
    return max(bands / MEDIAN_SHARE, bands + wider / 2.0)
