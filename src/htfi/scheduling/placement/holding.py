"""Which figures costs were reckoned with, held until one has moved: so that most requests need no reckoning.

The planner holds one `Terms` a cloud. What costs do not depend on is left out, so that it may move as it likes.
"""

from typing import NamedTuple, TypeVar, cast

from htfi.scheduling.placement.config import PlacementConfig
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures
from htfi.scheduling.placement.pricing import strain

_Held = TypeVar("_Held", bound=tuple[object, ...])
_STILL = 0.02  # ms, or chance: what is as small has not moved


class Terms(NamedTuple):
    """What costs at a cloud depend on."""

    link: LinkFigures
    cloud: CloudFigures
    edge: EdgeFigures


def terms(link: LinkFigures, cloud: CloudFigures, edge: EdgeFigures, config: PlacementConfig) -> Terms:
    return Terms(
        LinkFigures(link.rtt_ms, link.rtt_ms),
        cloud._replace(
            queue_ms=float(round(cloud.queue_ms)), queue_late_ms=0.0, residency=frozenset[str](), is_ill=False
        ),
        edge._replace(throttle=round(strain(edge, config), 1), temperature_c=None, load=0.0),
    )


def held(before: _Held | None, now: _Held, moved: float) -> _Held:
    """The figures held, unless one has moved by more than that share: then those of now."""
    if before is now:
        return now
    return before if before is not None and _is_near(before, now, moved) else now


def _is_near(one: tuple[object, ...], other: tuple[object, ...], moved: float) -> bool:
    if len(one) != len(other):
        return False
    for a, b in zip(one, other, strict=True):
        if a is b or a == b:
            continue
        if isinstance(a, tuple) and isinstance(b, tuple):
            if not _is_near(cast(tuple[object, ...], a), cast(tuple[object, ...], b), moved):
                return False
        elif isinstance(a, float | int) and isinstance(b, float | int):
            if abs(a - b) > moved * max(abs(a), abs(b)) + _STILL:
                return False
        else:
            return False
    return True
