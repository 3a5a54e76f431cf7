"""Live quantiles: they follow a jump within a few samples, drift with time, and are not misled by rubbish."""

import math

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.scheduling.config import PlacementConfig
from htfi.scheduling.placement.live import RecentQuantiles

BEAT_S = 0.075


def median(recent: RecentQuantiles) -> float:
    found = recent.quantile(0.5)
    assert found is not None
    return found


def test_steps_of_the_round_trip_are_followed_within_four_samples() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    recent, at_s = RecentQuantiles(), 0.0
    for level_ms in (5.0, 120.0, 20.0):
        for sample in range(60):
            at_s += BEAT_S
            recent.add(level_ms * (1.0 + 0.05 * float(rng.exponential())), at_s)
            if sample >= 3:
                assert median(recent) == pytest.approx(level_ms, rel=0.25), (level_ms, sample)
    assert recent.num_shifts == 2


def test_a_single_stall_changes_no_median_and_is_no_jump() -> None:
    recent = RecentQuantiles()
    for sample in range(40):
        recent.add(400.0 if sample == 30 else 20.0 + sample % 3, sample * BEAT_S)
    assert median(recent) == pytest.approx(21.0, abs=1.0)
    assert recent.num_shifts == 0


def test_old_samples_weigh_half_after_each_half_life() -> None:
    recent = RecentQuantiles(64, half_life_s=1.0)
    for _ in range(3):
        recent.add(10.0, 0.0)
    recent.add(11.0, 2.0)
    recent.add(11.0, 2.0)
    assert median(recent) == 11.0  # 3 of weight ¼ against 2 of weight 1


def test_memory_is_bounded_and_rubbish_is_passed_over() -> None:
    recent = RecentQuantiles(16)
    for sample in range(1_000):
        recent.add(5.0, sample * BEAT_S)
    for rubbish in (math.nan, math.inf, -1.0):
        recent.add(rubbish, 80.0)
    assert len(recent) == 16
    assert median(recent) == 5.0
    assert RecentQuantiles().quantile(0.5) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"ms_per_joule": -1.0},
        {"hot_c": 95.0},
        {"ms_per_joule": math.inf},
        {"critical_c": 80.0},
        {"hot_c": math.nan},
        {"explore_share": -0.1},
        {"explore_share": math.nan},
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="placement"):
        PlacementConfig(**wrong)  # type: ignore[arg-type]
