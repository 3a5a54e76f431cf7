"""The rationale of an amendment: the first one's, with the news and the band told anew. The loop writes it, an auditor
checks it.
"""

from collections.abc import Sequence

from htfi.domain.decision import NewsTilt, NewsView, Rationale
from htfi.domain.events import News
from htfi.narrative.rationale.sentences import SENTENCES
from htfi.narrative.rationale.units import band_width
from htfi.narrative.rationale.writer import SLOT, band_slots, band_unit, fill, news_parts

PREPARED = "prepared"
PROVISIONAL_PARTS = ("provisional", "still_provisional", PREPARED)
CONFIRMS, AMENDS = "confirming", "amending"
DEEPENED, OVERTURNED = "deepened", "overturned"
BORNE_OUT, OTHERWISE = "borne_out", "otherwise"
# Parts that tell the news, what a reader made of them, and what that was worth.
_NEWS_PARTS = frozenset({
    "one_headline", "two_headlines", "three_headlines", "read", "unread", "moving", "flat",
    "weighed", "weightless", "deepening", "consulting", "contested", *PROVISIONAL_PARTS, CONFIRMS, AMENDS,
    DEEPENED, OVERTURNED, BORNE_OUT, OTHERWISE,
})  # fmt: skip
_NEWS_SLOTS = frozenset(name for part in _NEWS_PARTS for name in SLOT.findall(SENTENCES[part]))
_BAND_SLOTS = frozenset({"low_price", "high_price", "low", "high", "width"})
_BAND_OPENINGS = ("widening", "narrowing")  # openings that say how the band stands to the one before


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
) -> Rationale:
    """The rationale of a provisional decision with the news told anew, and the band that follows from them.

    All else stays as it was. `low` and `high` bound the band of the new forecast in log return, `headlines` are those
    that the view cites; `ending` is the part that says how the view stands to the one before.
    """
    opening, parts, slots = _without_news(first)
    unit = band_unit(first.slots)
    slots.update(band_slots(last_price, low, high, unit))
    if "width" in first.slots:
        slots["width"] = band_width(high - low, unit)
    cited = headlines[:3]
    parts += news_parts(cited, view, symbol, as_of_ns, slots, tilt=tilt, unit=unit)
    template = "+".join([opening, *parts, ending])
    return Rationale(fill(template, slots), template, slots, first.drivers, [item.id for item in cited])


def differs_only_in_news(first: Rationale, amended: Rationale) -> bool:
    """Whether an amendment's rationale tells the same as the first of all but the news and the band."""
    return _without_news(first) == _without_news(amended) and first.drivers == amended.drivers


def has_part(rationale: Rationale, *parts: str) -> bool:
    """Whether any of these parts is in a rationale."""
    return not set(parts).isdisjoint(rationale.template.split("+"))


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
