"""A tiny target, a draft that agrees with it more often than not, and what they are asked: for tests of outcomes."""

from collections.abc import Sequence

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.outcomes.drafter import FanOut, OutcomeDrafter
from htfi.decoding.strategy import DraftStrategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FreeTextField,
    GenerationRequest,
    OutputGrammar,
    PlainText,
    RequestRefused,
    ScaledMoves,
)
from htfi.domain.generation import FixedField as Says
from tiny_network import TinyNetwork, TinyTokenizer

CONFIG = DecodingConfig(batch_bytes=2**22, cache_bytes=2**18)
TOKENIZER = TinyTokenizer()
_CENTRES = Vocabulary(TOKENIZER).bins.centres.tolist()
PATH: OutputGrammar = tuple(
    ChoiceField(f"step{i}", tuple((ScaledMoves((x,)),) for x in _CENTRES)) for i in range(16)
)
VIEW: OutputGrammar = (
    Says((ControlToken("view"),)),
    ChoiceField(
        "direction",
        ((ControlToken("up"),), (ControlToken("flat"),), (ControlToken("down"), ControlToken("size"))),
    ),
    Says((PlainText(" the end"),)),
    FreeTextField("why", 20, ControlToken("end")),
)

WORDS: OutputGrammar = (FreeTextField("words", 24, ControlToken("/s")),)


def requests(
    num: int, form: OutputGrammar = PATH, temperature: float = 1.0, first_seed: int = 0
) -> list[GenerationRequest]:
    prompt = (ControlToken("s"), PlainText("rose and fell"), ControlToken("path"))
    return [
        GenerationRequest(prompt, form, seed, temperature) for seed in range(first_seed, first_seed + num)
    ]


def network(is_draft: bool = False) -> TinyNetwork:
    net = TinyNetwork(TOKENIZER.vocab_size, sharpness=0.5)
    if is_draft:
        rng = np.random.Generator(np.random.PCG64(5))
        net._head += 0.05 * rng.standard_normal(net._head.shape).astype(np.float32)
    return net


def drafter(ranked_by: str = "noise", fan: FanOut | None = None) -> OutcomeDrafter:
    sessions = KVSessions(network(is_draft=True), CONFIG)
    return OutcomeDrafter(sessions, ranked_by, fan, clock=lambda: 0.0)


def author(
    strategy: DraftStrategy | None, length: int = 5, config: DecodingConfig = CONFIG
) -> LocalGenerator:
    """Plain where there is no strategy."""
    return LocalGenerator(
        network(),
        TOKENIZER,
        "tiny",
        config,
        strategy=strategy,
        lookahead=FixedLengthPlanner(length if strategy else 0),
    )


def chain() -> ChainStrategy:
    return ChainStrategy(KVSessions(network(is_draft=True), CONFIG))


def written(answers: Sequence[Completion | RequestRefused]) -> list[Completion]:
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Completion)]
