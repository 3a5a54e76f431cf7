"""In whatever weather: each question gets an answer in its time, and in the end its target's own, token for token."""

import numpy as np
import pytest

from htfi.decoding.config import EdgeConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.simulated.faults import NO_FAULTS, FrameFaults
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.strategies.recorded import RecordedStrategy
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from linked_servers import Cluster
from linked_world import PATH, TOKENIZER, VIEW, VOCAB, draft_author, local, question
from tiny_network import TinyNetwork

TARGET = local()
DRAFTS = [draft_author(share) for share in (0.1, 0.5)]
QUESTIONS = [question(seed, PATH if seed % 3 else VIEW) for seed in range(12)]
ANSWERS = {asked.id: answer for asked, answer in zip(QUESTIONS, TARGET.write(QUESTIONS), strict=True)}


def chance(rng: np.random.Generator, share: float, value: float) -> float:
    return value if rng.random() < share else 0.0


def any_weather(rng: np.random.Generator) -> FrameFaults:
    return FrameFaults(
        delay_ms=float(rng.choice([0.0, 1.0, 10.0, 60.0])),
        jitter_ms=chance(rng, 0.5, float(rng.uniform(0.1, 20.0))),
        ends=chance(rng, 0.4, 0.02),
        redial_s=float(rng.choice([0.02, 0.1, 0.5])),
        takes_bytes=int(rng.choice([1 << 20, 4_000])),
        corrupts=chance(rng, 0.2, 0.02),
        duplicates=chance(rng, 0.2, 0.05),
        overtakes=chance(rng, 0.2, 0.05),
        loses=chance(rng, 0.2, 0.03),
    )


def check_rounds(request: GenerationRequest, answer: Completion, story: str) -> None:
    """Its rounds can be verified again, whichever clouds they came from."""
    again = LocalGenerator(
        TinyNetwork(VOCAB),
        TOKENIZER,
        "tiny",
        TARGET.sessions.config,
        strategy=RecordedStrategy(answer.rounds),
        length_planner=FixedLengthPlanner(64),
    ).regenerate(answer.prompt, request)
    assert isinstance(again, Completion), story
    assert (again.tokens, again.rounds) == (answer.tokens, answer.rounds), story


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 120))]
)
def test_answers_are_the_targets_or_provisional_and_amended(seed: int):
    rng = np.random.Generator(np.random.PCG64(seed))
    draft = DRAFTS[seed % 2]
    cluster = Cluster(
        seed,
        any_weather(rng),
        DraftMode(int(rng.integers(4))),
        num_clouds=int(rng.integers(1, 4)),
        config=EdgeConfig(hedge_ms=float(rng.choice([0.0, 20.0, 60.0])), late_answer_timeout_ms=20_000.0),
        has_draft=bool(rng.integers(2)),
        draft=draft,
    )
    if rng.random() < 0.7:
        cluster.author.wait_ready(1.0)
    names = list(cluster.clouds)
    provisional: dict[str, Completion] = {}
    late: dict[str, object] = {}
    for begin in range(0, len(QUESTIONS), 4):
        asked = [
            QUESTIONS[at] if rng.random() < 0.5 else question(at, PATH if at % 3 else VIEW, 40.0)
            for at in range(begin, begin + 4)
        ]
        if rng.random() < 0.3:
            cluster.restart(str(rng.choice(names)), life=begin + 2)
        if rng.random() < 0.2:
            cluster.clouds[str(rng.choice(names))].desk.drain()
        if rng.random() < 0.2:
            cluster.world.pause_node(str(rng.choice(names)), 0.5)
        if rng.random() < 0.3:
            cluster.usable = [name for name in names if rng.random() < 0.7]
        began_s = cluster.world.now_s
        answers = cluster.author.write(asked)
        took_s = cluster.world.now_s - began_s
        story = f"seed {seed}\n{cluster.world.describe()}"
        assert took_s <= max(request.deadline_ms for request in asked) / 1e3, story
        for request, answer in zip(asked, answers, strict=True):
            assert isinstance(answer, Completion), (answer, story)
            whole = ANSWERS[request.id]
            assert isinstance(whole, Completion)
            if answer.is_provisional:
                provisional[request.id] = answer
                settled = whole.tokens[: answer.num_verified]
                assert answer.tokens[: answer.num_verified] == settled, story
                alone = draft.continue_from(answer.prompt, request, settled)
                assert isinstance(alone, Completion)
                assert answer.tokens == alone.tokens, story
            else:
                assert answer.tokens == whole.tokens, story
                assert answer.fields == whole.fields, story
                check_rounds(request, answer, story)
        late.update(cluster.author.take_late_completions())
        cluster.usable = names
    cluster.world.frame_faults = NO_FAULTS
    for name in names:
        if cluster.clouds[name].desk.metrics.is_draining:
            cluster.restart(name, life=99)
    late.update(cluster.late(8.0))
    story = f"seed {seed}\n{cluster.world.describe()}"
    assert set(late) == set(provisional), story
    for name, answer in late.items():
        whole = ANSWERS[name]
        assert not isinstance(answer, RequestRefused), (answer, story)
        assert isinstance(answer, Completion)
        assert isinstance(whole, Completion)
        assert answer.tokens == whole.tokens, story
        assert not answer.is_provisional
        check_rounds(next(each for each in QUESTIONS if each.id == name), answer, story)
