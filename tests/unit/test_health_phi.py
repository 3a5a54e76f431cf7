"""Suspicion from the rhythm of beats: rare false alarms in bad weather, a hard bound always, no blame while frozen."""

import math

import numpy as np
import pytest

from htfi.scheduling.health import failure_detection as detection
from htfi.scheduling.health.config import LATE_MS, MIN_STD_MS, TICK_MS, HealthConfig

CONFIG = HealthConfig()


def _steady(num_beats: int, gap_s: float = 0.075) -> detection.HeartbeatHistory:
    rhythm = detection.start_history(0.0)
    for index in range(num_beats):
        rhythm = detection.record_heartbeat_interval(rhythm, index * gap_s, CONFIG)
    return rhythm


def _silence_until_noticed_ms(rhythm: detection.HeartbeatHistory) -> float:
    return next(
        ms for ms in range(5_000) if detection.is_silent(rhythm, rhythm.last_received_s + ms / 1e3, CONFIG)
    )


def test_phi_is_the_normal_tail_in_decades() -> None:
    rhythm = _steady(50)
    five_std_s = rhythm.last_received_s + (75.0 + 5.0 * MIN_STD_MS) / 1e3
    assert detection.phi(rhythm, five_std_s, CONFIG) == pytest.approx(-math.log10(2.8665e-7), abs=1e-3)
    assert detection.phi(rhythm, rhythm.last_received_s, CONFIG) < 0.1
    assert detection.phi(rhythm, 1e6, CONFIG) == 300.0


def test_phi_never_falls_while_silence_lasts_and_is_defined_from_the_first_moment() -> None:
    for num_beats in (0, 1, 3, 8, 100):
        rhythm = _steady(num_beats)
        levels = [
            detection.phi(rhythm, rhythm.last_received_s + ms / 1e3, CONFIG) for ms in range(0, 3_000, 5)
        ]
        assert levels == sorted(levels)


@pytest.mark.parametrize("std_ms", [0.0, 10.0, 60.0, 150.0])
def test_silence_is_noticed_within_the_hard_bound_however_irregular_the_beats(std_ms: float) -> None:
    dice = np.random.Generator(np.random.PCG64(5))
    rhythm, at_s = detection.start_history(0.0), 0.0
    for _ in range(200):
        at_s += max(0.0, dice.normal(75.0, std_ms)) / 1e3
        rhythm = detection.record_heartbeat_interval(rhythm, at_s, CONFIG)
    noticed_ms = _silence_until_noticed_ms(rhythm)
    assert 300.0 <= noticed_ms <= CONFIG.silence_ms + 1.0
    assert CONFIG.silence_ms + 2 * TICK_MS <= 450.0


def test_an_even_rhythm_is_missed_sooner_than_an_irregular_one() -> None:
    uneven = detection.start_history(0.0)
    for index in range(100):
        uneven = detection.record_heartbeat_interval(
            uneven, index * 0.075 + (0.06 if index % 2 else 0.0), CONFIG
        )
    assert _silence_until_noticed_ms(_steady(100)) < _silence_until_noticed_ms(uneven)


def test_an_outage_and_a_burst_after_it_do_not_spoil_the_rhythm() -> None:
    rhythm = _steady(64)
    at_s = rhythm.last_heartbeat_s + 3.0
    for _ in range(40):
        rhythm = detection.record_heartbeat_interval(rhythm, at_s, CONFIG)
    assert _silence_until_noticed_ms(rhythm) <= 340


def test_time_in_which_the_observer_did_not_run_does_not_count() -> None:
    clock = detection.RunningClock(50.0)
    for index in range(40):
        clock = detection.advance_clock(clock, 50.0 + index * 0.025)
    assert clock.ran_s == pytest.approx(39 * 0.025)
    frozen = detection.advance_clock(clock, clock.last_s + 3.0)
    assert frozen.ran_s == pytest.approx(clock.ran_s + LATE_MS / 1e3)
    assert frozen.resumed_s == frozen.last_s
    assert (
        detection.advance_clock(frozen, frozen.last_s - 1.0) is frozen
    )  # a clock that goes back stands still


@pytest.mark.slow
def test_false_suspicion_is_rare_with_jitter_steps_of_rtt_and_lost_beats() -> None:
    """Beats each 75 ms, jitter ±50 ms, RTT 5 → 120 → 20 ms each 10 s, each 20th beat lost but never two of three in
    a row (an isolated loss). Over 200,000 beats (4.2 hours) the alarms are at most 1 an hour.
    """
    dice = np.random.Generator(np.random.PCG64(20_040))
    rhythm, num_alarms, arrived_s, since_lost = detection.start_history(0.0), 0, 0.0, 9
    num_beats = 200_000
    for index in range(num_beats):
        sent_s = index * 0.075
        one_way_ms = (2.5, 60.0, 10.0)[int(sent_s / 10.0) % 3]
        since_lost += 1
        if since_lost > 2 and dice.random() < 0.05:
            since_lost = 0
            continue
        due_s = sent_s + max(0.1, one_way_ms + dice.uniform(-50.0, 50.0)) / 1e3
        arrived_s = max(arrived_s, due_s)  # a stream keeps its order
        if index:
            # What a tick just before the arrival would have said.
            num_alarms += detection.is_silent(rhythm, max(rhythm.last_received_s, arrived_s - 1e-6), CONFIG)
        rhythm = detection.record_heartbeat_interval(rhythm, arrived_s, CONFIG)
    hours = num_beats * 0.075 / 3_600.0
    assert num_alarms / hours <= 1.0, f"{num_alarms} false alarms in {hours:.1f} hours"
