"""Which figures costs were reckoned with, held until one has moved: so that most requests need no reckoning.

The planner holds one `Terms` a cloud and one curve a kind. What costs do not depend on is left out of terms, so that
it may move as it likes.
"""

import math
from typing import NamedTuple

from htfi.scheduling.placement.config import PlacementConfig
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures, Plane
from htfi.scheduling.placement.pricing import strain

_FINE, _COARSE = math.log(1.1), math.log(2.0)  # steps of the grid
_NOTHING = 1e-4
_STILL_MS = 0.05  # of a trip, a queue: less is no move
_STILL_WATTS = 1.0
_STILL_STRAIN = 0.05
_STILL_CHANCE = 0.02


class Terms(NamedTuple):
    """What costs at a cloud depend on."""

    link: LinkFigures
    cloud: CloudFigures
    edge: EdgeFigures


def terms(link: LinkFigures, cloud: CloudFigures, edge: EdgeFigures, config: PlacementConfig) -> Terms:
    """Figures on a coarse grid, so that one that wavers comes back to what was reckoned before."""
    rtt_ms = _snapped(link.rtt_ms)
    return Terms(
        LinkFigures(rtt_ms, rtt_ms),
        cloud._replace(
            plane=Plane(*map(_snapped, cloud.plane)),
            prompt_ms=_snapped(cloud.prompt_ms),
            queue_ms=_snapped(cloud.queue_ms, _COARSE),
            rows_busy=_snapped(cloud.rows_busy, _COARSE),
            draft_ms=None if cloud.draft_ms is None else _snapped(cloud.draft_ms),
            queue_late_ms=0.0,
            residency=frozenset[str](),
            is_ill=False,
        ),
        edge._replace(
            draft_ms=_snapped(edge.draft_ms),
            prompt_ms=_snapped(edge.prompt_ms),
            throttle=strain(edge, config),
            temperature_c=None,
            load=0.0,
        ),
    )


def _snapped(value: float, step: float = _FINE) -> float:
    """The nearest power of a step."""
    return 0.0 if value <= _NOTHING else math.exp(round(math.log(value) / step) * step)


def held(before: Terms | None, now: Terms, moved: float) -> Terms:
    """The terms held, unless a figure has moved by more than that share: then those of now."""
    if before is None or before.cloud.num_in_flight != now.cloud.num_in_flight:
        return now
    if (before.cloud.draft_ms is None) != (now.cloud.draft_ms is None):
        return now
    for (was, still), (value, _) in zip(_measures(before), _measures(now), strict=True):
        if was != value and abs(was - value) > moved * max(was, value) + still:
            return now
    return before


def held_curve(before: tuple[float, ...] | None, now: tuple[float, ...]) -> tuple[float, ...]:
    if before is None or before is now or len(before) != len(now):
        return now
    return before if all(abs(a - b) <= _STILL_CHANCE for a, b in zip(before, now, strict=True)) else now


def _measures(of: Terms) -> list[tuple[float, float]]:
    """Each figure, and what is no move of it. A plane counts by its passes: its parts trade places as it is learnt."""
    cloud, edge = of.cloud, of.edge
    rows = cloud.rows_busy + 1.0
    return [
        (of.link.rtt_ms, _STILL_MS),
        (cloud.queue_ms, _STILL_MS),
        (cloud.plane.ms(rows, 1.0), 0.0),
        (cloud.plane.ms(rows, 8.0), 0.0),
        (cloud.prompt_ms, 0.0),
        (cloud.draft_ms or 0.0, 0.0),
        (cloud.watts / rows, _STILL_WATTS),
        (edge.draft_ms, 0.0),
        (edge.prompt_ms, 0.0),
        (edge.watts, _STILL_WATTS),
        (edge.throttle, _STILL_STRAIN),
    ]
