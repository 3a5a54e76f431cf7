"""Laws of a scenario's chance: counted, never above what the loss allows, the same in whatever order series stand."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.forecasting.config import LEVELS
from htfi.forecasting.joint.portfolio import Portfolio
from htfi.forecasting.scenarios.baseline import BaselineForecast, make_baseline
from htfi.forecasting.scenarios.effects import (
    EventProbability,
    TransmissionChannel,
    apply_moves,
    probability_of_moves,
    probability_of_profit,
)
from htfi.forecasting.scenarios.measures import compare_with_baseline, portfolio_figures, simple_quantiles
from htfi.library.scenarios.rationale import chance_figure, chance_words

NAMES = ("AAA/1d", "MMM/1d", "ZZZ/1d")
SCORES = np.array(
    [-2.326, -1.645, -1.282, -0.842, -0.524, -0.253, 0.0, 0.253, 0.524, 0.842, 1.282, 1.645, 2.326]
)
SIGMAS = np.array([0.01, 0.02, 0.005])


def market(seed: int = 0, num_draws: int = 2_000) -> BaselineForecast:
    rng = np.random.default_rng(seed)
    history = 0.7 * rng.standard_t(4.0, (300, 1)) + 0.7 * rng.standard_normal((300, 3))
    quantiles = SIGMAS[:, None] * SCORES[: len(LEVELS)]
    return make_baseline(NAMES, np.ones(3), quantiles, LEVELS, 1, history, seed=seed, num_draws=num_draws)


TODAY = market()
holdings = st.tuples(*[st.floats(-1e6, 1e6).map(lambda size: round(size, 2))] * 3).filter(
    lambda sizes: sum(map(abs, sizes)) > 1.0
)
moves = st.floats(-12.0, 12.0).filter(lambda sigmas: abs(sigmas) > 0.1)


@settings(deadline=None, max_examples=examples(60))
@given(holdings, st.lists(st.floats(-5.0, 5.0), min_size=2, max_size=8), st.floats(1.0, 20.0))
def test_a_greater_loss_is_never_likelier_and_one_beyond_var_is_below_one_percent(sizes, ends, times):
    book = Portfolio(NAMES, np.array(sizes))
    before = portfolio_figures(book, TODAY.returns)
    unit = max(before.deviation, 1e-9)
    replayed = np.expm1(TODAY.replayed) @ book.notionals
    losses = sorted(before.mean - abs(end) * unit for end in ends)
    found = [probability_of_profit(before.profits, replayed, end) for end in losses]
    assert [chance.num for chance in found] == sorted(chance.num for chance in found)
    assert all(0 <= chance.num <= chance.num_draws for chance in found)
    if before.var99 > 0.0:
        beyond = probability_of_profit(before.profits, replayed, -times * before.var99 - 1e-9 * unit)
        assert beyond.num <= 0.01 * beyond.num_draws
        assert beyond.share is None or beyond.share <= 0.01


@settings(deadline=None, max_examples=examples(40))
@given(holdings, moves, st.integers(0, 2))
def test_a_book_is_judged_by_its_own_end_whatever_is_shocked(sizes, sigmas, place):
    book = Portfolio(NAMES, np.array(sizes))
    effect = apply_moves(TODAY, [place], [sigmas * SIGMAS[place]], [TransmissionChannel.SHOCKED])
    before = portfolio_figures(book, TODAY.returns)
    change = compare_with_baseline(TODAY, effect, book, simple_quantiles(TODAY.returns), before)
    assume(change.probability is not None)
    end = change.portfolio_after.mean
    lower = end <= before.mean
    ended = before.profits <= end if lower else before.profits >= end
    assert change.probability.num == int(ended.sum())
    if lower and -end > before.var99 > 0.0:
        assert change.probability.num <= 0.01 * change.probability.num_draws


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(moves, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_the_chance_of_moves_knows_no_order_and_falls_as_they_grow(sigmas, random):
    places = list(range(len(sigmas)))
    told = [size * SIGMAS[place] for place, size in zip(places, sigmas, strict=True)]
    found = probability_of_moves(TODAY, places, told)
    shuffled = random.sample(places, len(places))
    assert probability_of_moves(TODAY, shuffled, [told[place] for place in shuffled]) == found
    further = probability_of_moves(TODAY, places, [1.5 * move for move in told])
    assert further.num <= found.num
    alone = min(
        probability_of_moves(TODAY, [place], [move]).num for place, move in zip(places, told, strict=True)
    )
    assert found.num <= alone


@given(st.integers(0, 100_000), st.integers(200, 100_000), st.integers(0, 500), st.integers(0, 500))
def test_words_never_say_more_than_was_counted(num, num_draws, num_past, num_instants):
    chance = EventProbability(min(num, num_draws), num_draws, min(num_past, num_instants), num_instants)
    figure, text = chance_figure(chance), chance_words(chance)
    assert text.startswith(figure)
    if chance.num == 0:
        assert figure == f"rarer than 1 in {num_draws:,}"
        assert f"never in {num_draws:,} scenarios" in text
        assert ("nor in" in text) == (chance.num_past == 0 < num_instants)
    elif figure.startswith("about 1 in"):
        odds = float(figure.rpartition(" ")[2].replace(",", ""))
        assert odds <= 1.5 * num_draws
        assert 0.65 < odds * chance.num / num_draws < 1.5
    else:
        assert abs(float(figure.removesuffix("%")) - 100.0 * chance.num / num_draws) < 6.0
        assert f"{chance.num:,} of {num_draws:,} scenarios" in text


@settings(deadline=None, max_examples=15)
@given(st.permutations(range(4)), st.integers(0, 1_000), moves, st.integers(0, 3))
def test_neither_the_order_nor_the_names_of_series_change_a_figure(order, seed, sigmas, place):
    rng = np.random.default_rng(seed)
    history = 0.7 * rng.standard_t(4.0, (120, 1)) + 0.7 * rng.standard_normal((120, 4))
    history[rng.random(history.shape) < 0.1] = np.nan
    quantiles = rng.uniform(0.005, 0.05, (4, 1)) * SCORES
    notionals = rng.uniform(-1.0, 1.0, 4)
    found = []
    for places in (np.arange(4), np.array(order)):
        names = tuple(f"{'ABCD'[k]}/1d" for k in range(4))
        today = make_baseline(
            names, np.ones(4), quantiles[places], LEVELS, 1, history[:, places], seed=seed, num_draws=400
        )
        at = int(np.flatnonzero(places == place)[0])
        effect = apply_moves(today, [at], [sigmas * today.sigma[at]], [TransmissionChannel.SHOCKED])
        book = Portfolio(names, notionals[places])
        before = portfolio_figures(book, today.returns)
        change = compare_with_baseline(today, effect, book, simple_quantiles(today.returns), before)
        found.append((effect.probability, change, np.argsort(places)))
    (one_chance, one, _), (other_chance, other, back) = found
    assert one_chance == other_chance
    assert one.probability == other.probability
    assert np.allclose(one.after, other.after[back], rtol=1e-6, atol=1e-9)
    assert np.isclose(one.portfolio_after.var99, other.portfolio_after.var99, rtol=1e-6, atol=1e-9)
