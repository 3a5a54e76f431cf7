"""The figures of `htfi eval reading` on data small enough to count by hand."""

from pathlib import Path

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.narrative.facts.policy.decisions import find_policy_action
from htfi.narrative.facts.record import EventKind, PartyRole
from htfi_eval.eval.price_grid import Prices
from htfi_eval.eval.reading import comparisons
from htfi_eval.eval.reading import own_lines as own_lines_module
from htfi_eval.eval.reading.comparisons import StatedRelease, judge_comparisons
from htfi_eval.eval.reading.event_study import as_table, is_strong, kind_rows, study_signs
from htfi_eval.eval.reading.intraday import HourlyBars
from htfi_eval.eval.reading.moves import Window, measure_moves
from htfi_eval.eval.reading.overnight import (
    AS_READ,
    STANDING,
    EarnedEvents,
    OvernightScores,
    crps_gain,
    earned_bands,
    earned_events,
    earned_weights,
    moved,
    pooled,
    score_overnight,
)
from htfi_eval.eval.reading.own_lines import own_lines, role_is_right
from htfi_eval.eval.reading.precision import Int8Changes, int8_changes
from htfi_eval.eval.reading.readings import ReadItem, ViewSign
from htfi_eval.eval.reading.scores import (
    as_signs,
    calibration_bins,
    confusion_shares,
    expected_calibration_error,
    mean_by_day,
    ratio_by_day,
    sign_figures,
)
from htfi_eval.eval.reading.staged_news import Phase, PricedItem, ReadEvent, StagedNews, _names_in, sampled
from htfi_eval.eval.sanitise.data import is_seen
from htfi_eval.results import read_metrics

LABELS = as_signs([1, 1, -1, -1, 0, 0, 0, 0])
SAID = as_signs([1, -1, -1, 0, 0, 0, 1, 0])
DAY_NS = 86_400 * 10**9


def _quiet(done: int, num: int) -> None:
    del done, num


def test_sign_figures_count_views_labels_and_silence() -> None:
    found = sign_figures(LABELS, SAID)
    assert found.num == 8
    assert found.sign_right == pytest.approx(2 / 3)  # three views at coloured lines, one of the wrong sign
    assert found.right_of_all_views == pytest.approx(2 / 4)
    assert found.three_class == pytest.approx(5 / 8)
    assert found.fires_on_neutral == pytest.approx(1 / 4)
    assert found.speaks == pytest.approx(3 / 4)


def test_weights_let_a_small_set_count_like_a_large_one() -> None:
    labels, said = as_signs([1] * 10 + [1]), as_signs([1] * 10 + [-1])
    weights = np.array([0.1] * 10 + [1.0])
    assert sign_figures(labels, said).sign_right == pytest.approx(10 / 11)
    assert sign_figures(labels, said, weights).sign_right == pytest.approx(0.5)


def test_figures_of_nothing_are_not_a_number() -> None:
    found = sign_figures(as_signs([0, 0]), as_signs([0, 0]))
    assert np.isnan(found.sign_right)
    assert np.isnan(found.right_of_all_views)
    assert found.three_class == 1.0


def test_confusion_gives_shares_of_each_label() -> None:
    shares = confusion_shares(LABELS, SAID, np.ones(8))
    assert shares.sum(axis=1) == pytest.approx([1.0, 1.0, 1.0])
    assert shares[0].tolist() == [0.5, 0.5, 0.0]  # of down: one said down, one silent
    assert shares[2].tolist() == [0.5, 0.0, 0.5]


def test_calibration_error_is_the_weighted_gap_of_the_bins() -> None:
    stated = np.array([0.95, 0.95, 0.95, 0.95, 0.55, 0.55])
    right = np.array([True, True, True, False, True, False])
    assert expected_calibration_error(stated, right) == pytest.approx((4 * 0.20 + 2 * 0.05) / 6)
    assert [one.num for one in calibration_bins(stated, right)] == [2, 4]
    assert expected_calibration_error(np.array([0.5, 0.5]), np.array([True, False])) == 0.0
    assert np.isnan(expected_calibration_error(np.zeros(0), np.zeros(0, np.bool_)))


