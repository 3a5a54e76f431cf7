"""Finds claims that contradict each other, and which of them is believed.

A claim has a subject, a topic and a direction: "FDA approves X" against "X denies approval". It is taken from the
headline at a glance, so two claims need both in common; what one voice alone states is news and no contradiction.
"""

from collections import OrderedDict, deque
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from htfi.domain.news import ScreeningFinding
from htfi.narrative.sanitising.config import CLAIM_NS, MAX_SYMBOLS, SanitiserConfig
from htfi.narrative.sanitising.duplicates import SimilarItems, StoryItem
from htfi.narrative.sanitising.text_features import (
    CORRECTS,
    DENIES,
    EVENTS,
    MEASURES,
    TOPICS,
    TextFeatures,
    direction_of,
)

CONTRADICTION_RULE = "contradicted"
_MIN_GOOD_CREDIBILITY = 0.85
_MIN_CREDIBILITY_GAP = 0.1  # of credibility between the believed voice and the other
_MAX_CLAIMS = 6  # stored per subject and topic
_MAX_SUBJECTS = 4
_MIN_WORD_OVERLAP = 0.25  # of the headlines' words, where subject and topic do not suffice
_BINARY_TOPICS = frozenset(EVENTS.values()) | {"approval"}  # topics that are either so or not
_MIN_VERBATIM_SIMILARITY = 0.8
_MIN_COPY_SIMILARITY = 0.6  # similarity from which a text with another figure is an altered copy


class Claimant(NamedTuple):
    """A voice that makes a claim, and its credibility."""

    voice: str
    credibility: float


class NewsClaim(msgspec.Struct, frozen=True, gc=False):
    """What an item claims of a subject and topic: `way` 1 or −1."""

    id: str
    voice: str
    credibility: float
    at_ns: int
    way: int
    words: tuple[str, ...]


class Contradiction(NamedTuple):
    """The `finding` on the item in hand; `fallen` are earlier claims (id, voice) that it overturns."""

    finding: ScreeningFinding | None
    fallen: tuple[tuple[str, str], ...] = ()


_NO_CONTRADICTION = Contradiction(None)


class ClaimIndex:
    """Recent claims by subject and topic, in bounded number."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._config = config
        self._claims: OrderedDict[tuple[str, str], deque[NewsClaim]] = OrderedDict()

    def observe(
        self, name: str, features: TextFeatures, symbols: tuple[str, ...], who: Claimant, now_ns: int
    ) -> Contradiction:
        """Compare an item's claims with earlier ones, and store them."""
        heading = features.words[: features.head]
        if TOPICS.isdisjoint(heading):
            return _NO_CONTRADICTION
        topics = _claimed_topics(heading, features.way)
        if not topics:
            return _NO_CONTRADICTION
        subjects = symbols[:_MAX_SUBJECTS] or tuple(sorted(features.names))[:_MAX_SUBJECTS]
        words = tuple(sorted({word for word in heading if len(word) > 3}))
        finding: ScreeningFinding | None = None
        fallen: list[tuple[str, str]] = []
        for topic, way in topics:
            claim = NewsClaim(name, who.voice, who.credibility, now_ns, way, words)
            for subject in subjects:
                stand = self._claims_on(subject, topic, now_ns)
                for other in [one for one in stand if one.way != way]:
                    if not _are_comparable(
                        other, claim, features.way, bool(symbols) and topic in _BINARY_TOPICS
                    ):
                        continue
                    if (
                        other.voice == who.voice
                        or who.credibility >= other.credibility + _MIN_CREDIBILITY_GAP
                    ):
                        fallen.append((other.id, other.voice))
                        stand.remove(other)
                        continue
                    doubt = _contradiction_finding(other, who)
                    if finding is None or doubt.strength > finding.strength:
                        finding = doubt
                stand.append(claim)
        return Contradiction(finding, tuple(dict.fromkeys(fallen)))

    def _claims_on(self, subject: str, topic: str, now_ns: int) -> deque[NewsClaim]:
        key = (subject, topic)
        stand = self._claims.get(key)
        if stand is None:
            stand = self._claims[key] = deque(maxlen=_MAX_CLAIMS)
            if len(self._claims) > MAX_SYMBOLS:
                self._claims.popitem(last=False)
        else:
            self._claims.move_to_end(key)
            while stand and stand[0].at_ns < now_ns - CLAIM_NS:
                stand.popleft()
        return stand

    def state(self) -> list[list[Any]]:
        return [
            [subject, topic, [msgspec.structs.astuple(claim) for claim in stand]]
            for (subject, topic), stand in self._claims.items()
        ]

    def restore(self, state: list[list[Any]]) -> None:
        self._claims = OrderedDict(
            (
                (subject, topic),
                deque((_claim(one) for one in stand), maxlen=_MAX_CLAIMS),
            )
            for subject, topic, stand in state
        )


