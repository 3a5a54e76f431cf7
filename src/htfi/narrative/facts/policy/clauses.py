"""Finds the actions that a line in plain letters reports: verbs and nouns of policy, each with its attributes."""

import re
from dataclasses import dataclass, replace

from htfi.narrative.facts.figures import FigureRole, FigureUnit, find_figures
from htfi.narrative.facts.policy.action import PolicyAction, PolicyInstrument, PolicyModality, PolicyMove
from htfi.narrative.facts.policy.attributes import (
    about_the_rate,
    instrument_of,
    modality_of,
    move_between,
    with_expectation,
    with_figures,
)
from htfi.narrative.facts.policy.banks import banks_in
from htfi.narrative.facts.policy.rate_figures import find_levels, find_steps
from htfi.narrative.patterns import FilteredPattern, Patterns, PatternTable, deferred

_PARTICIPLES = frozenset({"cut", "held", "kept", "left", "set", "put", "took", "brought down"})
_MAX_REGION_CHARS = 320  # behind a verb, for its figures
_NOUNS = frozenset({"cut", "hike", "hold", "trim", "increase"})
_NOT_A_SUBJECT = re.compile(r"\b(?:despite|before|ahead of|since|of|for|on|without|until) (?:the |an? )?$")
_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "policy")
_ACTIVE = _DATA.filtered("active")
_PASSIVE = _DATA.filtered("passive")
_SHORT = _DATA.filtered("short")
_BARE = _DATA.filtered("bare")
_NO_BARE_VERB = _DATA.compiled("no_bare_verb")
_BARE_BEFORE = _DATA.compiled("bare_before")
_PLURAL_NOUNS = _DATA.filtered("plural_nouns")
_INTRANSITIVE = _DATA.filtered("intransitive")
_OTHER_RATE = _DATA.compiled("other_rate")
_NOUN = _DATA.filtered("noun")
_NOUN_IN = _DATA.filtered("noun_in")
_OWN_NOUN = _DATA.compiled("own_noun")
_WITH_STEP = _DATA.compiled("with_step")
_PROSPECT_NOUN = _DATA.compiled("prospect_noun")
_NOT_OWN_NOUN = _DATA.compiled("not_own_noun")
_NO_CHANGE = _DATA.filtered("no_change")
_UNCHANGED = _DATA.compiled("unchanged")
_NOT_THE_RATE = _DATA.compiled("not_the_rate")
_LOW_OR_HIGH = _DATA.compiled("low_or_high")
_SUBORDINATE = _DATA.compiled("subordinate")
_PURCHASE_VERB = _DATA.filtered("purchase_verb")
_TAPER_NOUN = _DATA.filtered("taper_noun")
_RATE_NAMED = FilteredPattern(r"\brates?\b|\bdecision\b|\bocr\b|\bselic\b")
_RESERVES = deferred(rf"\b{_DATA.text('reserves')}\b")


_STATES_ACTION = PatternTable(
    (_ACTIVE, _PASSIVE, _NO_CHANGE, _NOUN_IN, _NOUN, _PURCHASE_VERB, _TAPER_NOUN, _RATE_NAMED, _PLURAL_NOUNS,
     _INTRANSITIVE)
)  # fmt: skip
# What stands behind every verb of `_SHORT`: a size.
_SIZE = FilteredPattern(r"\d|\b(?:quarter|half|jumbo|full|three)|\.[./ -]{0,14}[%pb]")


@dataclass(frozen=True, slots=True)
class ActionClause:
    """An action as found, with the place of its verb and how surely it is the report's own. `has_subject`: its verb is
    active, so that who acts stands before it.
    """

    action: PolicyAction
    start: int
    rank: int
    has_subject: bool = False


def action_clauses(plain: str) -> list[ActionClause]:
    """The actions in a line of plain letters, each with its rank."""
    found: list[ActionClause] = []
    for match in _ACTIVE.finditer(plain):
        found += _from_verb(plain, match, match.end("rate"))
    for match in _PASSIVE.finditer(plain):
        found += _from_passive(plain, match)
    if not found:
        for match in _SHORT.finditer(plain):
            subject = plain[
                max(
                    (one.end for one in banks_in(plain) if one.end <= match.start()), default=0
                ) : match.start()
            ]
            if about_the_rate(subject) == subject:  # 'China's inflation eases to 2.2 percent'
                found += _from_verb(plain, match, match.end())
    if not found:
        found += _from_bare_verb(plain)
    for match in _NO_CHANGE.finditer(plain):
        if match[0].startswith("rate") and _OTHER_RATE.search(plain[: match.start()]):
            continue
        region = plain[match.end() : match.end() + _MAX_REGION_CHARS]
        found.append(made_clause(plain, match.start(), PolicyMove.HOLD, PolicyInstrument.RATE, region))
    for match in _NOUN_IN.finditer(plain):
        found += _from_noun_in(plain, match)
    for match in _NOUN.finditer(plain):
        found += _from_noun(plain, match)
    for match in _PURCHASE_VERB.finditer(plain):
        move = next(PolicyMove(name) for name in ("stop", "expand", "taper", "start") if match[name])
        found.append(made_clause(plain, match.start(), move, PolicyInstrument.PURCHASES, "", -1))
    taper = _TAPER_NOUN.search(plain)
    if not found and taper is not None:
        made = made_clause(plain, taper.start(), PolicyMove.TAPER, PolicyInstrument.PURCHASES, "", -1)
        found.append(_as_prospect(made))
    return found or _from_figures_alone(plain) or _from_prospects(plain)


