"""Reads what a central bank decided, from a headline, a statement, or both.

A headline reports an action by its form: a bank, a verb or noun of an action, the rate, figures; the words before the
verb state whether it is done or a prospect. In a statement the sentence of the decision is found by its own words.
Unlike `calendar.rate_decisions`, which answers for one announcement and only beyond doubt, this reads any text.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from htfi.narrative.calendar.headlines import plain_letters
from htfi.narrative.facts.policy.action import PolicyAction, PolicyInstrument, PolicyModality, PolicyMove
from htfi.narrative.facts.policy.attributes import move_between
from htfi.narrative.facts.policy.banks import (
    BankMention,
    bank_named,
    banks_in,
    begins_with_country,
    committee_named,
)
from htfi.narrative.facts.policy.clauses import ActionClause, action_clauses, may_state_action
from htfi.narrative.facts.policy.rate_figures import find_levels, find_steps
from htfi.narrative.facts.policy.telegrams import telegram_clauses, with_row_figures
from htfi.narrative.facts.policy.votes import NO_VOTE, find_vote
from htfi.narrative.facts.sentences import split_sentences
from htfi.narrative.patterns import Patterns, PatternTable

MAX_HEADLINE_CHARS = 400
MAX_BODY_CHARS = 200_000  # that are searched for the decision
_LONG_BODY_CHARS = (
    12_000  # from here on only a sentence that says who decided counts: minutes speak of much else
)
_MIN_LONG_RANK = 5

_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "policy")
_ASIDE = _DATA.filtered("aside")
_CUE = _DATA.filtered("decision_cue")
_OF_MARKETS = _DATA.filtered("of_markets")
_DECIDED_TO = _DATA.filtered("decided_to")
_RESERVE_PRESSURE = _DATA.filtered("reserve_pressure")
_STANCE = _DATA.filtered("stance_words")
_SHOWS_THROUGH = _DATA.filtered("shows_through")
_MAINTAINS_STANCE = _DATA.filtered("maintains_stance")
_STAYS_APPROPRIATE = _DATA.filtered("stays_appropriate")
_PAST_DECISION = _DATA.compiled("past_decision")
_FOLLOWED = _DATA.compiled("followed")
_PAST_BEFORE = _DATA.compiled("past_before")
_PAST_BEHIND = _DATA.compiled("past_behind")
_NO_STRANGER = _DATA.compiled("no_stranger")
_CLAUSE_END = re.compile(r"[;,:|*]|(?<= )-{1,2}(?= )|\b(?:as|but|while|amid)\b")
_ENDS_IN_SOURCE = _DATA.compiled("ends_in_source")
_ENDS_IN_POLL = _DATA.compiled("ends_in_poll")
_BEGINS_WITH_SPEAKER = _DATA.compiled("begins_with_speaker")
_NO_SPEAKER = re.compile(r"\b(?:rates?|policy|bank|cut|hike|hold|surprise|straight|statement)\b")
_OF_COMMITTEE = re.compile(r"(?:the )?(?:mpc|board|committee|council|we)\b")
_REMAIN_AT = _DATA.filtered("remain_at")
_OLD_MANNER = PatternTable(
    (_RESERVE_PRESSURE, _MAINTAINS_STANCE, _SHOWS_THROUGH, _STANCE, _REMAIN_AT, _STAYS_APPROPRIATE)
)


def find_policy_action(headline: str, body: str = "", bank: str = "") -> PolicyAction | None:
    """The action that an item is about: its headline's, completed by its body's, or the statement's own; None if there
    is none. `bank` is the key of the bank that speaks, where the item does not name it.
    """
    return with_statement(_in_headline(headline, bank), headline, body, bank)


def with_statement(
    of_headline: PolicyAction | None, headline: str, body: str, bank: str = ""
) -> PolicyAction | None:
    """The same, where what the headline alone reports is known."""
    of_body = _in_statement(body, headline, bank) if body else None
    if of_headline is None:
        return of_body
    if of_body is None or of_headline.instrument is not of_body.instrument:
        return _with_body_vote(of_headline, body)
    if of_headline.move is not of_body.move:
        is_prospect = (
            of_headline.modality is not PolicyModality.DID and of_body.modality is PolicyModality.DID
        )
        return of_body if is_prospect else of_headline
    return _completed(of_headline, of_body)


def _in_headline(headline: str, bank: str) -> PolicyAction | None:
    plain = plain_letters(" ".join(headline[:MAX_HEADLINE_CHARS].split()))
    named = banks_in(plain)
    if not named and not bank and not committee_named(plain):
        return None
    stated = [*action_clauses(plain), *telegram_clauses(plain)]
    found = [one for one in stated if not _is_past(plain, one) and not _is_of_others(plain, one, named)]
    if len(found) < len(stated) and all(one.rank < 0 for one in found):
        return None  # 'Lenders raise rates despite BoE cut': what is left is said in passing
    found = sorted(found, key=_by_sureness)
    if not found:
        return None
    best = found[0]
    sizes = [one.action.size_bp for one in found if _is_same_act(one.action, best.action)]
    size_bp = next((size for size in sizes if size is not None), None)
    modality = best.action.modality
    if modality is PolicyModality.DID:
        modality = _modality_of_source(plain, headline)
    named = [one for one in named if not _FOLLOWED.search(plain[: one.start])] or named
    before = [one for one in named if one.end <= best.start + 1]
    key = before[-1].key if before else named[0].key if named else bank or bank_named(plain)
    return replace(
        with_row_figures(replace(best.action, size_bp=size_bp), plain),
        modality=modality,
        bank=key,
        vote=find_vote(headline),
        evidence=" ".join(headline.split()),
    )


def _is_same_act(one: PolicyAction, other: PolicyAction) -> bool:
    return (one.move, one.instrument, one.modality) == (other.move, other.instrument, other.modality)


def _by_sureness(one: ActionClause) -> tuple[int, bool, bool, int]:
    action = one.action
    return -one.rank, action.modality is not PolicyModality.DID, action.size_bp is None, one.start


def _is_past(plain: str, one: ActionClause) -> bool:
    """Whether a clause speaks of an action of another day."""
    return bool(_PAST_BEFORE.search(plain[: one.start]) or _PAST_BEHIND.search(plain[one.start :]))


def _is_of_others(plain: str, one: ActionClause, named: Sequence[BankMention]) -> bool:
    """'SBI cuts lending rates by 25 bps following RBI move': who acts is named, and is no central bank."""
    if not one.has_subject or not named or named[0].start < one.start:
        return False
    subject = _CLAUSE_END.split(plain[: one.start])[-1].strip()
    return not bank_named(subject) and _NO_STRANGER.match(subject) is None


def _modality_of_source(plain: str, headline: str) -> PolicyModality:
    """What a report is worth by whose words it gives: a poll's, a person's, or the reporter's own."""
    if _ENDS_IN_POLL.search(plain):
        return PolicyModality.EXPECTED
    begun, ended = _BEGINS_WITH_SPEAKER.match(plain), _ENDS_IN_SOURCE.search(plain)
    is_begun = begun is not None and _NO_SPEAKER.search(begun[0]) is None and not banks_in(begun[0])
    is_begun = is_begun and not begins_with_country(plain)
    is_begun = is_begun and _OF_COMMITTEE.match(plain, len(begun[0]) if begun else 0) is None
    is_ended = ended is not None and not banks_in(ended[0])
    names = headline.partition(":")[0], headline.rpartition(":")[2]
    if not headline.isupper():  # a name, and no phrase such as 'Supersized again:'
        is_begun, is_ended = (
            is_source and all(word[:1].isupper() for word in name.split())
            for is_source, name in zip((is_begun, is_ended), names, strict=True)
        )
    return PolicyModality.MAY if is_begun or is_ended else PolicyModality.DID


