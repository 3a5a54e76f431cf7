"""Whatever the inputs, each figure in a rationale is one that code computed, and outside text stays inert."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from htfi.domain.decision import EventFactor, FeatureDriver, KnownEvents, Regime
from htfi.domain.events import News
from htfi.narrative.rationale.phrasing import Phrasing, fill
from htfi.narrative.rationale.versions import PHRASINGS
from htfi.narrative.recent_news import RecentNews
from htfi.narrative.text import clean, quote
from written_rationale import write_rationale

FIGURE = re.compile(r"\d[\d.,:]*")
SMALL = st.floats(-0.5, 0.5)
HIDDEN = "\u200b\u202e\u2066\ufeff\u00ad\u3164\u034f\ufe0f\U000e0041\x1b\x00"
HOSTILE = st.text(st.characters(exclude_categories=()), max_size=300)
NAMES = st.from_regex(r"[a-z]{1,8}(_[a-z0-9]{1,5}){0,3}", fullmatch=True).filter(
    lambda name: "nan" not in name
)
EVENTS = st.builds(
    EventFactor, st.sampled_from(["us_payrolls", "half_day", "boe_minutes", "x"]) | HOSTILE, st.integers(0, 10**15),
    st.floats(0.05, 20.0),
)  # fmt: skip
KNOWN = st.just(UNSET) | st.builds(
    KnownEvents, st.floats(0.05, 20.0), st.lists(EVENTS, max_size=3).map(tuple)
)
DRIVERS = st.builds(FeatureDriver, NAMES, st.floats(-1e9, 1e9), st.floats(1e-9, 1e9), st.floats(1e-6, 1e6))


@given(
    symbol=st.sampled_from(["SPX", "6EH4", "BRK.B", "C"]),
    interval=st.sampled_from(["1d", "60s", "5m", "volume:5000", "dollar:1000000"]),
    regime=st.sampled_from(Regime),
    last_price=st.floats(1e-6, 1e7),
    low=SMALL,
    width=st.floats(0.0, 1.0),
    previous_width=st.none() | st.floats(0.0, 1.0),
    last_return=st.none() | SMALL,
    last_sigmas=st.none() | st.floats(-1e3, 1e3),
    drivers=st.lists(DRIVERS, max_size=4),
    weights=st.dictionaries(st.sampled_from(["ewma", "har", "fhs", "rw20"]), st.floats(0.0, 1.0)),
    headlines=st.lists(HOSTILE, max_size=4),
    known=KNOWN,
    phrasing=st.sampled_from(list(PHRASINGS.values())),
)
def test_every_figure_in_the_text_stands_in_a_slot(
    symbol: str,
    interval: str,
    regime: Regime,
    last_price: float,
    low: float,
    width: float,
    previous_width: float | None,
    last_return: float | None,
    last_sigmas: float | None,
    drivers: list[FeatureDriver],
    weights: dict[str, float],
    headlines: list[str],
    known: KnownEvents | UnsetType,
    phrasing: Phrasing,
) -> None:
    wire = RecentNews()
    for number, text in enumerate(headlines):
        wire.add(News(number, number, "wire", number + 1, f"id{number}", text))
    found = write_rationale(
        symbol=symbol,
        interval=interval,
        regime=regime,
        last_price=last_price,
        low=low,
        high=low + width,
        as_of_ns=10**12,
        previous_width=previous_width,
        last_return=last_return,
        last_sigmas=last_sigmas,
        drivers=drivers,
        has_usual=True,
        weights=weights,
        headlines=wire.recent(symbol, 10**12),
        known=known,
        phrasing=phrasing,
    )
    given_figures = set(FIGURE.findall(" ".join(found.slots.values())))
    figures = {figure.rstrip(".,:") for figure in FIGURE.findall(found.text)}
    assert figures <= {figure.rstrip(".,:") for figure in given_figures}
    assert fill(found.template, found.slots, phrasing) == found.text
    assert all(char.isprintable() for char in found.text)
    assert "nan" not in found.text
    assert "{" not in found.text or any("{" in text for text in headlines)


@given(HOSTILE, st.integers(1, 200))
def test_cleaned_text_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    line = clean(text, limit)
    assert len(line) <= limit
    assert line == line.strip()
    assert "  " not in line
    for char in line:
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert clean(line, limit) == line


@given(st.text(alphabet="abc “”„«»\"'{}%", max_size=50))
def test_quoted_text_holds_no_quotation_mark_of_its_own(line: str) -> None:
    inner = quote(line)[1:-1]
    assert not set(inner) & set('“”„«»"')


@given(st.text(st.characters(max_codepoint=0x24F), max_size=100), st.sampled_from(HIDDEN))
def test_hidden_characters_change_nothing(text: str, hidden: str) -> None:
    assert clean(hidden.join(text), 400) == clean(text, 400)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from(["", "A", "B"])), max_size=40), st.integers(0, 60)
)
def test_recent_items_are_known_and_newest_first(arrivals: list[tuple[int, str]], as_of_ns: int) -> None:
    wire = RecentNews()
    for number, (at_ns, symbol) in enumerate(sorted(arrivals)):
        wire.add(News(at_ns, at_ns, "w", number + 1, str(number), "x", (symbol,) if symbol else ()))
    found = wire.recent("A", as_of_ns)
    times = [item.available_at_ns for item in found]
    assert times == sorted(times, reverse=True)
    assert all(at_ns <= as_of_ns for at_ns in times)
    assert all(item.symbols in ((), ("A",)) for item in found)
    assert wire.recent("A", as_of_ns, limit=3) == found[:3]
