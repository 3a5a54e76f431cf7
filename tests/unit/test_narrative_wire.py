"""The wire remembers what is recent, forgets the rest, and survives a restart."""

import json

import msgspec
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import News
from htfi.narrative.config import MAX_HEADLINE_CHARS, NarrativeConfig
from htfi.narrative.question import Question
from htfi.narrative.readers import TemplateReader
from htfi.narrative.recent_news import RecentNews

HALF_LIFE_NS = 1_000
CONFIG = NarrativeConfig(half_life_ns=HALF_LIFE_NS, max_symbols=3)


def news(at_ns: int, *symbols: str, id_: str = "", headline: str = "Something happened") -> News:
    return News(at_ns, at_ns, "wire", at_ns + 1, id_ or f"n{at_ns}", headline, symbols)


def ids(items: list[News]) -> list[str]:
    return [item.id for item in items]


def filled(*items: News) -> RecentNews:
    wire = RecentNews(CONFIG)
    for item in items:
        wire.add(item)
    return wire


def test_own_and_market_wide_items_come_newest_first() -> None:
    wire = filled(news(1, "IBM"), news(2), news(3, "SPX"), news(4, "IBM", "SPX"))
    assert ids(wire.recent("IBM", 10)) == ["n4", "n2", "n1"]
    assert ids(wire.recent("IBM", 10, limit=2)) == ["n4", "n2"]
    assert ids(wire.recent("GOLD", 10)) == ["n2"]


def test_nothing_is_seen_before_it_is_available() -> None:
    assert ids(filled(news(5), news(7)).recent("IBM", 6)) == ["n5"]


def test_item_is_forgotten_after_its_weight_falls_below_the_least() -> None:
    wire = filled(news(0))
    assert ids(wire.recent("IBM", 3 * HALF_LIFE_NS)) == ["n0"]
    assert wire.recent("IBM", 3 * HALF_LIFE_NS + 1) == []


def test_memory_is_bounded_by_items_and_by_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.narrative.recent_news.MAX_ITEMS_PER_SYMBOL", 4)
    wire = filled(*(news(n, "IBM") for n in range(100)))
    assert ids(wire.recent("IBM", 100)) == ["n99", "n98", "n97", "n96"]
    for n, symbol in enumerate(("A", "B", "C"), start=100):
        wire.add(news(n, symbol))
    assert wire.recent("IBM", 103) == []  # the symbol longest out of the news made room
    assert ids(wire.recent("A", 103)) == ["n100"]


def test_item_that_names_a_crowd_moves_the_first_and_not_the_market() -> None:
    wire = filled(news(1, *(f"S{n}" for n in range(1_000))))
    assert ids(wire.recent("S63", 2)) == ["n1"]
    assert ids(wire.recent("S64", 2)) == ids(wire.recent("ANY", 2)) == []


def test_text_is_cleaned_cut_and_blank_headlines_dropped() -> None:
    wire = filled(
        news(1, headline="\u202egood\x1b[31m\n news\u200b" + "!" * 500), news(2, headline="\u200b \n")
    )
    (item,) = wire.recent("IBM", 3)
    assert item.headline.startswith("good[31m news!!!")
    assert len(item.headline) == MAX_HEADLINE_CHARS


def test_restored_wire_goes_on_as_if_never_stopped() -> None:
    items = [news(n, *(["IBM"] if n % 2 else []), id_=f"é{n}") for n in range(9)]
    whole, first = filled(*items), filled(*items[:5])
    second = RecentNews(CONFIG)
    second.restore(json.loads(msgspec.json.encode(first.state())))
    for item in items[5:]:
        second.add(item)
    assert second.state() == whole.state()
    assert second.recent("IBM", 20) == whole.recent("IBM", 20)


def test_template_reader_cites_and_claims_nothing() -> None:
    wire = filled(news(1), news(2), news(3))
    question = Question("IBM", 4, 1, tuple(wire.recent("IBM", 4)))
    (view,) = TemplateReader(CONFIG).read([question], deadline_ms=50.0)
    assert view.cited == ("n3", "n2")
    assert (view.direction, view.size_sigmas, view.volatility_multiplier, view.confidence) == (0, 0, 1, 0)


@pytest.mark.parametrize(
    "wrong",
    [{"half_life_ns": 0}, {"deep_paths": 0}, {"temperature": float("nan")}, {"max_cited": 4}],
)
def test_senseless_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        NarrativeConfig(**wrong)  # type: ignore[arg-type]