def _claim(row: list[Any]) -> NewsClaim:
    name, voice, credibility, at_ns, way, words = row
    return NewsClaim(name, voice, credibility, at_ns, way, tuple(words))


def judge_altered_copy(
    alike: SimilarItems, features: TextFeatures, who: Claimant, believed: float, voices: Collection[str]
) -> Contradiction:
    """Whether an item is another's text with a figure or its direction changed; `believed` is the other's credibility,
    `voices` are those of its story.
    """
    near = alike.near
    if (
        near is None
        or alike.same is not None
        or alike.similarity < _MIN_COPY_SIMILARITY
        or near.source == who.voice
    ):
        return _NO_CONTRADICTION
    if not (features.figures.difference(near.figures) or _is_reversed(near, features)):
        return _NO_CONTRADICTION
    if (features.way | near.way) & CORRECTS:
        if features.way & CORRECTS and who.voice not in voices:
            return Contradiction(
                ScreeningFinding(CONTRADICTION_RULE, 0.5, "corrects items of others, not its own")
            )
        return _NO_CONTRADICTION
    replaced = bool(set(near.figures) - features.figures) or _is_reversed(near, features)
    if (
        not replaced and alike.similarity < _MIN_VERBATIM_SIMILARITY
    ):  # another source of the story may know more
        return _NO_CONTRADICTION
    if who.credibility >= believed + _MIN_CREDIBILITY_GAP:
        return Contradiction(None, ((near.id, near.source),))
    if believed >= who.credibility + _MIN_CREDIBILITY_GAP:
        strength = 0.7 if replaced and alike.similarity >= _MIN_VERBATIM_SIMILARITY else 0.5
        return Contradiction(
            ScreeningFinding(CONTRADICTION_RULE, strength, "an altered copy of a more credible source's item")
        )
    return _NO_CONTRADICTION


def _is_reversed(near: StoryItem, features: TextFeatures) -> bool:
    return features.direction * direction_of(near.way) < 0 or bool((features.way ^ near.way) & DENIES)


def _claimed_topics(heading: list[str], way: int) -> list[tuple[str, int]]:
    """Topics of a headline, each with its claimed direction."""
    found: dict[str, int] = {}
    denied = -1 if way & DENIES else 1
    for word in heading:
        if (topic := EVENTS.get(word)) is not None:
            found.setdefault(topic, denied)
        elif (topic := MEASURES.get(word)) is not None and (side := direction_of(way)):
            found.setdefault(topic, side)
        elif topic is not None and way & DENIES:
            found.setdefault(topic, -1)
    return list(found.items())


def _are_comparable(earlier: NewsClaim, claim: NewsClaim, way: int, is_topic_known: bool) -> bool:
    """Whether two opposite claims are about the same. A voice contradicts its own earlier claim only by a denial."""
    if earlier.voice == claim.voice and not way & DENIES:
        return False
    if is_topic_known and earlier.voice != claim.voice:
        return True
    return _overlap(earlier.words, claim.words) >= _MIN_WORD_OVERLAP


def _contradiction_finding(earlier: NewsClaim, who: Claimant) -> ScreeningFinding:
    if earlier.credibility >= who.credibility + _MIN_CREDIBILITY_GAP:
        strength = 0.7 if earlier.credibility >= _MIN_GOOD_CREDIBILITY else 0.5
        return ScreeningFinding(CONTRADICTION_RULE, strength, "contradicts a more credible source")
    return ScreeningFinding(CONTRADICTION_RULE, 0.2, "contradicts another source")


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    both = len(set(one) & set(other))
    return both / max(len(one) + len(other) - both, 1)