def may_state_action(plain: str) -> bool:
    """Whether a line of plain letters has the words of any action: without them `action_clauses` finds none."""
    if _STATES_ACTION.may_match(plain):
        return True
    if _SHORT.may_match(plain) and _SIZE.search(plain) is not None:
        return True
    return _BARE.may_match(plain) and bool(banks_in(plain))


def _from_verb(plain: str, match: re.Match[str], end: int) -> list[ActionClause]:
    rest = plain[end : end + _MAX_REGION_CHARS]
    if _NOT_THE_RATE.match(rest) or _OTHER_RATE.search(plain[: _start_of_rate(match)]):
        return []
    instrument = instrument_of(match[0])
    move = _move(match)
    between = plain[match.start() : end]
    if move is PolicyMove.HOLD:
        verb = match["hold"]
        is_held = bool(
            _UNCHANGED.search(about_the_rate(rest))
            or any(not one.is_prior for one in find_levels(about_the_rate(rest)))
        )
        if not is_held and verb.startswith(("leav", "left")):
            return []
        if not is_held and _LOW_OR_HIGH.match(rest):
            return []
    region = between.partition(" ")[2] + rest
    made = made_clause(plain, match.start(), move, instrument, region)
    return [replace(made, has_subject=True)] if made.action.move is not PolicyMove.START else []


def _from_passive(plain: str, match: re.Match[str]) -> list[ActionClause]:
    """'Bank Rate maintained at 4%', 'rates left unchanged by Fed', 'the key rates will remain unchanged'."""
    if _OTHER_RATE.search(plain[: match.start("rate")]):
        return []
    between = plain[match.end("rate") : match.end()]
    if _NOT_THE_RATE.match(between) or re.search(r"\b(?:forecasts?|inflation|growth|economy)\b", between):
        return []
    verb = match["cut"] or match["raise"] or match["hold"] or match["set"]
    if verb and not verb.endswith("ed") and verb not in _PARTICIPLES:
        return []
    rest = plain[match.end() : match.end() + _MAX_REGION_CHARS]
    if match["same"]:
        if "unchanged" not in between and not find_levels(about_the_rate(match[0][-6:] + rest)):
            return []
        move = PolicyMove.HOLD
    else:
        move = _move(match)
    start = match.start("cut") if match["cut"] else match.end("rate")
    start = max(start, match.end("rate"))
    return [
        made_clause(plain, start, move, instrument_of(match["rate"]), _tail(match[0]) + rest, is_passive=True)
    ]


def _start_of_rate(match: re.Match[str]) -> int:
    return match.start("rate") if "rate" in match.re.groupindex else 0


def _last_words(text: str) -> str:
    return " ".join(text.split()[-5:])


def _tail(text: str) -> str:
    return text.rpartition(" ")[2]


def _from_noun(plain: str, match: re.Match[str]) -> list[ActionClause]:
    """'a 25 bps cut', 'surprise rate hike from RBNZ'."""
    move = _move_of_noun(match)
    before = plain[max(0, match.start() - 40) : match.start()]
    near_step = [one for one in find_steps(before) if len(before) - one.end <= 16]
    is_rate = "rate" in match[0] or _RESERVES.search(match[0]) is not None
    if not near_step and not is_rate:
        return []
    after = plain[match.end() : match.end() + _MAX_REGION_CHARS]
    if _NOT_THE_RATE.match(" " + after.lstrip()) and not after.startswith(
        (" of", " from", " by", " to", ",", ":")
    ):
        return []
    if _NOT_OWN_NOUN.match(after):
        return []
    head = plain[: match.start()]
    is_own = _OWN_NOUN.search(head) or (near_step and _WITH_STEP.search(head))
    rank = 0 if is_own else -1
    if (
        re.match(r" (?:by|from|at)\b", after)
        or re.search(r"^(?:\w+ ){0,3}$", head)
        or re.search(r": ?(?:[\w.-]+ ){0,3}$", head)
    ):
        rank = 0
    instrument = PolicyInstrument.RESERVES if _RESERVES.search(match[0]) else PolicyInstrument.RATE
    region = f"{_last_words(before)} {match[0]}{after}"
    made = made_clause(plain, match.start(), move, instrument, region, rank)
    if _PROSPECT_NOUN.match(after) and made.action.modality is PolicyModality.DID:
        return [replace(made, action=replace(made.action, modality=PolicyModality.EXPECTED), rank=-1)]
    return [_as_prospect(made) if rank < 0 or match[0].endswith("s") else made]  # 'rate cuts': of several


