"""What scenarios do to draws: exactness where it can be had, the sign and size of what is carried elsewhere."""

import math
from datetime import UTC, date, datetime, timedelta
from statistics import NormalDist

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.forecasting.config import LEVELS
from htfi.forecasting.scenarios.baseline import make_baseline
from htfi.forecasting.scenarios.effects import (
    TransmissionChannel,
    apply_moves,
    apply_quantiles,
    probability_of_moves,
    spread_shift,
)
from htfi.forecasting.scenarios.history import (
    PriceHistory,
    find_macro_series,
    macro_response,
    return_over_window,
)
from htfi.forecasting.scenarios.measures import LEVELS as TOLD
from htfi.forecasting.scenarios.measures import (
    compare_with_baseline,
    kernel_density,
    portfolio_figures,
    simple_quantiles,
)
from htfi.forecasting.scenarios.positions import Positions, equal_positions

NORMAL = NormalDist()
SIGMAS = np.array([0.01, 0.02, 0.05, 0.01])
LOADINGS = np.array([0.9, 0.8, -0.85, 0.0])  # the last goes with nobody
NAMES = ("SPX/1d", "JPM/1d", "VIX/1d", "GOLD/1d")


def gaussian_today(seed=0, num_instants=500, num_draws=4_000):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((num_instants, 1))
    history = common * LOADINGS + rng.standard_normal((num_instants, 4)) * np.sqrt(1.0 - LOADINGS**2)
    quantiles = SIGMAS[:, None] * np.array([NORMAL.inv_cdf(level) for level in LEVELS])
    prices = np.array([1000.0, 50.0, 20.0, 1500.0])
    return make_baseline(NAMES, prices, quantiles, LEVELS, 1, history, seed=seed, num_draws=num_draws)


TODAY = gaussian_today()


def test_unchanged_draws_have_the_quantiles_of_the_forecast():
    for level, quantile in zip(LEVELS, TODAY.quantiles.T, strict=True):
        assert np.quantile(TODAY.returns, level, axis=0) == pytest.approx(quantile, abs=0.002)
    assert TODAY.sigma == pytest.approx(SIGMAS, rel=1e-6)


def test_a_known_move_is_exact_and_carries_the_others_by_how_they_go_with_it():
    effect = apply_moves(TODAY, [0], [-0.03], [TransmissionChannel.SHOCKED])
    assert (effect.returns[:, 0] == -0.03).all()
    assert effect.channels == (
        TransmissionChannel.SHOCKED,
        TransmissionChannel.DEPENDENCE,
        TransmissionChannel.DEPENDENCE,
        TransmissionChannel.DEPENDENCE,
    )
    beta = LOADINGS * 0.9  # correlation with the first
    expected = -3.0 * beta * SIGMAS
    moved = np.median(effect.returns, axis=0)
    assert moved[1] == pytest.approx(expected[1], rel=0.15)
    assert moved[2] == pytest.approx(expected[2], rel=0.15)
    assert abs(moved[3]) < 0.4 * SIGMAS[3]
    # what is left open is narrower than today for those that go with it, for a move of usual size
    usual = apply_moves(TODAY, [0], [-0.01], [TransmissionChannel.SHOCKED])
    assert usual.returns[:, 1].std() < 0.9 * TODAY.returns[:, 1].std()


def test_the_chance_of_moves_is_counted_among_the_draws():
    alone = probability_of_moves(TODAY, [0], [-0.02])
    assert alone.share == pytest.approx(NORMAL.cdf(-2.0), rel=0.05)
    assert (alone.num_draws, alone.num_instants) == (4_000, 500)
    assert alone.num_past == pytest.approx(500 * NORMAL.cdf(-2.0), abs=9)
    both = apply_moves(TODAY, [0, 1], [-0.02, -0.04], [TransmissionChannel.SHOCKED] * 2).probability
    assert both is not None
    assert both.share is not None
    assert NORMAL.cdf(-2.0) ** 2 < both.share < NORMAL.cdf(-2.0)
    against = apply_moves(TODAY, [0, 2], [-0.02, -0.10], [TransmissionChannel.SHOCKED] * 2).probability
    assert against is not None
    assert against.num < both.num / 3.0  # the third rises when the first falls


def test_what_no_draw_reached_has_no_figure():
    far = probability_of_moves(TODAY, [0], [-0.2])
    assert (far.num, far.num_past, far.share) == (0, 0, None)


def test_of_many_moves_the_chance_is_of_all_together_in_any_order():
    rng = np.random.default_rng(3)
    names = tuple(f"S{k}/1d" for k in range(6))
    quantiles = np.tile(TODAY.quantiles[0], (6, 1))
    history = 0.8 * rng.standard_normal((200, 1)) + 0.6 * rng.standard_normal((200, 6))
    today = make_baseline(names, np.ones(6), quantiles, LEVELS, 1, history, seed=0)
    moves = [-0.004, -0.008, -0.002, -0.01, -0.006, -0.003]
    found = apply_moves(today, list(range(6)), moves, [TransmissionChannel.FACTOR] * 6).probability
    assert found is not None
    assert 0 < found.num < probability_of_moves(today, [3], [-0.01]).num
    assert found == probability_of_moves(today, [5, 3, 1, 0, 2, 4], [moves[k] for k in (5, 3, 1, 0, 2, 4)])


