"""A planted narrator that knows earns a lot, one that does not fades; nothing is learnt before it is known."""

import numpy as np
import pytest

from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.shapes import gaussian_quantiles
from htfi.narrative.question import Question
from htfi_eval.eval.narrative.moments import (
    NewsMoments,
    TiltEffect,
    full_weight,
    news_arrival,
    price_only,
    random_walk,
    track_record_weighted,
)
from htfi_eval.eval.narrative.scores import gain, no_gain_p_value, score_calls
from htfi_eval.eval.narrative.simulated import at_another_time, from_other_cluster, mislabelled

CONFIG = ForecastConfig()
HORIZONS = np.array(CONFIG.horizons)
NUM = 540


def made(seed: int = 5, effect: float = 1.5) -> tuple[NewsMoments, np.ndarray]:
    """Moments of 30 clusters in which news move prices by `effect` sigmas of one bar, up or down; and the moves [n]."""
    dice = np.random.Generator(np.random.PCG64(seed))
    sigma = 0.01 * np.exp(0.3 * dice.standard_normal(NUM))
    scales = sigma[:, None] * np.sqrt(HORIZONS)
    steps = np.cumsum(dice.standard_normal((NUM, HORIZONS[-1])), axis=1)[:, HORIZONS - 1]
    move = effect * dice.choice((-1.0, 1.0), NUM)
    instant = 3 * np.arange(NUM)
    items = (News(0, 0, "s", 0, "a", "a headline", ("ACME",)),)
    questions = tuple(
        Question("ACME", int(t) * NS_PER_DAY, NS_PER_DAY, tuple(items), (0.0,), str(t)) for t in instant
    )
    moments = NewsMoments(
        questions,
        (None,) * NUM,
        scales[..., None] * gaussian_quantiles(CONFIG.levels),
        sigma[:, None] * (steps + move[:, None]),
        scales,
        sigma,
        np.arange(NUM) * 30 // NUM,
        instant,
        instant[:, None] + HORIZONS,
    )
    return moments, move


def shifted(moments: NewsMoments, move: np.ndarray) -> TiltEffect:
    shift = np.repeat((move * moments.scales[:, 0])[:, None], len(HORIZONS), axis=1)
    return TiltEffect(shift, np.ones_like(shift))


def test_a_narrator_that_knows_earns_nearly_full_weight_and_a_large_gain() -> None:
    moments, move = made()
    told = track_record_weighted("knows", moments, shifted(moments, move), CONFIG)
    found = gain(told, price_only(moments, CONFIG), moments, np.ones(NUM, np.bool_), 0, seed=1)
    assert told.weight[-1, 0] > 0.9
    assert found.low > 0.2
    assert no_gain_p_value(told, price_only(moments, CONFIG), moments, np.ones(NUM, np.bool_), 0, 1) < 1e-6


def test_a_narrator_that_guesses_fades_and_costs_next_to_nothing() -> None:
    moments, move = made()
    wrong = np.random.Generator(np.random.PCG64(8)).permutation(move)
    guess = shifted(moments, wrong)
    told = track_record_weighted("guesses", moments, guess, CONFIG)
    base = price_only(moments, CONFIG)
    inside = np.ones(NUM, np.bool_)
    assert (told.weight[-1] < 0.08).all()
    assert gain(full_weight("in full", moments, guess, CONFIG), base, moments, inside, 0, seed=1).value < -0.1
    for j in range(len(HORIZONS)):
        assert -0.01 < gain(told, base, moments, inside, j, seed=1).value < 0.01


