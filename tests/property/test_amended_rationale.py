"""An amended rationale is the one that would have been written at once, whatever was said before in its place."""

import string
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.decision import EventFactor, FeatureDriver, KnownEvents, NewsTilt, Regime
from htfi.domain.events import News
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import NewsView
from htfi.narrative.rationale.amendment import (
    CONFIRMS,
    PROVISIONAL_PARTS,
    amend_rationale,
    differs_only_in_news,
    has_part,
)
from htfi.narrative.rationale.phrasing import SLOT, Phrasing, fill
from htfi.narrative.rationale.versions import PHRASINGS
from written_rationale import write_rationale

HOUR_NS = 3_600 * 10**9
ITEMS = [
    News(k * HOUR_NS, k * HOUR_NS, "wire", k, f"n{k}", f"Item {k} says {{size}} or %s") for k in range(4)
]

PAYROLLS = KnownEvents(1.9, (EventFactor("us_payrolls", 10 * HOUR_NS, 1.9),))
HALF_DAY = KnownEvents(0.67, (EventFactor("half_day", 10 * HOUR_NS, 0.67),))

views = st.builds(
    NewsView,
    direction=st.sampled_from((-1.0, 0.0, 1.0)),
    size_sigmas=st.sampled_from((0.0, 1.5, 3.0)),
    volatility_multiplier=st.sampled_from((0.8, 2.0)),
    confidence=st.sampled_from((0.0, 0.4, 0.95)),
    cited=st.lists(st.sampled_from([item.id for item in ITEMS]), max_size=4, unique=True).map(tuple),
    as_of_ns=st.just(9 * HOUR_NS),
    half_life_ns=st.just(HOUR_NS),
    consistency=st.sampled_from(("with", "against", "")),
    words=st.text(string.ascii_letters + " {}%+", max_size=40),
    reader=st.sampled_from(("target@1234", "a+b")),
)
situations = st.fixed_dictionaries(
    {
        "regime": st.sampled_from(list(Regime)),
        "previous_width": st.sampled_from((None, 0.01, 0.04, 0.2)),
        "last_return": st.sampled_from((None, 0.001, -0.2)),
        "last_sigmas": st.sampled_from((None, 0.5, -7.0)),
        "drivers": st.sampled_from(((), (FeatureDriver("spread_bps", 3.1, 1.3, 2.4),))),
        "has_usual": st.booleans(),
        "known": st.sampled_from((UNSET, PAYROLLS, HALF_DAY)),
        "weights": st.sampled_from((None, {"har": 0.7, "walk": 0.3}, {"har": 0.5, "walk": 0.5})),
    }
)


tilts = st.none() | st.builds(
    lambda shift, stretch, weight: NewsTilt("target@1234", [shift], [stretch], [weight], 0.7),
    st.sampled_from((-0.01, 0.0, 0.004)),
    st.sampled_from((0.8, 1.0, 2.0)),
    st.sampled_from((0.0, 0.34, 1.0)),
)


def written(
    view: NewsView, situation: dict[str, Any], tilt: NewsTilt | None, phrasing: Phrasing, high: float = 0.02
) -> Any:
    return write_rationale(
        symbol="SPX", interval="1d", last_price=1_000.0, low=-0.02, high=high, as_of_ns=9 * HOUR_NS,
        headlines=cited(view), view=view, tilt=tilt, phrasing=phrasing, **situation,
    )  # fmt: skip


def cited(view: NewsView) -> list[News]:
    return [item for item in ITEMS if item.id in view.cited]


@given(
    before=views, after=views, situation=situations, worded=st.booleans(), confirms=st.booleans(),
    tilted=st.tuples(tilts, tilts), high=st.sampled_from((0.02, 0.031)),
    phrasing=st.sampled_from(list(PHRASINGS.values())),
)  # fmt: skip
def test_amending_gives_what_the_target_would_have_been_told_with(
    before: NewsView,
    after: NewsView,
    situation: dict[str, Any],
    worded: bool,
    confirms: bool,
    tilted: tuple[NewsTilt | None, NewsTilt | None],
    high: float,
    phrasing: Phrasing,
) -> None:
    trace = GenerationTrace("target@12", "draft@34", "alone", 1, 0.0, 2, (1,), (2, 3, 4), (), "edge alone", 1)
    provisional = replace(
        before, provisional=True, reader="target@12, then draft@34", trace=trace if worded else None
    )
    first = written(provisional, situation, tilted[0], phrasing)
    assert has_part(first, *PROVISIONAL_PARTS)
    at_once = written(after, situation, tilted[1], phrasing, high)
    ending = "confirming" if confirms else "amending"
    amended = amend_rationale(
        first, symbol="SPX", as_of_ns=9 * HOUR_NS, last_price=1_000.0, low=-0.02, high=high,
        headlines=cited(after), view=after, tilt=tilted[1], ending=ending, phrasing=phrasing,
    )  # fmt: skip
    opening, _, rest = at_once.template.partition("+")
    steady = "steady" if opening in ("widening", "narrowing") else opening
    assert amended.template == "+".join([part for part in (steady, rest) if part]) + f"+{ending}"
    claim = SLOT.sub(lambda slot: at_once.slots[slot[1]], phrasing.sentences.claim)
    assert claim in at_once.text
    assert claim in amended.text
    assert amended.text == fill(amended.template, amended.slots, phrasing)
    assert (amended.slots, amended.drivers, amended.cited) == (at_once.slots, at_once.drivers, at_once.cited)
    assert has_part(amended, CONFIRMS) == confirms
    assert not has_part(amended, *PROVISIONAL_PARTS)
    assert differs_only_in_news(first, amended)
    assert all(first.slots[slot] == words for slot, words in phrasing.view_slots(provisional, "SPX").items())
