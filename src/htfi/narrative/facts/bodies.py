"""Joins the facts of a body's most relevant passages with those of its headline, which counts more.

What a passage says counts as far as it is about the headline's event and parties. Recaps, boilerplate and what has
nothing to do with markets count for nothing, quoted words for less. Pure functions.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from htfi.domain.news import ItemReading
from htfi.narrative.encoding.linking import is_company
from htfi.narrative.facts.extraction import NamedParty
from htfi.narrative.facts.figures import figures_in_context
from htfi.narrative.facts.passages.facts import PassageFacts
from htfi.narrative.facts.passages.quotations import Quotation
from htfi.narrative.facts.passages.selection import Passage
from htfi.narrative.facts.reading import Silence
from htfi.narrative.facts.record import (
    BodyFacts,
    BodyStance,
    EventGroup,
    EventKind,
    NewsFacts,
    Party,
    PartyRole,
    Tense,
    TextFault,
)
from htfi.narrative.facts.regions import is_economy
from htfi.narrative.facts.surprises import Surprise, Verdict, find_surprises, surprises_among
from htfi.narrative.thousandths import rounded

MAX_PASSAGES = 4  # of a body, however long it is, that the network reads
MAX_LEAD_CHARS = 700  # of a body that is the first sentences of a story: one passage has most of what it says
_SURE_NEUTRAL = 0.7  # confidence of "neither good nor bad" from which a body does not change it
# Weights: a headline that states a side counts at least twice as much as all passages together.
_OF_PASSAGE, _MAX_OF_BODY = 0.35, 0.5
_MIN_OF_HEADLINE = 0.3  # of one that states no side
_OF_QUOTED, _OF_OTHERS = 0.3, 0.2
_OF_GROUP, _OF_OTHER_GROUP = 0.6, 0.15  # a passage on another kind of event, of the same group or not
_RECAP = 0.5  # probability from which a passage is one
_MIN_SIDE = 0.4  # |P(up) − P(down)| from which headline or body states a side
_MIN_WEIGHT = 0.1  # of all passages, from which a body states one
_MIN_KIND, _UNSURE_KIND = (
    0.7,
    0.4,
)  # of a passage's kind of event that replaces one of the headline below the second
_KIND_SHARE = 0.8  # of its probability that such a kind keeps
_MAX_FOUND = 4  # parties and comparisons that a body adds
_VAGUE = frozenset({EventKind.ROUTINE, EventKind.UNKNOWN})
_NO_EVENT = _VAGUE | {EventKind.UNRELATED, EventKind.COMMENTARY, EventKind.MARKET_MOVE}
_WITH_RESULT = frozenset(
    {
        EventKind.EARNINGS,
        EventKind.GUIDANCE,
        EventKind.SALES_UPDATE,
        EventKind.APPROVAL,
        EventKind.TRIAL_RESULT,
        EventKind.RATING,
        EventKind.CREDIT_RATING,
        EventKind.DIVIDEND,
    }
)  # kinds that turn out well or badly: where the headline does not say how, the body does
_BY_TONE = frozenset({EventGroup.COMPANY, EventGroup.MARKET, EventGroup.CRYPTO, EventGroup.NONE})


_SETTLED = frozenset(
    {
        Silence.UNRELATED,
        Silence.OTHERS,
        Silence.RECAP,
        Silence.KNOWN,
        Silence.CONTRADICTORY,
        Silence.WITHDRAWN,
        Silence.OURSELVES,
    }
)


def num_passages_worth(facts: NewsFacts, body: str, readings: Sequence[ItemReading]) -> int:
    """How many passages of a body are worth reading: none where the headline settles what the item means for each asset
    that is asked about; one of a lead, unless the headline leaves open what happened or how it turned out; else up to
    `MAX_PASSAGES`.

    `facts` are those of the headline, `readings` what it means for these assets; without any, nothing is settled.
    """
    is_vague = facts.event in _VAGUE or facts.event_confidence < _UNSURE_KIND
    is_open = is_vague or facts.event.group is not EventGroup.COMPANY or facts.event in _WITH_RESULT
    if readings and all(_is_settled(one, is_open=is_open) for one in readings):
        return 0
    return 1 if len(body) <= MAX_LEAD_CHARS and not is_open else MAX_PASSAGES


def _is_settled(reading: ItemReading, *, is_open: bool) -> bool:
    if reading.silence in _SETTLED:
        return True
    return reading.silence == Silence.NEUTRAL and reading.confidence >= _SURE_NEUTRAL and not is_open


_OUTSIDE = frozenset(
    {PartyRole.SPEAKER, PartyRole.REGULATOR}
)  # roles that say nothing of whom a headline is about


def is_on_companies(facts: NewsFacts, *, all_named: bool) -> bool:
    """Whether a headline is surely news of companies that it names: for other companies and for markets it says
    nothing, whatever stands below it.

    A lone firm that no table knows may be an asset without a name; `all_named` says that there is none.
    """
    if facts.event.group is not EventGroup.COMPANY or facts.event_confidence < _UNSURE_KIND:
        return False
    firms = [
        one
        for one in _firms(facts.parties)
        if one.role not in _OUTSIDE and (one.symbols or not is_economy(one.name))
    ]
    return len(firms) > 1 or any(one.symbols or all_named for one in firms)


_Named = TypeVar("_Named", Party, NamedParty)


class ReadPassage(NamedTuple):
    """A passage with its facts; `is_quoted` where it is mostly somebody's words."""

    passage: Passage
    facts: PassageFacts
    is_quoted: bool


