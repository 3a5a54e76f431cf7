"""A request in token ids, and the state of its answer. The engine writes it, strategies read it."""

from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.noise import Keys, noise_keys
from htfi.decoding.sampling import SamplingParams, SamplingPosition
from htfi.domain.generation import GenerationRequest

COMPLETION_STREAM = 0


@dataclass(frozen=True, slots=True)
class TokenizedRequest:
    """A request in token ids. `forced_prefix` is forced by the grammar and read together with the prompt."""

    request: GenerationRequest
    grammar: TokenAutomaton
    prompt: list[int]
    num_shared: int
    forced_prefix: list[int]
    start_state: int  # of the grammar, after the forced prefix
    sampling: SamplingParams

    @property
    def max_length(self) -> int:
        """Tokens of prompt and answer, at most."""
        return len(self.prompt) + self.grammar.max_tokens


@dataclass(slots=True, eq=False)
class SequenceState:
    """The accepted part of an answer: `tokens` with the forced ones, and the grammar's state after them."""

    tokenized: TokenizedRequest
    tokens: list[int]
    state: int
    _noise_keys: Keys | None = field(default=None, init=False, repr=False)

    @property
    def noise_keys(self) -> Keys:
        """The noise keys of all positions that the answer may have, computed once."""
        if self._noise_keys is None:
            places = np.arange(self.tokenized.grammar.max_tokens, dtype=np.int64)
            self._noise_keys = noise_keys(
                self.tokenized.request.seed, np.full_like(places, COMPLETION_STREAM), places
            )
        return self._noise_keys

    @property
    def is_done(self) -> bool:
        return self.state == self.tokenized.grammar.done

    @property
    def num_left(self) -> int:
        """Tokens that may still follow, at most."""
        return self.tokenized.grammar.max_tokens - len(self.tokens)

    def sampling_position(self, state: int, num_tokens: int) -> SamplingPosition:
        """Where token number `num_tokens` of the answer is sampled, in a state that leaves it open."""
        asked = self.tokenized
        return SamplingPosition(
            asked.grammar.steps[state].allowed, asked.sampling, int(self.noise_keys[num_tokens])
        )

    def append(self, token: int) -> list[int]:
        """Append a chosen token and those that it forces; returns them all."""
        grammar = self.tokenized.grammar
        forced, self.state = grammar.forced(grammar.advance(self.state, token))
        appended = [token, *forced]
        self.tokens += appended
        return appended
