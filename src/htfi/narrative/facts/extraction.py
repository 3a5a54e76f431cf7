"""Extracts the facts of an item (`record.NewsFacts`): a network sees, code counts and finds names.

The network gives probabilities for the text and for each of its tokens (`FactScores`); names, economies, figures and
comparisons with expectations are found by code, and the roles of companies by both (`role_assignment.py`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityLinker, EntityMention
from htfi.narrative.facts.axis_words import axis_side
from htfi.narrative.facts.event_words import forbidden_kinds
from htfi.narrative.facts.faults import text_fault
from htfi.narrative.facts.figures import figures_in_context
from htfi.narrative.facts.naming import find_name
from htfi.narrative.facts.party_names import NamedSpan, find_parties, linked_spans
from htfi.narrative.facts.policy.action import PolicyAction, PolicyInstrument, PolicyModality
from htfi.narrative.facts.policy.decisions import find_policy_action, with_statement
from htfi.narrative.facts.prior_changes import changes_among
from htfi.narrative.facts.record import (
    KINDS,
    EventGroup,
    EventKind,
    Modality,
    NewsFacts,
    Party,
    PartyRole,
    Tense,
)
from htfi.narrative.facts.regions import find_regions, region_of_bank
from htfi.narrative.facts.role_assignment import assigned_roles
from htfi.narrative.facts.surprises import surprises_among
from htfi.narrative.patterns import FilteredPattern
from htfi.narrative.thousandths import rounded

Shares = NDArray[np.float64]

MAX_TEXT_CHARS = 600  # of a headline, or of a passage; more is read passage by passage
MAX_PARTIES = 12
_RULE_CONFIDENCE = 0.9  # of a decision on rates that a rule gives


class FactScores(NamedTuple):
    """What the network says about one text. Rows sum to 1.

    Shapes: event [kinds], tone and axis [up, neutral, down], modality [5], tense [3]; by token: spans [T, 2] in
    characters of the text, roles [T, roles + 1] (the last: no party), effects [T, 3] (up, neutral, down).
    """

    event: Shares
    tone: Shares
    axis: Shares
    modality: Shares
    tense: Shares
    spans: NDArray[np.int64]
    roles: Shares
    effects: Shares


class FactNetwork(Protocol):
    """Reads texts. The same text gives the same bits, whatever the batch."""

    @property
    def version(self) -> str:
        """Name and digest, for the record of a decision."""
        ...

    def read(self, texts: Sequence[str]) -> Iterable[FactScores]:
        """One per text, in order, perhaps as they are asked for, while other cores begin at once; of a long text, its
        beginning.

        Raises: DependencyUnavailable.
        """
        ...


_MODALITIES, _TENSES = tuple(Modality), tuple(Tense)
_UNRELATED = KINDS.index(EventKind.UNRELATED)

_NEGATION = FilteredPattern(
    r"\b(?:not|no|never|without|n[o']t|isn['’]t|won['’]t|doesn['’]t|didn['’]t|cannot|can['’]t|denie[sd]|deny|denial|"
    r"fails? to|failed to|refuses?|refused|rejects?|rejected|rules? out|ruled out|unlikely|"
    r"abandon(?:s|ed)|scrap(?:s|ped)|shelve[sd]|withdraw[sn]?|withdrew|drops? plan|halt(?:s|ed)|avoid(?:s|ed))\b",
    re.IGNORECASE,
)


def extract_facts(
    text: str,
    scores: FactScores | None,
    linker: EntityLinker,
    reader: str = "",
    asked: tuple[str, str] = ("", ""),
) -> NewsFacts:
    """The facts of a headline or a passage; without scores of a network, those that code alone finds.

    `asked` are the symbol and the name of an asset that is asked about: where the text names it, it is a party.
    """
    mentions = linker.mentions(text)
    context = figures_in_context(text)
    figures = tuple(one.figure for one in context.placed)
    surprises = tuple(surprises_among(text, context))
    action = find_policy_action(text)
    regions = text_regions(text, action)
    symbols = tuple(dict.fromkeys([mention.symbol for mention in mentions]))
    is_negated = _NEGATION.search(text) is not None
    changes = tuple(changes_among(text, context))
    fault = text_fault(text, figures, surprises)
    if scores is None:
        return NewsFacts(
            text=text,
            event=EventKind.UNKNOWN,
            event_confidence=0.0,
            axis=0.0,
            axis_neutral=1.0,
            tone=0.0,
            neutral=1.0,
            modality=Modality.DID,
            modality_confidence=0.0,
            tense=Tense.FACT,
            tense_confidence=0.0,
            relevant=0.5,
            negated=is_negated,
            symbols=symbols,
            regions=regions,
            figures=figures,
            surprises=surprises,
            changes=changes,
            action=action,
            fault=fault,
        )
    kind, sure, axis, axis_neutral, tone, neutral = judge_event(text, scores)
    modality, tense = int(scores.modality.argmax()), int(scores.tense.argmax())
    named = named_parties(text, scores, mentions, find_name(text, *asked))
    parties = tuple(
        Party(one.name, one.start, one.end, role, rounded(confidence), one.effect, one.symbols)
        for one, (role, confidence) in zip(named.parties, roles_of(text, named, scores.event), strict=True)
    )
    if may_be_bought(text, sure) and {one.role for one in parties} >= IN_DEALS:
        kind, sure = EventKind.ACQUISITION, SURE_KIND
    return NewsFacts(
        text=text,
        event=kind,
        event_confidence=_rounded(sure),
        axis=axis,
        axis_neutral=axis_neutral,
        tone=tone,
        neutral=neutral,
        modality=_MODALITIES[modality],
        modality_confidence=_rounded(scores.modality[modality]),
        tense=_TENSES[tense],
        tense_confidence=_rounded(scores.tense[tense]),
        relevant=relevance(scores),
        negated=is_negated,
        parties=parties,
        symbols=symbols,
        regions=regions,
        figures=figures,
        surprises=surprises,
        changes=changes,
        action=action,
        fault=fault,
        reader=reader,
    )


class JudgedEvent(NamedTuple):
    """The kind of event of a text with its probability, and what `record.NewsFacts` holds of its axis and tone."""

    kind: EventKind
    sure: float
    axis: float
    axis_neutral: float
    tone: float
    neutral: float


def judge_event(text: str, scores: FactScores) -> JudgedEvent:
    """What the network and words together say of the event of a text."""
    event = int(scores.event.argmax())
    forbidden = forbidden_kinds(text)
    if KINDS[event] in forbidden:
        allowed = np.array([kind not in forbidden for kind in KINDS])
        event = int(np.where(allowed, scores.event, -1.0).argmax())
    kind = KINDS[event]
    side = axis_side(kind, text)
    axis = _given_side(scores.axis, side)
    tone = _given_side(scores.tone, side if kind.group is EventGroup.COMPANY else 0)
    return JudgedEvent(kind, float(scores.event[event]), *axis, *tone)


def relevance(scores: FactScores) -> float:
    """The probability that a text bears on any price."""
    return _rounded(1.0 - float(scores.event[_UNRELATED]))


SURE_KIND = (
    0.6  # probability of a kind of event, below which the verb and the roles of a deal say that it is one
)
IN_DEALS = frozenset({PartyRole.ACQUIRER, PartyRole.TARGET})
_BUYS = FilteredPattern(
    r"\b(?:to|will|agrees to|offers to) (?:buy|acquire|take over)\b|\b(?:acquires|takeover of|bid for)\b",
    re.I,
)


def may_be_bought(text: str, sure: float) -> bool:
    """Whether a text of an unsure kind of event has the verb of a deal, so that roles of `IN_DEALS` make it one."""
    return sure < SURE_KIND and _BUYS.search(text) is not None


_SIDE_RIGHT = 0.85  # of lines in which words tell a side, the share that have it; the others share the rest
_SIDE_WRONG = (1.0 - _SIDE_RIGHT) / 2.0


def _given_side(shares: Shares, side: int) -> tuple[float, float]:
    """P(up) − P(down) and P(neither) of shares [up, neutral, down], given the side that words tell; 0 for none."""
    up, neutral, down = shares.tolist()
    if side:
        up *= _SIDE_RIGHT if side > 0 else _SIDE_WRONG
        neutral *= _SIDE_WRONG
        down *= _SIDE_RIGHT if side < 0 else _SIDE_WRONG
        whole = up + neutral + down
        up, neutral, down = up / whole, neutral / whole, down / whole
    return _rounded(up - down), _rounded(neutral)


def with_policy_action(facts: NewsFacts, body: str) -> NewsFacts:
    """The facts of a headline with what a central bank did as the headline and the body together state it. A headline
    that names no decision ('Federal Reserve issues FOMC statement') takes the kind of event of the body's.
    """
    action = with_statement(facts.action, facts.text, body)
    if action == facts.action:
        return facts
    found = replace(facts, action=action, regions=_with_home(facts.regions, action))
    is_vague = facts.event in _WITHOUT_DECISION or facts.event.group is EventGroup.CENTRAL_BANK
    if (
        action is None
        or action.modality is not PolicyModality.DID
        or facts.action is not None
        or not is_vague
    ):
        return found
    kind = (
        EventKind.ASSET_PURCHASES
        if action.instrument is PolicyInstrument.PURCHASES
        else EventKind.RATE_DECISION
    )
    sure = max(facts.relevant, _RULE_CONFIDENCE)
    return replace(found, event=kind, event_confidence=_RULE_CONFIDENCE, relevant=sure)


_WITHOUT_DECISION = frozenset(
    {EventKind.ROUTINE, EventKind.COMMENTARY, EventKind.REGULATION, EventKind.UNRELATED, EventKind.UNKNOWN}
)


def text_regions(text: str, action: PolicyAction | None) -> tuple[str, ...]:
    """The economies of a text, that of the bank which acted first."""
    return _with_home(find_regions(text), action)


def _with_home(regions: tuple[str, ...], action: PolicyAction | None) -> tuple[str, ...]:
    home = "" if action is None else region_of_bank(action.bank)
    return (home, *regions) if home and home not in regions else regions


class NamedParty(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A party before its role is known; see `record.Party`."""

    name: str
    start: int
    end: int
    effect: float
    symbols: tuple[str, ...] = ()


class NamedParties(NamedTuple):
    """The parties that a text names, in its order, with what the network says of their roles, [parties, roles]."""

    parties: tuple[NamedParty, ...]
    shares: Shares


def named_parties(
    text: str, scores: FactScores, mentions: Sequence[EntityMention], asked: tuple[int, int] | None
) -> NamedParties:
    """Names that are linked, and those in which the network sees a party."""
    linked = linked_spans(text, mentions, asked)
    taken = list(linked)
    names, shares, effects = find_parties(
        text, taken, scores.spans, scores.roles, scores.effects, MAX_PARTIES
    )
    parties = [
        NamedParty(text[start:end], start, end, effect, () if place < 0 else linked[taken[place]])
        for (start, end, place), effect in zip(names, effects, strict=True)
    ]
    return NamedParties(tuple(parties), shares)


def roles_of(text: str, named: NamedParties, events: Shares) -> list[tuple[PartyRole, float]]:
    """The role of each party with its probability; `events` [kinds] is what the network says of the text's event."""
    names = [NamedSpan(one.start, one.end, one.symbols) for one in named.parties]
    return assigned_roles(text, names, named.shares, events)


def _rounded(value: float | np.floating) -> float:
    return rounded(float(value))
