"""Which figures costs were reckoned with, held until one has moved: so that most requests need no reckoning.

The planner holds one `Terms` a cloud and one curve a kind. What costs do not depend on is left out of terms, so that
it may move as it likes.
"""

from typing import NamedTuple

from htfi.scheduling.placement.config import PlacementConfig
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures
from htfi.scheduling.placement.pricing import strain

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
    return Terms(
        LinkFigures(link.rtt_ms, link.rtt_ms),
        cloud._replace(queue_late_ms=0.0, residency=frozenset[str](), is_ill=False),
        edge._replace(throttle=strain(edge, config), temperature_c=None, load=0.0),
    )


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
