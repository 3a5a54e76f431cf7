"""Rounding to thousandths gives what `round` gives, bit for bit."""

import math
import random
import struct

from hypothesis import example, given
from hypothesis import strategies as st

from htfi.narrative.thousandths import rounded


def _bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(-2.0, 2.0))
@example(0.0005)
@example(-0.0004)
@example(2.675)
@example(1e6 + 0.0005)
def test_any_number_is_rounded_as_by_round(value: float) -> None:
    assert _bits(rounded(value)) == _bits(round(value, 3))


def test_numbers_beside_the_middle_between_two_thousandths() -> None:
    rng = random.Random(2)
    middles = [(rng.randrange(-3_000, 3_000) + 0.5) / 1_000.0 for _ in range(3_000)]
    beside = [math.nextafter(one, side) for one in middles for side in (-9.0, 9.0)]
    assert [one for one in (*middles, *beside) if _bits(rounded(one)) != _bits(round(one, 3))] == []


def test_what_is_no_number_stays_so() -> None:
    assert math.isnan(rounded(math.nan))
    assert rounded(-math.inf) == -math.inf
