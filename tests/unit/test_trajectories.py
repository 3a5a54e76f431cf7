"""Laws and paths of price tokens: exact, even, the same whatever stands beside them."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from htfi import models
from htfi.decoding.trajectories import ReturnPathSampler, stratified_uniforms
from htfi.domain.errors import InvalidInput
from htfi.wiring.experts import open_path_sampler


@pytest.fixture(scope="module")
def sampler() -> ReturnPathSampler:
    return open_path_sampler(models.DRAFT)


def next_bar_laws(sampler: ReturnPathSampler, prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Probabilities of the next bar's bins [n, C]."""
    return sampler.paths(prefixes, (1,), 1, seed=0)[1][:, 0, 0]


def test_laws_are_chances_whose_variance_is_near_one(sampler: ReturnPathSampler) -> None:
    rng = np.random.default_rng(3)
    laws = next_bar_laws(sampler, [sampler.prefix(rng.standard_normal(32)) for _ in range(6)])
    assert np.allclose(laws.sum(axis=1), 1.0)
    variance = (laws * sampler.centres**2).sum(axis=1)
    assert ((variance > 0.4) & (variance < 2.0)).all()


def test_a_prefix_says_the_same_alone_and_among_longer_and_shorter_ones(sampler: ReturnPathSampler) -> None:
    rng = np.random.default_rng(4)
    prefixes = [sampler.prefix(rng.standard_normal(length)) for length in (32, 9, 0, 21)]
    together = sampler.paths(prefixes, (1, 4), 8, seed=2)
    for place, prefix in enumerate(prefixes):
        alone = sampler.paths([prefix], (1, 4), 8, seed=2)
        assert (alone[0][0] == together[0][place]).all()
        assert (alone[1][0] == together[1][place]).all()
    assert (together[1][:, :, 0] == next_bar_laws(sampler, prefixes)[:, None]).all()


def test_more_prefixes_than_a_pass_holds_are_read_in_turns(sampler: ReturnPathSampler) -> None:
    rng = np.random.default_rng(5)
    prefixes = [sampler.prefix(rng.standard_normal(3)) for _ in range(130)]
    assert (next_bar_laws(sampler, prefixes)[129] == next_bar_laws(sampler, prefixes[129:])[0]).all()
    z, laws = sampler.paths(prefixes[:5], (2,), 64, seed=1)
    assert z.shape == (5, 64, 1)
    assert laws.shape == (5, 64, 1, 129)
    assert (z[4] == sampler.paths(prefixes[4:5], (2,), 64, seed=1)[0][0]).all()


def test_dice_are_strata_so_that_few_paths_draw_the_law_closely(sampler: ReturnPathSampler) -> None:
    prefix = sampler.prefix(np.random.default_rng(6).standard_normal(32))
    law = next_bar_laws(sampler, [prefix])[0]
    drawn = sampler.paths([prefix], (2,), 64, seed=9)[0][0, :, 0]
    reached = np.cumsum(law)
    empirical = np.array([(drawn <= centre + 1e-12).mean() for centre in sampler.centres])
    assert np.abs(empirical - reached).max() <= 1.0 / 64 + 1e-9  # 64 independent draws: .11 on average


def test_another_seed_draws_other_paths_and_the_same_next_bar(sampler: ReturnPathSampler) -> None:
    prefix = sampler.prefix(np.linspace(-1.0, 1.0, 32))
    first, second = (sampler.paths([prefix], (1, 3), 8, seed=seed) for seed in (1, 2))
    assert (first[0] != second[0]).any()
    assert (first[1][:, :, 0] == second[1][:, :, 0]).all()


def test_only_the_last_thirty_two_returns_are_read(sampler: ReturnPathSampler) -> None:
    context = np.random.default_rng(7).standard_normal(50)
    assert sampler.prefix(context) == sampler.prefix(context[-32:])


def test_a_prefix_beyond_what_the_model_reads_is_refused_in_one_line(sampler: ReturnPathSampler) -> None:
    with pytest.raises(InvalidInput, match="the model reads 1024"):
        sampler.paths([(1,) * 1020], (22,), 2, seed=0)


def test_an_absurd_temperature_is_refused() -> None:
    with pytest.raises(InvalidInput, match="temperature"):
        open_path_sampler(models.DRAFT, temperature=0.0)


def test_no_prefix_gives_no_law(sampler: ReturnPathSampler) -> None:
    assert sampler.paths([], (1,), 2, seed=0)[1].shape == (0, 2, 1, 129)


@pytest.mark.parametrize(
    ("num_paths", "num_steps"), [(1, 3), (2, 5), (3, 4), (8, 21), (32, 21), (7, 0), (5, 1)]
)
def test_dice_fill_every_stratum_at_every_step(num_paths: int, num_steps: int) -> None:
    dice = stratified_uniforms(3, num_paths, num_steps)
    assert dice.shape == (num_paths, num_steps)
    assert (np.sort((dice * num_paths).astype(int), axis=0) == np.arange(num_paths)[:, None]).all()


def test_sums_of_few_dice_spread_as_sums_of_many_would() -> None:
    errors = []
    for seed in range(4):  # 32 independent paths err by .125 of the variance's root, on average
        steps = stats.norm.ppf(stratified_uniforms(seed, 32, 21))
        errors += [abs((steps[:, :h].sum(axis=1) ** 2).mean() / h - 1.0) for h in (4, 12, 21)]
    assert np.mean(errors) < 0.06


def test_other_seeds_are_other_dice_and_equal_seeds_the_same() -> None:
    assert (stratified_uniforms(1, 8, 4) != stratified_uniforms(2, 8, 4)).any()
    again = stratified_uniforms(1, 8, 4).copy()
    stratified_uniforms.cache_clear()
    assert (stratified_uniforms(1, 8, 4) == again).all()
