"""Prompts of one moment are read together: the bits of each read alone, in fewer passes, and no one harms another."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
from htfi import models
from htfi.adapters.native import network as native
from htfi.decoding.config import DecodingConfig
from htfi.decoding.grammar import GrammarCache
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.ports import Floats, ForwardOutput, Ids, Network
from htfi.decoding.prefill import MAX_PADDING, MAX_PASS_TOKENS, PromptToPrefill
from htfi.decoding.sampling import SamplingParams
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, ShapeMismatch
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
from htfi.wiring.models.loading import load_draft_network, load_network, open_model
from random_pair import write_random_pair
from tiny_network import TinyNetwork, TinyTokenizer

VOCAB = 200


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_pair(tmp_path_factory.mktemp("pair"))[0]


class ScoringAll:
    """A network that scores every token, as the port asks of all: each block is read alone."""

    def __init__(self, network: Network) -> None:
        self.shape, self.digest, self.forward = network.shape, network.digest, network.forward


class Counted:
    """A network that reads prompts together, and what its passes were: rows, tokens of each, tokens before."""

    def __init__(self, network) -> None:
        self._network = network
        self.shape, self.digest, self.forward = network.shape, network.digest, network.forward
        self.reads_together = True
        self.passes: list[tuple[int, int, int]] = []

    def read(
        self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats, scored: Ids
    ) -> ForwardOutput:
        self.passes.append((*ids.shape, keys.shape[3]))
        return self._network.read(ids, positions, mask, keys, values, scored)


def tokens(num: int, seed: int) -> list[int]:
    return np.random.Generator(np.random.PCG64(seed)).integers(1, VOCAB, num).tolist()


def moment() -> list[PromptToPrefill]:
    """Prompts that share their beginning with others or with none, one beyond a block of the engine's sums."""
    news, other = tokens(70, 1), tokens(33, 2)
    prompts = [PromptToPrefill([*news, *tokens(num, 10 + num)], 900, len(news)) for num in (1, 20, 46, 20)]
    prompts += [PromptToPrefill([*other, *tokens(num, 20 + num)], 900, len(other)) for num in (40, 46)]
    prompts += [PromptToPrefill(tokens(num, num), 900, 5) for num in (1, 31, 32, 90, 97)]
    prompts.append(PromptToPrefill(tokens(700, 3), 900, 600))
    return [*prompts, prompts[1]]


def bits(sessions: KVSessions, prompts: list[PromptToPrefill]) -> list[list[Floats]]:
    opened = sessions.open_all(prompts)
    found: list[list[Floats]] = []
    for (row, logits, _), prompt in zip(opened, prompts, strict=True):
        held = [
            memory[:, row.slot, :, : len(prompt.ids)].copy()
            for memory in (sessions.arena.keys, sessions.arena.values)
        ]
        found.append([logits.copy(), *held])
        sessions.close(row)
    return found


@pytest.mark.parametrize("precision", ["int8", "int8-wide", "fp32", "shipped"])
def test_prompts_read_together_have_the_bits_of_each_read_alone(pair: Path, precision: str) -> None:
    if precision == "shipped":
        network = open_model(models.TARGET, "int8").network
        assert 0 < network.shape.sum_block < max(len(prompt.ids) for prompt in moment())
    else:
        network = open_model(pair, precision).network
    config = DecodingConfig(batch_bytes=2**27)
    together = bits(KVSessions(network, config), moment())
    alone = [
        bits(KVSessions(ScoringAll(network), DecodingConfig(batch_bytes=2**27, cache_bytes=0)), [prompt])[0]
        for prompt in moment()
    ]
    assert len(together) == len(moment())
    for mine, its in zip(together, alone, strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(mine, its, strict=True))


def test_what_prompts_begin_with_alike_is_read_once_and_the_rest_in_one_pass(pair: Path) -> None:
    network = Counted(load_network(open_model(pair, "int8").folder, "int8"))
    news = tokens(60, 1)
    prompts = [PromptToPrefill([*news, *tokens(30 + num, num)], 200, 60) for num in range(4)]
    sessions = KVSessions(network, DecodingConfig(batch_bytes=2**24))
    opened = sessions.open_all(prompts)
    assert network.passes == [(1, 90, 0), (3, 33, 60)]
    assert [row.num_reused_tokens for row in opened] == [0, 60, 60, 60]
    network.passes.clear()
    sessions.open_all([prompts[0], prompts[0]])
    assert network.passes == [(1, 30, 60)], "two that ask the same are read once"


def test_a_pass_is_neither_too_large_nor_mostly_padding(pair: Path) -> None:
    network = Counted(load_network(open_model(pair, "int8").folder, "int8"))
    lengths = (100, 30, 31, 30 + MAX_PADDING, 30, 30, 30, 300)
    prompts = [PromptToPrefill(tokens(num, 100 + k), 400) for k, num in enumerate(lengths)]
    KVSessions(network, DecodingConfig(batch_bytes=2**27)).open_all(prompts)
    assert sum(rows * num for rows, num, _ in network.passes) <= sum(lengths) + MAX_PADDING * len(lengths)
    assert max(rows * num for rows, num, _ in network.passes) <= MAX_PASS_TOKENS
    assert len(network.passes) < len(lengths) + 2