def test_intervals_resample_days_and_not_rows() -> None:
    values = np.repeat([0.0, 1.0], 500)
    one_a_day = mean_by_day(values, np.arange(1_000), 0)
    two_days = mean_by_day(values, np.repeat([0, 1], 500), 0)
    assert one_a_day.value == two_days.value == 0.5
    assert one_a_day.high - one_a_day.low < 0.1
    assert (two_days.low, two_days.high) == (0.0, 1.0)
    assert ratio_by_day(np.array([2.0, 4.0]), np.array([1.0, 1.0]), as_signs([1, 2]), 0).value == 3.0
    assert mean_by_day(np.zeros(0), as_signs([]), 0).num == 0


def test_roles_that_name_one_part_of_an_event_are_alike_and_no_others() -> None:
    assert role_is_right(PartyRole.WINNER, PartyRole.SUPPLIER)
    assert role_is_right(PartyRole.TARGET, PartyRole.TARGET)
    assert not role_is_right(PartyRole.TARGET, PartyRole.ACQUIRER)
    assert not role_is_right(PartyRole.LOSER, PartyRole.WINNER)
    assert not role_is_right(PartyRole.RATED, None)


def test_own_lines_have_what_they_are_judged_by() -> None:
    roles, irrelevant = own_lines("roles"), own_lines("irrelevant")
    assert len(roles) >= 100
    assert len(irrelevant) >= 100
    parties = own_lines("parties")
    assert len(parties) >= 100
    assert {str(line.expected["role"]) for line in (*roles, *parties)} <= {role.value for role in PartyRole}
    assert all(line.item.name in line.item.text for line in parties)
    assert all(line.item.symbol for line in irrelevant)
    assert {int(line.expected["direction"]) for line in own_lines("known")} == {-1, 0, 1}
    assert {line.expected["verdict"] for line in own_lines("surprises")} <= {
        "above", "in line", "in_line", "below", "unclear",
    }  # fmt: skip
    assert all(set(line.expected["allowed"]) <= {-1, 0, 1} for line in own_lines("faults"))
    assert {line.expected["move"] for line in own_lines("policy")} == {"cut", "hold", "raise", None}
    assert own_lines("no such file") == []


def test_a_decision_is_right_by_bank_move_and_what_is_stated() -> None:
    read = find_policy_action("Fed cuts rates by 25 bps to 4.00-4.25%")
    assert own_lines_module._is_action(read, {"bank": "fed", "move": "cut"})
    assert own_lines_module._is_action(read, {"bank": "fed", "move": "cut", "size_bp": 25, "level": 4.25})
    assert not own_lines_module._is_action(read, {"bank": "fed", "move": "cut", "size_bp": 50})
    assert not own_lines_module._is_action(read, {"bank": "ecb", "move": "cut"})
    assert not own_lines_module._is_action(read, {"bank": None, "move": None})
    assert own_lines_module._is_action(None, {"bank": None, "move": None})
    assert not own_lines_module._is_action(None, {"bank": "fed", "move": "hold"})


def test_mistakes_are_kept_of_one_half_of_the_lines_alone() -> None:
    figures = own_lines_module.OwnLineFigures({}, [], [])
    texts = [f"line {number}" for number in range(200)]
    for text in texts:
        figures.add_mistake("roles", text, expected="target", got="none")
    shown = {str(mistake["text"]) for mistake in figures.mistakes}
    assert shown == {text for text in texts if is_seen(text)}
    assert 60 < len(shown) < 140


def test_a_release_is_told_with_its_figures_in_every_notation() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    told = [
        comparisons._stated_release(rng, row, "USD", "Retail Sales m/m", "0.6%", "0.2%", "-0.1%", 1)
        for row in range(400)
    ]
    assert {one.notation for one in told} == set(comparisons.RELEASE_NOTATIONS)
    assert all("0.6" in one.text and "0.2" in one.text and "{" not in one.text for one in told)
    assert comparisons._in_words("212K") == "212,000"
    assert comparisons._in_words("-1.60M") == "-1.60 million"
    assert comparisons._as_wires_do("-0.2%") == "−0.2 pct"
    assert comparisons._in_brackets(-0.4) == "($0.40)"


