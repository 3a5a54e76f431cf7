"""A tiny target, a draft that agrees with it more often than not, and what they are asked: for tests of outcomes."""

from collections.abc import Sequence

import numpy as np

from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead.plan import Fixed
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategies.outcome_drafter import FanOut, OutcomeDrafter
from htfi.decoding.strategy import Strategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.writing import Choice, Form, Mark, Refusal, Request, Sigmas, Text, Words, Writing
from htfi.domain.writing import Fixed as Says
from tiny_network import TinyNetwork, TinyTokenizer

CONFIG = DecodingConfig(batch_bytes=2**22, cache_bytes=2**18)
TOKENIZER = TinyTokenizer()
_CENTRES = Vocabulary(TOKENIZER).bins.centres.tolist()
PATH: Form = tuple(Choice(f"step{i}", tuple((Sigmas((x,)),) for x in _CENTRES)) for i in range(16))
VIEW: Form = (
    Says((Mark("view"),)),
    Choice("direction", ((Mark("up"),), (Mark("flat"),), (Mark("down"), Mark("size")))),
    Says((Text(" the end"),)),
    Words("why", 20, Mark("end")),
)

WORDS: Form = (Words("words", 24, Mark("/s")),)


def requests(num: int, form: Form = PATH, temperature: float = 1.0, first_seed: int = 0) -> list[Request]:
    prompt = (Mark("s"), Text("rose and fell"), Mark("path"))
    return [Request(prompt, form, seed, temperature) for seed in range(first_seed, first_seed + num)]


def network(is_draft: bool = False) -> TinyNetwork:
    net = TinyNetwork(TOKENIZER.vocab_size, sharpness=0.5)
    if is_draft:
        rng = np.random.Generator(np.random.PCG64(5))
        net._head += 0.05 * rng.standard_normal(net._head.shape).astype(np.float32)
    return net


def drafter(ranked_by: str = "noise", fan: FanOut | None = None) -> OutcomeDrafter:
    sessions = Sessions(network(is_draft=True), CONFIG)
    return OutcomeDrafter(sessions, ranked_by, fan, clock=lambda: 0.0)


def author(strategy: Strategy | None, length: int = 5, config: DecodingConfig = CONFIG) -> LocalAuthor:
    """Plain where there is no strategy."""
    return LocalAuthor(
        network(), TOKENIZER, "tiny", config, strategy=strategy, lookahead=Fixed(length if strategy else 0)
    )


def chain() -> Chain:
    return Chain(Sessions(network(is_draft=True), CONFIG))


def written(answers: Sequence[Writing | Refusal]) -> list[Writing]:
    assert all(isinstance(answer, Writing) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Writing)]
