"""The sanitiser on made-up streams: it goes on from a saved state as if nothing had happened, in bounded memory."""

import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.events import News
from htfi.domain.news import ScreenedItem, Screening
from htfi.narrative.sanitising.sanitiser import Sanitiser

S = 1_000_000_000
START = 1_700_000_000 * S
HEADLINES = (
    "Acme profit rises 12 percent on strong demand",
    "Acme profit rises 13 percent on strong demand",
    "Acme denies takeover talks with Beta",
    "Acme in takeover talks with Beta",
    "FDA approves Acme drug",
    "CORRECTED-FDA approves Acme drug",
    "Acme will go wild tomorrow morning",
    "Beta goes bankrupt",
    "",
    "\u202eevil\u200b",
    "贵州茅台净利润增长百分之十二",
)
SOURCES = ("reuters", "feed", "telegram", "user1", "user2", "user3", "user4", "rеuters")
PUBLISHERS = ("", "Reuters", "Reuteгs", "Leeds Gazette")

items = st.builds(
    News,
    available_at_ns=st.integers(0, 40 * 3_600).map(lambda s: START + s * S),
    event_time_ns=st.integers(-400_000, 100_000).map(lambda s: START + s * S),
    source=st.sampled_from(SOURCES),
    row=st.integers(1, 99),
    id=st.sampled_from(["", *(f"i{n}" for n in range(30))]),
    headline=st.sampled_from(HEADLINES) | st.text(max_size=80),
    symbols=st.sampled_from([(), ("ACME",), ("ACME", "BETA")]),
    body=st.sampled_from(("", HEADLINES[0] * 3)) | st.text(max_size=200),
    url=st.sampled_from(("", "https://reuters.com/a", "https://reuters-news.co", "https://t.me/x"))
    | st.text(max_size=30),
    publisher=st.sampled_from(PUBLISHERS) | st.text(max_size=20),
    corrects=st.sampled_from(["", "", "", "i1", "i2"]),
    retracts=st.booleans(),
    released_by=st.sampled_from(["", "", "", "", "Ann: checked"]),
)
streams = st.lists(items, min_size=1, max_size=40).map(
    lambda some: sorted(some, key=lambda one: one.available_at_ns)
)


def screen(
    sanitiser: Sanitiser, stream: list[News], start: int = 0
) -> list[tuple[ScreenedItem, list[str], int, float]]:
    told = []
    for number, item in enumerate(stream, start):
        screened = sanitiser.screen(item)
        if number % 3 == 0:
            sanitiser.learn_price_effect(item.id, 0.5, (-1.0) ** number)
        if number % 5 == 0:
            sanitiser.observe_return("ACME", item.available_at_ns, 4.0)
        told.append(
            (
                screened,
                sanitiser.take_invalidated(),
                len(sanitiser.take_incidents()),
                sanitiser.current_credibility(item.source),
            )
        )
    return told


@settings(max_examples=examples(60), deadline=None)
@given(streams, st.integers(0, 40))
def test_it_goes_on_from_a_saved_state_as_if_nothing_had_happened(stream: list[News], cut: int):
    whole = screen(Sanitiser(), stream)
    before, after = Sanitiser(), Sanitiser()
    first = screen(before, stream[:cut])
    saved = msgspec.msgpack.encode(before.state())
    after.restore(msgspec.msgpack.decode(saved))
    assert msgspec.msgpack.encode(after.state()) == saved
    assert first + screen(after, stream[cut:], len(stream[:cut])) == whole
    assert msgspec.msgpack.encode(after.state()) == msgspec.msgpack.encode(_after(stream).state())


def _after(stream: list[News]) -> Sanitiser:
    sanitiser = Sanitiser()
    screen(sanitiser, stream)
    return sanitiser


@settings(max_examples=examples(60), deadline=None)
@given(items)
def test_every_item_gets_a_verdict_with_reasons_and_no_hidden_character(item: News):
    screened = Sanitiser().screen(item)
    assert 0.0 <= screened.trust <= 1.0
    assert (screened.trust == 0.0) == (screened.verdict is Screening.QUARANTINE)
    assert screened.verdict is Screening.PASS or screened.findings
    assert all(0.0 <= one.strength <= 1.0 and one.detail for one in screened.findings)
    assert all(len(one.detail) <= 120 and one.detail.isprintable() for one in screened.findings)
    assert (screened.item.headline + screened.item.publisher + screened.item.url).isprintable()


@settings(max_examples=examples(40), deadline=None)
@given(st.permutations(range(6)), st.integers(0, 5))
def test_in_whatever_order_tellings_come_the_first_is_kept_and_all_are_counted(order: list[int], extra: int):
    texts = [HEADLINES[0] + tail for tail in ("", "!", " ", ".", "…", " -")]
    sanitiser = Sanitiser()
    told = [
        sanitiser.screen(News(START + n * S, START, f"paper{n}", n, f"i{n}", texts[n], ("ACME",)))
        for n in (*order, *order[:extra])
    ]
    assert {one.cluster for one in told} == {f"i{order[0]}"}
    assert [one.num_alike for one in told] == list(range(1, 7 + extra))


@pytest.mark.parametrize(
    "num", [pytest.param(2_000, id="thousands"), pytest.param(100_000, id="1e5", marks=pytest.mark.slow)]
)
def test_memory_is_bounded_whatever_sources_symbols_and_words_come(num: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("htfi.narrative.sanitising.duplicates.MAX_ITEMS", 500)
    monkeypatch.setattr("htfi.narrative.sanitising.bursts.MAX_ITEMS", 500)
    monkeypatch.setattr("htfi.narrative.sanitising.sanitiser.MAX_SOURCES", 300)
    monkeypatch.setattr("htfi.narrative.sanitising.timestamps.MAX_SOURCES", 300)
    monkeypatch.setattr("htfi.narrative.sanitising.contradictions.MAX_SYMBOLS", 200)
    monkeypatch.setattr("htfi.narrative.sanitising.bursts.MAX_SYMBOLS", 200)
    monkeypatch.setattr("htfi.narrative.sanitising.timestamps.MAX_SYMBOLS", 200)
    sanitiser, dice = Sanitiser(), np.random.Generator(np.random.PCG64(20))
    words = [f"w{n}x" for n in range(2_000)]
    sizes: list[int] = []
    for number in range(num):
        told = " ".join(words[place] for place in dice.integers(0, len(words), 12))
        subject = str(dice.integers(0, 10**9))
        headline = f"Profit of {subject} falls" if number % 3 else told
        item = News(
            START + number * S, START, f"source{subject}", number, f"i{number}", headline, (f"S{subject}",), told,
            f"https://host{subject}.example/", publisher=f"Paper {subject}",
        )  # fmt: skip
        sanitiser.screen(item)
        sanitiser.observe_return(f"S{subject}", item.available_at_ns, 5.0)
        if (number + 1) % (num // 6) == 0:
            sizes.append(len(msgspec.msgpack.encode(sanitiser.state())))
        sanitiser.take_incidents()
        sanitiser.take_invalidated()
    assert sizes[-1] < 1.3 * sizes[1]
    assert sizes[-1] < 1_000_000 < sys.maxsize