def _as_prospect(made: ActionClause) -> ActionClause:
    """A noun alone reports nothing that is done."""
    if made.action.modality is not PolicyModality.DID:
        return made
    return replace(made, action=replace(made.action, modality=PolicyModality.MAY))


def _from_bare_verb(plain: str) -> list[ActionClause]:
    """'RBA tipped to cut in August', 'Bank of Canada opts to hold': a bank and a verb alone."""
    found: list[ActionClause] = []
    for bank in banks_in(plain) if _BARE.may_match(plain) else ():
        for match in _BARE.finditer(plain, bank.end):
            between = plain[bank.end : match.start()]
            if match["set"] or (not between.strip() and _NO_BARE_VERB.match(match[0])):
                continue
            if match[0] in _NOUNS and _NOT_A_SUBJECT.search(plain[: bank.start]):
                continue  # 'despite BoE cut'
            if _BARE_BEFORE.match(between):
                rest = plain[match.end() : match.end() + _MAX_REGION_CHARS]
                region = f"{_last_words(plain[: match.start()])}{rest}"  # 'odds of 25 bp Fed cut'
                found.append(made_clause(plain, match.start(), _move(match), PolicyInstrument.RATE, region))
    return found


def _from_prospects(plain: str) -> list[ActionClause]:
    """'Fed weighs deeper cuts', 'rates may have to rise': prospects alone."""
    found: list[ActionClause] = []
    for match in (*_PLURAL_NOUNS.finditer(plain), *_INTRANSITIVE.finditer(plain)):
        made = made_clause(
            plain,
            match.start("cut" if match["cut"] else "raise"),
            _move_of_noun(match),
            PolicyInstrument.RATE,
            "",
            -1,
        )
        if made.action.modality is not PolicyModality.DID:
            found.append(made)
    return found


def _from_noun_in(plain: str, match: re.Match[str]) -> list[ActionClause]:
    """'an increase in the discount rate from 3 percent to 3-1/2 percent'."""
    region = plain[match.end() : match.end() + _MAX_REGION_CHARS]
    if _NOT_THE_RATE.match(region):
        return []
    head = plain[: match.start()]
    steps = " ".join(head.split()[-4:]) if find_steps(head[-24:]) else ""
    instrument = instrument_of(match["rate"])
    made = made_clause(plain, match.start(), _move_of_noun(match), instrument, steps + region)
    is_own = _OWN_NOUN.search(head + " ") is not None or made.action.size_bp is not None
    return [made] if is_own else []


def _move_of_noun(match: re.Match[str]) -> PolicyMove:
    return PolicyMove.CUT if match["cut"] else PolicyMove.RAISE


def _from_figures_alone(plain: str) -> list[ActionClause]:
    """'BoE interest rate decision: 4.25% (expected 4.25%, previous 4.5%)'."""
    named = _RATE_NAMED.search(plain)
    if named is None or _OTHER_RATE.search(plain[: named.start()]):
        return []
    figures = [one for one in find_figures(plain) if one.unit is FigureUnit.PERCENT]
    by_role = {figure.role: figure.middle for figure in reversed(figures)}
    if not {FigureRole.ACTUAL, FigureRole.PRIOR} <= by_role.keys():
        return []
    actual, prior = by_role[FigureRole.ACTUAL], by_role[FigureRole.PRIOR]
    action = PolicyAction(
        "",
        PolicyInstrument.RATE,
        move_between(prior, actual),
        PolicyModality.DID,
        abs(round((actual - prior) * 100.0)),
        actual,
        actual,
        prior,
        by_role.get(FigureRole.EXPECTED),
    )
    return [ActionClause(with_expectation(action, plain), 0, 0)]


def made_clause(
    plain: str,
    start: int,
    move: PolicyMove,
    instrument: PolicyInstrument,
    region: str,
    rank: int = 0,
    *,
    is_passive: bool = False,
) -> ActionClause:
    """A candidate with the figures of its region and the modality of the words before its verb."""
    before = plain[:start]
    modality = modality_of(before, plain[start:], is_passive=is_passive)
    if modality is PolicyModality.DID and plain.rstrip().endswith("?"):
        modality = PolicyModality.MAY
    rank += {PolicyModality.DID: 2, PolicyModality.WILL: 1}.get(modality, 0)
    if _SUBORDINATE.search(before):
        rank -= 3
    action = PolicyAction("", instrument, move, modality)
    if instrument is not PolicyInstrument.PURCHASES:
        action = with_figures(action, region)
    return ActionClause(with_expectation(action, plain), start, rank)


def _move(match: re.Match[str]) -> PolicyMove:
    """The move of a verb; START stands for 'sets', whose figures decide."""
    return (
        PolicyMove.CUT
        if match["cut"]
        else PolicyMove.RAISE
        if match["raise"]
        else PolicyMove.HOLD
        if match["hold"]
        else PolicyMove.START
    )
