"""Within the tolerance rows come back into order; duplicates and later rows are refused; nothing piles up."""

from collections.abc import Sequence

from htfi.domain.events import Event, QuarantinedRow, Trade
from htfi.domain.time import NS_PER_S
from htfi.pipeline.intake.reorder import RecentRowIds, RefusedItem, ReorderBuffer, SortedSpan, StreamItem

T0_NS = 1_381_132_800 * NS_PER_S


def trade(second: float, row: int) -> Trade:
    at_ns = T0_NS + round(second * NS_PER_S)
    return Trade(at_ns, at_ns, "s", row, "A", 1.0, 1.0)


def trades(*seconds: float) -> list[Event | QuarantinedRow]:
    return [trade(second, row) for row, second in enumerate(seconds, 1)]


def told(items: Sequence[StreamItem]) -> list[tuple[int, str]]:
    return [(item.row, item.rejection.reason if isinstance(item, RefusedItem) else "") for item in items]


def take_all(
    reorder: ReorderBuffer, items: list[Event | QuarantinedRow], recent: RecentRowIds | None = None
) -> list[StreamItem]:
    identities = [getattr(item, "price", None) for item in items]
    return [*reorder.take(items, identities, recent, None), *reorder.flush()]


def test_rows_within_the_tolerance_are_reordered() -> None:
    found = take_all(ReorderBuffer(NS_PER_S), trades(0, 2, 1.5, 1, 3))
    assert told(found) == [(1, ""), (4, ""), (3, ""), (2, ""), (5, "")]


def test_rows_beyond_the_tolerance_are_late_and_say_by_how_much() -> None:
    found = take_all(ReorderBuffer(NS_PER_S), trades(0, 2, 0.999))
    assert told(found) == [(1, ""), (3, "late"), (2, "")]
    late = next(item for item in found if isinstance(item, RefusedItem))
    assert late.rejection.detail.startswith("1.001 s behind the latest row (2013-10-07T08:00:02Z)")


def test_a_row_just_at_the_tolerance_is_in_time() -> None:
    assert told(take_all(ReorderBuffer(NS_PER_S), trades(0, 2, 1))) == [(1, ""), (3, ""), (2, "")]


def test_without_tolerance_order_is_demanded_and_nothing_waits() -> None:
    reorder = ReorderBuffer(0)
    assert told(reorder.take(trades(0, 1, 1, 0.5, 2), None, None, None)) == [
        (1, ""), (2, ""), (3, ""), (4, "late"), (5, ""),
    ]  # fmt: skip


def test_only_what_can_still_be_overtaken_is_held() -> None:
    reorder = ReorderBuffer(NS_PER_S)
    assert told(reorder.take(trades(0, 1, 2, 2.5), None, None, None)) == [(1, ""), (2, "")]
    assert told(reorder.flush()) == [(3, ""), (4, "")]


def test_events_known_to_be_sorted_take_the_short_way_to_the_same_end() -> None:
    items = trades(0, 1, 2, 2.5)
    short, long = ReorderBuffer(NS_PER_S), ReorderBuffer(NS_PER_S)
    for reorder in (short, long):
        reorder.take([trade(-1, 0), trade(-1, 0)], None, None, None)
    run = SortedSpan(T0_NS, T0_NS + round(2.5 * NS_PER_S), NS_PER_S)
    assert short.take(items, None, None, run) == long.take(items, None, None, None)
    assert (short.reach, short.max_seen_ns) == (long.reach, long.max_seen_ns)
    assert short.flush() == long.flush()


def test_one_wild_stamp_is_refused_and_the_rest_goes_on() -> None:
    found = take_all(ReorderBuffer(NS_PER_S), trades(0, 1, 36_000, 2, 3, 4, 5))
    assert told(found) == [(1, ""), (3, "ahead"), (2, ""), (4, ""), (5, ""), (6, ""), (7, "")]


def test_a_wild_first_stamp_is_refused_too() -> None:
    assert told(take_all(ReorderBuffer(0), trades(10**8, 0, 1, 2))) == [
        (1, "ahead"),
        (2, ""),
        (3, ""),
        (4, ""),
    ]


def test_a_real_gap_is_believed_at_the_next_row() -> None:
    reorder = ReorderBuffer(0)
    assert told(reorder.take(trades(0, 1, 70_000), None, None, None)) == [(1, ""), (2, "")]
    assert reorder.is_waiting
    assert told(reorder.take([trade(70_000, 4)], None, None, None)) == [(3, ""), (4, "")]


