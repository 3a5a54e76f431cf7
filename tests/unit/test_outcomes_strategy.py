"""Speculative-speculative decoding in one process: the same blocks as chain speculation, the same answers as plain."""

import numpy as np
import pytest

from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead import Fixed
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategies.outcome_drafter import FanOut, OutcomeDrafter
from htfi.decoding.strategies.outcomes import InProcess, OutcomeStrategy
from htfi.decoding.strategy import Strategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.writing import Choice, Mark, Request, Sigmas, Text, Words, Writing
from htfi.domain.writing import Fixed as Says
from tiny_network import TinyNetwork, TinyTokenizer

CONFIG = DecodingConfig(batch_bytes=2**22, cache_bytes=2**18)
TOKENIZER = TinyTokenizer()
CENTRES = Vocabulary(TOKENIZER).bins.centres.tolist()
PATH = tuple(Choice(f"step{i}", tuple((Sigmas((x,)),) for x in CENTRES)) for i in range(16))
VIEW = (
    Says((Mark("view"),)),
    Choice("direction", ((Mark("up"),), (Mark("flat"),), (Mark("down"), Mark("size")))),
    Says((Text(" the end"),)),
    Words("why", 20, Mark("end")),
)


def requests(num: int, form=PATH, temperature: float = 1.0) -> list[Request]:
    prompt = (Mark("s"), Text("rose and fell"), Mark("path"))
    return [Request(prompt, form, seed, temperature) for seed in range(num)]


def network(is_draft: bool = False) -> TinyNetwork:
    """A target, or a draft that agrees with it more often than not."""
    net = TinyNetwork(TOKENIZER.vocab_size, sharpness=0.5)
    if is_draft:
        rng = np.random.Generator(np.random.PCG64(5))
        net._head += 0.05 * rng.standard_normal(net._head.shape).astype(np.float32)
    return net


def drafter(ranked_by: str = "noise") -> OutcomeDrafter:
    return OutcomeDrafter(Sessions(network(is_draft=True), CONFIG), ranked_by, FanOut(), clock=lambda: 0.0)


def author(strategy: Strategy | None, length: int = 5) -> LocalAuthor:
    return LocalAuthor(network(), TOKENIZER, "tiny", CONFIG, strategy=strategy, lookahead=Fixed(length))


def written(answers) -> list[Writing]:
    assert all(isinstance(answer, Writing) for answer in answers), answers
    return answers


@pytest.mark.parametrize("form", [PATH, VIEW])
@pytest.mark.parametrize("temperature", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("ranked_by", ["noise", "probability"])
@pytest.mark.parametrize("num_steps", [0, 1, 7])
def test_answers_and_rounds_equal_those_of_chain_speculation(form, temperature, ranked_by, num_steps):
    asked = requests(6, form, temperature)
    plain = written(author(None, 0).write(asked))
    chain = written(author(Chain(Sessions(network(is_draft=True), CONFIG))).write(asked))
    strategy = OutcomeStrategy(InProcess(drafter(ranked_by), num_steps))
    ahead = written(author(strategy).write(asked))
    assert [one.tokens for one in ahead] == [one.tokens for one in plain]
    assert [one.rounds for one in ahead] == [one.rounds for one in chain]
