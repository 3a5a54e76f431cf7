"""The attributes of an action: its modality, its figures, and how it compares with what was expected."""

import re
from dataclasses import replace

from htfi.narrative.facts.figures import FigureRole, FigureUnit, find_figures
from htfi.narrative.facts.policy.action import (
    PolicyAction,
    PolicyExpectation,
    PolicyInstrument,
    PolicyModality,
    PolicyMove,
)
from htfi.narrative.facts.policy.banks import banks_in
from htfi.narrative.facts.policy.rate_figures import find_steps, levels_apart
from htfi.narrative.patterns import Patterns, deferred

_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "policy")
_RESERVES = deferred(rf"\b{_DATA.text('reserves')}\b")
_LENDING = _DATA.compiled("lending")
_UNCHANGED = _DATA.compiled("unchanged")
_BASE_FORM = _DATA.compiled("base_form")
_CLAUSE = re.compile(r"[;:](?!\d)|[a-z)%]\. |, (?!\d)| - |\b(?:but|and|as|while)\b")
_INFINITIVE = re.compile(r"\bto [a-z]+")
_DECIDED_TO = _DATA.compiled("decided_to")
_FIRST_TO = _DATA.compiled("first_to")
_PERSON = _DATA.compiled("person")
_OTHER_FIGURES = _DATA.compiled("other_figures")
_MODALITIES = (
    (PolicyModality.DENIES, _DATA.compiled("denies")),
    (PolicyModality.MAY, _DATA.compiled("deliberates")),
    (PolicyModality.EXPECTED, _DATA.compiled("expected")),
    (PolicyModality.MAY, _DATA.compiled("may")),
    (PolicyModality.WILL, _DATA.compiled("will")),
)
_OWN_VIEW = _DATA.compiled("own_view")
_NAMES_EXPECTATION = _DATA.compiled("names_expectation")
_EXPECTED_MOVE = _DATA.compiled("expected_move")
_EXPECTATIONS = (
    (PolicyExpectation.LARGER, _DATA.compiled("larger")),
    (PolicyExpectation.SMALLER, _DATA.compiled("smaller")),
    (PolicyExpectation.AS_EXPECTED, _DATA.compiled("as_expected")),
    (PolicyExpectation.SURPRISE, _DATA.compiled("surprise")),
)


def modality_of(before: str, verb: str, *, is_passive: bool) -> PolicyModality:
    """The modality of an action by the words of its clause before the verb; a base form or a gerund carries on what
    stands before its clause: 'seen holding rates, ending purchases'.
    """
    clauses = _CLAUSE.split(before)
    clause = clauses[-1]
    if not clause.strip() and len(clauses) > 1 and _BASE_FORM.match(verb):
        clause = before
        if _INFINITIVE.search(clause):
            return PolicyModality.WILL
    decided = list(_DECIDED_TO.finditer(clause if clause.endswith(" ") else clause + " "))
    if decided:
        clause = clause[: decided[-1].start()]
    found = next((modality for modality, pattern in _MODALITIES if pattern.search(clause)), None)
    if found is not PolicyModality.DENIES and any(
        _PERSON.match(before[one.end :]) for one in banks_in(before)
    ):
        return PolicyModality.MAY  # 'Fed's Bowman: further hikes may be needed'
    if found is PolicyModality.WILL and _FIRST_TO.search(clause):
        return PolicyModality.DID
    if found is not None:
        return found
    if is_passive and re.search(r"\bto be\b|\bto (?:stay|remain)\b", before[-24:]):
        return PolicyModality.WILL
    return PolicyModality.DID


def instrument_of(words: str) -> PolicyInstrument:
    if _RESERVES.search(words):
        return PolicyInstrument.RESERVES
    return PolicyInstrument.LENDING if _LENDING.search(words) else PolicyInstrument.RATE


def about_the_rate(rest: str) -> str:
    """The words that still speak of the rate."""
    end = _OTHER_FIGURES.search(rest)
    return rest[: end.start()] if end else rest


def with_figures(action: PolicyAction, region: str) -> PolicyAction:
    """The action with the steps and levels of the words around its verb; 'sets' becomes what its figures show."""
    near = about_the_rate(region)
    steps = find_steps(near)
    levels = levels_apart(near, steps)
    level = next((one for one in levels if not one.is_prior and one.low < one.high), None)
    level = level or next((one for one in levels if not one.is_prior), None)
    before = next((one for one in levels if one.is_prior), None)
    move, size = action.move, round(steps[0].value) if steps else None
    prior = before.high if before is not None else None
    if level is not None and prior is not None and size is None:
        size = abs(round((level.high - prior) * 100.0))
    if move is PolicyMove.START and level is not None and prior is not None:
        move = move_between(prior, level.high)
    if move is PolicyMove.START and _UNCHANGED.search(near):
        move = PolicyMove.HOLD
    if move is PolicyMove.HOLD:
        size = 0
    return replace(
        action,
        move=move,
        size_bp=size,
        low=level.low if level else None,
        high=level.high if level else None,
        prior=prior,
    )


def move_between(prior: float, level: float) -> PolicyMove:
    """What took a rate from one level to another."""
    if level == prior:
        return PolicyMove.HOLD
    return PolicyMove.RAISE if level > prior else PolicyMove.CUT


def with_expectation(action: PolicyAction, plain: str) -> PolicyAction:
    """The action with what was expected of it, as a text of plain letters says; what the bank itself expects of the
    economy or of its next steps is no measure of its action.
    """
    plain = _OWN_VIEW.sub(" ", plain)
    expectation = next(
        (kind for kind, pattern in _EXPECTATIONS if pattern.search(plain)), PolicyExpectation.UNKNOWN
    )
    expected = action.expected
    if expected is None and action.high is not None and _NAMES_EXPECTATION.search(plain):
        figures = [
            one
            for one in find_figures(plain)
            if one.role is FigureRole.EXPECTED and one.unit is FigureUnit.PERCENT
        ]
        expected = figures[0].middle if figures else None
    if expectation is PolicyExpectation.UNKNOWN and expected is not None and action.high is not None:
        is_met = action.low is not None and action.low - 1e-9 <= expected <= action.high + 1e-9
        expectation = PolicyExpectation.AS_EXPECTED if is_met else PolicyExpectation.SURPRISE
    move = _expected_move(plain)
    if move is action.move:
        move = None
    elif move is not None and expectation is PolicyExpectation.UNKNOWN:
        expectation = PolicyExpectation.SURPRISE
    return replace(action, expectation=expectation, expected=expected, expected_move=move)


def _expected_move(plain: str) -> PolicyMove | None:
    found = _EXPECTED_MOVE.search(plain)
    return None if found is None or found.lastgroup is None else PolicyMove(found.lastgroup)
