"""Chain drafting, the default: the draft writes token after token with the target's own noise.

A network that implements `ChainDraftingNetwork` drafts a whole chain in one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.noise import Keys, token_counters
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sampling import SamplingPosition, sample_positions
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategies.draft_rows import DraftKVRow, DraftKVRows
from htfi.decoding.strategies.sampled import SampledStrategy
from htfi.decoding.strategy import DraftStrategy, DraftVerification, StrategyParts


class FlatGrammar(NamedTuple):
    """A grammar's automaton as arrays. State s allows tokens[offsets[s]] to tokens[offsets[s + 1]], rising, each with
    its next state. A state that allows one token forces it; the last state allows none.
    """

    offsets: Ids
    tokens: Ids
    next_states: Ids
    counters: Keys  # of the tokens, in the noise


class DraftedChain(NamedTuple):
    """Drafted tokens, the grammar's state after each, and the number of tokens read: unread ones, then drafted."""

    tokens: list[int]
    states: list[int]
    num_read: int


@runtime_checkable
class ChainDraftingNetwork(Protocol):
    """A network that drafts by itself, so that a step costs no Python call."""

    def chain(
        self,
        keys: Floats,
        values: Floats,
        slot: int,
        length: int,
        unread: Sequence[int],
        grammar: FlatGrammar,
        state: int,
        num_chosen: int,
        temperature: float,
        noise: Keys,
    ) -> DraftedChain:
        """Draft for one sequence: read the unread tokens, sample, read on; forced tokens are included.

        keys and values are an arena's [L, B, G, S, D], in which `slot` holds `length` tokens. What is read is written
        behind them; there must be room for `unread` and for as many tokens as there are keys of `noise`, one per
        position. At most `num_chosen` tokens are sampled; the last one, and what it forces, is not read.
        """
        ...


def flatten_grammar(grammar: TokenAutomaton) -> FlatGrammar:
    leads = [grammar.transitions(state) for state in range(len(grammar.steps))]
    begins = np.cumsum([0, *(len(ids) for ids, _ in leads), 0])  # the last state allows nothing
    tokens = np.concatenate([ids for ids, _ in leads])
    return FlatGrammar(begins, tokens, np.concatenate([nexts for _, nexts in leads]), token_counters(tokens))


def _fits_one_call(sequence: SequenceState) -> bool:
    """The network samples from all allowed tokens, and reads the grammar as arrays."""
    return sequence.tokenized.grammar.is_flat and not sequence.tokenized.sampling.truncates


_MAX_FORCED_TOKENS = 8  # forced tokens that one chain may hold beside its chosen ones


@dataclass(slots=True)
class _PartialChain:
    """A chain being drafted: `num_left` tokens are still to be sampled, the next from `logits`."""

    sequence: SequenceState
    tree: DraftTree
    num_left: int
    row: DraftKVRow
    logits: Floats

    @property
    def state(self) -> int:
        return self.tree.states[-1] if self.tree.states else self.sequence.state

    def place(self) -> SamplingPosition:
        return self.sequence.sampling_position(self.state, len(self.sequence.tokens) + len(self.tree))


