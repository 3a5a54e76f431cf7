"""Paths are those of plain sampling bit for bit, whatever is guessed, by whom, how far, and what else is in memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counting_network import CountingNetwork
from examples import examples
from htfi.decoding.config import DecodingConfig
from htfi.decoding.noise import noise_keys
from htfi.decoding.ports import Ids
from htfi.decoding.sampling import SamplingParams, sample_tokens
from htfi.decoding.sessions import KVSessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import RequestRefused
from htfi_train.paths.plan import (
    FewestPasses,
    GuessSource,
    LeastTime,
    PathPlan,
    PathProgress,
    PathRoundReport,
    PathStep,
    PlainPathPlan,
)
from htfi_train.paths.sample import sample_paths
from tiny_network import TinyNetwork, TinyTokenizer

VOCABULARY = Vocabulary(TinyTokenizer())
NETWORKS = [TinyNetwork(VOCABULARY.tokenizer.vocab_size, seed, sharpness=1.0) for seed in range(3)]
PREFIX = [5, 6, 7, 30, 8, 2, 1, 40, 41]


class Fitful:
    """Another length and another source each round."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.Generator(np.random.PCG64(seed))

    def next(self, standing: PathProgress) -> PathStep:
        num_guesses = int(self._rng.integers(0, standing.left.max() + 2))
        return PathStep(num_guesses, GuessSource.DRAFT if self._rng.random() < 0.6 else GuessSource.OWN)

    def learn(self, seen: PathRoundReport) -> None:
        num_guesses = seen.step.num_guesses
        assert len(seen.tried) == len(seen.right) == num_guesses
        assert (seen.right <= seen.tried).all()
        assert (seen.tried[1:] <= seen.right[:-1]).all()


def one_by_one(
    sessions: KVSessions, num_paths: int, horizon: int, seed: int, sampling: SamplingParams
) -> Ids:
    """Each path alone, a token at a time."""
    bin_of = {int(token): place for place, token in enumerate(VOCABULARY.price_ids)}
    bins = np.empty((num_paths, horizon), np.int64)
    for path in range(num_paths):
        opened = sessions.open(PREFIX, len(PREFIX) + horizon)
        logits = opened.logits
        for step in range(horizon):
            noise = noise_keys(seed, np.array([path + 1]), np.array([step]))
            token = int(sample_tokens(logits[None], VOCABULARY.prices, sampling, noise)[0])
            bins[path, step] = bin_of[token]
            logits = sessions.extend([opened.row], [[token]])[0][-1]
        sessions.close(opened.row)
    return bins


@settings(max_examples=examples(40), deadline=None)
@given(
    seed=st.integers(0, 2**64 - 1),
    num_paths=st.integers(1, 9),
    horizon=st.integers(1, 12),
    sampling=st.builds(
        SamplingParams,
        st.sampled_from([0.0, 0.3, 1.0, 3.0]),
        st.sampled_from([0, 3]),
        st.sampled_from([1.0, 0.7]),
    ),
    plan_seed=st.integers(0, 99),
    plan_kind=st.sampled_from(["plain", "fewest", "least", "fitful", "fitful"]),
    draft_seed=st.sampled_from([None, 0, 1, 2]),
    num_others=st.integers(0, 2),
    max_forks=st.sampled_from([3, 256]),
)
def test_paths_are_those_drawn_one_by_one(
    seed: int,
    num_paths: int,
    horizon: int,
    sampling: SamplingParams,
    plan_seed: int,
    plan_kind: str,
    draft_seed: int | None,
    num_others: int,
    max_forks: int,
):
    config = DecodingConfig(block_tokens=8, batch_bytes=2**22)
    target = KVSessions(NETWORKS[0], config)
    expected = one_by_one(target, num_paths, horizon, seed, sampling)
    others = [target.open([3, 4, 5 + k], 60).row for k in range(num_others)]
    target.network = counted = CountingNetwork(target.network, len(PREFIX))
    draft = None if draft_seed is None else KVSessions(NETWORKS[draft_seed], config)
    plan: PathPlan = {"plain": PlainPathPlan, "fewest": FewestPasses, "least": LeastTime}.get(
        plan_kind, lambda: Fitful(plan_seed)
    )()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("htfi_train.paths.sample.MAX_FORKS", max_forks)
        sampled = sample_paths(
            target,
            VOCABULARY,
            PREFIX,
            num_paths,
            horizon,
            seed=seed,
            sampling=sampling,
            draft=draft,
            plan=plan,
        )
    assert not isinstance(sampled, RequestRefused)
    assert np.array_equal(sampled.bins, expected)
    rounds = sampled.rounds
    assert sum(rounds.accepted_per_pass) == num_paths * (
        horizon - 1
    )  # the first tokens follow from the prefix
    assert counted.num_tokens >= sum(rounds.accepted_per_pass)
    assert target.arena.num_rows == num_others
    for row in others:  # and nobody else's row was touched
        assert row.length == 3
        target.close(row)
    assert draft is None or draft.arena.num_rows == 0