def is_quoted(passage: Passage, quotations: Sequence[Quotation]) -> bool:
    """Whether most of a passage stands in quotation marks."""
    length = max(passage.end - passage.start, 1)
    inside = sum(max(0, min(one.end, passage.end) - max(one.start, passage.start)) for one in quotations)
    return 2 * inside > length


def with_body(facts: NewsFacts, passages: Sequence[ReadPassage]) -> NewsFacts:
    """The facts of a headline joined with those of passages below it; without passages as they are."""
    if not passages:
        return facts
    facts = _with_kind(facts, passages)
    weights = [_weight(facts, one) for one in passages]
    told = [one.facts for one in passages]
    tone, neutral = _joined((facts.tone, facts.neutral), [(one.tone, one.neutral) for one in told], weights)
    axis, axis_neutral = _joined(
        (facts.axis, facts.axis_neutral), [(one.axis, one.axis_neutral) for one in told], weights
    )
    surprises = _surprises(facts, passages)
    is_completed = facts.fault in (TextFault.EMPTY, TextFault.CUT) and sum(weights) >= _MIN_WEIGHT
    body = _body_facts(facts, told, weights, is_contradicted=_contradicts(facts.surprises, surprises))
    return replace(
        facts,
        tone=tone,
        neutral=neutral,
        axis=axis,
        axis_neutral=axis_neutral,
        parties=_parties(facts, told, weights),
        regions=facts.regions or _regions(facts, told, weights),
        surprises=surprises,
        body=body,
        fault=TextFault.NONE if is_completed else facts.fault,
    )


def _with_kind(facts: NewsFacts, passages: Sequence[ReadPassage]) -> NewsFacts:
    """The kind of event of the body, where the headline's is vague ('Acme announces results')."""
    if facts.event not in _VAGUE and facts.event_confidence >= _UNSURE_KIND:
        return facts
    clear = [
        one.facts
        for one in passages
        if one.facts.event not in _NO_EVENT
        and one.facts.event_confidence >= _MIN_KIND
        and not _is_recap(one.facts)
        and (facts.event is EventKind.UNKNOWN or one.facts.event.group is facts.event.group)
        and not _is_about_others(facts, one.facts)
    ]
    if not clear:
        return facts
    best = max(clear, key=lambda one: one.event_confidence)
    return replace(facts, event=best.event, event_confidence=rounded(_KIND_SHARE * best.event_confidence))


