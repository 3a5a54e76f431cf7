"""Extracts the facts of an item (`record.NewsFacts`): a network sees, code counts and finds names.

The network gives probabilities for the text and for each of its tokens (`FactScores`); names, economies, figures and
comparisons with expectations are found by code, and the roles of companies by both: a rule of `headline_roles` that
matches is surer than the network.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.narrative.encoding.linking import EntityLinker, EntityMention, is_company
from htfi.narrative.facts.axis_words import axis_side
from htfi.narrative.facts.figures import figures_in_context
from htfi.narrative.facts.policy.action import PolicyAction, PolicyInstrument, PolicyModality
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.record import EventGroup, EventKind, Modality, NewsFacts, Party, PartyRole, Tense
from htfi.narrative.facts.regions import find_regions, region_of_bank
from htfi.narrative.facts.surprises import surprises_among
from htfi.narrative.headline_roles import CompanyRole, mention_roles

Shares = NDArray[np.float64]

MAX_TEXT_CHARS = 600  # of a headline, or of a passage; more is read passage by passage
MAX_PARTIES = 12
_MIN_PARTY = 0.5  # probability, summed over the roles, from which a token belongs to a party
_RULE_CONFIDENCE = 0.9  # of a role, or a decision on rates, that a rule gives


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

    def read(self, texts: Sequence[str]) -> list[FactScores]:
        """One per text, in order; of a long text, its beginning. Raises: DependencyUnavailable."""
        ...


KINDS = tuple(kind for kind in EventKind if kind is not EventKind.UNKNOWN)
ROLES = tuple(PartyRole)
_MODALITIES, _TENSES = tuple(Modality), tuple(Tense)

_ROLE_OF_RULE: Mapping[CompanyRole, PartyRole] = {
    CompanyRole.ACQUIRER: PartyRole.ACQUIRER,
    CompanyRole.TARGET: PartyRole.TARGET,
    CompanyRole.SELLER: PartyRole.SELLER,
    CompanyRole.PLAINTIFF: PartyRole.PLAINTIFF,
    CompanyRole.DEFENDANT: PartyRole.DEFENDANT,
    CompanyRole.SUPPLIER: PartyRole.SUPPLIER,
    CompanyRole.CUSTOMER: PartyRole.CUSTOMER,
    CompanyRole.ANALYST: PartyRole.RATER,
    CompanyRole.RATED: PartyRole.RATED,
    CompanyRole.INVESTOR: PartyRole.INVESTOR,
    CompanyRole.COMPARED: PartyRole.PEER,
}
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|n[o']t|isn['’]t|won['’]t|doesn['’]t|didn['’]t|cannot|can['’]t|denie[sd]|deny|denial|"
    r"fails? to|failed to|refuses?|refused|rejects?|rejected|rules? out|ruled out|unlikely|"
    r"abandon(?:s|ed)|scrap(?:s|ped)|shelve[sd]|withdraw[sn]?|withdrew|drops? plan|halt(?:s|ed)|avoid(?:s|ed))\b",
    re.IGNORECASE,
)


def extract_facts(text: str, scores: FactScores | None, linker: EntityLinker, reader: str = "") -> NewsFacts:
    """The facts of a headline or a passage; without scores of a network, those that code alone finds."""
    mentions = linker.mentions(text)
    context = figures_in_context(text)
    action = find_policy_action(text)
    regions = _with_home(find_regions(text), action)
    known = NewsFacts(
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
        negated=_NEGATION.search(text) is not None,
        parties=(),
        symbols=tuple(dict.fromkeys(mention.symbol for mention in mentions)),
        regions=regions,
        figures=tuple(one.figure for one in context.placed),
        surprises=tuple(surprises_among(text, context)),
        action=action,
    )
    if scores is None:
        return known
    event, modality, tense = (int(part.argmax()) for part in (scores.event, scores.modality, scores.tense))
    unrelated = float(scores.event[KINDS.index(EventKind.UNRELATED)])
    axis, axis_neutral = _axis(KINDS[event], text, scores)
    return replace(
        known,
        event=KINDS[event],
        event_confidence=_rounded(scores.event[event]),
        axis=axis,
        axis_neutral=axis_neutral,
        tone=_rounded(scores.tone[0] - scores.tone[2]),
        neutral=_rounded(scores.tone[1]),
        modality=_MODALITIES[modality],
        modality_confidence=_rounded(scores.modality[modality]),
        tense=_TENSES[tense],
        tense_confidence=_rounded(scores.tense[tense]),
        relevant=_rounded(1.0 - unrelated),
        parties=tuple(_parties(text, scores, mentions, KINDS[event])),
        reader=reader,
    )


_SIDE_RIGHT = (
    0.8  # of lines in which words tell a side, the share that have it; the rest is of the two others alike
)


def _axis(kind: EventKind, text: str, scores: FactScores) -> tuple[float, float]:
    """P(up) − P(down) along the axis of the kind, and P(neither): of the network, given the side that words tell."""
    shares = np.asarray(scores.axis, np.float64)  # up, neutral, down
    if side := axis_side(kind, text):
        shares = shares * np.where(np.arange(3) == 1 - side, _SIDE_RIGHT, (1.0 - _SIDE_RIGHT) / 2.0)
        shares = shares / shares.sum()
    return _rounded(shares[0] - shares[2]), _rounded(shares[1])


def with_policy_action(facts: NewsFacts, body: str) -> NewsFacts:
    """The facts of a headline with what a central bank did as the headline and the body together state it. A headline
    that names no decision ('Federal Reserve issues FOMC statement') takes the kind of event of the body's.
    """
    action = find_policy_action(facts.text, body) if body else facts.action
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
    return replace(found, event=kind, event_confidence=_RULE_CONFIDENCE)


_WITHOUT_DECISION = frozenset({EventKind.ROUTINE, EventKind.COMMENTARY, EventKind.UNKNOWN})


def _with_home(regions: tuple[str, ...], action: PolicyAction | None) -> tuple[str, ...]:
    """The economies of a text, that of the bank which acted first."""
    home = "" if action is None else region_of_bank(action.bank)
    return (home, *regions) if home and home not in regions else regions


class _Seen(NamedTuple):
    """A party before its role is decided: its span, symbols, and what the network says of role and effect."""

    start: int
    end: int
    symbols: tuple[str, ...]
    roles: Shares  # [roles], summing to 1
    effect: float


def _parties(
    text: str, scores: FactScores, mentions: Sequence[EntityMention], event: EventKind
) -> list[Party]:
    """Names that the linker knows, and runs of tokens in which the network sees a party, in the order of the text."""
    by_span: dict[tuple[int, int], list[str]] = {}
    for mention in mentions:
        by_span.setdefault((mention.start, mention.end), []).append(mention.symbol)
    spans = dict(by_span)
    for start, end in _seen_spans(text, scores):
        if not any(start < other_end and end > other_start for other_start, other_end in by_span):
            spans[start, end] = []
    seen: list[_Seen] = []
    for (start, end), symbols in sorted(spans.items()):
        inside = (scores.spans[:, 0] < end) & (scores.spans[:, 1] > start)
        if inside.any() and len(seen) < MAX_PARTIES:
            roles = scores.roles[inside].mean(axis=0)[:-1]
            effects = scores.effects[inside].mean(axis=0)
            shares = roles / max(float(roles.sum()), 1e-9)
            seen.append(
                _Seen(start, end, tuple(dict.fromkeys(symbols)), shares, _rounded(effects[0] - effects[2]))
            )
    return [
        Party(text[one.start : one.end], one.start, one.end, role, _rounded(sure), one.effect, one.symbols)
        for one, (role, sure) in zip(seen, _assigned_roles(text, seen, event), strict=True)
    ]


# Roles that two parties of one event have towards each other, and the kinds of event that suggest them.
_PAIRS = (
    (PartyRole.ACQUIRER, PartyRole.TARGET, frozenset({EventKind.ACQUISITION})),
    (PartyRole.RATER, PartyRole.RATED, frozenset({EventKind.RATING, EventKind.CREDIT_RATING})),
    (PartyRole.PLAINTIFF, PartyRole.DEFENDANT, frozenset({EventKind.LAWSUIT})),
    (PartyRole.SUPPLIER, PartyRole.CUSTOMER, frozenset({EventKind.DEAL})),
    (PartyRole.WINNER, PartyRole.LOSER, frozenset({EventKind.DEAL, EventKind.LAWSUIT})),
)
_KIND_GAIN = 4.0  # of a pair of roles that the kind of event suggests
_MIN_PAIR = 0.12  # geometric mean of two roles' shares, from which they are taken as a pair


def _assigned_roles(text: str, seen: Sequence[_Seen], event: EventKind) -> list[tuple[PartyRole, float]]:
    """The role of each party, with its probability: by a rule, else as one of a pair, else the likeliest."""
    shares = [one.roles for one in seen]
    found = [(ROLES[int(share.argmax())], float(share.max())) for share in shares]
    firms = [place for place, one in enumerate(seen) if not one.symbols or any(map(is_company, one.symbols))]
    pair = _best_pair(shares, firms, event)
    if pair is not None:
        for place, role in pair:
            found[place] = role, float(shares[place][ROLES.index(role)])
    mentions = [
        EntityMention(seen[place].start, seen[place].end, next(iter(seen[place].symbols), f"PARTY{place}"))
        for place in firms
    ]
    for place, ruled in zip(firms, mention_roles(text, mentions), strict=True):
        role = _ROLE_OF_RULE.get(ruled)
        if role is not None:
            found[place] = role, _RULE_CONFIDENCE
    return found


def _best_pair(
    shares: Sequence[Shares], firms: Sequence[int], event: EventKind
) -> tuple[tuple[int, PartyRole], tuple[int, PartyRole]] | None:
    """The two parties that most likely stand in opposite roles; None where none likely do."""
    best: tuple[float, tuple[tuple[int, PartyRole], tuple[int, PartyRole]]] | None = None
    suggested = [pair for pair in _PAIRS if event in pair[2]]
    for one_role, other_role, kinds in suggested or _PAIRS:
        gain = _KIND_GAIN if event in kinds else 1.0
        for one, other in permutations(firms, 2):
            share = float(shares[one][ROLES.index(one_role)] * shares[other][ROLES.index(other_role)]) ** 0.5
            if gain * share >= _MIN_PAIR and (best is None or gain * share > best[0]):
                best = gain * share, ((one, one_role), (other, other_role))
    return None if best is None else best[1]


def _seen_spans(text: str, scores: FactScores) -> list[tuple[int, int]]:
    """Runs of words in which the network sees one party."""
    named = 1.0 - scores.roles[:, -1]
    runs: list[list[int]] = []
    last_role = -1
    for token in range(len(named)):
        start, end = (int(place) for place in scores.spans[token])
        if end <= start:
            continue
        joined = (
            bool(runs)
            and start == runs[-1][1]
            and text[start - 1 : start].isalnum()
            and text[start : start + 1].isalnum()
        )
        role = int(scores.roles[token, :-1].argmax())
        if joined and runs:  # the rest of a word
            runs[-1][1] = end
        elif named[token] >= _MIN_PARTY:
            near = (
                bool(runs)
                and role == last_role
                and text[runs[-1][1] : start] in ("", " ", "&", " & ", "-", "'", "’", ".", ". ")
            )
            if near:
                runs[-1][1] = end
            else:
                runs.append([start, end])
            last_role = role
        else:
            last_role = -1
    words = [(start, end) for start, end in runs if text[start:end].strip(".,'’\"-& ")]
    return [
        (start, end)
        for start, end in words
        if any(char.isupper() or char.isdigit() for char in text[start:end]) or text.isupper()
    ]


def _rounded(value: float | np.floating) -> float:
    return round(float(value), 3)