def _with_body_vote(action: PolicyAction, body: str) -> PolicyAction:
    return (
        replace(action, vote=find_vote(body[:MAX_BODY_CHARS])) if body and action.vote == NO_VOTE else action
    )


def _completed(of_headline: PolicyAction, of_body: PolicyAction) -> PolicyAction:
    """The headline's action, with what only the body states; a prospect that the body reports as done is done."""
    is_done = of_body.modality is PolicyModality.DID and of_headline.modality is PolicyModality.WILL
    return replace(
        of_headline,
        bank=of_headline.bank or of_body.bank,
        modality=PolicyModality.DID if is_done else of_headline.modality,
        size_bp=of_body.size_bp if of_headline.size_bp is None else of_headline.size_bp,
        low=of_body.low if of_headline.low is None else of_headline.low,
        high=of_body.high if of_headline.high is None else of_headline.high,
        prior=of_body.prior if of_headline.prior is None else of_headline.prior,
        vote=of_body.vote if of_headline.vote == NO_VOTE else of_headline.vote,
    )


class _Stated(NamedTuple):
    """A decision that a sentence states: how surely, and which sentence."""

    rank: int
    order: int
    action: PolicyAction
    text: str


def _in_statement(body: str, headline: str, bank: str) -> PolicyAction | None:
    """The decision in a bank's own statement, its minutes or a report; None where no sentence states one. The bank is
    the one that speaks, else that of the headline, else that of the body.
    """
    body = body[:MAX_BODY_CHARS]
    least = _MIN_LONG_RANK if len(body) > _LONG_BODY_CHARS else -_MIN_LONG_RANK
    found: list[_Stated] = []
    for order, sentence in enumerate(split_sentences(body)):
        plain = plain_letters(sentence.text)
        found += [
            _Stated(rank, order, action, sentence.text)
            for rank, action in _decisions(plain, [one.action for one in found])
            if rank >= least
        ]
    if not found:
        return None
    best = min(found, key=_by_rank)
    action: PolicyAction = best.action
    for one in sorted(found, key=lambda one: abs(one.order - best.order)):
        other = one.action
        if other.move is not action.move or other.instrument is not action.instrument:
            continue
        if action.high is None:
            action = replace(action, low=other.low, high=other.high)
        if action.size_bp is None:
            action = replace(action, size_bp=other.size_bp)
    return replace(
        action,
        bank=bank or bank_named(headline) or bank_named(body),
        vote=find_vote(body),
        evidence=best.text,
    )


