"""Hours of bars, their pattern and moves back to a level have the same bits whether a compiler was at hand or not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.domain.new_york import to_local_ns
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting import compiled as learning
from htfi.forecasting.expected_moves import ExpectedMoves
from htfi.forecasting.known_variance import compiled
from htfi.forecasting.known_variance.coming_bars import ComingBars, week_slots
from htfi.forecasting.known_variance.factor import KnownVariance
from htfi.forecasting.known_variance.weekly_pattern import WeeklyPattern
from htfi.forecasting.panel import BarBatch

HORIZONS, NUM_SERIES, NUM_AHEAD = (1, 5, 22), 3, 23
LENGTHS_S = (60, 420, 1800, 3600, 7 * 3600, 20 * 3600)
HOUR_NS = 3600 * NS_PER_S
KNOWN_NS = 1_704_672_000 * NS_PER_S  # a Monday, 0:00 UTC, a week before a holiday
EVENTS = [
    ScheduledEvent(
        time_ns=KNOWN_NS + 7 * NS_PER_DAY, kind="market_closed", name="", currency="USD", is_exact=False,
        known_ns=KNOWN_NS + 2 * NS_PER_DAY,
    ),
    ScheduledEvent(time_ns=KNOWN_NS + 3 * NS_PER_DAY + 13 * HOUR_NS, kind="us_payrolls", name="", currency="USD"),
]  # fmt: skip
SPRING = 1_425_790_800 * NS_PER_S  # an hour before New York's clock goes forward in 2015


def starts(length_ns: int, first_ns: int, num: int, seed: int) -> list[int]:
    """Starts of bars between 8:00 and 20:00 of New York, some of which are missing."""
    rng = np.random.default_rng(seed)
    all_ns = first_ns + length_ns * np.arange(num, dtype=np.int64)
    hour = to_local_ns(all_ns) % NS_PER_DAY // (3600 * NS_PER_S)
    return all_ns[(hour >= 8) & (hour < 20) & (rng.random(num) < 0.9)].tolist()


def hours(length_ns: int, starts_ns: list[int], seed: int) -> list[bytes]:
    """What is held and expected after these bars: spans ahead and their factors, at every tenth."""
    rng, coming, pattern = np.random.default_rng(seed), ComingBars(), WeeklyPattern()
    coming.grow(NUM_SERIES)
    pattern.grow(NUM_SERIES)
    found: list[bytes] = []
    for t, start_ns in enumerate(starts_ns):
        index = np.flatnonzero(rng.random(NUM_SERIES) < 0.8)
        start, length = np.full(len(index), start_ns), np.full(len(index), length_ns)
        coming.learn(index, start)
        pattern.learn(index, week_slots(start), length, 3.0 * rng.standard_normal(len(index)))
        if t % 10 == 0 and len(index):
            begins, ends = coming.spans(index, start, start + length, NUM_AHEAD)
            found += [begins.tobytes(), ends.tobytes(), pattern.factors(index, begins).tobytes()]
    found += [value.tobytes() for part in (coming, pattern) for value in part.state().values()]
    return found


@pytest.mark.skipif(compiled.core is None, reason="built without a C compiler")
@given(
    length_s=st.sampled_from(LENGTHS_S),
    first_ns=st.sampled_from([0, -30 * NS_PER_DAY, SPRING - 30 * NS_PER_DAY, SPRING + 230 * NS_PER_DAY])
    | st.integers(0, 2**61).map(lambda at: at // NS_PER_S * NS_PER_S),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25)
def test_compiled_and_numpy_follow_the_same_hours(length_s: int, first_ns: int, seed: int) -> None:
    length_ns = length_s * NS_PER_S
    starts_ns = starts(length_ns, first_ns, min(60 * NS_PER_DAY // length_ns, 240), seed) or [first_ns]
    with_core = hours(length_ns, starts_ns, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "core", None)
        assert hours(length_ns, starts_ns, seed) == with_core


def known(intervals: tuple[str, ...], events: list[ScheduledEvent], seed: int) -> list[bytes]:
    """What is known of bars of pairs of currencies over three weeks, in turn, and what their outcomes become by it."""
    rng, num = np.random.default_rng(seed), len(intervals)
    one = KnownVariance(HORIZONS, 5.0, events)
    one.grow(
        [(f"{code}USD", interval) for code, interval in zip(("EUR", "GBP", "NZD"), intervals, strict=False)]
    )
    every = [24 if interval == "1d" else int(interval[:-1]) for interval in intervals]
    age, found = np.zeros(num, np.int64), list[bytes]()
    for hour in range(21 * 24):
        there = [
            row for row in range(num) if hour % every[row] == 0 and hour % 168 < 120 and rng.random() > 0.02
        ]
        if not there:
            continue
        index, n = np.array(there, np.intp), len(there)
        end_ns = np.full(n, KNOWN_NS + hour * HOUR_NS)
        start_ns = end_ns - np.array([every[row] for row in there]) * HOUR_NS
        closed = one.of_closed(index, start_ns, end_ns)
        ahead = one.ahead(index)
        still = rng.standard_normal(n)
        bars = BarBatch(
            rows=index, index=index, age=age[index], returns=still, variance=still, log_variance=still,
            within_log_variance=still, usual=still, outcomes=rng.standard_normal((n, len(HORIZONS))),
            due=np.zeros(n, np.bool_), start_ns=start_ns, end_ns=end_ns, group=np.zeros(n, np.int64), volume=still,
            covariates=np.zeros((n, 0)),
        )  # fmt: skip
        divided = one.divided(bars)
        one.learn(bars, still)
        age[index] += 1
        found += [b"" if part is None else part.tobytes() for part in (*(closed or ()), ahead, divided)]
    return found


@pytest.mark.skipif(compiled.core is None, reason="built without a C compiler")
@pytest.mark.parametrize("intervals", [("1h", "1h", "4h"), ("1h", "1d", "8h")])
@pytest.mark.parametrize("events", [[], EVENTS], ids=["none", "calendar"])
def test_compiled_and_numpy_know_the_same_of_bars(
    intervals: tuple[str, ...], events: list[ScheduledEvent]
) -> None:
    with_core = known(intervals, events, 1)
    assert any(with_core)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "core", None)
        assert known(intervals, events, 1) == with_core


def moves(pull: float, num: int, seed: int) -> dict[str, Any]:
    """The state after so many bars of log prices that are drawn to a level, the second less, the third not at all, in
    two intervals; the first does not drift."""
    rng, expected = np.random.default_rng(seed), ExpectedMoves(HORIZONS)
    expected.grow(NUM_SERIES)
    groups, days = np.array([0, 0, 1]), np.array([0.0, 1.0, 5.0])
    price, past = np.zeros(NUM_SERIES), np.zeros((num, NUM_SERIES))
    index, pulls = np.arange(NUM_SERIES), pull * np.array([1.0, 0.3, 0.0])
    still, whole = np.zeros(NUM_SERIES), np.zeros(NUM_SERIES, np.int64)
    less: list[bytes] = []
    for t in range(num):
        noise = 0.07 * rng.standard_normal(NUM_SERIES)
        price = price * (1.0 - pulls) + noise
        past[t] = price
        outcomes = np.stack(
            [price - past[t - h] if t >= h else np.full(NUM_SERIES, np.nan) for h in HORIZONS], axis=1
        )
        bars = BarBatch(
            rows=slice(0, NUM_SERIES), index=index, age=np.full(NUM_SERIES, t), returns=noise, variance=still,
            log_variance=still, within_log_variance=still, usual=rng.uniform(0.0, 0.1, NUM_SERIES), outcomes=outcomes,
            due=np.zeros(NUM_SERIES, np.bool_), start_ns=whole, end_ns=whole, group=groups, volume=still,
            covariates=np.zeros((NUM_SERIES, 0)),
        )  # fmt: skip
        expected.update(bars, price, days)
        less.append(expected.less_expected(bars).outcomes.tobytes())
        expected.learn(replace(bars), np.array([True, True, t % 7 > 0]))
    parts = {
        f"{part}.{name}": column.tobytes()
        for part, of in expected.state().items()
        for name, column in of.items()
    }
    return parts | {"less": b"".join(less)}


@pytest.mark.skipif(learning.core is None, reason="built without a C compiler")
@pytest.mark.parametrize("seed", [1, 2])
def test_compiled_and_numpy_expect_the_same_moves(seed: int) -> None:
    with_core = moves(0.3, 700, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "core", None)
        without = moves(0.3, 700, seed)
    assert any(np.frombuffer(with_core["mean_reversion.does_return"], np.int64))
    assert all(np.frombuffer(with_core["drift.num"], np.float64)[:2])
    assert without == with_core
