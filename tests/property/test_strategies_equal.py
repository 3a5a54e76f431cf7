"""Whatever guesses ahead, with whatever draft, beside whomever: the tokens are those that the target writes alone.

The network works in float64, so that no two engines' sums differ by enough to swap two tokens.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_grammar_any import MINI, forms

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import LengthRequest, RoundReport
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats, ForwardOutput, Ids
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.jacobi import JacobiStrategy
from htfi.decoding.strategies.lookup import LookupConfig, LookupStrategy
from htfi.decoding.strategies.tree import TreeDraftConfig, TreeStrategy
from htfi.decoding.strategy import DraftStrategy, NoDraft
from htfi.domain.generation import (
    ChoiceField,
    Completion,
    ControlToken,
    FixedField,
    FreeTextField,
    GenerationRequest,
    PlainText,
    RequestRefused,
)
from tiny_network import TinyNetwork

TOKENIZER = MINI.tokenizer
VOCAB = TOKENIZER.vocab_size
PER_TOKEN = TinyNetwork(VOCAB).shape.kv_bytes_per_token


class Exact(TinyNetwork):
    """Works in float64. From pass `broken` on, every other logit row of every third pass is not finite."""

    def __init__(self, seed: int, broken: int | None = None) -> None:
        super().__init__(VOCAB, seed)
        self.broken = broken
        self._tokens, self._places, self._head = (
            array.astype(np.float64) for array in (self._tokens, self._places, self._head)
        )

    def forward(self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats) -> ForwardOutput:
        out = ForwardOutput(
            *(array.astype(np.float32) for array in super().forward(ids, positions, mask, keys, values))
        )
        if self.broken is not None and self.num_passes >= self.broken and not self.num_passes % 3:
            out.logits[:, ::2] = np.nan
        return out


class Dice:
    """Lengths at random."""

    name = "dice"

    def __init__(self, seed: int, longest: int) -> None:
        self._rng, self._longest = np.random.Generator(np.random.PCG64(seed)), longest

    def plan(self, requests: Sequence[LengthRequest]) -> list[int]:
        return [int(self._rng.integers(0, min(self._longest, ask.max_length) + 1)) for ask in requests]

    def learn(self, rounds: Sequence[RoundReport]) -> None:
        for row in rounds:
            assert 0 <= row.accepted <= row.drafted <= self._longest


trees = st.builds(TreeDraftConfig, st.integers(1, 5), st.floats(1.0, 4.0), st.floats(0.0, 0.5))
lookups = st.builds(LookupConfig, st.integers(1, 5), st.sampled_from([0, 10, 60, 4000]), trees)
NAMES = [
    "plain",
    "chain",
    "tree",
    "jacobi",
    "jacobi on chain",
    "jacobi on tree",
    "jacobi on look-up",
    "look-up",
]


def made(name: str, drafts: KVSessions, draw: st.DrawFn) -> DraftStrategy:
    match name:
        case "plain":
            return NoDraft()
        case "chain":
            return ChainStrategy(drafts)
        case "tree":
            return TreeStrategy(drafts, draw(trees))
        case "look-up":
            return LookupStrategy(VOCAB, draw(lookups))
        case "jacobi":
            return JacobiStrategy(None, draw(st.integers(1, 9)))
        case _:
            return JacobiStrategy(
                made(name.removeprefix("jacobi on "), drafts, draw), draw(st.integers(1, 9))
            )


DRAFTS: dict[str, Callable[[], Exact]] = {
    "itself": lambda: Exact(0),
    "another": lambda: Exact(9),
    "a broken one": lambda: Exact(0, broken=4),
}
long_form = (
    FixedField((ControlToken("view"),)),
    FreeTextField("words", 40, ControlToken("end"), (ControlToken("size"),)),
    ChoiceField("way", tuple((PlainText(f" {word}"),) for word in ("up", "down", "the"))),
    FixedField((ControlToken("/view"), PlainText(" the end"))),
)
path_form = tuple(ChoiceField(f"s{i}", tuple((ControlToken(f"p{k}"),) for k in range(9))) for i in range(20))
any_form = st.one_of(forms(with_marks=True), st.just(long_form), st.just(path_form))
requests = st.builds(
    GenerationRequest,
    prompt=st.lists(st.sampled_from([" up", " the", "abc", " rose sharply"]).map(PlainText), max_size=8).map(
        tuple
    ),
    form=any_form,
    seed=st.integers(0, 2**64 - 1),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 1.0, 2.5]),
    top_k=st.sampled_from([0, 0, 1, 2, 7]),
    top_p=st.sampled_from([1.0, 1.0, 0.9, 0.4]),
    shared=st.integers(0, 3),
    kind=st.sampled_from(["", "view"]),
    max_draft=st.sampled_from([None, None, None, 0, 1, 3]),
)


def config(draw: st.DrawFn, **given: int) -> DecodingConfig:
    return DecodingConfig(
        block_tokens=draw(st.sampled_from([3, 16])),
        cache_bytes=draw(st.sampled_from([0, 2**16])),
        max_batch=draw(st.integers(1, 5)),
        **given,
    )


def check(draw: st.DrawFn, name: str) -> None:
    asked = draw(st.lists(requests, min_size=1, max_size=6))
    alone = LocalGenerator(Exact(0), TOKENIZER, "tiny", DecodingConfig(cache_bytes=0, batch_bytes=2**21))
    plain = [alone.write([request])[0] for request in asked]

    room = draw(st.sampled_from([1, 64, 128, 2048])) * PER_TOKEN
    drafts = KVSessions(DRAFTS[draw(st.sampled_from(sorted(DRAFTS)))](), config(draw, batch_bytes=room))
    strategy = made(name, drafts, draw)
    engine = LocalGenerator(
        Exact(0),
        TOKENIZER,
        "tiny",
        config(draw, batch_bytes=draw(st.sampled_from([160, 320, 2048])) * PER_TOKEN),
        strategy=strategy,
        length_planner=Dice(draw(st.integers(0, 99)), draw(st.integers(1, 9))),
    )
    answers = engine.write(asked)
    again = engine.write(asked[:2])  # what was learned of the first changes no token
    for request, answer, wanted in zip(
        [*asked, *asked[:2]], [*answers, *again], [*plain, *plain[:2]], strict=True
    ):
        if isinstance(wanted, RequestRefused):
            assert answer == wanted
            continue
        assert isinstance(answer, Completion)
        assert isinstance(wanted, Completion)
        assert answer.tokens == wanted.tokens
        assert answer.fields == wanted.fields
        form = CompiledGrammar(request.form, engine.vocabulary)
        assert rebuilt(form, answer) == list(answer.tokens)
        if request.max_draft == 0:
            assert not any(told.drafted for told in answer.rounds)
    assert engine.sessions.arena.num_rows == 0
    assert drafts.arena.num_rows == 0


def rebuilt(form: CompiledGrammar, answer: Completion) -> list[int]:
    """The answer again from its first token and what the rounds tell."""
    tokens, state = form.forced(form.start)
    settled = iter([answer.tokens[len(tokens)]] if state != form.done else [])
    rounds = iter(answer.rounds)
    while True:
        for token in settled:
            forced, state = form.forced(form.advance(state, token))
            tokens += [token, *forced]
        told = next(rounds, None)
        if told is None:
            assert state == form.done
            return tokens
        before = -1
        for node in told.accepted:
            assert (told.parents[node] if told.parents else node - 1) == before
            token, before = told.drafted[node], node
            tokens.append(token)
            state = form.advance(state, token)
        assert (told.token < 0) == (state == form.done)
        settled = iter([told.token] if told.token >= 0 else [])


# A case takes tens of milliseconds: to shrink one would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=15, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
def test_every_strategy_writes_what_the_target_writes_alone(name: str, data: st.DataObject):
    check(data.draw, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=600, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
def test_every_strategy_writes_what_the_target_writes_alone_in_thousands_of_cases(
    name: str, data: st.DataObject
):
    check(data.draw, name)
