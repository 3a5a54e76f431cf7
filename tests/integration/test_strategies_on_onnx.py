"""Every strategy on the shipped pair: how an answer was guessed changes no bit of it, at any length of context."""

from collections.abc import Callable

import numpy as np
import pytest

from checks import nonempty
from htfi import models
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead.plan import Fixed as FixedLength
from htfi.decoding.noise import keys
from htfi.decoding.ports import Network
from htfi.decoding.sampling import Admitted, Sampling, choose
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.branches import TreeConfig
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategies.jacobi import Jacobi
from htfi.decoding.strategies.lookup import Lookup
from htfi.decoding.strategies.tree import Tree
from htfi.decoding.strategy import Strategy
from htfi.domain.writing import Choice, Form, Mark, Request, Sigmas, Text, Words, Writing

pytest.importorskip("onnxruntime")
from htfi.wiring.open_folder import OpenFolder, load_network, open_folder

WIDE = TreeConfig(num_ranks=4, width=3.0, least_reach=0.02)
WAYS: dict[str, Callable[[Sessions, int], Strategy]] = {
    "chain": lambda drafts, _: Chain(drafts),
    "tree": lambda drafts, _: Tree(drafts, WIDE),
    "jacobi": lambda *_: Jacobi(),
    "look-up": lambda _, vocab_size: Lookup(vocab_size),
}
HEADLINE = Text("Shares of the company rose after profits beat what analysts had expected of the year ")


@pytest.fixture(scope="module", params=["int8", pytest.param("fp32", marks=pytest.mark.slow)])
def pair(request: pytest.FixtureRequest) -> tuple[OpenFolder, Network, Network]:
    target, draft = (open_folder(path, request.param) for path in (models.TARGET, models.DRAFT))
    return target, load_network(target.folder, request.param), load_network(draft.folder, request.param)


def texts(target: OpenFolder, about: int) -> list[Request]:
    """Prompts of about so many tokens, told on in words and in a path of prices."""
    size = len(target.tokenizer.encode(HEADLINE.text))
    path: Form = tuple(
        Choice(f"s{step}", tuple((Sigmas((x / 4,)),) for x in range(-8, 9))) for step in range(24)
    )
    words: Form = (Words("words", 40, Mark("/s")),)
    prompt = (Mark("s"), Mark("news"), *[HEADLINE] * (about // size), Text("now" * (about % size // 4)))
    return [Request(prompt, form, seed, 1.0) for seed, form in enumerate([words, path])]


@pytest.mark.parametrize("way", WAYS)
def test_the_tokens_are_those_of_plain_decoding_whatever_the_length(
    pair: tuple[OpenFolder, Network, Network], way: str
):
    target, network, draft = pair

    def written(strategy: Strategy | None, asked: Request) -> Writing:
        config = DecodingConfig(cache_bytes=0)
        plan = FixedLength(8 if strategy else 0)
        engine = LocalAuthor(network, target.tokenizer, "t", config, strategy=strategy, lookahead=plan)
        (answer,) = engine.write([asked])
        assert isinstance(answer, Writing)
        return answer

    strategy = WAYS[way](Sessions(draft, DecodingConfig(cache_bytes=0)), network.shape.vocab_size)
    for about in (60, 470, 500, 560):
        for asked in nonempty(texts(target, about)):
            assert written(strategy, asked).tokens == written(None, asked).tokens


@pytest.mark.parametrize("about", [100, 480, 500, 506, 600, 960])
def test_guesses_that_are_read_have_the_bits_that_they_would_have_one_by_one(
    pair: tuple[OpenFolder, Network, Network], about: int
):
    """Chains, and trees with a decoy beside each token, as many as fit; for the rest one by one."""
    _, network, _ = pair
    rng = np.random.Generator(np.random.PCG64(about))
    vocab_size = network.shape.vocab_size
    text = rng.integers(0, vocab_size, about + 32).tolist()
    prompt, told = text[:about], text[about:]

    def read(with_decoys: bool | None) -> np.ndarray:
        sessions = Sessions(network, DecodingConfig(cache_bytes=0))
        row, logits, at = sessions.open(prompt, 1024).row, [], 0
        while at < len(told):
            wanted = 0 if with_decoys is None else min(8, len(told) - at - 1)
            num = sessions.num_guesses(row, 1, 2 * wanted if with_decoys else wanted)
            if with_decoys:
                num //= 2
                nodes = [token for true in told[at + 1 : at + 1 + num] for token in (true ^ 1, true)]
                parents = [-1, *(2 * (node // 2) for node in range(2 * num))]
                places = [2 * node + 1 for node in range(num)]
            else:
                nodes, parents, places = told[at + 1 : at + 1 + num], list(range(-1, num)), list(range(num))
            (after,) = sessions.extend([row], [[told[at], *nodes]], [parents])
            sessions.keep(row, row.length - len(nodes), places)
            logits += [after[0], *(after[place + 1] for place in places)]
            at += 1 + num
        return np.array(logits)

    alone = read(None)
    assert np.array_equal(alone, read(False))
    assert np.array_equal(alone, read(True))
    tokens = Admitted.of(np.arange(vocab_size))
    noise = keys(about, np.zeros(len(told), np.int64), np.arange(len(told)))
    assert len(set(choose(alone, tokens, Sampling(1.0), noise).tolist())) > 3
