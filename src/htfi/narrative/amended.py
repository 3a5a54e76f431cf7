"""The rationale of an amendment: the first one's, with the news told anew. The loop writes it, an auditor checks it."""

from collections.abc import Sequence

from htfi.domain.decision import Rationale, View
from htfi.domain.events import News
from htfi.narrative.rationale import SENTENCES, SLOT, fill, tell_news

PROVISIONAL = ("provisional", "still_provisional")
CONFIRMS, AMENDS = "confirming", "amending"
# Parts that tell the news and what a reader made of them.
_NEWS = frozenset({
    "one_headline", "two_headlines", "three_headlines", "read", "unread", "moving", "flat",
    *PROVISIONAL, CONFIRMS, AMENDS,
})  # fmt: skip
_NEWS_SLOTS = frozenset(name for part in _NEWS for name in SLOT.findall(SENTENCES[part]))


def amend_rationale(
    first: Rationale, *, symbol: str, as_of_ns: int, headlines: Sequence[News], view: View, confirms: bool
) -> Rationale:
    """The rationale of a provisional decision, its news told anew by what the target says of them, heard late.

    All else stays as it was. `headlines` are those that the view cites; `confirms` where it says what was said.
    """
    parts, slots = _but_for_news(first)
    cited = headlines[:3]
    parts += tell_news(cited, view, symbol, as_of_ns, slots)
    template = "+".join([*parts, CONFIRMS if confirms else AMENDS])
    return Rationale(fill(template, slots), template, slots, first.drivers, [item.id for item in cited])


def same_but_for_news(one: Rationale, other: Rationale) -> bool:
    """Whether two rationales tell the same of all but the news."""
    return _but_for_news(one) == _but_for_news(other) and one.drivers == other.drivers


def tells(rationale: Rationale, *parts: str) -> bool:
    """Whether any of these parts is in a rationale."""
    return not set(parts).isdisjoint(rationale.template.split("+"))


def _but_for_news(rationale: Rationale) -> tuple[list[str], dict[str, str]]:
    parts = [part for part in rationale.template.split("+") if part not in _NEWS]
    return parts, {name: words for name, words in rationale.slots.items() if name not in _NEWS_SLOTS}