class Refusing(TinyNetwork):
    """Fails in a pass that reads token 7; gives no number where it reads token 9."""

    reads_together = True

    def read(
        self, ids: Ids, positions: Ids, mask: Floats, keys: Floats, values: Floats, scored: Ids
    ) -> ForwardOutput:
        if (ids == 7).any():
            raise DependencyUnavailable("out of memory")
        out = self.forward(ids, positions, mask, keys, values)
        logits = out.logits.reshape(ids.size, -1)[scored]
        logits[(ids == 9).any(axis=1)] = np.nan
        return out._replace(logits=logits)


def test_a_prompt_that_cannot_be_read_harms_no_other() -> None:
    tokenizer = TinyTokenizer()
    form = (ChoiceField("one", ((PlainText("a"),), (PlainText("b"),))), FixedField((PlainText(" the"),)))
    requests = [
        GenerationRequest((PlainText(text),), form, seed=3) for text in ("abc", "abhd", "abjd", "abed")
    ]
    assert [tokenizer.encode(text) for text in ("h", "j")] == [[7], [9]]

    def answers(network: Network) -> list[Completion | RequestRefused]:
        engine = LocalGenerator(network, tokenizer, "tiny", DecodingConfig(block_tokens=8))
        found = engine.write(requests)
        assert engine.sessions.arena.num_rows == 0
        return found

    first, failed, broken, last = answers(Refusing(tokenizer.vocab_size))
    healthy = answers(TinyNetwork(tokenizer.vocab_size))
    assert failed == RequestRefused("out of memory")
    assert broken == RequestRefused("the network gave a logit that is not finite")
    assert isinstance(first, Completion)
    assert isinstance(last, Completion)
    assert [first.fields, last.fields] == [healthy[0].fields, healthy[3].fields]  # type: ignore[union-attr]


def test_short_answers_do_not_wait_in_the_passes_of_a_long_one() -> None:
    tokenizer = TinyTokenizer()
    widths: list[int] = []

    class Watched(TinyNetwork):
        def forward(self, ids, positions, mask, keys, values):
            widths.append(len(ids))
            return super().forward(ids, positions, mask, keys, values)

    long = tuple(ChoiceField(f"f{k}", ((PlainText("a"),), (PlainText("b"),))) for k in range(9))
    requests = [GenerationRequest((PlainText("abc"),), long[:2], seed=k) for k in range(7)]
    requests.append(GenerationRequest((PlainText("abd"),), long, seed=9))
    engine = LocalGenerator(Watched(tokenizer.vocab_size), tokenizer, "tiny", DecodingConfig())
    assert all(isinstance(answer, Completion) for answer in engine.write(requests))
    assert len(widths) == 2 + 8
    assert widths[-7:] == [1] * 7, "once the others are done, their rows are not computed"


@pytest.mark.skipif(not native.is_compiled(), reason="the network in C was not compiled")
def test_drafts_for_several_sequences_are_those_for_each_alone() -> None:
    draft = open_model(models.DRAFT, "int8")
    vocabulary = Vocabulary(draft.tokenizer)
    words = FreeTextField("words", 20, ControlToken("/s"))
    grammar = GrammarCache(vocabulary).compiled((words,))

    def sequences() -> list[SequenceState]:
        asked = [GenerationRequest((), (words,), seed=seed, temperature=0.9) for seed in range(5)]
        begun = [
            TokenizedRequest(
                request, grammar, tokens(40 + 3 * k, k), 0, [], grammar.start, SamplingParams(0.9, 0, 1.0)
            )
            for k, request in enumerate(asked)
        ]
        return [SequenceState(one, [], one.start_state) for one in begun]

    def strategy() -> ChainStrategy:
        return ChainStrategy(KVSessions(draft.draft_network, DecodingConfig()))

    lengths = [6, 3, 0, 8, 6]
    together = strategy().speculate(sequences(), lengths)
    alone = [strategy().speculate([one], [num])[0] for one, num in zip(sequences(), lengths, strict=True)]
    assert [tree.tokens for tree in together] == [tree.tokens for tree in alone]
    assert [bool(tree.tokens) for tree in together] == [True, True, False, True, True]


@pytest.mark.parametrize("engine", ["onnx", "native"])
def test_only_scored_tokens_have_logits_the_same_as_in_a_pass_that_scores_all(
    pair: Path, engine: str
) -> None:
    if engine == "native" and not native.is_compiled():
        pytest.skip("the network in C was not compiled")
    folder = open_model(pair, "int8").folder
    network = load_network(folder, "int8") if engine == "onnx" else load_draft_network(folder, "int8")
    of = network.shape
    ids = np.array([tokens(40, 1), tokens(40, 2), tokens(40, 3)], np.int64)
    positions = np.tile(np.arange(40), (3, 1))
    mask = np.tile(np.triu(np.full((40, 40), -1e9, np.float32), 1), (3, 1, 1))
    past = np.zeros((of.num_layers, 3, of.num_kv_heads, 0, of.head_dim), np.float32)
    whole = network.forward(ids, positions, mask, past, past)
    places = np.array([0, 39, 41, 119])
    some = network.read(ids, positions, mask, past, past, places)  # type: ignore[attr-defined]
    assert np.array_equal(some.logits, whole.logits.reshape(120, -1)[places])
    assert np.array_equal(some.keys, whole.keys)
    if engine == "native":
        with pytest.raises(ShapeMismatch, match="must rise"):
            network.read(ids, positions, mask, past, past, np.array([5, 5]))  # type: ignore[attr-defined]
        with pytest.raises(ShapeMismatch, match="must rise"):
            network.read(ids, positions, mask, past, past, np.array([120]))  # type: ignore[attr-defined]
