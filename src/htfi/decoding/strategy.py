"""The interface of all draft strategies, and what they are built from. The engine runs one, round by round.

A strategy guesses what the target will write. One pass of the target reads all guesses, and the acceptance rule
follows them as far as the target agrees.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions
from htfi.domain.generation import RuleTrace


class DraftVerification(NamedTuple):
    """What the target made of a draft: the accepted nodes, from the first on, and its own next token.

    `target_tokens` holds its choice at each open node and, last, after the accepted text; −1 for none. `is_finite` is
    false if some node gave a logit that is not finite.
    """

    path: list[int]
    next_token: int  # −1 if the answer ended
    target_tokens: list[int]
    is_finite: bool = True


class DraftStrategy(Protocol):
    """Guesses of what comes next. Sequences are distinguished by identity; each gets one `finish` in the end."""

    @property
    def name(self) -> str: ...

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        """One tree per sequence, at most lengths[i] chosen tokens deep (forced ones are free); 0 asks for none."""
        ...

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        """The target's pass is about to begin."""
        ...

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        """The outcome of a draft; `sequence` already holds the accepted tokens."""
        ...

    def finish(self, sequence: SequenceState) -> None:
        """The answer is finished or given up."""
        ...


class AcceptanceRule(Protocol):
    """Decides which drafted tokens are accepted."""

    @property
    def trace(self) -> RuleTrace | None:
        """What a record keeps of the rule; None for the shared noise."""
        ...

    def __call__(
        self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[DraftVerification | None]:
        """One outcome per sequence; None if a logit that decides is not finite.

        Shapes: logits [1 + n, V] for each sequence: after its accepted text, then after each of the tree's n nodes.
        """
        ...


class NoDraft:
    """No guesses: one token per pass."""

    name = "plain"

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        return [DraftTree() for _ in zip(sequences, lengths, strict=True)]

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass

    def finish(self, sequence: SequenceState) -> None:
        pass


class ResettingStrategy:
    """A strategy that is rebuilt whenever no answer is under way, so that a recorded run drafts the same again."""

    def __init__(self, make: Callable[[], DraftStrategy]) -> None:
        self._make = make
        self._inner = make()
        self._open: set[int] = set()
        self.name = self._inner.name

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        self._open.update(map(id, sequences))
        return self._inner.speculate(sequences, lengths)

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        self._inner.verification_starts(sequences, trees)

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        self._inner.verified(sequence, tree, outcome)

    def finish(self, sequence: SequenceState) -> None:
        self._inner.finish(sequence)
        self._open.discard(id(sequence))
        if not self._open:
            self._inner = self._make()


class OutcomeDraft(Protocol):
    """A draft that runs ahead during verification. It raises nothing; while it is down it drafts less."""

    @property
    def is_up(self) -> bool:
        """Whether it can draft now; asking may restart it."""
        ...

    def blocks(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[list[int]]:
        """The next tokens of each sequence, of which at most `lengths` are chosen; fewer if it is late."""
        ...

    def verification_starts(self) -> None:
        """The blocks are being verified: draft on for their outcomes."""
        ...

    def accepted(self, sequence: SequenceState, tokens: Sequence[int]) -> bool | None:
        """These tokens were accepted. Whether a block was begun for them; None for a sequence that it does not draft
        for.
        """
        ...

    def finish(self, sequence: SequenceState) -> None: ...

    def refuse(self, why: str) -> None:
        """Its output is invalid: restart the draft."""
        ...


class StrategyParts:
    """What a strategy may be built from. `uses_draft` becomes true when it opens the draft model.

    `start_draft_process` starts the draft in a process of its own; it returns None without a free core.
    """

    def __init__(
        self,
        config: DecodingConfig,
        vocab_size: int,
        open_draft: Callable[[], KVSessions],
        start_draft_process: Callable[[], OutcomeDraft | None],
    ) -> None:
        self.config = config
        self.vocab_size = vocab_size  # of the target
        self.uses_draft = False
        self._open_draft = open_draft
        self.start_draft_process = start_draft_process

    def draft_sessions(self) -> KVSessions:
        """Sequences of the draft model. Raises: InvalidInput, DependencyUnavailable if it cannot be loaded."""
        self.uses_draft = True
        return self._open_draft()

    @property
    def samples_drafts(self) -> bool:
        """Whether the acceptance rule wants drafts sampled from the draft's own distribution."""
        return self.config.rule != "coupled"

    def replayable(self, make: Callable[[], DraftStrategy]) -> DraftStrategy:
        """A strategy that learns, reset between answers if the draft lengths can be replayed."""
        return ResettingStrategy(make) if self.config.draft_length in ("nominal", "fixed") else make()
