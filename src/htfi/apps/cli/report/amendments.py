"""Which lines of a run amend earlier ones, and where its readings were written. Survey, tracks and the page ask it."""

from dataclasses import dataclass, field

from htfi.domain.decision import Decision, Rung, amendment_id, checkpoint_release_id
from htfi.narrative.rationale.amendment import (
    CONFIRMS,
    OTHER_DIRECTION_AFTER_NEWS,
    OTHER_DIRECTION_IN_DEPTH,
    SAME_DIRECTION_AFTER_NEWS,
    has_part,
)
from htfi.wiring.outputs import ReleasedLine, WithheldLine

LOCAL = ""
EDGE_ALONE, ELSEWHERE = "edge alone", "elsewhere"
MAX_PLACES = 64
_AMENDMENT_SUFFIX, _RELEASE_SUFFIX = amendment_id(""), checkpoint_release_id("")


def amended_id(line: ReleasedLine | WithheldLine) -> str:
    """The id of the decision whose place this line takes; empty for a decision of its own."""
    if isinstance(line, ReleasedLine):
        return line.decision.amends
    for suffix in (_RELEASE_SUFFIX, _AMENDMENT_SUFFIX):  # an id ends with a time else
        if line.id.endswith(suffix):
            return line.id.removesuffix(suffix)
    return ""


@dataclass(slots=True)
class PlaceCounts:
    """Readings that one machine wrote in one way."""

    num_answers: int = 0
    num_provisional: int = 0
    num_amendments: int = 0


@dataclass(slots=True)
class AmendmentCounts:
    """Provisional readings, the amendments that came, those of them that said the same; all answers by place.

    `num_verified` decisions had a view that was prepared for a release and were amended by a reading of the news
    itself, `num_same_direction` of them to the same direction. `num_deepened` decisions were amended by a reading in
    depth, `num_direction_changed` of them to another direction.
    """

    num_verified: int = 0
    num_same_direction: int = 0
    num_deepened: int = 0
    num_direction_changed: int = 0
    num_provisional: int = 0
    num_amended: int = 0
    num_confirmed: int = 0
    places: dict[str, PlaceCounts] = field(default_factory=dict[str, PlaceCounts])

    def add(self, decision: Decision) -> None:
        """Count the reading that was made for this very decision, where there is one."""
        view = decision.view
        if decision.is_checkpoint_release:  # no reading is new in it
            return
        if view is not None and not decision.has_own_reading:  # it keeps another decision's
            return
        late = decision.awaits_amendment and decision.plan.rung_after_release is None
        self.num_provisional += late
        if decision.amends and decision.plan.rung is Rung.DEEP:
            self.num_deepened += 1
            self.num_direction_changed += has_part(decision.rationale, OTHER_DIRECTION_IN_DEPTH)
            return
        if decision.amends and has_part(
            decision.rationale, SAME_DIRECTION_AFTER_NEWS, OTHER_DIRECTION_AFTER_NEWS
        ):
            self.num_verified += 1
            self.num_same_direction += has_part(decision.rationale, SAME_DIRECTION_AFTER_NEWS)
            return
        if decision.amends:
            self.num_amended += 1
            self.num_confirmed += has_part(decision.rationale, CONFIRMS)
        if view is None or view.trace is None:
            return
        place = self._at(EDGE_ALONE if view.trace.num_verified >= 0 else view.trace.place)
        place.num_answers += 1
        place.num_provisional += late
        place.num_amendments += bool(decision.amends)

    def _at(self, place: str) -> PlaceCounts:
        if place not in self.places and len(self.places) >= MAX_PLACES:
            place = ELSEWHERE
        return self.places.setdefault(place, PlaceCounts())

    @property
    def has_remote_or_late(self) -> bool:
        """Whether anything was late or was written elsewhere."""
        return bool(self.num_provisional or self.num_amended or self.places.keys() - {LOCAL})