def test_a_move_beyond_all_scores_stays_what_it_is_and_bunches_nobody():
    effect = apply_moves(TODAY, [0], [math.log(0.5)], [TransmissionChannel.SHOCKED])  # 69 sigmas
    assert (effect.returns[:, 0] == math.log(0.5)).all()
    assert np.isfinite(effect.returns).all()
    carried = np.sort(effect.returns[:, 1])
    assert len(np.unique(carried)) == len(carried)
    assert np.median(carried) < -0.1
    assert effect.probability is not None
    assert effect.probability.num == 0


def test_a_series_that_never_moves_carries_nothing_when_it_does():
    rng = np.random.default_rng(2)
    quantiles = TODAY.quantiles.copy()
    quantiles[3] = 0.0
    history = rng.standard_normal((300, 1)) * LOADINGS + 0.5 * rng.standard_normal((300, 4))
    history[:, 3] = 0.0
    today = make_baseline(NAMES, np.ones(4), quantiles, LEVELS, 1, history, seed=1)
    effect = apply_moves(today, [3], [-0.1], [TransmissionChannel.SHOCKED])
    assert (effect.returns[:, 3] == -0.1).all()
    assert np.median(effect.returns[:, :3], axis=0) == pytest.approx(np.zeros(3), abs=0.2 * SIGMAS[:3].max())
    narrow = quantiles.copy()
    narrow[3] = 1e-7 * TODAY.quantiles[3]
    today = make_baseline(NAMES, np.ones(4), narrow, LEVELS, 1, history, seed=1)
    far = apply_moves(today, [3], [-0.1], [TransmissionChannel.SHOCKED]).returns[:, :3]
    assert np.abs(np.median(far, axis=0)).max() < 100.0 * SIGMAS.max()


def test_other_margins_keep_dependence_and_the_dice():
    changed = TODAY.quantiles.copy()
    changed[0] += 0.01
    effect = apply_quantiles(TODAY, changed, [TransmissionChannel.VIEW, *[TransmissionChannel.UNTOUCHED] * 3])
    assert effect.returns[:, 0] == pytest.approx(TODAY.returns[:, 0] + 0.01, abs=1e-12)
    assert (effect.returns[:, 1:] == TODAY.returns[:, 1:]).all()


def test_a_view_on_one_series_spreads_by_correlation():
    shift = np.array([0.02, 0.0, 0.0, 0.0])
    found = spread_shift(TODAY, [0], shift)
    assert found[0] == 0.02
    assert found[1] == pytest.approx(2.0 * 0.72 * SIGMAS[1], rel=0.15)
    assert found[2] == pytest.approx(-2.0 * 0.765 * SIGMAS[2], rel=0.15)
    assert abs(found[3]) < 0.5 * SIGMAS[3]
    both = spread_shift(TODAY, [0, 1], np.array([0.02, -0.01, 0.0, 0.0]))
    assert both[:2].tolist() == [0.02, -0.01]


def test_the_same_seed_gives_the_same_draws():
    assert (gaussian_today(4).scores == gaussian_today(4).scores).all()
    assert (gaussian_today(4).scores != gaussian_today(5).scores).any()


@pytest.mark.parametrize("num_instants", [0, 1, 2, 7])
def test_without_a_past_series_move_on_their_own_and_nothing_breaks(num_instants):
    rng = np.random.default_rng(1)
    history = rng.standard_normal((num_instants, 4))
    today = make_baseline(NAMES, np.ones(4), TODAY.quantiles, LEVELS, 1, history, seed=1)
    effect = apply_moves(today, [0], [-0.03], [TransmissionChannel.SHOCKED])
    assert np.isfinite(effect.returns).all()


def test_one_series_alone_can_be_shocked():
    today = make_baseline(
        ("SPX/1d",),
        np.ones(1),
        TODAY.quantiles[:1],
        LEVELS,
        1,
        np.random.default_rng(0).standard_normal((99, 1)),
        seed=1,
    )
    effect = apply_moves(today, [0], [-0.03], [TransmissionChannel.SHOCKED])
    assert (effect.returns == -0.03).all()


def test_figures_of_a_book_add_up():
    book = equal_positions(NAMES, [True] * 4).portfolio
    found = portfolio_figures(book, TODAY.returns)
    assert sum(found.means) == pytest.approx(found.mean)
    assert sum(found.shares_of_es) == pytest.approx(found.es975, rel=1e-9)
    assert found.var99 > 0.0
    assert list(found.quantiles) == sorted(found.quantiles)
    assert found.quantiles[TOLD.index(0.01)] == pytest.approx(-found.var99, rel=0.02)