class ChainStrategy:
    """Implements `DraftStrategy` with a draft network's sequences, the whole batch side by side.

    A single sequence is drafted in one call if the network offers that.
    """

    name = "chain"

    def __init__(self, sessions: KVSessions) -> None:
        self._rows = DraftKVRows(sessions)
        self._chaining = sessions.network if isinstance(sessions.network, ChainDraftingNetwork) else None
        self._flat: WeakKeyDictionary[TokenAutomaton, FlatGrammar] = WeakKeyDictionary()

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in sequences]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not sequences[at].is_done]
        if self._chaining is not None:
            whole = [at for at in asked if _fits_one_call(sequences[at])]
            for at in whole:
                trees[at] = self._draft_in_one_call(sequences[at], lengths[at], self._chaining)
            asked = [at for at in asked if at not in whole]
        levels = self._rows.catch_up([sequences[at] for at in asked]) if asked else []
        live = [
            _PartialChain(sequences[at], trees[at], lengths[at], *level)
            for at, level in zip(asked, levels, strict=True)
            if level is not None
        ]
        while live:
            tokens = sample_positions([branch.logits for branch in live], [branch.place() for branch in live])
            put = [self._grow(branch, token) for branch, token in zip(live, tokens, strict=True)]
            going = [(branch, ids) for branch, ids in zip(live, put, strict=True) if ids and branch.num_left]
            live = [branch for branch, _ in going]
            if live:
                after = self._rows.read([branch.row for branch in live], [ids for _, ids in going])
                for branch, logits in zip(live, after, strict=True):
                    branch.logits = logits
        return trees

    def _draft_in_one_call(
        self, sequence: SequenceState, length: int, network: ChainDraftingNetwork
    ) -> DraftTree:
        grammar, tree = sequence.tokenized.grammar, DraftTree()
        if sequence.tokens:
            found = self._rows.unread_tokens(sequence)
            if found is None:
                return tree
            drafted, unread = found
        else:  # nothing is accepted yet: sample from the prompt's own logits
            (level,) = self._rows.catch_up([sequence])
            if level is None:
                return tree
            branch = _PartialChain(sequence, tree, length, *level)
            drafted, unread = (
                branch.row,
                self._grow(branch, *sample_positions([branch.logits], [branch.place()])),
            )
            length = branch.num_left
        begin, state = len(sequence.tokens) + len(tree), tree.states[-1] if tree.states else sequence.state
        row, arena = drafted.row, self._rows.sessions.arena
        num_places = min(
            row.limit - row.length - len(unread), grammar.max_tokens - begin, length + _MAX_FORCED_TOKENS
        )
        if not (length and unread and num_places > 0):
            return tree
        arena.grow_to(row.length + len(unread) + num_places)
        noise = sequence.noise_keys[begin : begin + num_places]
        flat, temperature = self._flat_form(grammar), sequence.tokenized.sampling.temperature
        chained = network.chain(
            arena.keys,
            arena.values,
            row.slot,
            row.length,
            unread,
            flat,
            state,
            length,
            temperature,
            noise,
        )
        arena.note_appended(row, chained.num_read)
        drafted.read += [*unread, *chained.tokens[: chained.num_read - len(unread)]]
        for token, after in zip(chained.tokens, chained.states, strict=True):
            tree.add(token, len(tree) - 1, after, forced=grammar.steps[state].forced >= 0)
            state = after
        return tree

    def _flat_form(self, grammar: TokenAutomaton) -> FlatGrammar:
        flat = self._flat.get(grammar)
        if flat is None:
            flat = self._flat[grammar] = flatten_grammar(grammar)
        return flat

    def _grow(self, branch: "_PartialChain", token: int) -> list[int]:
        """Append a token and what it forces; the appended tokens."""
        if token < 0:
            self._rows.finish(branch.sequence, wipe=True)
            return []
        tree = branch.tree
        _, put = tree.add_with_forced(branch.sequence.tokenized.grammar, branch.state, token, len(tree) - 1)
        branch.num_left = 0 if branch.state == branch.sequence.tokenized.grammar.done else branch.num_left - 1
        return put

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass

    def finish(self, sequence: SequenceState) -> None:
        self._rows.finish(sequence)

    def rewind(self, sequence: SequenceState, num_tokens: int) -> None:
        """The guessed tokens of a sequence were replaced from `num_tokens` on; earlier ones are unchanged."""
        self._rows.rewind(sequence, num_tokens)


def build(parts: StrategyParts) -> DraftStrategy:
    """The strategy 'chain' of the settings."""
    sessions = parts.draft_sessions()
    return SampledStrategy(sessions) if parts.samples_drafts else ChainStrategy(sessions)
