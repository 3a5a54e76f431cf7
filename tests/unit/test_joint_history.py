"""The ring of past surprises: aligned by instant, bounded, saved and restored."""

import numpy as np
import pytest

from htfi.domain.decision import series_id
from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.config import LEVELS, ForecastConfig
from htfi.forecasting.experts.baselines import EwmaExpert, RandomWalkExpert
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.joint.history import JointHistory
from htfi.forecasting.shapes import gaussian_quantiles

GAUSSIAN = gaussian_quantiles(LEVELS)


def learn(history: JointHistory, rows: list[int], day: float, outcomes: list[float]) -> None:
    ends_ns = np.full(len(rows), int(day * NS_PER_DAY), np.int64)
    quantiles = np.tile(GAUSSIAN, (len(rows), 1))
    history.learn(np.array(rows, np.intp), ends_ns, quantiles, np.array(outcomes))


def test_scores_of_one_instant_stand_side_by_side_however_they_come():
    history = JointHistory(LEVELS, window=10)
    history.grow(["1d", "1d", "1d"])
    learn(history, [0, 1], 100.8, [0.5, -0.5])
    learn(history, [2], 100.9, [1.5])  # another market, later on the same day
    learn(history, [0], 101.8, [1.0])
    found = history.surprises(np.array([0, 1, 2]))
    assert found.scores[0] == pytest.approx([0.5, -0.5, 1.5], abs=0.05)
    assert found.scores[1, 0] == pytest.approx(1.0, abs=0.05)
    assert np.isnan(found.scores[1, 1:]).all()
    assert found.ends_ns.tolist() == [int(100.9 * NS_PER_DAY), int(101.8 * NS_PER_DAY)]


def test_ring_forgets_the_oldest_and_passes_over_what_is_older():
    history = JointHistory(LEVELS, window=4)
    history.grow(["1d", "1d"])
    for day in range(10):
        learn(history, [0, 1], day + 0.8, [0.1 * day, -0.1 * day])
    learn(history, [0], 2.8, [3.0])
    found = history.surprises(np.array([0])).scores[:, 0]
    assert found == pytest.approx([0.6, 0.7, 0.8, 0.9], abs=0.05)


def test_late_bar_of_an_instant_still_in_the_ring_finds_its_place():
    history = JointHistory(LEVELS, window=4)
    history.grow(["1d", "1d"])
    learn(history, [0], 1.8, [0.1])
    learn(history, [0], 2.8, [0.2])
    learn(history, [1], 1.8, [0.7])
    found = history.surprises(np.array([0, 1])).scores
    assert found[0] == pytest.approx([0.1, 0.7], abs=0.05)
    assert np.isnan(found[1, 1])


def test_series_of_several_intervals_are_refused():
    history = JointHistory(LEVELS)
    history.grow(["1d", "1h"])
    with pytest.raises(InvalidInput, match="several intervals"):
        history.surprises(np.array([0, 1]))


def test_intervals_do_not_push_each_other_out():
    history = JointHistory(LEVELS, window=5)
    history.grow(["1d", "1m"])
    learn(history, [0], 1.0, [0.4])
    for minute in range(20):
        learn(history, [1], 1.0 + minute / 1440.0, [0.2])
    assert len(history.surprises(np.array([0])).scores) == 1
    assert len(history.surprises(np.array([1])).scores) == 5


def test_ten_thousand_series_take_twenty_megabytes():
    history = JointHistory(LEVELS)
    history.grow(["1d"] * 10_000)
    rows = list(range(10_000))
    for day in range(3):
        learn(history, rows, day + 0.8, [0.3] * 10_000)
    assert history.surprises(np.arange(10_000)).scores.shape == (3, 10_000)
    assert history.state()["scores"].nbytes == 20_000_000


def test_days_before_1970_are_instants_too():
    history = JointHistory(LEVELS, window=5)
    history.grow(["1d"])
    for day in (-15_000.2, -14_999.2):
        learn(history, [0], day, [0.4])
    assert len(history.surprises(np.array([0])).scores) == 2


def test_state_of_another_window_is_refused():
    with pytest.raises(IntegrityError, match="start again"):
        JointHistory(LEVELS, window=5).restore(JointHistory(LEVELS, window=6).state())
    with pytest.raises(IntegrityError, match="start again"):
        JointHistory(LEVELS).restore({})


def bars(day: int, moves: np.ndarray, levels: np.ndarray) -> list[Bar]:
    end_ns = day * NS_PER_DAY + 72_000 * NS_PER_S
    before_ns, closes = end_ns - NS_PER_DAY, (levels * np.exp(moves)).tolist()
    opens = levels.tolist()
    return [
        Bar(end_ns, end_ns, "t", day + 1, f"S{n}", "1d", before_ns, end_ns, o, max(o, c), min(o, c), c)
        for n, (o, c) in enumerate(zip(opens, closes, strict=True))
    ]


def walked(num_days: int) -> Forecaster:
    config = ForecastConfig()
    forecaster = Forecaster(config, [EwmaExpert(config), RandomWalkExpert(config)])
    rng, levels = np.random.default_rng(5), np.full(4, 100.0)
    for day in range(num_days):
        moves = 0.01 * (rng.standard_normal() * 0.8 + rng.standard_normal(4) * 0.6)
        forecaster.observe(bars(day, moves, levels))
        levels *= np.exp(moves)
    return forecaster


def test_forecaster_keeps_surprises_that_show_the_dependence():
    forecaster = walked(400)
    found = forecaster.surprises([series_id(f"S{n}", "1d") for n in range(4)])
    assert found.scores.shape == (380, 4)  # the first forecast follows 20 bars
    assert np.std(found.scores) == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(found.scores.T)[0, 1] == pytest.approx(0.64, abs=0.12)  # 4 deviations


def test_restored_forecaster_keeps_the_same_surprises():
    forecaster, config = walked(60), ForecastConfig()
    again = Forecaster(config, [EwmaExpert(config), RandomWalkExpert(config)])
    again.restore(forecaster.state())
    names = [series_id(f"S{n}", "1d") for n in range(4)]
    assert again.surprises(names).scores.tobytes() == forecaster.surprises(names).scores.tobytes()


def test_surprises_of_a_series_never_observed_are_refused_by_name():
    with pytest.raises(InvalidInput, match="X/1d"):
        walked(30).surprises(["S0/1d", "X/1d"])