def _by_rank(one: _Stated) -> tuple[int, int]:
    return -one.rank, one.order


def _decisions(plain: str, earlier: list[PolicyAction]) -> list[tuple[int, PolicyAction]]:
    """The decisions that a sentence states, each with its rank."""
    may_state = may_state_action(plain)
    if not may_state and not _OLD_MANNER.may_match(plain):
        return []
    if _OF_MARKETS.search(plain) and not _DECIDED_TO.search(plain):
        return []
    found: list[tuple[int, PolicyAction]] = []
    for clause in action_clauses(plain) if may_state else ():
        rank = _rank(plain, clause)
        if rank is not None:
            found.append((rank, replace(clause.action, modality=PolicyModality.DID)))
    old = _of_old_manner(plain, [*earlier, *(action for _, action in found)])
    return found if old is None else [*found, old]


def _rank(plain: str, clause: ActionClause) -> int | None:
    """How surely a clause of a statement states the decision; None where it does not."""
    before = plain[: clause.start]
    action = clause.action
    decided = list(_DECIDED_TO.finditer(before))
    is_decided = bool(decided) and len(before) - decided[-1].end() <= 2
    if _PAST_DECISION.search(before[: decided[-1].start()]) if is_decided else _ASIDE.search(before):
        return None
    rank = 5 if is_decided else 2 if _CUE.search(before) else 1
    if not is_decided and action.modality not in (PolicyModality.DID, PolicyModality.WILL):
        return None
    if not is_decided and action.modality is PolicyModality.WILL and action.high is None:
        return None
    if not is_decided and action.high is None and action.size_bp is None:
        return None
    if action.high is not None or action.size_bp:
        rank += 1
    if action.instrument is PolicyInstrument.PURCHASES:
        rank -= 6
    elif action.instrument is not PolicyInstrument.RATE:
        rank -= 5
    return rank


def _of_old_manner(plain: str, earlier: list[PolicyAction]) -> tuple[int, PolicyAction] | None:
    """The decision with its rank, as the Federal Reserve put it before 1999, of a range that stays, and as the Bank of
    Japan guides its market.
    """
    pressure = _RESERVE_PRESSURE.search(plain)
    if pressure is not None:
        return 4, _rate_action(PolicyMove.RAISE if pressure["way"] == "increase" else PolicyMove.CUT)
    if _MAINTAINS_STANCE.search(plain):
        return 4, _at_level(_rate_action(PolicyMove.HOLD, 0), plain)
    if _SHOWS_THROUGH.search(plain):
        of_discount = [one for one in earlier if one.instrument is PolicyInstrument.LENDING]
        return (4, _rate_action(of_discount[-1].move, of_discount[-1].size_bp)) if of_discount else None
    stance = _STANCE.search(plain)
    if (
        stance is not None
        and "federal funds rate" in plain
        and (stance["verb"] or stance["noun"] or stance["moves"])
    ):
        rest = plain[max(plain.index("federal funds rate") - 40, 0) :]
        is_cut = (
            (stance["verb"] or "").startswith(("eas", "loosen"))
            or "decline" in stance[0]
            or "fall" in stance[0]
        )
        is_cut = is_cut or stance["noun"] == "reduction"
        steps = find_steps(rest)
        move = PolicyMove.CUT if is_cut else PolicyMove.RAISE
        made = _rate_action(move, round(steps[0].value) if steps else None)
        return (4, _at_level(made, rest)) if steps else None
    if _REMAIN_AT.search(plain) and "rate" in plain and not _ASIDE.search(plain[:80]):
        return _guided(plain)
    stays = _STAYS_APPROPRIATE.search(plain)
    if stays is not None:
        made = _at_level(_rate_action(PolicyMove.HOLD, 0), stays[0] + plain[stays.end() : stays.end() + 60])
        return (1, made) if made.high is not None else None
    return None


def _guided(plain: str) -> tuple[int, PolicyAction] | None:
    """'The Bank will encourage the call rate to remain at around 0.5 percent': a hold, or a move from another level."""
    made = _at_level(_rate_action(PolicyMove.HOLD, 0), plain)
    prior = next((one.high for one in find_levels(plain) if one.is_prior), None)
    if made.high is None:
        return None
    if prior is not None and prior != made.high:
        move = move_between(prior, made.high)
        return 6, replace(made, move=move, size_bp=abs(round((made.high - prior) * 100.0)), prior=prior)
    return 2, made


def _at_level(action: PolicyAction, text: str) -> PolicyAction:
    level = next((one for one in find_levels(text) if not one.is_prior), None)
    return action if level is None else replace(action, low=level.low, high=level.high)


def _rate_action(move: PolicyMove, size_bp: int | None = None) -> PolicyAction:
    return PolicyAction("", PolicyInstrument.RATE, move, PolicyModality.DID, size_bp)
