"""What judges a distilled draft: the paired error over news, and when a draft is promoted."""

import numpy as np
import pytest

from htfi_train.acceptance_comparison import AcceptanceChange, AcceptanceCounts, compare_acceptance
from htfi_train.distillation import AcceptanceRow, rejection_reason


def acceptance(matches: list[int], places: list[int], field: str = "way") -> AcceptanceCounts:
    rows = enumerate(zip(matches, places, strict=True))
    return AcceptanceCounts({(bytes([key]), field): pair for key, pair in rows})


def test_the_change_is_the_difference_of_shares_with_the_error_of_pairs() -> None:
    found = compare_acceptance(acceptance([3, 5, 2], [4, 8, 2]), acceptance([4, 5, 2], [4, 8, 2]))
    assert found is not None
    assert found.before == pytest.approx(10 / 14)
    assert found.gain == pytest.approx(1 / 14)
    by_hand = np.sqrt((1 - 4 / 14) ** 2 + (8 / 14) ** 2 + (2 / 14) ** 2) / 14
    assert found.error == pytest.approx(by_hand)
    assert found.num_places == 14


def test_the_error_is_that_seen_over_many_draws() -> None:
    rng = np.random.Generator(np.random.PCG64(0))
    gains, errors = [], []
    for _ in range(400):
        places = rng.integers(5, 15, 200)
        before = rng.binomial(places, 0.9)
        after = np.minimum(before + (rng.random(200) < 0.3), places)
        found = compare_acceptance(
            acceptance(before.tolist(), places.tolist()), acceptance(after.tolist(), places.tolist())
        )
        assert found is not None
        gains.append(found.gain)
        errors.append(found.error)
    assert np.mean(errors) == pytest.approx(np.std(gains), rel=0.15)  # 400 draws: 3.5% standard error


def test_fields_are_counted_apart_and_none_is_none() -> None:
    both = AcceptanceCounts({(b"a", "way"): (1, 2), (b"a", "path"): (0, 10)})
    of_way = compare_acceptance(both, both, ["way"])
    assert of_way is not None
    assert (of_way.before, of_way.num_places) == (0.5, 2)
    assert compare_acceptance(both, both, ["size"]) is None
    assert compare_acceptance(AcceptanceCounts(), AcceptanceCounts()) is None


def rows(overall: float, answers: float = 0.0, simulated: float = 0.0) -> list[AcceptanceRow]:
    def of(gain: float) -> AcceptanceChange:
        return AcceptanceChange(0.9, 0.9 + gain, 0.01, 100)

    return [
        AcceptanceRow("held back", "", of(overall)),
        AcceptanceRow("held back", "answers", of(answers)),
        AcceptanceRow("simulated", "", of(simulated)),
        AcceptanceRow("simulated", "answers", of(simulated)),
        AcceptanceRow("simulated", "size", of(-0.5)),
    ]


def test_only_a_rise_beyond_its_error_promotes_and_a_fall_beyond_its_error_forbids() -> None:
    assert rejection_reason(rows(0.02)) == ""
    assert rejection_reason(rows(0.02, simulated=-0.009)) == ""
    assert "held-back questions went from 0.9000 to 0.9090" in rejection_reason(rows(0.009))
    assert "answers fell on held back" in rejection_reason(rows(0.02, answers=-0.02))
    assert "answers fell on simulated" in rejection_reason(rows(0.02, simulated=-0.02))
