"""Paths of the shipped models: the same bins however they are drawn, in few passes where that is the plan."""

from functools import cache

import numpy as np
import pytest

from counting_network import CountingNetwork
from htfi import models
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.pass_costs import LearnedPassCosts
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.sessions import KVSessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import ControlToken, PromptDialect, RequestRefused
from htfi.narrative.answer import ideal_answer
from htfi.narrative.question import build_prompt
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
from htfi_train.simulation.corpus import question, true_answer
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED, stories_of_market

pytest.importorskip("onnxruntime")
if not models.DIGESTS:
    pytest.skip("no shipped models", allow_module_level=True)
from htfi.wiring.models.readers import open_model
from tiny_network import TinyNetwork

TARGET, DRAFT = (open_model(path, "int8") for path in (models.TARGET, models.DRAFT))
VOCABULARY = Vocabulary(TARGET.tokenizer)


class Steps:
    """The same step each round."""

    def __init__(self, num_guesses: int, source: GuessSource) -> None:
        self._step = PathStep(num_guesses, source)

    def next(self, standing: PathProgress) -> PathStep:
        return self._step

    def learn(self, seen: PathRoundReport) -> None:
        pass


@pytest.fixture(scope="module")
def target() -> KVSessions:
    return KVSessions(TARGET.network, DecodingConfig())


@pytest.fixture(scope="module")
def draft() -> KVSessions:
    return KVSessions(DRAFT.network, DecodingConfig())


@cache
def prefix(seed: int) -> list[int]:
    """A story that no training saw, its true view, and the mark that opens a path."""
    told = stories_of_market(FIRST_EVALUATION_SEED + 5, seed)[0]
    prompt, _ = build_prompt(question(told), PromptDialect.MINI)
    return VOCABULARY.encode((*prompt, *ideal_answer(true_answer(told)), ControlToken("path")))


def drawn(
    target: KVSessions,
    plan: PathPlan,
    draft: KVSessions | None = None,
    *,
    seed: int = 1,
    num: int = 12,
    horizon: int = 24,
    sampling: SamplingParams = SamplingParams(1.0),  # noqa: B008 (a tuple)
) -> SampledPaths:
    sampled = sample_paths(
        target,
        VOCABULARY,
        prefix(seed),
        num,
        horizon,
        seed=seed,
        sampling=sampling,
        plan=plan,
        draft=draft,
    )
    assert not isinstance(sampled, RequestRefused)
    return sampled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num", "horizon", "sampling"),
    [
        (1, 64, SamplingParams(1.0)),
        (5, 33, SamplingParams(0.7, top_k=20)),
        (12, 24, SamplingParams(1.0, top_p=0.9)),
        pytest.param(12, 24, SamplingParams(1.6), marks=pytest.mark.slow),
        (3, 24, SamplingParams(0.0)),
        (40, 9, SamplingParams(1.0)),
    ],
)
def test_every_way_draws_the_same_bins(
    target: KVSessions, draft: KVSessions, num: int, horizon: int, sampling: SamplingParams
):
    absurd = KVSessions(TinyNetwork(VOCABULARY.tokenizer.vocab_size, 3), DecodingConfig())
    for seed in range(2):
        plain = drawn(target, PlainPathPlan(), seed=seed, num=num, horizon=horizon, sampling=sampling).bins
        ways: list[tuple[PathPlan, KVSessions | None]] = [
            (FewestPasses(), draft),
            (FewestPasses(), None),
            (LeastTime(LearnedPassCosts(), LearnedPassCosts()), draft),
            (Steps(3, GuessSource.OWN), None),
            (Steps(6, GuessSource.DRAFT), draft),
            (Steps(2, GuessSource.DRAFT), absurd),
        ]
        for plan, helper in ways:
            sampled = drawn(target, plan, helper, seed=seed, num=num, horizon=horizon, sampling=sampling)
            assert np.array_equal(sampled.bins, plain), (seed, plan)


@pytest.mark.slow
def test_a_hundred_paths_settle_in_few_passes(target: KVSessions, draft: KVSessions):
    for helper in (draft, None):
        rounds = drawn(target, FewestPasses(), helper, num=100).rounds
        assert rounds.num_target_passes <= 6
        assert sum(rounds.accepted_per_pass) == 100 * 23


@pytest.mark.slow
def test_a_hundred_long_paths_settle_in_few_passes(target: KVSessions, draft: KVSessions):
    rounds = drawn(target, FewestPasses(), draft, num=100, horizon=64).rounds
    assert rounds.num_target_passes <= 12


def test_a_window_of_four_wastes_little():
    target = KVSessions(TARGET.network, DecodingConfig())
    target.network = counted = CountingNetwork(target.network, len(prefix(1)))
    rounds = drawn(target, Steps(3, GuessSource.OWN), num=40).rounds
    assert sum(rounds.accepted_per_pass) == 40 * 23
    assert sum(rounds.accepted_per_pass) / counted.num_tokens > 0.75
    assert rounds.num_target_passes < 12
