"""The rationale of an amendment: the first one's, with the news and the band stated again, in the words of its version.

The main path writes it, an auditor checks it.
"""

from collections.abc import Mapping, Sequence

from htfi.domain.decision import NewsTilt, Rationale
from htfi.domain.events import News
from htfi.domain.news_view import NewsView
from htfi.narrative.rationale.phrasing import SLOT, Phrasing, fill, fill_parts
from htfi.narrative.rationale.versions import MODEL_KEY, PHRASINGS
from htfi.narrative.rationale.writer import in_slot_order, news_parts

PREPARED = "prepared"
PROVISIONAL_PARTS = ("provisional", "still_provisional", PREPARED)
CONFIRMS, AMENDS = "confirming", "amending"
SAME_DIRECTION_IN_DEPTH, OTHER_DIRECTION_IN_DEPTH = "deepened", "overturned"
SAME_DIRECTION_AFTER_NEWS, OTHER_DIRECTION_AFTER_NEWS = "borne_out", "otherwise"
# Parts on the news, what a reader made of it, and what that was worth.
_NEWS_PARTS = frozenset({
    "one_headline", "two_headlines", "three_headlines", "read", "unread", "moving", "flat",
    "weighed", "weightless", "deepening", "consulting", "contested", *PROVISIONAL_PARTS, CONFIRMS, AMENDS,
    SAME_DIRECTION_IN_DEPTH, OTHER_DIRECTION_IN_DEPTH, SAME_DIRECTION_AFTER_NEWS, OTHER_DIRECTION_AFTER_NEWS,
})  # fmt: skip
_NEWS_SLOTS = frozenset(
    name
    for phrasing in PHRASINGS.values()
    for part in _NEWS_PARTS
    for name in SLOT.findall(phrasing.sentences.parts[part])
)
_BAND_SLOTS = frozenset({"low_price", "high_price", "low", "high", "width"})
_BAND_OPENINGS = ("widening", "narrowing")  # openings that compare the band with the one before


def amend_rationale(
    first: Rationale,
    *,
    symbol: str,
    as_of_ns: int,
    last_price: float,
    low: float,
    high: float,
    headlines: Sequence[News],
    view: NewsView,
    tilt: NewsTilt | None,
    ending: str,
    phrasing: Phrasing,
) -> Rationale:
    """The rationale of a provisional decision with the news stated again, and the band that follows from it.

    All else stays as it was, the version of the words too: `phrasing` is that of the first. `low` and `high` bound the
    band of the new forecast in log return, `headlines` are those that the view cites; `ending` is the part that says
    how the view compares with the one before.
    """
    opening, parts, slots = _without_news(first)
    unit = phrasing.recorded_unit(first.slots)
    slots.update(phrasing.band_slots(last_price, low, high, unit))
    if "width" in first.slots:
        slots["width"] = phrasing.width(high - low, unit)
    cited = headlines[:3]
    parts += news_parts(cited, view, symbol, as_of_ns, slots, tilt=tilt, unit=unit, phrasing=phrasing)
    template = "+".join([opening, *parts, ending])
    slots = in_slot_order(slots)
    text = fill(template, slots, phrasing)
    return Rationale(text, template, slots, first.drivers, [item.id for item in cited])


def rationale_without_news(
    first: Rationale, *, last_price: float, low: float, high: float, phrasing: Phrasing
) -> Rationale:
    """The rationale with the sentences on news left out, and the band of the forecast from numbers alone.

    `low` and `high` bound the band in log return; `phrasing` is that of the first.
    """
    opening, parts, slots = _without_news(first)
    unit = phrasing.recorded_unit(first.slots)
    slots.update(phrasing.band_slots(last_price, low, high, unit))
    if "width" in first.slots:
        slots["width"] = phrasing.width(high - low, unit)
    template, slots = "+".join([opening, *parts]), in_slot_order(slots)
    return Rationale(fill(template, slots, phrasing), template, slots, first.drivers, [])


def differs_only_in_news(first: Rationale, amended: Rationale) -> bool:
    """Whether an amendment's rationale differs from the first one's in the news and the band alone."""
    return _without_news(first) == _without_news(amended) and first.drivers == amended.drivers


def has_part(rationale: Rationale, *parts: str) -> bool:
    """Whether any of these parts is in a rationale."""
    return not set(parts).isdisjoint(rationale.template.split("+"))


def news_text(rationale: Rationale, models: Mapping[str, str]) -> str:
    """The sentences of a recorded rationale that are about news; all of it where there is none."""
    phrasing = PHRASINGS.get(models.get(MODEL_KEY, ""))
    parts = [part for part in rationale.template.split("+") if part in _NEWS_PARTS]
    return fill_parts(parts, rationale.slots, phrasing) if parts and phrasing is not None else rationale.text


def _without_news(rationale: Rationale) -> tuple[str, list[str], dict[str, str]]:
    """The opening, which compares no bands, the other parts, and the slots."""
    opening, *parts = rationale.template.split("+")
    kept = {
        name: words
        for name, words in rationale.slots.items()
        if name not in _NEWS_SLOTS and name not in _BAND_SLOTS
    }
    return (
        "steady" if opening in _BAND_OPENINGS else opening,
        [part for part in parts if part not in _NEWS_PARTS],
        kept,
    )
