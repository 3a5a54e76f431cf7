"""What the news desk keeps is bounded by counts, of items however long, and whatever names they come under."""

import random
from collections.abc import Iterator

import msgspec
import pytest
from test_news_processor import ByWord

from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative import held_news
from htfi.narrative.config import NarrativeConfig, RoutingConfig
from htfi.narrative.processor import NewsProcessor
from htfi.narrative.sanitising.bursts import BurstDetector, BurstItem
from htfi.narrative.sanitising.config import BURST_NS, SanitiserConfig
from htfi.narrative.sanitising.duplicates import minhash_signature
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.narrative.suspicion import SuspicionMonitor
from htfi.pipeline.run_state import decode_state, encode_state

WORDS = (
    "profit",
    "loss",
    "sales",
    "rise",
    "fall",
    "court",
    "bank",
    "rate",
    "chip",
    "oil",
    "deal",
    "cuts",
    "plant",
)
START_NS = 100 * NS_PER_DAY
FEW = 128


@pytest.fixture
def few_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_news, "MAX_RECORDS", FEW)


@pytest.fixture(autouse=True)
def small_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("duplicates", "bursts"):
        monkeypatch.setattr(f"htfi.narrative.sanitising.{module}.MAX_ITEMS", FEW)
    for module in ("sanitiser", "timestamps"):
        monkeypatch.setattr(f"htfi.narrative.sanitising.{module}.MAX_SOURCES", 32)
    for module in ("contradictions", "bursts", "timestamps"):
        monkeypatch.setattr(f"htfi.narrative.sanitising.{module}.MAX_SYMBOLS", 64)
    monkeypatch.setattr("htfi.narrative.suspicion.MAX_SCOPES", 64)


def small_desk() -> NewsProcessor:
    config = NarrativeConfig(max_symbols=64)
    return NewsProcessor(config, RoutingConfig(), Sanitiser(), ByWord(), SuspicionMonitor())


def flood(num: int, spacing_s: int, body: str = "", seed: int = 1) -> Iterator[News]:
    """Each from a publisher of its own, on one of a thousand symbols; some correct the one before."""
    rng = random.Random(seed)
    for at in range(num):
        headline = " ".join(rng.choices(WORDS, k=6)) + f" {rng.randrange(1000)}"
        symbols = () if at % 5 == 0 else (f"S{rng.randrange(1000)}",)
        now_ns = START_NS + at * spacing_s * NS_PER_S
        corrects = f"n{at - 1}" if at % 11 == 10 else ""
        yield News(
            now_ns,
            now_ns,
            "feed",
            at + 1,
            f"n{at}",
            headline,
            symbols,
            body,
            publisher=f"p{at}",
            corrects=corrects,
        )


@pytest.mark.usefixtures("few_notes")
@pytest.mark.parametrize("spacing_s", [1, 60])
def test_what_a_desk_saves_does_not_grow_with_the_stream(spacing_s: int) -> None:
    made, sizes = small_desk(), list[int]()
    for at, item in enumerate(flood(800, spacing_s, "word " * 160), 1):
        made.receive(item)
        if at % 200 == 0:
            sizes.append(len(encode_state({"desk": made.state()})))
    assert len(sizes) == 4
    assert sizes[-1] < 1.15 * sizes[1]
    assert all(one.body == "" for one in made.held.items([f"n{at}" for at in range(800)]))
    assert sizes[-1] < FEW * 3_000


@pytest.mark.usefixtures("few_notes")
def test_an_item_stands_on_no_shelf_once_its_note_is_gone() -> None:
    made = small_desk()
    items = [
        replace_symbols(item, "AAA" if at < 20 else f"S{at % 40}") for at, item in enumerate(flood(200, 60))
    ]
    for item in items:
        made.receive(item)
    now_ns = items[-1].available_at_ns
    assert made.select("AAA", now_ns).items == ()
    assert made.select("S39", now_ns).items


def replace_symbols(item: News, symbol: str) -> News:
    return msgspec.structs.replace(item, symbols=(symbol,), corrects="")


def test_a_note_outlives_every_view_that_may_rest_on_it() -> None:
    made = small_desk()
    made.receive(News(START_NS, START_NS, "feed", 1, "first", "Acme posts record profit this year", ("AAA",)))
    for day, is_known in ((5, True), (7, False)):
        now_ns = START_NS + day * NS_PER_DAY
        made.receive(
            News(now_ns, now_ns, "feed", day, f"n{day}", f"Beta cuts {day} plants in the north", ("BBB",))
        )
        made.score_pending()
        assert bool(made.held.items(["first"])) is is_known


@pytest.mark.usefixtures("few_notes")
@pytest.mark.parametrize("spacing_s", [1, 120])
def test_what_is_dropped_does_not_depend_on_restarts(spacing_s: int) -> None:
    through, restarted, rng = small_desk(), small_desk(), random.Random(3)
    num_restarts = 0
    for at, item in enumerate(flood(900, spacing_s)):
        assert through.receive(item) == restarted.receive(item)
        if at % 50 == 0:
            symbol = f"S{rng.randrange(1000)}"
            now_ns = item.available_at_ns
            assert through.select(symbol, now_ns) == restarted.select(symbol, now_ns)
        if rng.random() < 0.02:
            state = decode_state(encode_state({"desk": restarted.state()}))
            restarted = small_desk()
            restarted.restore(state["desk"])
            num_restarts += 1
    assert num_restarts > 5
    through.score_pending()
    restarted.score_pending()
    assert encode_state(_without_numbers(through)) == encode_state(_without_numbers(restarted))


def _without_numbers(made: NewsProcessor) -> dict[str, object]:
    """The state, with what was said within minutes in order and not by number: a restart counts anew."""
    state = made.state()
    shelves = state["sanitiser"]["bursts"]["shelves"]
    order = sorted(told[0] for *_, shelf in shelves for told in shelf)
    for *_, shelf in shelves:
        for told in shelf:
            told[0] = order.index(told[0])
    return state


def test_what_was_said_minutes_ago_is_dropped_on_every_symbol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi.narrative.sanitising.bursts.MAX_ITEMS", 100)
    monkeypatch.setattr("htfi.narrative.sanitising.bursts.MAX_SYMBOLS", 4_096)
    bursts = BurstDetector(SanitiserConfig())
    words = minhash_signature(["record", "profit"])
    for at in range(1_000):
        bursts.observe(BurstItem(f"n{at}", at * NS_PER_S, f"v{at}", True, 1, words), (f"S{at}",))
    assert sum(len(told) for *_, told in bursts.state()["shelves"]) == 100
    late_ns = 1_000 * NS_PER_S + 2 * BURST_NS
    bursts.observe(BurstItem("late", late_ns, "v", True, 1, words), ("S1",))
    assert [(symbol, len(told)) for symbol, _, _, told in bursts.state()["shelves"] if told] == [("S1", 1)]
