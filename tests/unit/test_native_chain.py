"""Chains drafted in C: the tokens that single passes and choices give, written where the arena's row goes on."""

import numpy as np
import pytest

from htfi import models
from htfi.adapters.native import network as native
from htfi.adapters.native.network import NativeNetwork
from htfi.decoding.checkpoint.folder import ModelFolder
from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.noise import token_counters
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sampling import AllowedTokens, SamplingParams, sample_tokens
from htfi.decoding.strategies.chain import FlatGrammar, flatten_grammar
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import ShapeMismatch
from htfi.domain.generation import ChoiceField, FixedField, FreeTextField, PlainText
from tiny_network import TinyTokenizer

pytestmark = pytest.mark.skipif(not native.is_compiled(), reason="the network in C was not compiled")

CAPACITY, SLOT, HELD = 96, 1, 40


@pytest.fixture(scope="module", params=[0, 2])
def network(request: pytest.FixtureRequest) -> NativeNetwork:
    return NativeNetwork(ModelFolder.open(models.DRAFT), level=request.param)


def automaton(rng: np.random.Generator, vocab_size: int, num_states: int = 12) -> FlatGrammar:
    """Random states, every third of which forces its token; the last is the end."""
    begins, tokens, nexts = [0], [], []
    for state in range(num_states - 1):
        size = 1 if state % 3 == 2 else int(rng.integers(2, 300))
        tokens += sorted(rng.choice(vocab_size, size, replace=False).tolist())
        nexts += rng.integers(0, num_states - 1 if size > 1 else num_states, size).tolist()
        begins.append(len(tokens))
    ids = np.array(tokens, np.int64)
    ends = np.array([*begins, len(tokens)], np.int64)
    return FlatGrammar(ends, ids, np.array(nexts, np.int64), token_counters(ids))


def stepwise(
    network: NativeNetwork,
    keys: Floats,
    values: Floats,
    unread: list[int],
    form: FlatGrammar,
    num_chosen: int,
    temperature: float,
    noise: np.ndarray,
) -> tuple[list[int], list[int]]:
    """The same by one pass a step, with every logit; the row's keys and values grow in place."""
    tokens, states, state, length, pending = [], [], 0, HELD, list(unread)
    while len(tokens) < len(noise):
        here = slice(*form.offsets[state : state + 2])
        ids: Ids = form.tokens[here]
        if not len(ids):
            break
        token = int(ids[0])
        if len(ids) > 1:
            if not num_chosen:
                break
            num_chosen -= 1
            n = len(pending)
            mask = np.concatenate([np.zeros((n, length)), np.triu(np.full((n, n), -1e9), 1)], axis=1)
            past = [np.ascontiguousarray(kv[:, SLOT : SLOT + 1, :, :length]) for kv in (keys, values)]
            done = network.forward(
                np.array([pending]), np.arange(length, length + n)[None], mask[None].astype(np.float32), *past
            )
            keys[:, SLOT, :, length : length + n] = done.keys[:, 0]
            values[:, SLOT, :, length : length + n] = done.values[:, 0]
            length, pending = length + n, []
            key = noise[len(tokens) : len(tokens) + 1]
            token = int(
                sample_tokens(done.logits[0, -1:], AllowedTokens.of(ids), SamplingParams(temperature), key)[0]
            )
        state = int(form.next_states[here][np.searchsorted(ids, token)])
        pending.append(token)
        tokens.append(token)
        states.append(state)
    return tokens, states


def arena(network: NativeNetwork) -> list[Floats]:
    of, rng = network.shape, np.random.Generator(np.random.PCG64(1))
    sizes = (of.num_layers, 3, of.num_kv_heads, CAPACITY, of.head_dim)
    return [rng.standard_normal(sizes).astype(np.float32) for _ in range(2)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_a_chain_is_what_single_steps_draft(network: NativeNetwork, seed: int, temperature: float) -> None:
    rng = np.random.Generator(np.random.PCG64(seed))
    form = automaton(rng, network.shape.vocab_size)
    unread = rng.integers(0, network.shape.vocab_size, 1 + seed % 3).tolist()
    noise = rng.integers(0, 2**64, 20, np.uint64)
    one, other = arena(network), arena(network)
    found = network.chain(*one, SLOT, HELD, unread, form, 0, 6, temperature, noise)
    tokens, states = stepwise(network, *other, unread, form, 6, temperature, noise)
    assert (found.tokens, found.states) == (tokens, states)
    end = HELD + found.num_read
    for mine, its in zip(one, other, strict=True):
        assert np.abs(mine - its).max() < 2e-2
        assert np.array_equal(np.delete(mine, SLOT, axis=1), np.delete(its, SLOT, axis=1))
        assert np.array_equal(mine[:, SLOT, :, end:], its[:, SLOT, :, end:])


def test_a_form_becomes_arrays_that_lead_where_it_leads() -> None:
    vocabulary = Vocabulary(TinyTokenizer())
    options = ((PlainText("up"),), (PlainText("down"),), (PlainText("cd"),))
    parts = (
        FixedField((PlainText("a"),)),
        ChoiceField("way", options),
        FixedField((PlainText(": "),)),
        FreeTextField("why", 3, PlainText(".")),
    )
    form = CompiledGrammar(parts, vocabulary)
    flat = flatten_grammar(form)
    assert len(flat.offsets) == len(form.steps) + 2
    assert flat.offsets[-1] == flat.offsets[-2]
    for state, step in enumerate(form.steps):
        here = slice(*flat.offsets[state : state + 2])
        ids = [step.forced] if step.forced >= 0 else step.allowed.ids.tolist()
        assert flat.tokens[here].tolist() == ids
        assert flat.next_states[here].tolist() == [form.advance(state, token) for token in ids]


def test_a_chain_without_room_is_refused(network: NativeNetwork) -> None:
    form = automaton(np.random.Generator(np.random.PCG64(0)), network.shape.vocab_size)
    keys, values = arena(network)
    noise = np.zeros(60, np.uint64)
    with pytest.raises(ShapeMismatch, match="60 tokens after 40"):
        network.chain(keys, values, SLOT, HELD, [1], form, 0, 4, 1.0, noise)
    with pytest.raises(ShapeMismatch):
        network.chain(keys.astype(np.float64), values, SLOT, HELD, [1], form, 0, 4, 1.0, noise[:4])
