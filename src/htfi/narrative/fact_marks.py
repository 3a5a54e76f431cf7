"""What the facts of an item mean, as control tokens for our own models and in words for others.

A reading (`domain.news.ItemReading`) is told in few steps: its edges are here and nowhere else. The marks stand at the
end of the vocabulary of models that were trained with them; a vocabulary without them gets a prompt without facts.
"""

from collections.abc import Mapping, Sequence

from htfi.domain.news import ItemReading
from htfi.narrative.facts.reading import Silence
from htfi.narrative.facts.record import EventKind, Modality, Tense

FACT_MARKS_VERSION = "marks/1"  # of names, edges and order

SIZE_EDGES = (0.35, 0.7, 1.3)  # daily standard deviations of a stated move
SURE_EDGES = (0.5, 0.7, 0.9)  # |P(up) − P(down)| of a stated direction
NEAR_EDGES = (0.3, 0.7)  # relevance
MIN_LEAN = 0.15  # |P(up) − P(down)|, from which what states nothing leans to a side
MIN_KIND = 0.35  # probability, from which a kind of event is told

_SILENCE_MARKS: Mapping[str, str] = {
    Silence.UNRELATED: "q_unrelated",
    Silence.OTHERS: "q_others",
    Silence.NO_LINE: "q_no_line",
    Silence.NEUTRAL: "q_neutral",
    Silence.UNCLEAR: "q_unclear",
    Silence.RECAP: "q_recap",
    Silence.KNOWN: "q_known",
    Silence.NO_DIRECTION: "q_either_way",
}
_SIDES = {1: "rise", -1: "fall"}
_SIZE_WORDS = ("slightly", "moderately", "strongly", "very strongly")
_ITEM_WORDS = {
    **{f"e_{kind}": kind.value.replace("_", " ") for kind in EventKind},
    f"m_{Modality.WILL}": "announced",
    f"m_{Modality.MAY}": "possible",
    f"m_{Modality.DENIES}": "denied",
    f"m_{Modality.RUMOUR}": "rumour",
    f"t_{Tense.EXPECTED}": "expected",
    f"t_{Tense.RECAP}": "recap of something old",
}
_ASSET_WORDS = {
    **{f"rise{step}": f"states up {words}" for step, words in enumerate(_SIZE_WORDS)},
    **{f"fall{step}": f"states down {words}" for step, words in enumerate(_SIZE_WORDS)},
    **{f"sure{step}": f"evidence {words}" for step, words in enumerate(("weak", "fair", "good", "strong"))},
    **{mark: f"states nothing ({silence})" for silence, mark in _SILENCE_MARKS.items()},
    "lean_up": "leans up",
    "lean_down": "leans down",
    "near0": "concerns it little",
    "near1": "concerns it in part",
    "near2": "concerns it fully",
}
_ITEM_MARKS = frozenset(_ITEM_WORDS)
_WORDS = _ITEM_WORDS | _ASSET_WORDS

FACT_MARKS = tuple(_WORDS)  # every mark, in the order of their ids


def marks_of(reading: ItemReading | None) -> tuple[str, ...]:
    """What a reading is told as: marks of what the item reports, then of what it means for the asset asked about.

    None, where the facts are unknown, gives no marks.
    """
    if reading is None:
        return ()
    kind = reading.event if reading.event_confidence >= MIN_KIND else EventKind.UNKNOWN.value
    told = [f"e_{kind}", f"m_{reading.modality}", f"t_{reading.tense}"]
    if reading.direction:
        told.append(f"{_SIDES[reading.direction]}{_step(reading.size_sigmas, SIZE_EDGES)}")
        told.append(f"sure{_step(abs(reading.score), SURE_EDGES)}")
    else:
        told.append(_SILENCE_MARKS.get(reading.silence, _SILENCE_MARKS[Silence.UNCLEAR]))
        if abs(reading.score) >= MIN_LEAN:
            told.append("lean_up" if reading.score > 0.0 else "lean_down")
    told.append(f"near{_step(reading.relevance, NEAR_EDGES)}")
    return tuple(mark for mark in told if mark in _WORDS)


def is_item_mark(mark: str) -> bool:
    """Whether a mark says what an item reports, the same for every asset."""
    return mark in _ITEM_MARKS


def fact_words(marks: Sequence[str]) -> str:
    """The same in words: 'earnings, rumour; states up, strong, evidence good; concerns it fully'."""
    item = ", ".join(_WORDS[mark] for mark in marks if is_item_mark(mark))
    asset = ", ".join(_WORDS[mark] for mark in marks if not is_item_mark(mark))
    return f"{item}; {asset}"


def _step(value: float, edges: Sequence[float]) -> int:
    return sum(value >= edge for edge in edges)
