"""What the facts of an item mean, as control tokens for our own models and in words for others.

A reading (`domain.news.ItemReading`) is told in few steps: its edges are here and nowhere else. The marks stand at the
end of the vocabulary of models that were trained with them; a vocabulary without them gets a prompt without facts.
"""

from collections.abc import Mapping, Sequence

from htfi.domain.news import ItemReading

SIZE_EDGES = (0.35, 0.7, 1.3)  # daily standard deviations of a stated move
SURE_EDGES = (0.5, 0.7, 0.9)  # |P(up) − P(down)| of a stated direction
NEAR_EDGES = (0.3, 0.7)  # relevance
MIN_LEAN = 0.15  # |P(up) − P(down)|, from which what states nothing leans to a side
MIN_KIND = 0.35  # probability, from which a kind of event is told

# Kinds of event and reasons of silence as facts name them (`facts.record.EventKind`, `facts.reading.Silence`). They are
# written out, because models were trained with them: a kind that is new to facts is unknown here until models know it.
_KINDS = (
    "earnings", "guidance", "sales_update", "acquisition", "divestiture", "deal", "product", "approval",
    "trial_result", "recall", "lawsuit", "investigation", "rating", "credit_rating", "dividend",
    "buyback", "offering", "debt", "bankruptcy", "layoffs", "management", "expansion", "disruption",
    "cyberattack", "stake", "index_change", "split", "short_report", "routine", "inflation", "jobs",
    "growth", "activity", "housing", "trade_balance", "fiscal", "rate_decision", "policy_guidance",
    "asset_purchases", "fx_intervention", "supply", "inventories", "demand", "harvest",
    "currency_policy", "election", "government", "war", "sanctions", "tariffs", "regulation",
    "disaster", "crypto_adoption", "crypto_security", "market_move", "commentary", "trading_status",
    "unrelated", "unknown",
)  # fmt: skip
_UNKNOWN, _UNCLEAR = "unknown", "q_unclear"
_SILENCE_MARKS: Mapping[str, str] = {
    "not about markets": "q_unrelated",
    "about others": "q_others",
    "no line of the table": "q_no_line",
    "neither good nor bad": "q_neutral",
    "not understood well enough": _UNCLEAR,
    "reports an old move": "q_recap",
    "as expected": "q_known",
    "moves it either way": "q_either_way",
}
_SIDES = {1: "rise", -1: "fall"}
_SIZE_WORDS = ("slightly", "moderately", "strongly", "very strongly")
_ITEM_WORDS = {
    **{f"e_{kind}": kind.replace("_", " ") for kind in _KINDS},
    "m_will": "announced",
    "m_may": "possible",
    "m_denies": "denied",
    "m_rumour": "rumour",
    "t_expected": "expected",
    "t_recap": "recap of something old",
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
    is_known = reading.event in _KINDS and reading.event_confidence >= MIN_KIND
    kind = reading.event if is_known else _UNKNOWN
    told = [f"e_{kind}", f"m_{reading.modality}", f"t_{reading.tense}"]
    if reading.direction:
        told.append(f"{_SIDES[reading.direction]}{_step(reading.size_sigmas, SIZE_EDGES)}")
        told.append(f"sure{_step(abs(reading.score), SURE_EDGES)}")
    else:
        told.append(_SILENCE_MARKS.get(reading.silence, _UNCLEAR))
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
