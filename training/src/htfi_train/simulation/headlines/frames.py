"""Event frames: a way in which something happens, its phrases and its effect, read from TOML."""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from htfi_train.simulation.companies import SimulatedAsset
from htfi_train.simulation.events import NewsEvent, NewsEventKind
from htfi_train.simulation.headlines.grammar import expand
from htfi_train.simulation.rng import Rng
from htfi_train.simulation.tables import read_table

SIZE_SPREAD = 0.22  # deviation of the log of a size, once the words are known
_GRADED = ("{by}", "{far}", "{adj}", "{hit}")

# Frames whose phrases all say the same thing: a rewrite may use any. Of the others an event keeps one phrase.
_ONE_FACT = frozenset({
    "comparison", "figures", "correction", "move", "step", "data", "beat", "miss", "in line", "raised", "cut",
    "beat, outlook cut", "miss, outlook raised", "to buy", "to be bought", "denied", "confirmed", "warning",
})  # fmt: skip
# Slots that hold facts: expanded once, in this order, so that a rewrite does not change them.
_FIXED_PER_EVENT = (
    "goods", "site", "suit", "trouble", "metric", "outlook", "goodies", "evils", "flow", "n", "about", "fight", "peace",
    "whom", "asset", "court", "watchdog", "q",
)  # fmt: skip


class EventFrame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`own`, `other` and `factors` are multiples of the grade's sigmas; `grade` fixes it where words cannot say it."""

    subkind: str
    phrases: tuple[str, ...]
    why: str = ""
    own: float = 0.0
    other: float = 0.0
    factors: tuple[tuple[str, float], ...] = ()
    grade: int | None = None
    credibility: float = 1.0  # multiple of the grade's
    weight: float = 1.0
    about: str = ""  # of a rumour: what a confirmation or a denial is about


class CentralBank(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A central bank as headlines name it; `share` is its share of the news."""

    currency: str
    name: str
    place: str
    share: float


class HeadlineGrammar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of one cause of events: slots of every event, single texts, lists to draw from, frames by group."""

    slots: dict[str, str] = {}
    texts: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}
    frames: dict[str, tuple[EventFrame, ...]] = {}
    banks: tuple[CentralBank, ...] = ()


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How big news is: its effect in sigmas of a bar and the words that say so."""

    sigmas: float
    share: float
    credibility: float
    volatility_multiplier: float
    words: dict[str, str]


class _Grades(msgspec.Struct, frozen=True):
    grades: tuple[Grade, ...]


@cache
def grammar(name: str) -> HeadlineGrammar:
    return read_table(name, HeadlineGrammar)


GRADES = read_table("grades", _Grades).grades
_GRADE_SHARES = tuple(grade.share for grade in GRADES)


def choose_frame(rng: Rng, frames: Sequence[EventFrame]) -> EventFrame:
    """One of the frames, by their weights."""
    return frames[rng.weighted_index([frame.weight for frame in frames])]


def draw_event(
    rng: Rng, kind: NewsEventKind, frame: EventFrame, subject: SimulatedAsset | None,
    other: SimulatedAsset | None = None, facts: Mapping[str, str] | None = None, grade: int | None = None,
) -> NewsEvent:  # fmt: skip
    """An event in this frame. Words say how big it is where they can; where they cannot, its grade is 1 (middling)."""
    phrases = frame.phrases
    grade = frame.grade if frame.grade is not None else grade
    if grade is None:
        graded = tuple(phrase for phrase in phrases if any(slot in phrase for slot in _GRADED))
        grade = rng.weighted_index(_GRADE_SHARES) if graded else 1
        if grade != 1:
            phrases = graded
    size = GRADES[grade]
    slots = dict(size.words)
    if subject is not None:
        slots["s"] = subject.short
    if other is not None:
        slots["o"] = other.short
    slots.update(facts or {})
    if frame.subkind not in _ONE_FACT:
        phrases = (rng.choice(phrases),)
    for name in _FIXED_PER_EVENT:
        if name in slots:
            slots[name] = expand(slots[name], slots, rng)
    scale = size.sigmas * math.exp(SIZE_SPREAD * rng.normal())
    return NewsEvent(
        kind=kind,
        subkind=frame.subkind,
        phrases=phrases,
        slots=slots,
        why=frame.why,
        own=frame.own * scale,
        other=frame.other * scale,
        factors=tuple((factor, multiple * scale) for factor, multiple in frame.factors),
        subject=subject.symbol if subject else "",
        counterpart=other.symbol if other else "",
        grade=grade,
        credibility=size.credibility * frame.credibility,
        volatility_multiplier=size.volatility_multiplier,
        half_life_bars=rng.uniform_between(0.6, 2.5),
        delay_bars=rng.weighted_index((7, 2, 1)),
    )


def draw_amount(rng: Rng, low: float = 0.05, high: float = 60.0) -> str:
    """An amount of money in words, log-uniform between `low` and `high` billions."""
    amount = math.exp(rng.uniform_between(math.log(low), math.log(high)))
    unit = rng.choice(("$", "$", "$", "€", "£"))
    if amount < 1.0:
        return f"{unit}{round(amount * 1000, -1):.0f} [mln|million|m]"
    return f"{unit}{amount:.1f} [bln|billion|bn]"
