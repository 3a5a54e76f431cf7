"""The rank of a divergence: one in twenty reaches 0.95, rarer is higher, nothing is learnt before it is ranked."""

import json

import numpy as np
import pytest

from htfi.forecasting.opinions import (
    HALF_LIFE_OPINIONS,
    MAX_RANKED_NARRATORS,
    PRIOR_OPINIONS,
    REFERENCE,
    DivergenceRanks,
)


def drawn(num: int, seed: int = 1) -> list[float]:
    """Divergences as a narrator has them: many of nothing, the rest between."""
    dice = np.random.Generator(np.random.PCG64(seed))
    values = np.where(dice.random(num) < 0.3, 0.0, dice.beta(2.0, 3.0, num))
    return np.round(values, 6).tolist()


def ranked(values: list[float], of: DivergenceRanks | None = None) -> list[float]:
    found, ranks = of or DivergenceRanks(), []
    for value in values:
        ranks += found.ranks(["n"], [value])
        found.learn(["n"], [value])
    return ranks


@pytest.mark.parametrize("rank", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_of_like_opinions_a_share_of_one_minus_the_rank_reaches_it(rank: float) -> None:
    ranks = ranked(drawn(4_000))[400:]
    share = float(np.mean(np.array(ranks) >= rank))
    # 3,600 draws: with a standard error of √(p(1−p)/n) five of them fail once in a million runs; a rank rests on some
    # 1,440 opinions itself, which adds as much again.
    error = np.sqrt(rank * (1 - rank)) * (1 / np.sqrt(3_600) + 1 / np.sqrt(1_440))
    assert abs(share - (1 - rank)) < 5 * error


def test_a_rank_counts_those_that_diverged_less_and_not_those_that_diverged_the_same() -> None:
    found = DivergenceRanks()
    found.learn(["n"] * 400, [0.2] * 200 + [0.5] * 200)
    below, same, above = found.ranks(["n"] * 3, [0.1, 0.5, 0.6])
    assert below < 0.05
    assert abs(same - 0.5) < 0.05
    assert above > 0.95


def test_at_first_a_rank_is_the_references() -> None:
    at, shares = zip(*REFERENCE, strict=True)
    for value in (0.0, 0.35, 0.62, 0.78):
        expected = float(np.interp(value, at, shares))
        (rank,) = DivergenceRanks().ranks(["new"], [value])
        assert rank == pytest.approx(expected, abs=2e-3)


def test_the_reference_yields_to_what_the_narrator_does() -> None:
    found = DivergenceRanks()
    (before,) = found.ranks(["n"], [0.3])
    found.learn(["n"] * int(3 * PRIOR_OPINIONS), [0.1] * int(3 * PRIOR_OPINIONS))
    (after,) = found.ranks(["n"], [0.3])
    assert before < 0.45
    assert after > 0.8
    assert found.ranks(["other"], [0.3]) == [before]


def test_a_narrator_that_has_grown_louder_is_ranked_among_its_later_opinions() -> None:
    found = DivergenceRanks()
    found.learn(["n"] * 2_000, [0.1] * 2_000)
    loud = int(4 * HALF_LIFE_OPINIONS)
    for _ in range(loud // 100):
        found.learn(["n"] * 100, [0.6] * 100)
    (rank,) = found.ranks(["n"], [0.5])
    assert rank < 0.15


def test_opinions_of_one_moment_are_not_ranked_among_each_other() -> None:
    found = DivergenceRanks()
    found.learn(["n"] * 50, drawn(50))
    together = found.ranks(["n"] * 3, [0.4, 0.4, 0.4])
    assert len(set(together)) == 1


def test_ranks_never_fall_as_divergence_rises_and_stay_below_one() -> None:
    found = DivergenceRanks()
    found.learn(["n"] * 300, drawn(300))
    values = np.linspace(0.0, 1.0, 700).tolist()
    ranks = found.ranks(["n"] * 700, values)
    assert ranks == sorted(ranks)
    assert all(0.0 <= rank < 1.0 for rank in ranks)


def test_what_was_learnt_goes_the_way_of_a_snapshot_to_the_last_bit() -> None:
    found = DivergenceRanks()
    ranked(drawn(200), found)
    again = DivergenceRanks()
    again.restore(json.loads(json.dumps(found.state())))
    assert ranked(drawn(50, seed=2), again) == ranked(drawn(50, seed=2), found)
    assert again.state() == found.state()


def test_memory_is_bounded_and_the_narrator_longest_silent_goes() -> None:
    found = DivergenceRanks()
    for place in range(MAX_RANKED_NARRATORS + 5):
        found.learn([f"n{place}"], [0.5])
    assert len(found.state()) == MAX_RANKED_NARRATORS
    assert "n0" not in found.state()
    assert f"n{MAX_RANKED_NARRATORS + 4}" in found.state()
