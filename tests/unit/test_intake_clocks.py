"""What the spacing of a symbol's rows says of the length of its bars."""

import numpy as np
import pytest

from htfi.pipeline.intake.bar_spacing import BarSpacing, BarSurvey

HOUR_NS = 3_600_000_000_000


def clock(gaps: list[float], stated: str = "") -> BarSpacing:
    """The clock of a symbol whose rows stand so many hours apart."""
    survey = BarSurvey()
    survey.add_all(("A", stated, False), np.cumsum([0, *(gap * HOUR_NS for gap in gaps)]).astype(np.int64))
    found = survey.clocks().of("A", stated, False)
    assert found is not None
    return found


def doubts(found: BarSpacing) -> dict[float, float]:
    """The hour at which each doubtful bar begins, and after how many hours it is known."""
    pairs = zip(found.doubtful.tolist(), found.known_after_ns.tolist(), strict=True)
    return {at / HOUR_NS: after / HOUR_NS for at, after in pairs}


def test_weekends_and_nights_leave_an_interval_as_it_is() -> None:
    weeks = clock(([1] * 119 + [49]) * 3)
    assert (weeks.intervals, doubts(weeks)) == (("1h",), {})
    sessions = clock(([1] * 6 + [18.5]) * 4 + [1] * 2)
    assert (sessions.intervals, doubts(sessions)) == (("1h",), {})


def test_bars_of_another_length_are_a_part_of_their_own() -> None:
    found = clock([1] * 20 + [4] * 20 + [1] * 20)
    assert found.intervals == ("1h", "4h", "1h")
    assert (found.begins / HOUR_NS).tolist() == [0, 20, 100]


def test_a_few_longer_bars_are_known_when_the_next_row_begins() -> None:
    assert doubts(clock([1] * 9 + [4] + [1] * 9)) == {9: 4}
    assert doubts(clock([1] * 9 + [4, 4] + [1] * 9)) == {9: 4, 13: 4}
    assert doubts(clock([1] * 9 + [4, 51] + [1] * 9)) == {9: 4, 13: 4}  # the last before a weekend
    assert doubts(clock([1] * 9 + [4])) == {9: 4, 13: 4}  # the last of all


def test_a_day_of_25_hours_is_known_at_its_end() -> None:
    assert doubts(clock([24] * 5 + [25] + [24] * 5 + [23] + [24] * 5)) == {120: 25}


def test_a_row_stamped_twice_or_a_second_later_shortens_nothing() -> None:
    found = clock([1] * 9 + [0, 1 / 3600, 3599 / 3600] + [1] * 9)
    assert (found.intervals, doubts(found)) == (("1h",), {})


@pytest.mark.parametrize("gaps", [[], [4, 52], [1, 3, 2, 5, 9, 4], list(range(1, 40))])
def test_uneven_rows_are_refused(gaps: list[float]) -> None:
    found = clock(gaps)
    assert found.intervals == ("",)
    assert "cannot be determined" in found.refusals[0]
    assert "state `interval`" in found.refusals[0]


def test_a_gap_that_no_bar_is_as_long_as_names_no_interval() -> None:
    assert clock([24 * 400] * 5).intervals == ("",)
    assert clock([1e-9] * 5).intervals == ("",)


@pytest.mark.parametrize(
    ("stated", "gaps", "said"),
    [
        ("1h", [4] * 5, "rows of A are 4h apart and 1h is stated: its bars may be longer than stated"),
        ("4h", [1] * 5, "rows of A are 1h apart and 4h is stated: its bars would overlap"),
        ("1h", [1] * 30 + [2] * 12, ""),  # missing rows
        ("1h", [3, 7, 2, 9, 5, 4], ""),  # a rare symbol
        ("1h", [4, 4], ""),  # too few to say
        ("1h", [0.99, 1.01, 1, 0.98], ""),
        ("volume:5000", [4] * 5, ""),
    ],
)
def test_what_is_stated_is_held_against_the_spacing(stated: str, gaps: list[float], said: str) -> None:
    assert clock(gaps, stated).refusals == (said,)


def test_only_the_part_that_contradicts_the_statement_is_refused() -> None:
    found = clock([1] * 20 + [4] * 20, "1h")
    assert [bool(refusal) for refusal in found.refusals] == [False, True]


def test_a_few_dates_of_which_two_are_neighbours_are_days() -> None:
    survey = BarSurvey()
    survey.add_all(("A", "", True), np.array([0, 1, 4], np.int64) * 24 * HOUR_NS)
    survey.add_all(("B", "", True), np.array([0, 3, 10], np.int64) * 24 * HOUR_NS)
    days, unknown = (survey.clocks().of(symbol, "", True) for symbol in "AB")
    assert days is not None
    assert unknown is not None
    assert (days.intervals, doubts(days), unknown.intervals) == (("1d",), {}, ("",))
