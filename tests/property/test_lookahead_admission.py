"""Admission of draft slots against brute force, for any survival curves, caps and prices."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.decoding.draft_length.admission import RoundCost, admit_draft_slots
from htfi.domain.errors import InvalidInput

RATES = st.lists(st.floats(0.0, 1.0), min_size=0, max_size=4)


def curve_of(rates: list[float]) -> list[float]:
    survives, curve = 1.0, []
    for rate in rates:
        survives *= rate
        curve.append(survives)
    return curve


def round_ms(cost: RoundCost, lengths: Sequence[int]) -> float:
    return cost.width_ms[max(lengths)] + cost.slot_ms * sum(lengths)


def throughput(curves: list[list[float]], lengths: tuple[int, ...], price: RoundCost) -> float:
    tokens = len(curves) + sum(sum(curve[:length]) for curve, length in zip(curves, lengths, strict=True))
    return tokens / round_ms(price, lengths)


@given(
    rates=st.lists(RATES, min_size=1, max_size=4),
    caps=st.lists(st.integers(0, 5), min_size=4, max_size=4),
    steps_ms=st.lists(st.floats(0.0, 3.0), min_size=4, max_size=4),
    plain_ms=st.floats(0.05, 10.0),
    slot_ms=st.one_of(st.just(0.0), st.floats(0.0, 2.0)),
)
def test_admission_is_as_good_as_the_best_of_all_lengths(rates, caps, steps_ms, plain_ms, slot_ms):
    curves = [curve_of(each) for each in rates]
    caps = caps[: len(curves)]
    width_ms = [plain_ms]
    for step_ms in steps_ms:
        width_ms.append(width_ms[-1] + step_ms)
    price = RoundCost(width_ms, slot_ms)

    admission = admit_draft_slots(curves, caps, price)

    most = [min(cap, len(curve), 4) for curve, cap in zip(curves, caps, strict=True)]
    best = max(throughput(curves, each, price) for each in product(*(range(cap + 1) for cap in most)))
    assert all(0 <= length <= cap for length, cap in zip(admission.lengths, most, strict=True))
    assert throughput(curves, tuple(admission.lengths), price) == pytest.approx(best, rel=1e-9)
    assert admission.tokens_per_ms <= best * (1 + 1e-9)


@given(rates=RATES, num_rows=st.integers(1, 6), slot_ms=st.floats(0.0, 1.0))
def test_rows_that_share_a_curve_are_admitted_like_rows_with_copies_of_it(rates, num_rows, slot_ms):
    curve = curve_of(rates)
    price = RoundCost([1.0, 1.2, 1.5, 2.5, 2.6], slot_ms)
    caps = [1 + row % 4 for row in range(num_rows)]
    shared, copied = (
        admit_draft_slots([curve] * num_rows, caps, price),
        admit_draft_slots([list(curve) for _ in caps], caps, price),
    )
    assert shared.tokens_per_ms == pytest.approx(copied.tokens_per_ms, rel=1e-9)
    assert shared.tokens_per_ms == pytest.approx(throughput([curve] * num_rows, tuple(shared.lengths), price))


def test_the_surest_rows_are_admitted_where_slots_are_dear():
    curves = [[0.9, 0.8], [0.2, 0.1], [0.7, 0.3]]
    admission = admit_draft_slots(curves, [2, 2, 2], RoundCost([2.0, 2.0, 2.0], 0.4))
    assert admission.lengths == [2, 0, 1]


def test_a_padded_pass_is_widened_for_many_rows_and_not_for_one():
    curve, cold = [0.9, 0.85, 0.8], [0.0]
    price = RoundCost([4.0, 4.5, 5.0, 5.5])
    assert admit_draft_slots([curve] * 4, [3] * 4, price).lengths == [3, 3, 3, 3]
    assert admit_draft_slots([curve, *[cold] * 30], [3] * 31, price).lengths == [0] * 31


def test_admission_refuses_passes_that_take_no_time():
    with pytest.raises(InvalidInput, match="width_ms"):
        admit_draft_slots([[0.5]], [1], RoundCost([0.0, 1.0]))
    with pytest.raises(InvalidInput, match="2 caps"):
        admit_draft_slots([[0.5]], [1, 1], RoundCost([1.0, 1.0]))
