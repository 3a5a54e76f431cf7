"""Who may move a forecast how far: alone, confirmed, discounted, in a crowd; and what a record without bounds keeps."""

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from htfi.domain.decision import NewsTilt
from htfi.domain.events import News
from htfi.domain.news import NewsItemAudit, Route, ScreenedItem, Screening
from htfi.domain.news_view import NewsView, ViewPart
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.influence import bound_view, limits_of, max_view_influence
from htfi.narrative.merging import merge_views
from htfi.narrative.sanitising.config import SanitiserConfig
from htfi.narrative.sanitising.sanitiser import Sanitiser

START = 1_700_000_000 * NS_PER_S
CONFIG = SanitiserConfig()
STORY = "Acme agrees to buy Beta for 3 billion dollars in cash and shares"


def part(name: str, move: float, trust: float = 1.0, *, worded: bool = False) -> ViewPart:
    way = float((move > 0) - (move < 0))
    return ViewPart("r", way, abs(move), 1.0, 1.0, (name,), START, NS_PER_DAY, trust, is_worded=worded)


def merged(parts: Sequence[ViewPart]) -> NewsView:
    view = merge_views(None, 1.0, list(parts), START)
    assert view is not None
    return view


def net(view: NewsView) -> float:
    """The move in bands at full weight."""
    return view.direction * view.size_sigmas * view.confidence / 3.2897072539029444


def test_a_crowd_that_may_move_little_moves_no_further_than_one_of_them() -> None:
    crowd = [part(f"c{k}", 4.0) for k in range(50)]
    by_item = {f"c{k}": 0.02 for k in range(50)} | {"believed": 0.9}
    alone = bound_view(merged(crowd), limits_of(by_item, ()))
    assert abs(net(alone)) <= 0.02 + 1e-4
    believed = part("believed", -1.0)
    beside = bound_view(merged([*crowd, believed]), limits_of(by_item, ()))
    without = net(merged([believed, part("c0", 0.0)]))
    assert abs(net(beside) - without) <= 0.02 + 1e-4
    assert max_view_influence(beside, limits_of(by_item, ())) == 0.9


def test_honest_readings_of_moderate_size_are_left_as_they_are() -> None:
    view = merged([part("a", 0.6), part("b", 0.5)])
    most = CONFIG.max_influence_unconfirmed
    assert bound_view(view, limits_of({"a": most, "b": most}, ())) is view


def test_what_a_model_reads_may_move_as_little_as_the_least_of_its_items() -> None:
    known = limits_of({"a": 1.0, "b": 0.3, "c": 1.0}, ("a", "b"))
    assert max_view_influence(NewsView(1.0, 9.0, 1.0, 1.0, ("a",), START, NS_PER_DAY), known) == 0.3
    assert (
        max_view_influence(NewsView(1.0, 9.0, 1.0, 1.0, ("a",), START, NS_PER_DAY), limits_of({}, ())) == 0.0
    )


@given(
    moves=st.lists(
        st.tuples(st.floats(-9, 9), st.floats(0, 1), st.sampled_from([0.0, 0.02, 0.3, 0.5, 1.0])),
        min_size=2,
        max_size=12,
    )
)
def test_readings_that_may_move_so_much_or_less_move_no_more_together(
    moves: list[tuple[float, float, float]],
) -> None:
    parts = [part(f"p{k}", move, trust) for k, (move, trust, _) in enumerate(moves)]
    by_item = {f"p{k}": share for k, (_, _, share) in enumerate(moves)}
    view = bound_view(merged(parts), limits_of(by_item, ()))
    for most in {share for _, _, share in moves}:
        low = [one for one in view.parts if by_item[one.cited[0]] <= most]
        assert sum(one.trust * one.size_sigmas for one in low) / 3.2897072539029444 <= most + 1e-4


def told(sanitiser: Sanitiser, source: str, seconds: int, text: str = STORY, **more: str) -> ScreenedItem:
    at_ns = START + seconds * NS_PER_S
    item = News(at_ns, at_ns, source, seconds + 1, f"{source}{seconds}", text, ("ACME",), **more)
    return sanitiser.screen(item)


def test_what_two_believed_feeds_tell_may_move_more_than_what_one_does() -> None:
    sanitiser = Sanitiser()
    first = told(sanitiser, "reuters", 0)
    assert sanitiser.max_influence(first) == CONFIG.max_influence_unconfirmed
    again = told(sanitiser, "reuters", 60, "UPDATE 1-" + STORY)
    assert sanitiser.max_influence(again) == CONFIG.max_influence_unconfirmed
    told(sanitiser, "bloomberg", 90)
    assert sanitiser.max_influence(first) == CONFIG.max_influence_confirmed


def test_many_publishers_that_one_feed_names_are_one_voice() -> None:
    sanitiser = Sanitiser()
    first = told(sanitiser, "feed", 0, publisher="Morning Sun")
    for k in range(5):
        told(sanitiser, "feed", 60 + k, publisher=f"Evening Star {k}")
    assert sanitiser.max_influence(first) == CONFIG.max_influence_unconfirmed


def test_an_official_source_may_move_more_and_who_only_says_it_is_one_may_not() -> None:
    text = "Committee lowers the target range by half a point"
    assert (
        Sanitiser().max_influence(told(Sanitiser(), "Federal Reserve", 0, text))
        == CONFIG.max_influence_unconfirmed
    )
    sanitiser = Sanitiser()
    assert (
        sanitiser.max_influence(told(sanitiser, "Federal Reserve", 0, text)) == CONFIG.max_influence_confirmed
    )
    other = Sanitiser()
    for day in range(10):
        told(other, "wire", day * 86_400, f"Acme opens plant number {day} in Leeds")
    link = "https://www.federalreserve.gov/1"
    forged = told(other, "open", 10 * 86_400, text, publisher="Federal Reserve", url=link)
    assert forged.verdict is Screening.DISCOUNT
    assert other.max_influence(forged) <= 0.04 * CONFIG.max_influence_unconfirmed


def test_entries_without_bounds_are_encoded_as_they_were() -> None:
    heard = NewsItemAudit("n", "s", 1, Screening.PASS, 1.0, (), 1, None, Route.TARGET, "why")
    tilt = NewsTilt("n", [0.1], [1.0], [1.0], 0.5)
    for one in (heard, tilt):
        raw = msgspec.json.encode(one)
        assert b"max_moved" not in raw
        assert msgspec.json.encode(msgspec.json.decode(raw, type=type(one))) == raw
    bound = msgspec.json.encode(replace(tilt, max_moved=0.5))
    assert msgspec.json.decode(bound, type=NewsTilt).max_moved == 0.5