def test_a_single_straggler_after_a_gap_is_the_late_one() -> None:
    assert told(take_all(ReorderBuffer(0), trades(0, 600, 300, 601))) == [
        (1, ""),
        (2, ""),
        (3, "late"),
        (4, ""),
    ]
    assert told(take_all(ReorderBuffer(0), trades(0, 600, 300))) == [(1, ""), (2, ""), (3, "late")]


def test_a_wild_stamp_before_a_real_gap_does_not_hide_it() -> None:
    found = take_all(ReorderBuffer(0), trades(0, 1, 10**8, 70_000, 70_001, 70_002))
    assert told(found) == [(1, ""), (2, ""), (3, "ahead"), (4, ""), (5, ""), (6, "")]


def test_refused_rows_wait_in_their_place_behind_a_leap() -> None:
    bad = QuarantinedRow("s", 4, "malformed", "no JSON", "x")
    items: list[Event | QuarantinedRow] = [*trades(0, 1, 9000), bad, trade(2, 5), trade(3, 6), trade(4, 7)]
    found = take_all(ReorderBuffer(0), items)
    assert told(found) == [(1, ""), (2, ""), (3, "ahead"), (4, "malformed"), (5, ""), (6, ""), (7, "")]


def test_a_leap_is_longer_than_a_minute() -> None:
    reorder = ReorderBuffer(0)
    reorder.take(trades(0, 60), None, None, None)
    assert not reorder.is_waiting
    reorder.take([trade(120.000001, 3)], None, None, None)
    assert reorder.is_waiting


def test_three_earlier_rows_refuse_a_leap_and_two_do_not() -> None:
    reorder = ReorderBuffer(0)
    assert told(reorder.take(trades(0, 36_000, 1, 2), None, None, None)) == [(1, "")]
    assert reorder.is_waiting
    found = reorder.take([trade(3, 5)], None, None, None)
    assert not reorder.is_waiting
    assert told(found) == [(2, "ahead"), (3, ""), (4, ""), (5, "")]


def test_votes_for_an_earlier_leap_do_not_count_for_a_later_one() -> None:
    reorder = ReorderBuffer(0)
    reorder.take(trades(0, 36_000, 1, 2, 3), None, None, None)
    assert not reorder.is_waiting
    reorder.take([trade(72_000, 6), trade(4, 7), trade(5, 8)], None, None, None)
    assert reorder.is_waiting


def test_what_waits_is_bounded() -> None:
    reorder = ReorderBuffer(0)
    junk = [QuarantinedRow("s", row, "malformed", "", "") for row in range(3, 200)]
    found = reorder.take([*trades(0, 9000), *junk], None, None, None)
    assert not reorder.is_waiting
    assert [item.row for item in found] == list(range(1, 200))


def test_rows_late_for_a_wild_stamp_that_was_believed_are_not_held() -> None:
    reorder = ReorderBuffer(NS_PER_S)
    reorder.take(trades(0, 9000, 9000), None, None, None)
    for row in range(4, 9):
        assert told(reorder.take([trade(1, row)], None, None, None)) == [(row, "late")]


def test_a_duplicate_within_the_window_is_refused_and_names_the_first() -> None:
    found = take_all(ReorderBuffer(NS_PER_S), trades(0, 0, 1), RecentRowIds(5))
    refused = [item.rejection for item in found if isinstance(item, RefusedItem)]
    assert [(item.row, item.reason, item.detail) for item in refused] == [
        (2, "duplicate", "equal to row 1"),
        (3, "duplicate", "equal to row 2"),
    ]


def test_identities_are_forgotten_beyond_the_window() -> None:
    recent = RecentRowIds(3)
    assert recent.find_duplicate("a", 1) is None
    assert recent.find_duplicate("a", 4) == 1
    assert recent.find_duplicate("a", 8) is None
    for row in range(9, 100):
        recent.find_duplicate(row, row)
    assert len(recent) <= 7


def test_a_refused_row_keeps_its_place() -> None:
    bad = QuarantinedRow("s", 2, "malformed", "no JSON", "x")
    found = take_all(ReorderBuffer(0), [trade(0, 1), bad, trade(1, 3)])
    assert told(found) == [(1, ""), (2, "malformed"), (3, "")]
