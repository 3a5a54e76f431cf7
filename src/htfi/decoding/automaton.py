"""What the engine asks of an output grammar, and the grammar of free text: any plain tokens until the end token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from htfi.decoding.ports import Ids
from htfi.decoding.sampling import AllowedTokens
from htfi.domain.errors import IntegrityError

if TYPE_CHECKING:
    from htfi.decoding.vocabulary import Vocabulary


class AutomatonState(Protocol):
    """One state: the one token that must come (`forced`), or the tokens to choose among (then `forced` is −1)."""

    @property
    def allowed(self) -> AllowedTokens: ...

    @property
    def forced(self) -> int: ...


class TokenAutomaton(Protocol):
    """A grammar over token ids. States count from `start`; `done` ends an answer, `max_tokens` bounds its length."""

    @property
    def start(self) -> int: ...

    @property
    def done(self) -> int: ...

    @property
    def max_tokens(self) -> int: ...

    @property
    def is_flat(self) -> bool:
        """Whether all of its states are known before an answer is, so that they can be laid out as arrays."""
        ...

    @property
    def steps(self) -> Sequence[AutomatonState]: ...

    def advance(self, state: int, token: int) -> int:
        """The state after an allowed token. Raises IntegrityError for any other."""
        ...

    def allows(self, state: int, token: int) -> bool:
        """Whether a token is allowed in a state before `done`."""
        ...

    def transitions(self, state: int) -> tuple[Ids, Ids]:
        """The allowed tokens of a state, rising, and the next state of each; none for the last state."""
        ...

    def forced(self, state: int) -> tuple[list[int], int]:
        """The tokens that must follow, and the state after them."""
        ...

    def fields(self, tokens: Sequence[int]) -> dict[str, str]:
        """Every field of a complete answer. Raises IntegrityError if the tokens break the grammar or end early."""
        ...

    def fields_so_far(self, tokens: Sequence[int]) -> dict[str, str]:
        """The fields of an answer under way. Raises IntegrityError if the tokens break the grammar."""
        ...


class ChosenState:
    """A state that leaves a choice among tokens."""

    __slots__ = ("allowed", "forced")

    def __init__(self, allowed: AllowedTokens) -> None:
        self.allowed = allowed
        self.forced = -1


class TextGrammar:
    """Any plain tokens of a vocabulary, then the end token. One state, whatever the bound: who asks cuts the answer at
    `max_tokens`.
    """

    start, done, is_flat = 0, 1, True

    def __init__(self, vocabulary: "Vocabulary", end: int | None, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        self._end = end
        self._tokenizer = vocabulary.tokenizer
        self.steps = (ChosenState(vocabulary.text_or(end)),)

    def advance(self, state: int, token: int) -> int:
        if not self.allows(state, token):
            raise IntegrityError(f"token {token} is not allowed at this position of its grammar")
        return self.done if token == self._end else self.start

    def allows(self, state: int, token: int) -> bool:
        if state == self.done:
            return False
        ids = self.steps[0].allowed.ids
        place = int(np.searchsorted(ids, token))
        return place < len(ids) and int(ids[place]) == token

    def transitions(self, state: int) -> tuple[Ids, Ids]:
        ids = self.steps[state].allowed.ids
        return ids, np.where(ids == (-1 if self._end is None else self._end), self.done, self.start)

    def forced(self, state: int) -> tuple[list[int], int]:
        return [], state

    def fields(self, tokens: Sequence[int]) -> dict[str, str]:
        return {"text": self._tokenizer.decode([token for token in tokens if token != self._end])}

    def fields_so_far(self, tokens: Sequence[int]) -> dict[str, str]:
        return self.fields(tokens)
