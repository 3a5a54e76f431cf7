"""What governance knows of the decisions of a point, and what of a decision its holds may reach."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from htfi.domain.decision import Decision
from htfi.domain.governance import GovernanceFacts
from htfi.governance.checkpoints.reasons import facts_of as checkpoint_facts
from htfi.governance.control.state import HoldSubject, readers_of

Facts = GovernanceFacts | UnsetType


class PointFacts(NamedTuple):
    """What governance knows of most decisions of a point, and of the others by their place."""

    usual: Facts
    others: Mapping[int, Facts] = MappingProxyType({})

    def at(self, place: int) -> Facts:
        return self.others.get(place, self.usual)

    def take(self, places: Sequence[int]) -> "PointFacts":
        """Of the decisions at these places alone, in this order."""
        if not self.others:
            return self
        others = {new: self.others[place] for new, place in enumerate(places) if place in self.others}
        return PointFacts(self.usual, others)


def subject_of(decision: Decision) -> HoldSubject:
    """What a hold may reach of a decision; an amendment has the swap test of the decision that it amends.

    What its view was set aside for is taken from what it states of governance.
    """
    swaps = UNSET if decision.governance is UNSET else decision.governance.swaps
    set_aside = () if decision.governance is UNSET else decision.governance.set_aside
    forecast = decision.forecast
    subject = HoldSubject(
        decision.series,
        forecast.weights.keys(),
        swaps,
        readers_of(decision.view, decision.plan.rung),
        forecast.tilt is not None,
        set_aside=set_aside,
        is_amendment=bool(decision.amends) and not decision.is_checkpoint_release,
    )
    if decision.is_checkpoint_release:
        return subject._replace(releases=decision.amends)
    return subject._replace(checks=partial(checkpoint_facts, decision))