def test_a_misunderstood_comparison_is_a_mistake_with_its_line() -> None:
    told = [
        StatedRelease("US CPI y/y: 3.4% vs 3.2% expected", "plain", 1, 0),
        StatedRelease("US CPI y/y: 3.1% vs 3.2% expected", "plain", 1, 1),  # the sign stated for it is wrong
        StatedRelease("A line without figures", "none", -1, 2),
    ]
    found = judge_comparisons("tried", told, 0, _quiet)
    assert found.right.value == pytest.approx(1 / 3)
    assert found.by_notation == {"none": (1, 0.0), "plain": (2, 0.5)}
    assert [one["got"] for one in found.mistakes] == ["below", "nothing"]


def _prices(num: int = 130, series: int = 3, jump_at: int = 100) -> Prices:
    """Closes that swing by 1% a day about 100; series 0 opens 8% up at `jump_at` and stays there."""
    swing = 1.0 + 0.01 * (np.arange(num)[:, None] % 2) * np.ones(series)
    close = 100.0 * swing
    opens = close.copy()
    opens[1:] = close[:-1]
    close[jump_at:, 0] *= 1.08
    opens[jump_at + 1 :, 0] *= 1.08
    opens[jump_at, 0] = close[jump_at - 1, 0] * 1.08
    ends_ns = (np.arange(num) + 14_000) * DAY_NS + 20 * 3600 * 10**9
    names = tuple(f"S{n}" for n in range(series))
    return Prices("made", names, "1d", ends_ns, ends_ns, opens, close, close, close)


def test_moves_are_told_apart_by_window_and_in_usual_days() -> None:
    moves = measure_moves(_prices())
    usual = moves.usual[100, 0]
    assert usual == pytest.approx(np.log(1.01), rel=1e-6)  # every day before moved by 1%
    assert moves.by_window[Window.GAP][100, 0] == pytest.approx(np.log(1.08) / usual)
    assert abs(moves.by_window[Window.REST][100, 0]) == pytest.approx(1.0)
    assert abs(moves.by_window[Window.NEXT][100, 0]) == pytest.approx(1.0)
    assert moves.by_window[Window.NEXT][99, 0] == pytest.approx(
        moves.by_window[Window.DAY][100, 0] * moves.usual[100, 0] / moves.usual[99, 0]
    )
    assert np.isnan(moves.by_window[Window.DAY][20, 0])  # too early for a usual day


def _read(direction: int, confidence: float = 0.9, event: EventKind = EventKind.EARNINGS) -> ReadItem:
    return ReadItem(ViewSign(direction), confidence, 1.0, 2.0, 1.0, event, None, "", "")


def _events(prices: Prices, directions: list[int]) -> list[ReadEvent]:
    rows = range(len(prices.ends_ns) - len(directions), len(prices.ends_ns))
    return [
        ReadEvent(PricedItem("t", "S1", int(prices.ends_ns[row]), row, Phase.SESSION), _read(one), 1)
        for row, one in zip(rows, directions, strict=True)
    ]


def test_signs_that_follow_prices_agree_with_them_and_reversed_ones_do_not() -> None:
    prices = _prices()
    moves = measure_moves(prices)
    right = np.sign(moves.by_window[Window.DAY][-60:, 1]).astype(int).tolist()
    news = StagedNews("made", prices, (), {})
    for directions, expected in ((right, 1.0), ([-one for one in right], 0.0)):
        table = as_table(news, _events(prices, directions))
        same_day = next(
            one
            for one in study_signs(table, moves, 0)
            if one.window is Window.DAY and one.group == "strong views"
        )
        assert same_day.agree.value == expected
        assert same_day.agree.num == 60
        assert same_day.along.value == pytest.approx(2 * expected - 1, rel=0.05)


