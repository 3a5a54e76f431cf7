"""What is read of one passage: what the network says, and the names in it.

Comparisons, economies and roles follow from that and from the text. They are worked out where the headline asks for
them, which is seldom.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityLinker
from htfi.narrative.facts.extraction import (
    IN_DEALS,
    SURE_KIND,
    FactScores,
    NamedParties,
    NamedParty,
    judge_event,
    may_be_bought,
    named_parties,
    relevance,
    roles_of,
    text_regions,
)
from htfi.narrative.facts.naming import find_name
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.record import ROLES, EventKind, PartyRole, Tense
from htfi.narrative.thousandths import rounded

_TENSES = tuple(Tense)


class PassageFacts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The facts of one passage, as `record.NewsFacts` has them.

    `shares` are float64 [parties, roles], what the network says of the parties' roles, and `events` float64 [kinds],
    both little-endian.
    """

    text: str
    event: EventKind
    event_confidence: float
    axis: float
    axis_neutral: float
    tone: float
    neutral: float
    tense: Tense
    tense_confidence: float
    relevant: float
    parties: tuple[NamedParty, ...]
    shares: bytes
    events: bytes

    def roles(self) -> list[tuple[PartyRole, float]]:
        """The role of each party with its probability, in order."""
        shares = np.frombuffer(self.shares, "<f8").reshape(len(self.parties), len(ROLES))
        return roles_of(self.text, NamedParties(self.parties, shares), np.frombuffer(self.events, "<f8"))

    def regions(self) -> tuple[str, ...]:
        """The economies that the passage is about, that of a central bank which acted first."""
        return text_regions(self.text, find_policy_action(self.text))


def read_passage(
    text: str, scores: FactScores, linker: EntityLinker, asked: tuple[str, str] = ("", "")
) -> PassageFacts:
    """The facts of a passage; `asked` as in `extraction.extract_facts`."""
    kind, sure, axis, axis_neutral, tone, neutral = judge_event(text, scores)
    named = named_parties(text, scores, linker.mentions(text), find_name(text, *asked))
    if may_be_bought(text, sure):
        roles = {role for role, _ in roles_of(text, named, scores.event)}
        kind, sure = (EventKind.ACQUISITION, SURE_KIND) if roles >= IN_DEALS else (kind, sure)
    tense = int(scores.tense.argmax())
    return PassageFacts(
        text=text,
        event=kind,
        event_confidence=rounded(sure),
        axis=axis,
        axis_neutral=axis_neutral,
        tone=tone,
        neutral=neutral,
        tense=_TENSES[tense],
        tense_confidence=rounded(float(scores.tense[tense])),
        relevant=relevance(scores),
        parties=named.parties,
        shares=_as_bytes(named.shares),
        events=_as_bytes(scores.event),
    )


def _as_bytes(values: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(values, "<f8").tobytes()
