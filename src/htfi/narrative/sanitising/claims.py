"""Finds claims that contradict each other: who says the opposite of whom, and who is believed. The sanitiser asks it.

A claim is made of a subject, a topic and a way: "FDA approves X" against "X denies approval". It is a glance at the
headline, so that it takes two that share both; what one voice says anew is news and no contradiction.
"""

from collections import OrderedDict, deque
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from htfi.domain.news import Finding
from htfi.narrative.sanitising.bearings import EVENTS, MEASURES, TOPICS
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.duplicates import Alike, Telling
from htfi.narrative.sanitising.gist import CORRECTS, DENIES, Gist, side_of

RULE = "contradicted"
_GOOD = 0.85
_CLEARLY = 0.1  # of credibility between the one who is believed and the other
_MOST_CLAIMS = 6  # remembered of one subject and topic
_MOST_SUBJECTS = 4
_OVERLAP = 0.25  # of the headlines' words, where subject and topic do not say enough
_SETTLED = frozenset(EVENTS.values()) | {"approval"}  # either it is so or it is not
_VERBATIM = 0.8
_COPIED = 0.6  # likeness from which a text with another figure is an altered copy


class Claimant(NamedTuple):
    """Who says something: its name and how far it is believed."""

    voice: str
    credibility: float


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What an item claims of a subject and topic: `way` 1 or −1."""

    id: str
    voice: str
    credibility: float
    at_ns: int
    way: int
    words: tuple[str, ...]


class Contradiction(NamedTuple):
    """`finding` on the item in hand; `fallen` are earlier claims (id, voice) that it overturns."""

    finding: Finding | None
    fallen: tuple[tuple[str, str], ...] = ()


_NONE = Contradiction(None)


class Claims:
    """What was claimed of late, by subject and topic, in bounded number."""

    def __init__(self, config: SanitiserConfig) -> None:
        self._config = config
        self._claims: OrderedDict[tuple[str, str], deque[Claim]] = OrderedDict()

    def observe(
        self, name: str, told: Gist, symbols: tuple[str, ...], who: Claimant, now_ns: int
    ) -> Contradiction:
        """Compare an item's claims with those that stand, and remember them."""
        heading = told.words[: told.head]
        if TOPICS.isdisjoint(heading):
            return _NONE
        topics = _claimed(heading, told.way)
        if not topics:
            return _NONE
        subjects = symbols[:_MOST_SUBJECTS] or tuple(sorted(told.names))[:_MOST_SUBJECTS]
        words = tuple(sorted({word for word in heading if len(word) > 3}))
        finding: Finding | None = None
        fallen: list[tuple[str, str]] = []
        for topic, way in topics:
            claim = Claim(name, who.voice, who.credibility, now_ns, way, words)
            for subject in subjects:
                stand = self._stand(subject, topic, now_ns)
                for other in [one for one in stand if one.way != way]:
                    if not _meet(other, claim, told.way, bool(symbols) and topic in _SETTLED):
                        continue
                    if other.voice == who.voice or who.credibility >= other.credibility + _CLEARLY:
                        fallen.append((other.id, other.voice))
                        stand.remove(other)
                        continue
                    doubt = _doubt(other, who)
                    if finding is None or doubt.strength > finding.strength:
                        finding = doubt
                stand.append(claim)
        return Contradiction(finding, tuple(dict.fromkeys(fallen)))

    def _stand(self, subject: str, topic: str, now_ns: int) -> deque[Claim]:
        key = (subject, topic)
        stand = self._claims.get(key)
        if stand is None:
            stand = self._claims[key] = deque(maxlen=_MOST_CLAIMS)
            if len(self._claims) > self._config.max_symbols:
                self._claims.popitem(last=False)
        else:
            self._claims.move_to_end(key)
            while stand and stand[0].at_ns < now_ns - self._config.claim_ns:
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
                deque((_claim(one) for one in stand), maxlen=_MOST_CLAIMS),
            )
            for subject, topic, stand in state
        )


def _claim(told: list[Any]) -> Claim:
    name, voice, credibility, at_ns, way, words = told
    return Claim(name, voice, credibility, at_ns, way, tuple(words))


def altered(
    alike: Alike, told: Gist, who: Claimant, believed: float, voices: Collection[str]
) -> Contradiction:
    """Whether an item is another's text with a figure or its sense changed; `believed` is that other's credibility,
    `voices` are those that told that story.
    """
    near = alike.near
    if near is None or alike.same is not None or alike.likeness < _COPIED or near.source == who.voice:
        return _NONE
    if not (told.figures.difference(near.figures) or _turned(near, told)):
        return _NONE
    if (told.way | near.way) & CORRECTS:
        if told.way & CORRECTS and who.voice not in voices:
            return Contradiction(Finding(RULE, 0.5, "corrects what others have told, not itself"))
        return _NONE
    replaced = bool(set(near.figures) - told.figures) or _turned(near, told)
    if not replaced and alike.likeness < _VERBATIM:  # another who tells the story may know more
        return _NONE
    if who.credibility >= believed + _CLEARLY:
        return Contradiction(None, ((near.id, near.source),))
    if believed >= who.credibility + _CLEARLY:
        strength = 0.7 if replaced and alike.likeness >= _VERBATIM else 0.5
        return Contradiction(Finding(RULE, strength, "a copy of what a better source told, and altered"))
    return _NONE


def _turned(near: Telling, told: Gist) -> bool:
    return told.side * side_of(near.way) < 0 or bool((told.way ^ near.way) & DENIES)


def _claimed(heading: list[str], way: int) -> list[tuple[str, int]]:
    """Topics of a headline, each with the way that it is claimed."""
    found: dict[str, int] = {}
    denied = -1 if way & DENIES else 1
    for word in heading:
        if (topic := EVENTS.get(word)) is not None:
            found.setdefault(topic, denied)
        elif (topic := MEASURES.get(word)) is not None and (side := side_of(way)):
            found.setdefault(topic, side)
        elif topic is not None and way & DENIES:
            found.setdefault(topic, -1)
    return list(found.items())


def _meet(earlier: Claim, claim: Claim, way: int, settled: bool) -> bool:
    """Whether two claims of opposite ways are about the same. What a voice says anew only a denial takes back."""
    if earlier.voice == claim.voice and not way & DENIES:
        return False
    if settled and earlier.voice != claim.voice:
        return True
    return _overlap(earlier.words, claim.words) >= _OVERLAP


def _doubt(earlier: Claim, who: Claimant) -> Finding:
    if earlier.credibility >= who.credibility + _CLEARLY:
        strength = 0.7 if earlier.credibility >= _GOOD else 0.5
        return Finding(RULE, strength, "says the opposite of what a better source told")
    return Finding(RULE, 0.2, "says the opposite of what another told")


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    both = len(set(one) & set(other))
    return both / max(len(one) + len(other) - both, 1)
