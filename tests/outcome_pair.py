"""A tiny target, a draft that agrees with it more often than not, and what they are asked: for tests of outcomes."""

from collections.abc import Sequence

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import FixedLengthPlanner
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.outcomes.drafter import FanOut, OutcomeDrafter
from htfi.decoding.strategy import DraftStrategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import IntegrityError
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
        length_planner=FixedLengthPlanner(length if strategy else 0),
    )


def chain() -> ChainStrategy:
    return ChainStrategy(KVSessions(network(is_draft=True), CONFIG))


def written(answers: Sequence[Completion | RequestRefused]) -> list[Completion]:
    assert all(isinstance(answer, Completion) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Completion)]


class InProcessDraft:
    """Implements `OutcomeDraft` in this process: the draft makes `num_steps` passes while the target verifies."""

    is_up = True

    def __init__(self, drafter: OutcomeDrafter, num_steps: int) -> None:
        self.drafter = drafter
        self._num_steps = num_steps
        self._slots: dict[int, int] = {}
        self.num_waited = 0  # passes of the draft that the target waited for

    def blocks(self, stems: Sequence[SequenceState], lengths: Sequence[int]) -> list[list[int]]:
        for stem, length in zip(stems, lengths, strict=True):
            if id(stem) not in self._slots:
                slot = next(at for at in range(len(self._slots) + 1) if at not in self._slots.values())
                if not self.drafter.join(slot, stem):
                    continue
                self._slots[id(stem)] = slot
            if self._slots[id(stem)] in self.drafter.trees:
                self.drafter.ask(self._slots[id(stem)], length)
        while any(tree.wanted() for tree in self.drafter.trees.values()):
            self.drafter.step()
            self.num_waited += 1
        trees = [self.drafter.trees.get(self._slots.get(id(stem), -1)) for stem in stems]
        return [tree.chain() if tree is not None else [] for tree in trees]

    def verification_starts(self) -> None:
        for _ in range(self._num_steps):
            self.drafter.step()

    def accepted(self, stem: SequenceState, tokens: Sequence[int]) -> bool | None:
        slot = self._slots.get(id(stem), -1)
        return self.drafter.verified(slot, tokens) if slot in self.drafter.trees else None

    def finish(self, stem: SequenceState) -> None:
        slot = self._slots.pop(id(stem), None)
        if slot is not None:
            self.drafter.finish(slot)

    def refuse(self, why: str) -> None:
        raise IntegrityError(f"the draft wrote what its form does not admit: {why}")
