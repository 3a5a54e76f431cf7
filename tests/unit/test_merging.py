"""One view from several readings: what counts, what fades, what is kept."""

import pytest
from msgspec.structs import replace

from htfi.domain.news import NewsContext, NewsItemAudit, ReadingBudget, Route, Screening
from htfi.domain.news_view import CalibratedEffect, NewsView, ViewPart
from htfi.domain.time import NS_PER_DAY
from htfi.narrative.merging import find_contradictions, merge_views, rederive, remerge, unmerged

NOW = 10 * NS_PER_DAY


def view(direction: float = 1.0, confidence: float = 0.8, **more: object) -> NewsView:
    told = NewsView(
        direction=direction,
        size_sigmas=1.5,
        volatility_multiplier=1.25,
        confidence=confidence,
        cited=("n1",),
        as_of_ns=NOW,
        half_life_ns=NS_PER_DAY,
        cause="earnings",
        consistency="unmoved",
        words="good for {symbol}",
        reader="target@1",
        calibrated_effects=(CalibratedEffect(1, 0.4, 1.1), CalibratedEffect(5, 0.6, 1.2)),
    )
    return replace(told, **more)


def part(
    direction: float = 1.0, confidence: float = 0.4, age_days: float = 0.0, trust: float = 1.0
) -> ViewPart:
    return ViewPart(
        reader="encoder",
        direction=direction,
        size_sigmas=1.0,
        volatility_multiplier=1.1,
        confidence=confidence,
        cited=("n2",),
        as_of_ns=NOW - round(age_days * NS_PER_DAY),
        half_life_ns=NS_PER_DAY,
        trust=trust,
        cause="legal",
    )


def expected_move(merged: NewsView | None) -> float:
    assert merged is not None
    return merged.direction * merged.size_sigmas * merged.confidence


def test_a_fully_trusted_view_alone_stays_as_it_is() -> None:
    assert merge_views(view(), 1.0, [], NOW) == view()


def test_nothing_read_and_nothing_noted_is_no_view() -> None:
    assert merge_views(None, 1.0, [], NOW) is None


def test_a_view_half_trusted_expects_half_the_move_and_keeps_its_age() -> None:
    old = view(as_of_ns=NOW - NS_PER_DAY)
    merged = merge_views(old, 0.5, [], NOW)
    assert merged is not None
    assert merged.as_of_ns == old.as_of_ns
    assert expected_move(merged) == pytest.approx(0.5 * expected_move(old))
    assert merged.calibrated_effects[1].shift_sigmas == pytest.approx(0.3)
    assert merged.calibrated_effects[1].stretch == pytest.approx(1.1)


def test_moves_of_different_items_add_up() -> None:
    merged = merge_views(view(), 1.0, [part()], NOW)
    assert expected_move(merged) == pytest.approx(0.8 * 1.5 + 0.4 * 1.0, rel=1e-4)


@pytest.mark.parametrize(("age_days", "left"), [(0.0, 1.0), (1.0, 0.5), (2.0, 0.25), (3.5, 0.0)])
def test_a_reading_fades_with_its_half_life_and_counts_for_nothing_once_stale(
    age_days: float, left: float
) -> None:
    merged = merge_views(view(), 1.0, [part(age_days=age_days)], NOW)
    assert expected_move(merged) == pytest.approx(1.2 + 0.4 * left, rel=1e-4)


def test_a_reading_from_the_future_counts_for_nothing() -> None:
    assert expected_move(merge_views(view(), 1.0, [part(age_days=-0.5)], NOW)) == pytest.approx(1.2, rel=1e-4)


def test_readings_that_contradict_each_other_cancel_in_the_middle_and_widen_the_rest() -> None:
    agreeing = merge_views(view(confidence=0.4, size_sigmas=1.0), 1.0, [part()], NOW)
    opposed = merge_views(view(confidence=0.4, size_sigmas=1.0), 1.0, [part(direction=-1.0)], NOW)
    assert opposed is not None
    assert agreeing is not None
    assert expected_move(opposed) == pytest.approx(0.0)
    assert opposed.volatility_multiplier > agreeing.volatility_multiplier
    assert find_contradictions(opposed.parts, NOW) == [(0, 1)]
    assert [one.direction for one in opposed.parts] == [1.0, -1.0]


def test_what_counts_for_little_contradicts_nobody() -> None:
    assert find_contradictions([part(), part(direction=-1.0, trust=0.1)], NOW) == []


def test_the_words_are_the_models_and_the_readers_are_all_named() -> None:
    merged = merge_views(view(), 1.0, [part()], NOW)
    assert merged is not None
    assert merged.words == "good for {symbol}"
    assert merged.reader == "target@1, with encoder"
    assert merged.cited == ("n1", "n2")


def test_what_was_read_is_found_again_in_what_was_merged() -> None:
    for read in (view(), view(confidence=0.0, direction=0.0, size_sigmas=0.0)):
        merged = merge_views(read, 0.7, [part(), part(direction=-1.0)], NOW)
        assert merged is not None
        assert unmerged(merged) == read
    noted = merge_views(None, 1.0, [part()], NOW)
    assert noted is not None
    assert unmerged(noted) is None


def recorded(**trusts: float) -> NewsContext:
    items = [
        NewsItemAudit(name, "wire", NOW, Screening.PASS, trust, (), 1, None, Route.TARGET, "")
        for name, trust in trusts.items()
    ]
    return NewsContext(tuple(items), (), ReadingBudget(250.0, 250.0))


def test_an_amendment_keeps_the_other_readings_and_the_trust() -> None:
    first = merge_views(view(), 0.5, [part()], NOW)
    later = remerge(view(direction=-1.0), first, recorded(n1=0.5, n2=1.0), NOW)
    assert [one.direction for one in later.parts] == [-1.0, 1.0]
    assert later.parts[0].trust == 0.5
    assert remerge(view(), None, None, NOW) == view()


def test_an_amendment_trusts_the_other_readings_as_their_items_and_not_as_cut_beside_the_first() -> None:
    first = merge_views(view(), 1.0, [part(trust=0.0)], NOW)  # cut: the first view used up what both may move
    assert remerge(view(), first, recorded(n1=1.0, n2=0.7), NOW).parts[1].trust == 0.7
    assert remerge(view(), first, recorded(n1=1.0), NOW).parts[1].trust == 0.0


def test_a_provisional_reading_stays_provisional_whatever_it_is_merged_with_and_when() -> None:
    read = replace(view(), provisional=True)
    for as_of_ns in (NOW, NOW + read.half_life_ns // 2):
        merged = merge_views(read, 0.5, [part()], as_of_ns)
        assert merged is not None
        assert merged.provisional
        assert merged.read_at_ns == read.as_of_ns
        assert unmerged(merged) == read


def test_numbers_that_do_not_follow_from_the_parts_are_found() -> None:
    merged = merge_views(view(), 1.0, [part()], NOW)
    assert merged is not None
    assert rederive(merged) == merged
    assert rederive(replace(merged, confidence=0.99)) != replace(merged, confidence=0.99)
    scaled = merge_views(view(), 0.5, [], NOW)
    assert scaled is not None
    assert rederive(scaled) == scaled
    assert rederive(replace(scaled, size_sigmas=3.0)) != replace(scaled, size_sigmas=3.0)