def _weight(facts: NewsFacts, one: ReadPassage) -> float:
    """How much a passage counts, 0–1."""
    read = one.facts
    if _is_recap(read) or read.event in (EventKind.UNRELATED, EventKind.ROUTINE):
        return 0.0
    weight = one.passage.relevance * read.relevant
    if read.event is not facts.event:
        weight *= _OF_GROUP if read.event.group is facts.event.group else _OF_OTHER_GROUP
    if one.is_quoted:
        weight *= _OF_QUOTED
    return weight * (_OF_OTHERS if _is_about_others(facts, read) else 1.0)


def _is_recap(facts: PassageFacts) -> bool:
    return facts.tense is Tense.RECAP and facts.tense_confidence >= _RECAP


def _is_about_others(facts: NewsFacts, passage: PassageFacts) -> bool:
    """Whether a passage names companies, and none of the headline's."""
    asked, named = list(_firms(facts.parties)), list(_firms(passage.parties))
    return bool(asked and named) and not any(_is_same(one, other) for one in asked for other in named)


def _firms(parties: Iterable[_Named]) -> Iterator[_Named]:
    return (one for one in parties if not one.symbols or any(map(is_company, one.symbols)))


def _is_same(one: Party, other: NamedParty) -> bool:
    if one.symbols and other.symbols:
        return bool(set(one.symbols) & set(other.symbols))
    left, right = one.name.casefold(), other.name.casefold()
    return left in right or right in left


def _joined(
    headline: tuple[float, float], passages: Sequence[tuple[float, float]], weights: Sequence[float]
) -> tuple[float, float]:
    """P(up) − P(down) and P(neither) of headline and passages together; a neutral headline counts for less."""
    of_body = min(_OF_PASSAGE * sum(weights), _MAX_OF_BODY)
    if of_body <= 0.0:
        return headline
    own = max(1.0 - headline[1], _MIN_OF_HEADLINE)
    means = [_mean([one[place] for one in passages], weights) for place in (0, 1)]
    score, neutral = (
        rounded((own * mine + of_body * mean) / (own + of_body))
        for mine, mean in zip(headline, means, strict=True)
    )
    return score, neutral


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    whole = sum(weights)
    return (
        sum(value * weight for value, weight in zip(values, weights, strict=True)) / whole if whole else 0.0
    )


def _body_facts(
    facts: NewsFacts, told: Sequence[PassageFacts], weights: Sequence[float], *, is_contradicted: bool
) -> BodyFacts:
    by_tone = facts.event.group in _BY_TONE
    side = _mean([one.tone if by_tone else one.axis for one in told], weights)
    own = facts.tone if by_tone else facts.axis
    stance = BodyStance.NONE
    if is_contradicted:
        stance = BodyStance.DISAGREES
    elif abs(side) >= _MIN_SIDE and sum(weights) >= _MIN_WEIGHT:
        stance = BodyStance.AGREES if own * side > 0.0 else BodyStance.DISAGREES
        if abs(own) < _MIN_SIDE:
            stance = BodyStance.ADDS
    return BodyFacts(len(told), stance, rounded(side))