def test_moves_of_a_kind_are_compared_with_quiet_days() -> None:
    prices = _prices(num=200)
    events = _events(prices, [1] * 50)
    rows = kind_rows(as_table(StagedNews("made", prices, (), {}), events), measure_moves(prices), 0)
    assert {row["event"] for row in rows} >= {"all events", "earnings"}
    assert all(row["events"] == 50 for row in rows)


def test_a_view_is_strong_by_confidence_and_relevance() -> None:
    item = PricedItem("t", "S1", 0, 1, Phase.OVERNIGHT)
    assert is_strong(ReadEvent(item, _read(1), 1))
    assert not is_strong(ReadEvent(item, _read(0), 1))
    assert not is_strong(ReadEvent(item, _read(1, confidence=0.6), 1))
    assert not is_strong(ReadEvent(item, _read(1)._replace(relevance=0.3), 1))


def test_a_sample_keeps_its_sessions_whole_and_is_noted() -> None:
    prices = _prices()
    items = tuple(PricedItem(str(n), "S1", n, n // 5, Phase.SESSION) for n in range(50))
    news = StagedNews("made", prices, items, {})
    drawn = sampled(news, 12, 3)
    assert len(drawn.items) == 15
    assert len({item.row for item in drawn.items}) == 3
    assert drawn.items == sampled(news, 12, 3).items
    assert drawn.items != sampled(news, 12, 4).items
    assert "15 of 50" in drawn.notes[0]
    assert sampled(news, None, 3) is news


def test_names_are_those_that_a_source_writes_before_a_code() -> None:
    found = _names_in(
        [
            "Kimberly-Clark Corp. ( KMB.N ) said",
            "shares of Kimberly-Clark Corp. (KMB.N) fell",
            "no code",
            None,
        ]
    )
    assert found == {"KMB": "Kimberly-Clark Corp."}


def _earned(kind: str, slope: float, num: int, year: int, seed: int) -> EarnedEvents:
    dice = np.random.Generator(np.random.PCG64(seed))
    pull = np.where(dice.random(num) < 0.5, 1.0, -1.0)
    moves = slope * pull + dice.standard_normal(num)
    return EarnedEvents(np.full(num, year), (kind,) * num, pull, moves, np.full(num, 0.8))


def test_a_kind_earns_its_direction_on_earlier_years_alone() -> None:
    right, useless = _earned("earnings", 0.8, 200, 2008, 1), _earned("lawsuit", 0.0, 200, 2008, 2)
    few, later = _earned("recall", 2.0, 20, 2008, 3), _earned("rating", 2.0, 200, 2010, 4)
    wrong_way = _earned("debt", -0.8, 200, 2008, 5)
    earlier = right.joined(useless).joined(few).joined(later).joined(wrong_way)
    found = earned_weights(earlier, 2010)
    assert set(found) == {"earnings"}
    assert 0.5 < found["earnings"] < 0.8  # drawn towards nothing
    assert set(earned_weights(earlier, 2011)) == {"earnings", "rating"}
    assert earned_weights(earlier, 2008) == {}
    assert earned_bands(earlier, 2010)["earnings"] > earned_bands(earlier, 2010)["recall"] * 0.5 > 0.5


def test_quantiles_are_widened_about_the_median_and_shifted_by_usual_days() -> None:
    levels = np.array([0.1, 0.2, 0.5, 0.8, 0.9])
    base = np.array([[-2.0, -1.0, 0.5, 2.0, 3.0]])
    wide = moved(base, np.array([2.0]), np.array([0.0]), levels)
    assert wide.tolist() == [[-4.5, -2.5, 0.5, 3.5, 5.5]]
    shifted = moved(base, np.array([1.0]), np.array([-1.0]), levels)
    assert shifted[0] - base[0] == pytest.approx(np.full(5, -3.0 / 1.683))


def test_the_gain_is_over_the_standing_forecast_and_needs_enough_events() -> None:
    standing = np.full(40, 2.0)
    found = crps_gain(np.full(40, 1.9), standing, np.arange(40), 0)
    assert (found.value, found.num) == (pytest.approx(0.05), 40)
    assert found.low == pytest.approx(0.05) == found.high
    assert crps_gain(np.full(3, 1.9), standing[:3], np.arange(3), 0).num == 0
    one = OvernightScores("a", np.arange(40), {STANDING: standing, AS_READ: standing * 0.9})
    both = pooled([one, OvernightScores("b", np.arange(40), {STANDING: standing, AS_READ: standing})])
    assert len(both.days) == 80 == len(np.unique(both.days))
    assert [gain.gain.value for gain in both.gains(0)] == [pytest.approx(0.05)]


def test_the_standing_forecast_is_widened_where_days_after_news_are_wilder() -> None:
    dice = np.random.Generator(np.random.PCG64(11))
    num = 700
    moves = 0.01 * dice.standard_normal((num, 2))
    news = np.arange(300, 700, 7)
    moves[news, 0] *= 5.0
    close = 100.0 * np.exp(np.cumsum(moves, axis=0))
    opens = np.vstack([close[:1], close[:-1]])
    days = np.busday_offset("2008-06-02", np.arange(num), roll="forward").astype("datetime64[ns]")
    ends_ns = days.astype(np.int64) + 21 * 3600 * 10**9
    prices = Prices("made", ("S0", "S1"), "1d", ends_ns, ends_ns, opens, close, close, close)
    events = [
        ReadEvent(
            PricedItem("t", "S0", int(ends_ns[row]) - 8 * 3600 * 10**9, int(row), Phase.OVERNIGHT), one, 1
        )
        for row in news
        for one in [_read(1)._replace(volatility=3.0)]
    ]
    measured = measure_moves(prices)
    table = as_table(StagedNews("made", prices, (), {}), events)
    scored = score_overnight(table, prices, measured, earned_events(table, measured), 0, _quiet)
    assert scored is not None
    gains = {one.way: one.gain for one in scored.gains(0)}
    assert gains["band as the reading says"].low > 0.02
    assert gains["band as the reading says"].num == int((table.years >= 2010).sum())
    assert gains["direction as earned"].value == 0.0  # its signs are chance


def test_a_move_by_the_hour_counts_over_joined_hours_alone() -> None:
    hour_ns = 3_600 * 10**9
    starts = np.arange(120, dtype=np.int64) * hour_ns
    starts[110:] += 5 * hour_ns  # a gap before bar 110
    swing = np.where(np.arange(120) % 2 == 0, 100.0, 101.0)
    bars = HourlyBars(starts, swing)
    assert bars.bar_of(int(starts[105]) + 1) == 105
    assert bars.bar_of(int(starts[109]) + 2 * hour_ns) is None
    assert bars.move(105, -1, 0) == pytest.approx(np.log(1.01) / np.log(1.01), rel=0.05)
    assert np.isnan(bars.move(110, -1, 0))
    assert np.isnan(bars.move(50, -1, 0))  # too few hours before


def test_the_figures_of_a_bench_join(tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    file.write_text('{"name": "reading", "metrics": {"run_cost_ratio": 2.5, "other": null}}')
    assert read_metrics(file) == {"run_cost_ratio": 2.5, "other": None}
    with pytest.raises(InvalidInput, match="write it with htfi bench NAME --json"):
        read_metrics(tmp_path / "none.json")


def test_int8_changes_are_counted_over_all_sets() -> None:
    shipped = [as_signs([1, 1, 0, -1]), as_signs([0, 0])]
    exact = [as_signs([1, -1, 0, 0]), as_signs([1, 0])]
    found = int8_changes(shipped, exact)
    assert found == Int8Changes(6, pytest.approx(1 / 4), pytest.approx(3 / 6))
    assert int8_changes([as_signs([0])], [as_signs([0])]) == Int8Changes(1, 0.0, 0.0)
