"""Rounds of drawing paths: how many passes they take, what they count, and what a bad draft or target leads to."""

import numpy as np
import pytest

from counting_network import CountingNetwork
from htfi.decoding.config import DecodingConfig
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.sessions import KVSessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import InvalidInput
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
from htfi_train.paths.sample import SampledPaths, sample_paths
from tiny_network import TinyNetwork, TinyTokenizer

VOCABULARY = Vocabulary(TinyTokenizer())
SIZE = VOCABULARY.tokenizer.vocab_size
PREFIX = [5, 6, 7, 30, 8, 2, 1, 40, 41]


class Spoilt(TinyNetwork):
    """Its logits are not numbers from some pass on."""

    def __init__(self, num_good: int) -> None:
        super().__init__(SIZE, sharpness=1.0)
        self.num_good = num_good

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        out = super().forward(ids, positions, mask, keys, values)
        if self.num_passes <= self.num_good:
            return out
        return ForwardOutput(*(np.full_like(array, np.nan) for array in out))


class Always:
    """The same step each round; notes what it is told."""

    def __init__(self, num_guesses: int, source: GuessSource) -> None:
        self.step = PathStep(num_guesses, source)
        self.seen: list[PathRoundReport] = []
        self.num_paths: list[int] = []

    def next(self, standing: PathProgress) -> PathStep:
        self.num_paths.append(len(standing.left))
        return self.step

    def learn(self, seen: PathRoundReport) -> None:
        self.seen.append(seen)


def sessions(network: TinyNetwork | None = None, **settings: int) -> KVSessions:
    config = DecodingConfig(**{"block_tokens": 8, "batch_bytes": 2**22, **settings})
    return KVSessions(network or TinyNetwork(SIZE, sharpness=1.0), config)


def drawn(
    target: KVSessions, plan: PathPlan, draft: KVSessions | None = None, num: int = 12, horizon: int = 10
) -> SampledPaths:
    sampled = sample_paths(target, VOCABULARY, PREFIX, num, horizon, seed=5, plan=plan, draft=draft)
    assert not isinstance(sampled, RequestRefused)
    return sampled


def test_a_draft_that_is_the_target_settles_all_in_one_pass():
    target = sessions()
    target.network = counted = CountingNetwork(target.network, len(PREFIX))
    sampled = drawn(target, FewestPasses(), sessions())
    assert sampled.rounds.accepted_per_pass == [12 * 9]
    assert counted.num_tokens == 12 * 9
    assert np.array_equal(sampled.bins, drawn(sessions(), PlainPathPlan()).bins)


def test_plain_sampling_takes_a_pass_a_token():
    rounds = drawn(sessions(), PlainPathPlan()).rounds
    assert rounds.accepted_per_pass == [12] * 9
    assert rounds.num_draft_passes == 0


def test_refining_settles_in_fewer_passes_than_tokens_with_an_absurd_draft_and_with_none():
    plain = drawn(sessions(), PlainPathPlan())
    for draft in (None, sessions(TinyNetwork(SIZE, 1, sharpness=9.0))):
        sampled = drawn(sessions(), FewestPasses(), draft)
        assert np.array_equal(sampled.bins, plain.bins)
        assert (
            1 < sampled.rounds.num_target_passes <= 9
        )  # the fixed point is reached after H − 1 at the latest
        assert sampled.rounds.num_draft_passes == (8 if draft else 0)  # the last follows from it


def test_every_pass_settles_each_path_by_a_token_at_least_and_finished_ones_leave():
    target, plan = sessions(), Always(3, GuessSource.OWN)
    rounds = drawn(target, plan).rounds
    num_rows = [seen.num_rows for seen in plan.seen]
    assert all(gain >= num for gain, num in zip(rounds.accepted_per_pass, plan.num_paths, strict=True))
    assert num_rows == sorted(num_rows, reverse=True)
    assert num_rows[-1] < num_rows[0] == 12


def test_a_plan_is_told_of_guesses_that_were_tried_and_of_those_alone():
    plan = Always(4, GuessSource.DRAFT)
    rounds = drawn(sessions(), plan, sessions(TinyNetwork(SIZE, 1, sharpness=1.0))).rounds
    right = sum(int(seen.right.sum()) for seen in plan.seen)
    # what a pass settles is the guesses that were right, and one token of the target's for each path
    assert sum(rounds.accepted_per_pass) == right + sum(plan.num_paths)
    assert 0 < right < sum(int(seen.tried.sum()) for seen in plan.seen)


def test_a_draft_that_fails_is_given_up_and_its_rows_are_clean():
    plain = drawn(sessions(), PlainPathPlan())
    draft = sessions(Spoilt(4))
    sampled = drawn(sessions(), Always(3, GuessSource.DRAFT), draft)
    assert np.array_equal(sampled.bins, plain.bins)
    assert draft.arena.num_rows == 0
    assert np.isfinite(draft.arena.keys).all()
    assert sampled.rounds.num_draft_passes < 9


def test_a_draft_without_room_is_not_asked():
    row_bytes = 32 * TinyNetwork(SIZE).shape.kv_bytes_per_token
    draft = sessions(batch_bytes=5 * row_bytes)
    sampled = drawn(sessions(), Always(3, GuessSource.DRAFT), draft)
    assert sampled.rounds.num_draft_passes == 0
    assert np.array_equal(sampled.bins, drawn(sessions(), PlainPathPlan()).bins)


@pytest.mark.parametrize("plan", [PlainPathPlan(), FewestPasses(), LeastTime()])
def test_a_target_that_gives_no_number_refuses_and_leaves_clean_memory(plan: PathPlan):
    target = sessions(Spoilt(2))  # two blocks of the prefix
    refused = sample_paths(target, VOCABULARY, PREFIX, 4, 6, seed=1, plan=plan)
    assert isinstance(refused, RequestRefused)
    assert "not finite" in refused.reason
    assert target.arena.num_rows == 0
    assert np.isfinite(target.arena.keys).all()


def test_a_clock_measures_and_decides_nothing():
    ticks = iter(range(10**6))
    sampled = sample_paths(
        sessions(), VOCABULARY, PREFIX, 3, 6, seed=5, plan=PlainPathPlan(), clock=lambda: next(ticks) / 1e3
    )
    assert not isinstance(sampled, RequestRefused)
    assert sampled.rounds.target_ms == pytest.approx(5.0)
    assert sampled.rounds.total_ms == pytest.approx(11.0)


def test_a_draft_of_another_vocabulary_is_named():
    other = KVSessions(TinyNetwork(SIZE + 1), DecodingConfig(batch_bytes=2**20))
    with pytest.raises(InvalidInput, match="vocabularies"):
        sample_paths(sessions(), VOCABULARY, PREFIX, 2, 4, seed=1, draft=other)


def test_the_likeliest_path_needs_no_noise():
    sampled = sample_paths(
        sessions(), VOCABULARY, PREFIX, 5, 8, seed=1, sampling=SamplingParams(0.0), plan=FewestPasses()
    )
    assert not isinstance(sampled, RequestRefused)
    assert (sampled.bins == sampled.bins[0]).all()
