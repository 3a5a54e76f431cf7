"""Every strategy on the shipped pair: how an answer was guessed changes no bit of it, at any length of context."""

from collections.abc import Callable

import numpy as np
import pytest

from checks import nonempty
from htfi import models
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner as FixedLength
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.noise import noise_keys
from htfi.decoding.ports import Network
from htfi.decoding.sampling import AllowedTokens, SamplingParams, sample_tokens
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.jacobi import JacobiStrategy
from htfi.decoding.strategies.lookup import LookupStrategy
from htfi.decoding.strategies.tree import TreeDraftConfig, TreeStrategy
from htfi.decoding.strategy import DraftStrategy
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    ScaledMoves,
)

pytest.importorskip("onnxruntime")
from htfi.wiring.models.loading import LoadableModel, load_network, open_model

WIDE = TreeDraftConfig(num_ranks=4, width=3.0, min_reach=0.02)
WAYS: dict[str, Callable[[KVSessions, int], DraftStrategy]] = {
    "chain": lambda drafts, _: ChainStrategy(drafts),
    "tree": lambda drafts, _: TreeStrategy(drafts, WIDE),
    "jacobi": lambda *_: JacobiStrategy(),
    "look-up": lambda _, vocab_size: LookupStrategy(vocab_size),
}
HEADLINE = PlainText("Shares of the company rose after profits beat what analysts had expected of the year ")


@pytest.fixture(scope="module", params=["int8", pytest.param("fp32", marks=pytest.mark.slow)])
def pair(request: pytest.FixtureRequest) -> tuple[LoadableModel, Network, Network]:
    target, draft = (open_model(path, request.param) for path in (models.TARGET, models.DRAFT))
    return target, load_network(target.folder, request.param), load_network(draft.folder, request.param)


def texts(target: LoadableModel, about: int) -> list[GenerationRequest]:
    """Prompts of about so many tokens, told on in words and in a path of prices."""
    size = len(target.tokenizer.encode(HEADLINE.text))
    path: OutputGrammar = tuple(
        ChoiceField(f"s{step}", tuple((ScaledMoves((x / 4,)),) for x in range(-8, 9))) for step in range(24)
    )
    words: OutputGrammar = (FreeTextField("words", 40, ControlToken("/s")),)
    prompt = (
        ControlToken("s"),
        ControlToken("news"),
        *[HEADLINE] * (about // size),
        PlainText("now" * (about % size // 4)),
    )
    return [GenerationRequest(prompt, form, seed, 1.0) for seed, form in enumerate([words, path])]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_tokens_are_those_of_plain_decoding_whatever_the_length(
    pair: tuple[LoadableModel, Network, Network], way: str
):
    target, network, draft = pair

    def written(strategy: DraftStrategy | None, asked: GenerationRequest) -> Completion:
        config = DecodingConfig(cache_bytes=0)
        plan = FixedLength(8 if strategy else 0)
        engine = LocalGenerator(
            network, target.tokenizer, "t", config, strategy=strategy, length_planner=plan
        )
        (answer,) = engine.write([asked])
        assert isinstance(answer, Completion)
        return answer

    strategy = WAYS[way](KVSessions(draft, DecodingConfig(cache_bytes=0)), network.shape.vocab_size)
    for about in (60, 470, 500, 560):
        for asked in nonempty(texts(target, about)):
            assert written(strategy, asked).tokens == written(None, asked).tokens


@pytest.mark.parametrize("about", [100, 480, 500, 506, 600, 960])
def test_guesses_that_are_read_have_the_bits_that_they_would_have_one_by_one(
    pair: tuple[LoadableModel, Network, Network], about: int
):
    """Chains, and trees with a decoy beside each token, as many as fit; for the rest one by one."""
    _, network, _ = pair
    rng = np.random.Generator(np.random.PCG64(about))
    vocab_size = network.shape.vocab_size
    text = rng.integers(0, vocab_size, about + 32).tolist()
    prompt, told = text[:about], text[about:]

    def read(with_decoys: bool | None) -> np.ndarray:
        sessions = KVSessions(network, DecodingConfig(cache_bytes=0))
        row, logits, at = sessions.open(prompt, 1024).row, [], 0
        while at < len(told):
            wanted = 0 if with_decoys is None else min(8, len(told) - at - 1)
            num = sessions.num_draft_tokens_fitting(row, 1, 2 * wanted if with_decoys else wanted)
            if with_decoys:
                num //= 2
                nodes = [token for true in told[at + 1 : at + 1 + num] for token in (true ^ 1, true)]
                parents = [-1, *(2 * (node // 2) for node in range(2 * num))]
                places = [2 * node + 1 for node in range(num)]
            else:
                nodes, parents, places = told[at + 1 : at + 1 + num], list(range(-1, num)), list(range(num))
            (after,) = sessions.extend([row], [[told[at], *nodes]], [parents])
            sessions.keep_branch(row, row.length - len(nodes), places)
            logits += [after[0], *(after[place + 1] for place in places)]
            at += 1 + num
        return np.array(logits)

    alone = read(None)
    assert np.array_equal(alone, read(False))
    assert np.array_equal(alone, read(True))
    tokens = AllowedTokens.of(np.arange(vocab_size))
    noise = noise_keys(about, np.zeros(len(told), np.int64), np.arange(len(told)))
    assert len(set(sample_tokens(alone, tokens, SamplingParams(1.0), noise).tolist())) > 3
