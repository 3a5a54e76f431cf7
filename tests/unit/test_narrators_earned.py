"""What narrators earn: the useless fade to nothing, the good rise, the wrong cost little."""

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from htfi.domain.errors import IntegrityError
from htfi.forecasting.config import LEVELS
from htfi.forecasting.scores import crps
from htfi.forecasting.tilts import apply_tilt
from htfi.forecasting.track_record import MAX_NARRATORS, NarratorTrackRecords

PLAIN = np.array([NormalDist().inv_cdf(level) for level in LEVELS])
MEDIAN = LEVELS.index(0.5)
Dice = np.random.Generator
# A move in standard deviations that is expected, and the one that comes: both drawn by dice.
Story = Callable[[Dice], tuple[float, float]]


def noise(dice: Dice) -> tuple[float, float]:
    return 0.7 * dice.choice([-1, 1]) * dice.choice([0.5, 1.0, 2.0, 3.0]), 0.0


def true(dice: Dice) -> tuple[float, float]:
    move = dice.choice([-1, 1]) * dice.choice([0.5, 1.0, 2.0, 3.0])
    return 0.7 * move, move * (1.0 if dice.random() < 0.7 else 0.0)


def wrong(dice: Dice) -> tuple[float, float]:
    told, _ = noise(dice)
    return told, -told / 0.7


def overdone(dice: Dice) -> tuple[float, float]:
    told, _ = noise(dice)
    return told, 0.3 * told


def play(story: Story, num: int, seed: int, num_series: int = 1) -> tuple[list[float], float, float]:
    """Weights by round at the first horizon, and the summed CRPS of the numbers and of what was released."""
    dice = np.random.Generator(np.random.PCG64(seed))
    narrators = NarratorTrackRecords((1,), LEVELS)
    serial = float(narrators.serial("n"))
    weights, plain_total, told_total = [], 0.0, 0.0
    plain = np.repeat(PLAIN[None, None], num_series, axis=0)
    for _ in range(num):
        drawn = [story(dice) for _ in range(num_series)]
        weight = narrators.weight("n")[0]
        weights.append(weight)
        tilts = np.array([[[shift], [1.0], [weight]] for shift, _ in drawn])
        outcome = np.array([[move + dice.standard_normal()] for _, move in drawn])
        told = narrators.learn(np.full((num_series, 1), serial), tilts, plain, outcome)
        assert np.array_equal(
            told[:, 0], apply_tilt(plain[:, 0], tilts[:, 0, 0], tilts[:, 1, 0], tilts[:, 2, 0], MEDIAN)
        )
        plain_total += float(crps(plain, outcome, np.array(LEVELS)).sum())
        told_total += float(crps(told, outcome, np.array(LEVELS)).sum())
    return weights, plain_total, told_total


SEEDS = range(12)


def test_one_who_knows_nothing_fades_below_two_percent_within_some_dozens() -> None:
    runs = [play(noise, 72, seed) for seed in SEEDS]
    assert np.median([weights[47] for weights, _, _ in runs]) < 0.02
    assert np.mean([weights[71] for weights, _, _ in runs]) < 0.02
    assert np.mean([told - plain for _, plain, told in runs]) < 0.5  # of a standard deviation, in all


def test_many_series_at_once_tell_sooner() -> None:
    assert np.mean([play(noise, 16, seed, 30)[0][-1] for seed in SEEDS]) < 0.02
    assert np.mean([play(true, 16, seed, 30)[0][-1] for seed in SEEDS]) > 0.9


def test_one_who_is_right_is_heeded_and_scores_better() -> None:
    runs = [play(true, 72, seed) for seed in SEEDS]
    assert np.mean([weights[71] for weights, _, _ in runs]) > 0.8
    assert sum(told for _, _, told in runs) < 0.9 * sum(plain for _, plain, _ in runs)


def test_one_who_is_always_wrong_costs_a_bounded_sum() -> None:
    for seed in SEEDS:
        weights, plain, told = play(wrong, 72, seed)
        assert max(weights[24:]) < 1e-3
        assert told - plain < 1.5  # once, however long it goes on


def test_one_who_exaggerates_is_heeded_in_part() -> None:
    runs = [play(overdone, 200, seed) for seed in SEEDS]
    assert 0.15 < np.mean([weights[-1] for weights, _, _ in runs]) < 0.6
    assert sum(told for _, _, told in runs) < sum(plain for _, plain, _ in runs)


