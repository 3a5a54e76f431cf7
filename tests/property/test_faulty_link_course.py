"""When bytes arrive, and as what: laws of one direction of a faulty link, over random weather and cuts into reads."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi_eval.faulty_link.conditions import Direction, Jitter, LinkConditions
from htfi_eval.faulty_link.delivery import BandwidthLimit, DeliverySchedule

weathers = st.builds(
    LinkConditions,
    rtt_ms=st.sampled_from([0.0, 5.0, 120.0]),
    jitter_ms=st.sampled_from([0.0, 1.0, 40.0]),
    jitter=st.sampled_from(Jitter),
    skew_ms=st.sampled_from([0.0, 30.0]),
    bytes_per_s=st.sampled_from([math.inf, 1e4, 1e7]),
    burst_bytes=st.sampled_from([0, 3_000]),
)
reads = st.lists(st.tuples(st.floats(0, 0.05), st.integers(1, 9_000)), min_size=1, max_size=12)


@settings(max_examples=examples(150), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), weather=weathers, reads=reads)
def test_every_byte_arrives_once_in_order_and_never_too_soon(
    seed: int, weather: LinkConditions, reads: list[tuple[float, int]]
) -> None:
    course, now_s, last_s, sent, got = (
        DeliverySchedule(Direction.UP, BandwidthLimit(), (seed,), weather),
        0.0,
        0.0,
        b"",
        b"",
    )
    least_s = weather.rtt_ms / 2e3 if weather.jitter is Jitter.EXPONENTIAL or not weather.jitter_ms else 0.0
    for wait_s, size in reads:
        now_s += wait_s
        data = bytes((len(sent) + k) % 251 for k in range(size))
        sent += data
        for due_s, part in course.pieces(now_s, data):
            assert due_s >= max(last_s, now_s + least_s), f"seed {seed}"
            last_s, got = due_s, got + part
            if weather.bytes_per_s < math.inf:
                begun_s = reads[0][0]
                assert due_s >= begun_s + (len(got) - weather.burst_bytes) / weather.bytes_per_s - 1e-9
    assert got == sent
    assert course.end_s(now_s) >= last_s


@settings(max_examples=examples(100), deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rate=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    place=st.integers(-1, 300),
    cuts=st.lists(st.integers(1, 60), min_size=5, max_size=10),
)
def test_flips_lie_where_they_lie_however_bytes_are_cut(
    seed: int, rate: float, place: int, cuts: list[int]
) -> None:
    weather = LinkConditions(corrupt_rate=rate)
    total = sum(cuts)
    seen: list[bytes] = []
    for sizes in (cuts, [total], [1] * total):
        course = DeliverySchedule(Direction.DOWN, BandwidthLimit(), (seed,), weather)
        seen.append(b"".join(part for size in sizes for _, part in course.pieces(0.0, bytes(size))))
    assert seen[0] == seen[1] == seen[2], f"seed {seed}"
    assert all(byte.bit_count() <= 1 for byte in seen[0])
    if rate == 1.0:
        assert all(seen[0])
    one = DeliverySchedule(Direction.DOWN, BandwidthLimit(), (seed,), LinkConditions(corrupts_at_byte=place))
    back = b"".join(part for size in cuts for _, part in one.pieces(0.0, bytes(size)))
    assert [k for k, byte in enumerate(back) if byte] == ([place] if 0 <= place < total else [])


def test_another_weather_counts_its_bytes_anew() -> None:
    course = DeliverySchedule(Direction.UP, BandwidthLimit(), (1,))
    course.pieces(0.0, bytes(500))
    course.set_conditions(LinkConditions(corrupts_at_byte=3))
    ((_, part),) = course.pieces(0.0, bytes(10))
    assert [k for k, byte in enumerate(part) if byte] == [3]


@pytest.mark.parametrize(
    ("jitter", "mean_ms", "std_ms"),
    [
        (Jitter.EXPONENTIAL, 5 + 3, 3.0),
        (Jitter.NORMAL, 5 + 3 * 0.1045, 2.708),  # cut at 5/3 standard deviations below
    ],
)
def test_jitter_has_the_mean_and_spread_that_were_asked_for(
    jitter: Jitter, mean_ms: float, std_ms: float
) -> None:
    weather = LinkConditions(rtt_ms=10, jitter_ms=3, jitter=jitter)
    num = 4000
    late_ms = np.array(
        [
            1e3 * (due_s - now_s)
            for seed in range(num)
            for now_s in (1.0,)
            for due_s, _ in DeliverySchedule(Direction.UP, BandwidthLimit(), (seed,), weather).pieces(
                now_s, b"x"
            )
        ]
    )
    assert late_ms.min() >= (5 if jitter is Jitter.EXPONENTIAL else 0)
    # one honest seed set in some 10,000 would fail: four standard errors, and 6 per cent for the spread
    assert abs(late_ms.mean() - mean_ms) < 4 * std_ms / num**0.5
    assert abs(late_ms.std() / std_ms - 1) < 0.1
