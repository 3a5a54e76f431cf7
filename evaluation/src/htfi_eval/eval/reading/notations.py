"""Writes a central bank's decision as headlines, in the notations of `notations.toml`."""

import re
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from htfi.narrative.facts.policy.action import PolicyMove
from htfi_eval.eval.reading.policy_truth import RateDecision

_CHOICE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_POINTS = {
    25: "a quarter point",
    50: "half a percentage point",
    75: "three-quarters of a point",
    100: "a full percentage point",
}


@dataclass(frozen=True, slots=True)
class DecisionHeadline:
    """A headline on a decision, whether it states the size and the level, and its notation's name."""

    text: str
    states_size: bool
    states_level: bool
    notation: str


def decision_headlines(decision: RateDecision) -> list[DecisionHeadline]:
    """The decision in every notation."""
    kind = "hold" if decision.move is PolicyMove.HOLD else "move"
    found: list[DecisionHeadline] = []
    for number, notation in enumerate(_tables()[kind]):
        text = _written(notation["text"], decision)
        text = text.upper() if notation.get("capitals") else text
        name = f"{decision.move} {number}"
        found.append(DecisionHeadline(text, notation.get("size", False), notation.get("level", False), name))
    return found


def prospect_headlines(decision: RateDecision) -> list[str]:
    """Headlines on the same bank that report no decision."""
    return [_written(text, decision) for text in _tables()["prospect"]]


def _written(text: str, decision: RateDecision) -> str:
    chosen = _CHOICE.sub(lambda match: match[1] if decision.change_bp < 0 else match[2], text)
    size_bp = abs(decision.change_bp)
    level, tight = f"{decision.level:.2f}%", f"{decision.level:g}%"
    spelt = _mixed(decision.level)
    if decision.low != decision.level:
        level = f"{decision.low:.2f}%-{level}"
        tight = f"{decision.low:.2f}-{decision.level:.2f}%"
        spelt = f"{_mixed(decision.low)} to {spelt}"
    return chosen.format(
        **_tables()["banks"][decision.bank],
        level=level,
        tight=tight,
        spelt=spelt,
        new=f"{decision.level:.2f}",
        prior=f"{decision.prior:.2f}",
        bp=size_bp,
        share=f"{size_bp / 100:g}",
        points=_POINTS.get(size_bp, f"{size_bp / 100:g} percentage points"),
    )


def _mixed(value: float) -> str:
    """'4-1/4'; a figure without such fractions as it is."""
    share = Fraction(round(abs(value) * 400), 400)
    if value < 0.0 or share.denominator not in (1, 2, 4, 8):
        return f"{value:g}"
    whole, rest = divmod(share, 1)
    part = f"{rest.numerator}/{rest.denominator}" if rest else ""
    return "-".join(one for one in (str(whole) if whole or not part else "", part) if one)


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(
        files("htfi_eval.eval.reading").joinpath("notations.toml").read_text(encoding="utf-8")
    )
