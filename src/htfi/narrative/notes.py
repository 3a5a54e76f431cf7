"""What is known of the news on a symbol: a note for each item, gathered for a decision. The desk keeps notes, and the
pipeline reads what was gathered.
"""

from typing import NamedTuple

import msgspec

from htfi.domain.decision import Plan
from htfi.domain.events import News
from htfi.domain.news import Heard, Means, Route, Scores, Screened
from htfi.narrative.routing import route
from htfi.narrative.routing_config import RoutingConfig


class Note(msgspec.Struct, frozen=True):
    """What is known of an item: how it was screened, scored and what reader it is worth.

    The item is without its body and link: nobody is told them after it was scored. `derived` names what caches keep of
    it.
    """

    screened: Screened
    scores: Scores | None
    most: Route
    why: str
    position: float
    derived: tuple[str, ...]

    @property
    def told_before(self) -> str:
        cluster = self.screened.cluster
        return cluster if cluster != self.screened.item.id else ""


class Gathered(NamedTuple):
    """The news on one symbol at an instant, newest first."""

    items: tuple[News, ...]  # that a model may read
    noted: tuple[Note, ...]  # that the encoder alone has read
    aside: tuple[Note, ...]  # that nobody reads
    suspicion: str
    cleared: str = ""  # by whom suspicion was ended of late


NOTHING = Gathered((), (), (), "")


def heard_of(note: Note, plan: Plan, means: Means, config: RoutingConfig, max_moved: float) -> Heard:
    """An item as a decision with this plan knew it; it may move so much of the 90% band."""
    screened = note.screened
    taken, why = route(note.most, note.why, plan, means, config)
    return Heard(
        id=screened.item.id,
        source=screened.item.source,
        available_at_ns=screened.item.available_at_ns,
        verdict=screened.verdict,
        trust=screened.trust,
        reasons=tuple(f"{one.rule}: {one.detail}" for one in screened.findings),
        num_alike=screened.num_alike,
        scores=note.scores,
        route=taken,
        why=why,
        position=note.position,
        told_before=note.told_before,
        is_tagged=bool(screened.item.symbols),
        max_moved=max_moved,
    )