def heard(shift_told: bool, seed: int, num: int = 250) -> float:
    """The weight of one who calls all moments wilder than usual, as they are, with the move that comes or another."""
    dice = np.random.Generator(np.random.PCG64(seed))
    narrators = NarratorTrackRecords((1,), LEVELS)
    serial = np.full((1, 1), float(narrators.serial("n")))
    for _ in range(num):
        moves = 1.2 * dice.choice([-1.0, 1.0], 2)
        told = moves[0] if shift_told else moves[1]
        tilts = np.array([[[0.6 * told], [1.3], [0.0]]])
        outcome = np.array([[moves[0] + 1.3 * dice.standard_normal()]])
        narrators.learn(serial, tilts, PLAIN[None, None], outcome)
    return narrators.weight("n")[0]


def test_one_who_tells_no_more_than_that_there_are_news_fades_though_it_beats_the_numbers() -> None:
    assert np.mean([heard(False, seed) for seed in SEEDS]) < 0.05
    assert np.mean([heard(True, seed) for seed in SEEDS]) > 0.9


def test_one_who_has_faded_can_come_back() -> None:
    def late(dice: Dice, turn: list[int] = [0]) -> tuple[float, float]:  # noqa: B006  # counts its calls
        turn[0] += 1
        return wrong(dice) if turn[0] <= 40 else true(dice)

    weights, _, _ = play(late, 600, 1)
    assert weights[40] < 1e-3
    assert weights[-1] > 0.9


def test_weights_lie_between_nothing_and_all_and_start_modest() -> None:
    narrators = NarratorTrackRecords((1, 5), LEVELS)
    assert narrators.weight("never heard") == [0.175, 0.175]
    for seed in range(4):
        weights, _, _ = play(true, 40, seed)
        assert all(0.0 <= weight <= 1.0 for weight in weights)


def test_of_too_many_the_one_heard_longest_ago_is_forgotten() -> None:
    narrators = NarratorTrackRecords((1,), LEVELS)
    first = narrators.serial("first")
    second = narrators.serial("second")
    assert narrators.serial("first") == first
    for k in range(MAX_NARRATORS - 1):
        narrators.serial(str(k))
    assert narrators.serial("first") == first
    assert narrators.serial("second") != second


def test_a_saved_state_goes_on_to_the_bit_and_only_under_its_own_horizons() -> None:
    dice = np.random.Generator(np.random.PCG64(5))
    one = NarratorTrackRecords((1, 5), LEVELS)
    told = (np.full((3, 2), float(one.serial("n"))), dice.normal(size=(3, 3, 2)) ** 2 * 0.2)
    plain = np.broadcast_to(PLAIN, (3, 2, len(LEVELS))).copy()
    one.learn(*told, plain, dice.normal(size=(3, 2)))
    other = NarratorTrackRecords((1, 5), LEVELS)
    other.restore(one.state())
    outcome = dice.normal(size=(3, 2))
    for narrators in (one, other):
        narrators.learn(*told, plain, outcome)
    assert one.weight("n") == other.weight("n")
    assert one.rows() == other.rows()
    with pytest.raises(IntegrityError, match="another form"):
        NarratorTrackRecords((1,), LEVELS).restore(one.state())


def test_a_weight_that_is_only_lent_is_taken_back_and_one_that_is_earned_stays() -> None:
    def potential_after(story: Story, num: int) -> float:
        dice = np.random.Generator(np.random.PCG64(1))
        narrators = NarratorTrackRecords((1,), LEVELS)
        assert narrators.potential("n") == narrators.weight("n")[0] == 0.175
        serial = np.full((1, 1), float(narrators.serial("n")))
        for _ in range(num):
            shift, move = story(dice)
            tilt = np.array([[[shift], [1.0], [1.0]]])
            narrators.learn(serial, tilt, PLAIN[None, None], np.array([[move + dice.standard_normal()]]))
        return narrators.potential("n")

    assert potential_after(lambda _: (0.0, 0.0), 250) == pytest.approx(0.175 / 2, abs=0.01)  # only lent
    assert potential_after(noise, 72) < 0.02
    assert potential_after(true, 72) > 0.6