def test_a_narrator_that_turns_bad_loses_what_it_had_earned() -> None:
    moments, move = made()
    turned = np.where(np.arange(NUM) < NUM // 2, move, -move)
    told = track_record_weighted("turns", moments, shifted(moments, turned), CONFIG)
    assert told.weight[NUM // 2, 0] > 0.9
    assert told.weight[-1, 0] < 0.1


def test_weights_and_bells_learn_from_no_outcome_that_is_not_known_yet() -> None:
    moments, move = made()
    split = NUM // 2
    later = moments.outcomes.copy()
    unknown = moments.known > moments.instant[split]
    later[unknown] = 7.0
    changed = NewsMoments(*(getattr(moments, name) for name in moments.__slots__[:3]), later, *(
        getattr(moments, name) for name in moments.__slots__[4:]
    ))  # fmt: skip
    change = shifted(moments, move)
    for one, other in (
        (
            track_record_weighted("n", moments, change, CONFIG).weight,
            track_record_weighted("n", changed, change, CONFIG).weight,
        ),
        (news_arrival(moments, CONFIG).stretch, news_arrival(changed, CONFIG).stretch),
    ):
        assert np.array_equal(one[: split + 1], other[: split + 1])
        assert not np.array_equal(one, other)


def test_a_bell_learns_that_prices_are_wilder_when_there_are_news() -> None:
    moments, _ = made(effect=2.5)
    assert news_arrival(moments, CONFIG).stretch[-1, 0] > 1.4
    still, _ = made(effect=0.0)
    assert news_arrival(still, CONFIG).stretch[-1] == pytest.approx(1.0, abs=0.15)


def test_the_random_walk_is_as_wide_as_the_last_returns() -> None:
    moments, _ = made()
    said = random_walk("walk", moments, CONFIG)
    assert said.quantiles[:, 1, CONFIG.levels.index(0.5)] == pytest.approx(0.0)
    assert said.losses[:, 0] == pytest.approx(price_only(moments, CONFIG).losses[:, 0])


def test_placebos_keep_tags_and_ages_and_never_tell_a_cluster_its_own_news() -> None:
    moments, _ = made()
    dice = np.random.Generator(np.random.PCG64(2))
    others = from_other_cluster(moments, dice)
    assert sorted(others) == list(range(NUM))
    assert all(moments.cluster[place] != moments.cluster[other] for place, other in enumerate(others))
    shifts = at_another_time(moments.cluster, moments.instant)
    assert all(
        other != place and moments.cluster[place] == moments.cluster[other]
        for place, other in enumerate(shifts)
    )
    named = [
        Question("ACME", 10 * NS_PER_DAY, NS_PER_DAY, (News(k, k, "s", k, str(k), f"text {k}", (f"S{k}",)),))
        for k in range(7)
    ]
    swapped = mislabelled(named)
    for before, after in zip(named, swapped, strict=True):
        assert after.items[0].headline != before.items[0].headline
        assert after.items[0].symbols == before.items[0].symbols
        assert after.items[0].available_at_ns == before.items[0].available_at_ns


def test_an_interval_holds_the_gain_and_nothing_is_told_of_nothing() -> None:
    moments, move = made()
    told = track_record_weighted("knows", moments, shifted(moments, 0.3 * move), CONFIG)
    base = price_only(moments, CONFIG)
    found = gain(told, base, moments, np.ones(NUM, np.bool_), 0, seed=1)
    assert found.low < found.value < found.high
    assert gain(told, base, moments, np.zeros(NUM, np.bool_), 0, seed=1).percent_text == "–"


def test_directions_are_scored_by_hand() -> None:
    found = score_calls(
        np.array([1.0, 1.0, -1.0, -1.0, 0.0, 1.0]), np.array([1.0, -1.0, -1.0, 1.0, 1.0, 2.0])
    )
    assert found.num == 5
    assert found.accuracy == pytest.approx(0.6)
    # up: 2 hits, 1 false, 1 missed → F1 2/3 at 3/5 of cases; down: 1 hit, 1 false, 1 missed → 1/2 at 2/5
    assert found.f1 == pytest.approx(0.6 * 2 / 3 + 0.4 * 0.5)
    assert found.mcc == pytest.approx((2 * 1 - 1 * 1) / np.sqrt(3 * 3 * 2 * 2))
    assert np.isnan(score_calls(np.zeros(3), np.ones(3)).accuracy)
