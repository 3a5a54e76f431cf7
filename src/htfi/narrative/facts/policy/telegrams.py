"""Reads headlines on policy rates that are written as telegrams: 'RBNZ OCR -25bps to 3.00%', 'ECB unch at 2%'.

Every word gets a tag of one letter: who, which rate, a move, a step, a level, a direction, what stands still. A few
rules over the row of tags say what was done, whatever verb the headline has, or none. How surely it was done is read as
for any clause, from the words before.
"""

from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from htfi.narrative.facts.policy.action import PolicyAction, PolicyInstrument, PolicyModality, PolicyMove
from htfi.narrative.facts.policy.banks import banks_in
from htfi.narrative.facts.policy.clauses import ActionClause, made_clause
from htfi.narrative.facts.policy.rate_figures import find_steps, levels_apart
from htfi.narrative.patterns import Patterns, deferred

_DATA = Patterns("htfi.narrative.facts.policy", "patterns.toml", "telegrams")
_WORDS = _DATA.compiled("words")
_SIDES = (
    (PolicyMove.CUT, str.maketrans({"v": "[cm]", "o": "m", "z": "N", "d": "D", "g": "E"})),
    (PolicyMove.RAISE, str.maketrans({"v": "[rn]", "o": "n", "z": "Z", "d": "P", "g": "G"})),
)
_RULES = (
    *(
        (move, deferred(one["tags"].translate(side)))
        for one in _DATA.entries("moves")
        for move, side in _SIDES
    ),
    *((PolicyMove.RAISE, deferred(one["tags"])) for one in _DATA.entries("raises")),
    *((PolicyMove.HOLD, deferred(one["tags"])) for one in _DATA.entries("holds")),
    *((PolicyMove.START, deferred(one["tags"])) for one in _DATA.entries("levels")),  # as the two levels say
)
_MAX_REGION_CHARS = 200
_RANK = 1  # below a clause that is read by its verb and alike in figures


class _Tagged(NamedTuple):
    """The row of tags of a headline, one letter a word, and where each word stands."""

    tags: str
    spans: list[tuple[int, int]]


def telegram_clauses(plain: str) -> list[ActionClause]:
    """The actions that a headline in plain letters reports by its row of tags; prospects are left out."""
    row = _tagged(plain)
    found: list[ActionClause] = []
    for move, rule in _RULES:
        for match in rule.finditer(row.tags):
            place = match.start("at")
            start = row.spans[place][0]
            others = row.tags.rfind("O", match.start(), place)
            region = plain[row.spans[max(match.start(), others + 1)][0] : start + _MAX_REGION_CHARS]
            made = made_clause(plain, start, move, PolicyInstrument.RATE, region, _RANK - 2)
            if made.action.modality is PolicyModality.DID and made.action.move is not PolicyMove.START:
                found.append(made)
    return found


def _tagged(plain: str) -> _Tagged:
    """Tags: B bank, S N Z step (bare, minus, plus), L level, K level before, and those of `telegrams.words`."""
    placed = [(one.start, one.end, "B") for one in banks_in(plain)]
    steps = find_steps(plain)
    for step in steps:
        sign = plain[max(step.start - 2, 0) : step.start]
        tag = {"-": "N", "+": "Z"}.get(sign[-1:], "S") if sign[:-1] in ("", " ", "(") else "S"
        placed.append((step.start, step.end, tag))
    placed += [(one.start, one.end, "K" if one.is_prior else "L") for one in levels_apart(plain, steps)]
    tags: list[str] = []
    spans: list[tuple[int, int]] = []
    end = 0
    for start, stop, tag in [*sorted(placed), (len(plain), len(plain), "")]:
        for word in _WORDS.finditer(plain, end, max(start, end)):
            tags.append(word.lastgroup or "x")
            spans.append(word.span())
        if tag and start >= end:
            tags.append(tag)
            spans.append((start, stop))
        end = max(end, stop)
    return _Tagged("".join(tags), spans)


def with_row_figures(action: PolicyAction, plain: str) -> PolicyAction:
    """The action with a step or level that stands apart from its verb: the only one that the headline has of its kind,
    in no clause on another measure.
    """
    row = _tagged(plain)
    words = [(tag, *span) for tag, span in zip(row.tags, row.spans, strict=True)]
    clauses = [[*clause] for is_end, clause in groupby(words, key=lambda word: word[0] == "T") if not is_end]
    own = [word for clause in clauses if all(tag not in "OQ" for tag, _, _ in clause) for word in clause]
    steps = [find_steps(plain[start:end])[0] for tag, start, end in own if tag in "SNZ"]
    levels = [levels_apart(plain[start:end], ())[0] for tag, start, end in own if tag == "L"]
    if (
        action.size_bp is None
        and action.move is not PolicyMove.HOLD
        and len({one.value for one in steps}) == 1
    ):
        action = replace(action, size_bp=round(steps[0].value))
    if action.high is None and len({(one.low, one.high) for one in levels}) == 1:
        action = replace(action, low=levels[0].low, high=levels[0].high)
    return action
