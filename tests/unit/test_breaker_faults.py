"""The evaluation of circuit breakers: a fault is found in a simulated session, and none where nothing fails."""

import numpy as np

from htfi.governance.breakers.observations import AnswerObservation, ViewObservation
from htfi.governance.breakers.panel import BreakerPanel
from htfi_eval.eval.governance.breaker_faults import FAULTS, READINGS
from htfi_eval.eval.governance.breaker_worlds import MarketWorld, PooledReading, ReadingWorld, intraday_prices
from htfi_eval.eval.governance.breakers import run_trials, trips_of

NAMES = {fault.name: fault for fault in FAULTS}


def _pool() -> list[PooledReading]:
    """Readings that are right three times in four."""
    rng = np.random.default_rng(4)
    pool: list[PooledReading] = []
    for _ in range(40):
        direction = float(rng.choice([-1.0, 0.0, 1.0]))
        drafted = int(rng.integers(10, 30))
        answer = AnswerObservation("target", "draft", 24, drafted, int(rng.binomial(drafted, 0.8)), 3.0)
        view = ViewObservation(
            "target", direction, direction * float(rng.uniform(0.3, 2.0)), 0.6, 1.2, ("item",), answer=answer
        )
        sign = direction if rng.random() < 0.75 else -direction
        pool.append(PooledReading(view, float(abs(rng.normal()) * (sign or rng.choice([-1.0, 1.0])))))
    return pool


def test_a_crash_is_found_in_a_simulated_session_and_the_world_taken_back():
    world = MarketWorld(intraday_prices(3, num_series=6, num_bars=150))
    crash, late = NAMES["2010-like crash"], NAMES["late feed"]
    trials = list(run_trials(world, [crash, late], 110, 10, 1, np.random.default_rng(1)))
    assert [one.fault for one in trials] == ["2010-like crash", "late feed"]
    assert all(one.delay is not None and one.delay <= 8 for one in trials)
    assert trips_of(world.ahead(20), BreakerPanel()) == []


def test_faults_of_readings_are_found_and_a_stream_without_one_trips_nothing():
    faults = [
        fault
        for fault in FAULTS
        if fault.world == READINGS and fault.name in ("drafts rejected", "reader stuck")
    ]
    trials = list(run_trials(ReadingWorld(_pool(), 6), faults, 120, 10, 1, np.random.default_rng(2)))
    assert len(trials) == 2
    assert all(one.delay is not None for one in trials)
    assert trips_of(ReadingWorld(_pool(), 7).ahead(150), BreakerPanel()) == []


def test_kinds_of_failure_are_many_and_each_has_a_breaker_meant_for_it():
    from htfi.governance.breakers.config import MEANINGS

    assert len(NAMES) == len(FAULTS) >= 12
    assert all(fault.finders and fault.finders <= MEANINGS.keys() for fault in FAULTS)
