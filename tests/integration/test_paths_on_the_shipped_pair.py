"""Paths of the shipped models: the same bins however they are drawn, in few passes where that is the plan."""

from functools import cache

import numpy as np
import pytest

from htfi import models
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead.costs import PassCosts
from htfi.decoding.paths.plan import FewestPasses, LeastTime, PathPlan, Plain, Seen, Source, Standing, Step
from htfi.decoding.paths.sample import Sampled, sample_paths
from htfi.decoding.sampling import Sampling
from htfi.decoding.sessions import Sessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.writing import Dialect, Mark, Refusal
from htfi.narrative.answer import ideal
from htfi.narrative.question import put
from htfi.simulation.corpus import question, understanding
from htfi.simulation.stories import FIRST_EVALUATION_SEED, world_stories

pytest.importorskip("onnxruntime")
if not models.DIGESTS:
    pytest.skip("no shipped models", allow_module_level=True)
from htfi.wiring.models import open_folder
from tiny_network import TinyNetwork

TARGET, DRAFT = (open_folder(path, "int8") for path in (models.TARGET, models.DRAFT))
VOCABULARY = Vocabulary(TARGET.tokenizer)


class Steps:
    """The same step each round."""

    def __init__(self, num_guesses: int, source: Source) -> None:
        self._step = Step(num_guesses, source)

    def next(self, standing: Standing) -> Step:
        return self._step

    def learn(self, seen: Seen) -> None:
        pass


@pytest.fixture(scope="module")
def target() -> Sessions:
    return Sessions(TARGET.network, DecodingConfig())


@pytest.fixture(scope="module")
def draft() -> Sessions:
    return Sessions(DRAFT.network, DecodingConfig())


@cache
def prefix(seed: int) -> list[int]:
    """A story that no training saw, its true view, and the mark that opens a path."""
    told = world_stories(FIRST_EVALUATION_SEED + 5, seed)[0]
    prompt, _ = put(question(told), Dialect.MINI)
    return VOCABULARY.encode((*prompt, *ideal(understanding(told)), Mark("path")))


def drawn(
    target: Sessions,
    plan: PathPlan,
    draft: Sessions | None = None,
    *,
    seed: int = 1,
    num: int = 12,
    horizon: int = 24,
    sampling: Sampling = Sampling(1.0),  # noqa: B008 (a tuple)
) -> Sampled:
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
    assert not isinstance(sampled, Refusal)
    return sampled


@pytest.mark.parametrize(
    ("num", "horizon", "sampling"),
    [
        (1, 64, Sampling(1.0)),
        (5, 33, Sampling(0.7, top_k=20)),
        (12, 24, Sampling(1.0, top_p=0.9)),
        (12, 24, Sampling(1.6)),
        (3, 24, Sampling(0.0)),
        (40, 9, Sampling(1.0)),
    ],
)
def test_every_way_draws_the_same_bins(
    target: Sessions, draft: Sessions, num: int, horizon: int, sampling: Sampling
):
    absurd = Sessions(TinyNetwork(VOCABULARY.tokenizer.vocab_size, 3), DecodingConfig())
    for seed in range(2):
        plain = drawn(target, Plain(), seed=seed, num=num, horizon=horizon, sampling=sampling).bins
        ways: list[tuple[PathPlan, Sessions | None]] = [
            (FewestPasses(), draft),
            (FewestPasses(), None),
            (LeastTime(PassCosts(), PassCosts()), draft),
            (Steps(3, Source.OWN), None),
            (Steps(6, Source.DRAFT), draft),
            (Steps(2, Source.DRAFT), absurd),
        ]
        for plan, helper in ways:
            sampled = drawn(target, plan, helper, seed=seed, num=num, horizon=horizon, sampling=sampling)
            assert np.array_equal(sampled.bins, plain), (seed, plan)


def test_a_hundred_paths_settle_in_few_passes(target: Sessions, draft: Sessions):
    for helper in (draft, None):
        rounds = drawn(target, FewestPasses(), helper, num=100).rounds
        assert rounds.num_target_passes <= 6
        assert sum(rounds.settled) == 100 * 23


@pytest.mark.slow
def test_a_hundred_long_paths_settle_in_few_passes(target: Sessions, draft: Sessions):
    rounds = drawn(target, FewestPasses(), draft, num=100, horizon=64).rounds
    assert rounds.num_target_passes <= 12


def test_a_window_of_four_wastes_little(target: Sessions):
    rounds = drawn(target, Steps(3, Source.OWN), num=40).rounds
    assert rounds.efficiency > 0.75
    assert rounds.num_target_passes < 12
