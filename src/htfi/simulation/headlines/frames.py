"""Frames: a way in which something happens, its wordings and what it does. Every cause's module is a list of them."""

import math
from collections.abc import Mapping

import msgspec

from htfi.simulation.companies import SimulatedAsset
from htfi.simulation.events import NewsEvent, NewsEventKind
from htfi.simulation.headlines.grammar import expand
from htfi.simulation.rng import Rng

# How big news is, in words that say so; sigmas of a bar for the subject.
GRADE_SIGMAS = (1.1, 2.3, 4.2, 7.5)
GRADE_SHARES = (0.24, 0.42, 0.25, 0.09)
GRADE_CREDIBILITY = (0.76, 0.86, 0.91, 0.95)
GRADE_VOLATILITY = (1.1, 1.4, 1.9, 2.8)
SIZE_SPREAD = 0.22  # deviation of the log of a size, once the words are known

GRADE_WORDS: tuple[dict[str, str], ...] = (
    {
        "by": "[slightly|a little|modestly|a touch|marginally|somewhat]",
        "far": "[slightly|just|a touch|marginally|a shade|a little]",
        "adj": "[small|minor|modest|limited|slight]",
        "hit": "[edges|inches|ticks|nudges]",
    },
    {"by": "", "far": "", "adj": "", "hit": "[moves|goes|comes]"},
    {
        "by": "[sharply|strongly|heavily|substantially|considerably|by a wide margin]",
        "far": "[far|well|much|comfortably|sharply|considerably]",
        "adj": "[big|large|major|sizeable|hefty|substantial]",
        "hit": "[jumps|leaps|lurches]",
    },
    {
        "by": "[massively|dramatically|beyond anything expected|enormously|on a record scale]",
        "far": "[massively|vastly|hugely|dramatically|spectacularly]",
        "adj": "[massive|enormous|record|huge|unprecedented|staggering]",
        "hit": "[explodes|hurtles]",
    },
)
_GRADED = ("{by}", "{far}", "{adj}", "{hit}")

# Frames whose phrases all say the same thing: a rewrite may use any. Of the others an event keeps one phrase.
_ONE_FACT = frozenset({
    "comparison", "figures", "correction", "move", "step", "data", "beat", "miss", "in line", "raised", "cut",
    "beat, outlook cut", "miss, outlook raised", "to buy", "to be bought", "denied", "confirmed", "warning",
})  # fmt: skip
# Slots that hold facts: settled once, so that a rewrite does not change them.
_FIXED_PER_EVENT = (
    "goods", "site", "suit", "trouble", "metric", "outlook", "goodies", "evils", "flow", "n", "about", "fight", "peace",
    "whom", "asset", "court", "watchdog", "q",
)  # fmt: skip


class EventFrame(msgspec.Struct, frozen=True):
    """`own`, `other` and `factors` are multiples of the grade's sigmas; `grade` fixes it where words cannot say it."""

    subkind: str
    phrases: tuple[str, ...]
    why: str
    own: float = 0.0
    other: float = 0.0
    factors: tuple[tuple[str, float], ...] = ()
    grade: int | None = None
    credibility: float = 1.0  # multiple of the grade's
    weight: float = 1.0
    slots: dict[str, str] = {}


def draw_event(
    dice: Rng, kind: NewsEventKind, frame: EventFrame, subject: SimulatedAsset | None, other: SimulatedAsset | None = None,
    facts: Mapping[str, str] | None = None, grade: int | None = None,
) -> NewsEvent:  # fmt: skip
    """An event in this frame. Words say how big it is where they can; where they cannot it is middling."""
    phrases = frame.phrases
    grade = frame.grade if frame.grade is not None else grade
    if grade is None:
        telling = tuple(phrase for phrase in phrases if any(slot in phrase for slot in _GRADED))
        grade = dice.weighted_index(GRADE_SHARES) if telling else 1
        if grade != 1:
            phrases = telling
    slots = dict(GRADE_WORDS[grade])
    slots.update(frame.slots)
    if subject is not None:
        slots["s"] = subject.short
    if other is not None:
        slots["o"] = other.short
    slots.update(facts or {})
    if frame.subkind not in _ONE_FACT:
        phrases = (dice.choice(phrases),)
    for name in _FIXED_PER_EVENT:
        if name in slots:
            slots[name] = expand(slots[name], slots, dice)
    scale = GRADE_SIGMAS[grade] * math.exp(SIZE_SPREAD * dice.normal())
    return NewsEvent(
        kind=kind,
        subkind=frame.subkind,
        phrases=phrases,
        slots=slots,
        why=frame.why,
        own=frame.own * scale,
        other=frame.other * scale,
        factors=tuple((factor, size * scale) for factor, size in frame.factors),
        subject=subject.symbol if subject else "",
        counterpart=other.symbol if other else "",
        grade=grade,
        credibility=GRADE_CREDIBILITY[grade] * frame.credibility,
        volatility_multiplier=GRADE_VOLATILITY[grade],
        half_life_bars=dice.uniform_between(0.6, 2.5),
        delay_bars=dice.weighted_index((7, 2, 1)),
    )


def draw_amount(dice: Rng, low: float = 0.05, high: float = 60.0) -> str:
    """An amount in words, log-uniform between `low` and `high` billions."""
    amount = math.exp(dice.uniform_between(math.log(low), math.log(high)))
    unit = dice.choice(("$", "$", "$", "€", "£"))
    if amount < 1.0:
        return f"{unit}{round(amount * 1000, -1):.0f} [mln|million|m]"
    return f"{unit}{amount:.1f} [bln|billion|bn]"


QUARTER = "[Q{quarter}|{nth}-quarter|quarterly|{nth} quarter]"
_NTH = ("first", "second", "third", "fourth")


def draw_quarter(dice: Rng) -> dict[str, str]:
    place = dice.integer(4)
    return {"quarter": str(place + 1), "nth": _NTH[place], "q": QUARTER}