def test_a_comparison_tells_how_likely_the_books_own_result_is_today():
    positions = Positions(equal_positions(NAMES, [True, False, False, False]).portfolio, in_money=False)
    before, figures = simple_quantiles(TODAY.returns), portfolio_figures(positions.portfolio, TODAY.returns)
    for move, share in ((-0.02, NORMAL.cdf(-2.0)), (0.01, NORMAL.cdf(-1.0)), (-0.2, None)):
        effect = apply_moves(TODAY, [0], [move], [TransmissionChannel.SHOCKED])
        found = compare_with_baseline(TODAY, effect, positions.portfolio, before, figures).probability
        assert found is not None
        assert found.share == (share if share is None else pytest.approx(share, rel=0.06))


def test_a_scenario_that_leaves_the_book_where_it_is_has_no_chance():
    positions = Positions(equal_positions(NAMES, [False, False, False, True]).portfolio, in_money=False)
    before, figures = simple_quantiles(TODAY.returns), portfolio_figures(positions.portfolio, TODAY.returns)
    changed = TODAY.quantiles.copy()
    changed[0] += 0.01
    effect = apply_quantiles(TODAY, changed, [TransmissionChannel.VIEW, *[TransmissionChannel.UNTOUCHED] * 3])
    assert compare_with_baseline(TODAY, effect, positions.portfolio, before, figures).probability is None


def test_a_density_holds_all_of_the_draws():
    values = TODAY.returns[:, 0]
    heights = kernel_density(values, -0.06, 0.06, num=200)
    assert sum(heights) * 0.12 / 199 == pytest.approx(1.0, abs=0.02)
    assert max(heights) == pytest.approx(0.3989 / 0.01, rel=0.1)


def daily(closes, first=date(2008, 9, 1), hour=20):
    ends, day = [], first
    for _ in closes:
        ends.append(
            int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 10**9 + hour * 3_600 * 10**9
        )
        day += timedelta(days=1 if day.weekday() < 4 else 3)
    return PriceHistory(np.array(ends), np.array(closes, float))


@pytest.mark.parametrize(
    "hour", [20, 24, 29, 7]
)  # New York's close; midnights of UTC and New York; Tokyo's close
def test_the_window_of_a_stress_is_found_by_the_day_that_a_bar_is_of(hour):
    closes = [100.0 + k for k in range(60)]
    found = return_over_window(daily(closes, hour=hour), date(2008, 9, 12), 5)
    assert found == (pytest.approx(math.log(114 / 109)), date(2008, 9, 12), date(2008, 9, 19))


def test_a_window_that_the_past_does_not_hold_is_none():
    past = daily([100.0] * 12)  # to September 16
    assert return_over_window(past, date(2008, 9, 12), 2) is not None
    assert return_over_window(past, date(2008, 9, 12), 5) is None
    assert return_over_window(past, date(2008, 8, 20), 1) is None
    assert return_over_window(past, date(2012, 1, 2), 1) is None
    assert return_over_window(PriceHistory(np.zeros(0, np.int64), np.zeros(0)), date(2008, 9, 12), 1) is None


def test_a_response_that_was_planted_is_found_and_noise_is_shrunk():
    rng = np.random.default_rng(0)
    ends = np.arange(1, 2_001) * 10**9
    scores = rng.standard_normal((2_000, 2))
    values, level = [], 100.0
    for place in range(20, 2_000, 60):
        surprise = rng.choice([-2.0, -1.0, 1.0, 2.0])
        level += surprise
        values.append((int(ends[place]), level))
        if len(values) > 1:
            scores[place, 0] += 2.0 * surprise
    found = macro_response("CPI", values, ends, scores)
    assert found.slope[0] == pytest.approx(2.0 * found.surprise_std, rel=0.2)
    assert abs(found.slope[1]) < 0.35
    assert found.num.tolist() == [32, 32]
    assert found.newest == level


def test_too_few_surprises_are_refused_with_their_number():
    ends = np.arange(1, 50) * 10**9
    values = [(k * 10**9, float(k % 2)) for k in range(1, 6)]
    with pytest.raises(InvalidInput, match=r"4 changes with a bar after them, 8 are needed"):
        macro_response("CPI", values, ends, np.zeros((49, 2)))
    with pytest.raises(InvalidInput, match="0 changes"):
        macro_response("CPI", [], ends, np.zeros((49, 2)))


def test_a_macro_series_is_found_however_it_is_written():
    known = {"us_cpi": 1, "fed_funds_target_upper": 2}
    assert find_macro_series("US_CPI", known) == "us_cpi"
    assert find_macro_series("US.CPI", known) == "us_cpi"
    assert find_macro_series("Fed Funds Target-Upper", known) == "fed_funds_target_upper"
    assert find_macro_series("", known) is None
    assert find_macro_series("GDP", known) is None