def _parties(facts: NewsFacts, told: Sequence[PassageFacts], weights: Sequence[float]) -> tuple[Party, ...]:
    """The headline's parties, with what passages say the event means for them; where it names no known firm ('Chipmaker
    slumps'), those that passages on the same event are mainly about, at no place of its text.
    """
    joined: list[Party] = []
    for party in facts.parties:
        effects, counted = [party.effect], [1.0]
        for one, weight in zip(told, weights, strict=True):
            effects += [other.effect for other in one.parties if _is_same(party, other)]
            counted += [_OF_PASSAGE * weight] * (len(effects) - len(counted))
        joined.append(replace(party, effect=rounded(_mean(effects, counted))))
    firms = list(_firms(facts.parties))
    if len(firms) > 1 or any(one.symbols for one in firms):
        return tuple(joined)
    found: dict[str, Party] = {}
    for one, weight in zip(told, weights, strict=True):
        if (
            not weight
            or one.event is not facts.event
            or not any(_may_be_main(facts, of) for of in one.parties)
        ):
            continue
        for party, (role, sure) in zip(one.parties, one.roles(), strict=True):
            if role is PartyRole.SUBJECT and _may_be_main(facts, party):
                main = Party(party.name, -1, -1, role, rounded(sure), party.effect, party.symbols)
                found.setdefault(party.symbols[0], main)
    return (*joined, *found.values())[:_MAX_FOUND]


def _may_be_main(facts: NewsFacts, party: NamedParty) -> bool:
    """Whether a passage's party may be whom it is mainly about: a known company, and the event no worse for it."""
    return party.effect * facts.tone >= 0.0 and party.symbols != () and is_company(party.symbols[0])


def _regions(facts: NewsFacts, told: Sequence[PassageFacts], weights: Sequence[float]) -> tuple[str, ...]:
    """The economies of the passage that counts most, of those on the same group of events."""
    best = max(
        (
            (weight, one)
            for one, weight in zip(told, weights, strict=True)
            if weight and one.event.group is facts.event.group
        ),
        key=lambda one: one[0],
        default=None,
    )
    return () if best is None else best[1].regions()


def _surprises(facts: NewsFacts, passages: Sequence[ReadPassage]) -> tuple[Surprise, ...]:
    """The headline's comparisons, those that a passage contradicts without a verdict; without any, those of passages,
    or of a passage with what was expected of the headline's figures.
    """
    if facts.action is not None:  # a bank's words on the economy compare nothing with what was expected
        return facts.surprises
    own = [one for one in passages if not _is_recap(one.facts) and not one.is_quoted]
    contexts = [figures_in_context(one.facts.text) for one in own]
    of_body = [
        one
        for passage, context in zip(own, contexts, strict=True)
        for one in surprises_among(passage.facts.text, context)
        if one.verdict is not Verdict.UNCLEAR
    ]
    if any(one.verdict is not Verdict.UNCLEAR for one in facts.surprises):
        opposed = {
            one.measure
            for one in facts.surprises
            for other in of_body
            if one.measure == other.measure and {one.verdict, other.verdict} == {Verdict.ABOVE, Verdict.BELOW}
        }
        return tuple(
            Surprise(one.measure, one.side, Verdict.UNCLEAR, one.actual, one.expected, one.prior)
            if one.measure in opposed
            else one
            for one in facts.surprises
        )
    if not of_body and facts.figures:
        of_body = [
            one
            for passage, context in zip(own, contexts, strict=True)
            if context.placed
            for one in find_surprises(f"{facts.text.rstrip('.')}. {passage.passage.text}")
            if one.verdict is not Verdict.UNCLEAR
        ]
    if facts.event.group is EventGroup.COMPANY and abs(facts.tone) >= _MIN_SIDE:  # the headline's side stands
        of_body = [one for one in of_body if one.is_good is None or one.is_good == (facts.tone > 0.0)]
    by_measure = {one.measure: one for one in reversed(of_body)}
    return (*facts.surprises, *reversed(by_measure.values()))[:_MAX_FOUND]


def _contradicts(headline: Sequence[Surprise], joined: Sequence[Surprise]) -> bool:
    """Whether a comparison of the headline lost its verdict to one of the body."""
    return any(
        one.verdict is not Verdict.UNCLEAR and other.verdict is Verdict.UNCLEAR
        for one, other in zip(headline, joined, strict=False)
        if one.measure == other.measure
    )
