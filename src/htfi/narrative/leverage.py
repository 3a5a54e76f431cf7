"""How far the news may move a forecast, whatever its reader has earned: by item, by reading, and all of them together.

An item may move a share of the 90% band, by who tells it and who else does (`Sanitiser.max_moved`). A view may move as
much as the most that one of its readings may. Of these, all that may move so much or less move no more than that
together: a crowd of new names moves no further than one, and one source no further by many items.
"""

from collections.abc import Mapping, Sequence
from math import floor
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import MEDIAN_SHARE, Part, View
from htfi.domain.news import Hearing, Route, Screening
from htfi.narrative.merging import derived, left_of, part_weight
from htfi.narrative.sanitising.config import SanitiserConfig

_HALF_BAND_SIGMAS = 1.6448536269514722  # from the median to the end of a 90% band
_UNITS = 1e6  # trust is cut to millionths
_NEAR = 1e-5


class Shares(NamedTuple):
    """Shares of the 90% band: what each item may move, by id, and what the reading of all that a model reads may.

    It cannot be told which item moved a model, so that its reading may move as little as the least of them may.
    """

    by_item: Mapping[str, float]
    worded: float


def shares(by_item: Mapping[str, float], read: Sequence[str]) -> Shares:
    """`read` are the ids of items that a model reads."""
    return Shares(by_item, min((by_item.get(name, 0.0) for name in read), default=0.0))


def shares_in(hearing: Hearing | None) -> Shares:
    """As a decision recorded them."""
    considered = hearing.considered if hearing is not None else ()
    by_item = {heard.id: heard.max_moved for heard in considered if heard.max_moved is not UNSET}
    return shares(by_item, [heard.id for heard in considered if heard.route is not Route.ENCODER])


def may_move(view: View, known: Shares) -> float:
    """Share of the band that a view may move."""
    if not view.parts:
        return known.worded
    return max(_may_move(part, known) for part in view.parts)


def bounded(view: View, known: Shares) -> View:
    """A merged view whose readings have as much trust as they may, with the numbers that they lead to then."""
    if len(view.parts) < 2:
        return view
    parts = tuple(limited(view.parts, known, view.as_of_ns))
    return view if parts == view.parts else derived(replace(view, parts=parts))


def problems(view: View | None, hearing: Hearing | None) -> list[str]:
    """What of a recorded view moves more than its readings may together."""
    if view is None or len(view.parts) < 2:
        return []
    known, moved = shares_in(hearing), 0.0
    for share, own in sorted((_may_move(part, known), _moves(part, view.as_of_ns)) for part in view.parts):
        moved += own
        if own > _NEAR and moved > share + _NEAR * len(view.parts):
            return ["readings that may move little move more together"]
    return []


def share_problems(hearing: Hearing, config: SanitiserConfig) -> list[str]:
    """Which items may move more, as recorded, than the settings let any."""
    found: list[str] = []
    for heard in hearing.considered:
        most = config.max_moved_confirmed * (heard.trust if heard.verdict is Screening.DISCOUNT else 1.0)
        if heard.max_moved is not UNSET and not 0.0 <= heard.max_moved <= most + _NEAR:
            found.append(f"{heard.id} may move more of the band than the settings let it")
    return found


def limited(parts: Sequence[Part], known: Shares, as_of_ns: int) -> list[Part]:
    """Readings with as much trust as they may have beside each other; one alone keeps its own."""
    if len(parts) < 2:
        return list(parts)
    may = [_may_move(part, known) for part in parts]
    kept, moved = list(parts), 0.0
    for place in sorted(range(len(parts)), key=lambda place: (may[place], place)):
        own, left = _moves(parts[place], as_of_ns), max(may[place] - moved, 0.0)
        if own > left:
            trust = floor(parts[place].trust * left / own * _UNITS) / _UNITS
            kept[place] = replace(parts[place], trust=trust)
        moved += min(own, left)
    return kept


def _may_move(part: Part, known: Shares) -> float:
    if part.is_worded:
        return known.worded
    return min((known.by_item.get(name, 0.0) for name in part.cited), default=0.0)


def _moves(part: Part, as_of_ns: int) -> float:
    """Share of the band at the first horizon that a reading moves at full weight, by shift and stretch together."""
    if part.meant:
        left = part.trust * left_of(part.as_of_ns, part.half_life_ns, as_of_ns)
        return left * max(_share(abs(one.shift_sigmas), abs(one.stretch - 1.0)) for one in part.meant)
    weight = part_weight(part, as_of_ns)
    return weight * _share(abs(part.direction * part.size_sigmas), abs(part.volatility_multiplier - 1.0))


def _share(sigmas: float, wider: float) -> float:
    """Of what it may move: by the median, or by an end of the band, whichever is more."""
    bands = sigmas / (2.0 * _HALF_BAND_SIGMAS)
    return max(bands / MEDIAN_SHARE, bands + wider / 2.0)
