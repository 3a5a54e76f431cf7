"""An edge's windows as a draft strategy of the cloud's engine, besides the cloud's own draft.

A window fits if the text before it is the one that the edge assumed, by its prefix hash; others are dropped.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.link.frames import DraftMode, prefix_hash
from htfi.decoding.sequence import SequenceState
from htfi.decoding.strategy import DraftStrategy, DraftVerification
from htfi.domain.errors import DependencyUnavailable

SELF_DRAFTED = (
    DraftMode.CLOUD,
    DraftMode.PIPELINED,
)  # leads under which the cloud's own draft guesses if no window fits
_MAX_WINDOWS = 64  # per answer


@dataclass(frozen=True, slots=True)
class _RemoteWindow:
    at: int
    prefix: int
    ids: tuple[int, ...]


@dataclass(slots=True)
class _RemoteWindows:
    """A sequence's windows, by the position where they begin. `hashes[n]` is that of the first n accepted tokens."""

    windows: list[_RemoteWindow] = field(default_factory=list[_RemoteWindow])
    hashes: list[int] = field(default_factory=lambda: [0])
    fitting: list[int] | None = None  # for as many accepted tokens as hashes, less one


class RemoteDraftStrategy:
    """Implements `DraftStrategy` with the windows received for each sequence."""

    name = "posted"

    def __init__(self) -> None:
        self._boxes: dict[SequenceState, _RemoteWindows] = {}
        self.num_dropped = 0  # windows that did not fit, or too many

    def post(self, sequence: SequenceState, at: int, prefix: int, ids: Sequence[int]) -> None:
        """Guesses for the positions from `at` on, after a text with this hash. The caller has checked their number."""
        box = self._boxes.setdefault(sequence, _RemoteWindows())
        if len(box.windows) >= _MAX_WINDOWS:
            box.windows.pop(0)
            self.num_dropped += 1
        box.windows.append(_RemoteWindow(at, prefix, tuple(ids)))
        box.windows.sort(key=lambda window: window.at)  # stable: of two at one position, the later comes last
        box.fitting = None

    def clear(self, sequence: SequenceState) -> None:
        self._boxes.pop(sequence, None)

    def fitting(self, sequence: SequenceState) -> list[int] | None:
        """The guesses after the accepted tokens, as far as windows reach; None if no window fits.

        An empty window that fits means that its sender has no guesses.
        """
        box = self._boxes.get(sequence)
        if box is None:
            return None
        num_known = len(box.hashes) - 1
        if len(sequence.tokens) > num_known:
            for token in sequence.tokens[num_known:]:
                box.hashes.append(prefix_hash([token], box.hashes[-1]))
            box.fitting = None
        if box.fitting is None and box.windows:
            box.fitting = self._joined(box, sequence.tokens)
        return box.fitting

    def _joined(self, box: _RemoteWindows, accepted: list[int]) -> list[int] | None:
        chain: list[int] = []
        hashes = list(box.hashes)
        num_accepted, fits = len(accepted), False
        kept: list[_RemoteWindow] = []
        for window in box.windows:
            place = window.at - num_accepted  # in the chain
            if place > len(chain):
                kept.append(window)  # tokens between may still arrive, or be accepted
                continue
            behind = max(-place, 0)  # of its guesses are accepted already
            overlap = window.ids[:behind]
            agrees = (
                hashes[window.at] == window.prefix
                and list(overlap) == accepted[window.at : window.at + len(overlap)]
            )
            if place <= 0 and not agrees:
                self.num_dropped += 1
                continue
            if behind and behind >= len(window.ids):
                continue
            kept.append(window)
            if not agrees:
                continue
            fits = True
            own = list(window.ids[behind:])
            begin = max(place, 0)
            if begin + len(own) > len(chain) or own != chain[begin : begin + len(own)]:
                del chain[begin:]
                del hashes[num_accepted + begin + 1 :]
                for token in own:
                    chain.append(token)
                    hashes.append(prefix_hash([token], hashes[-1]))
        box.windows = kept
        return chain if fits else None

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        return [
            _chain(sequence, self.fitting(sequence) or (), length)
            for sequence, length in zip(sequences, lengths, strict=True)
        ]

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        pass

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        pass  # the sequence's tokens decide which windows still fit

    def finish(self, sequence: SequenceState) -> None:
        self.clear(sequence)


def _chain(sequence: SequenceState, guesses: Iterable[int], length: int) -> DraftTree:
    """The guesses as a chain of at most `length` chosen tokens, cut where they break the grammar."""
    tree, grammar, state = DraftTree(), sequence.tokenized.grammar, sequence.state
    for token in guesses:
        if state == grammar.done or not grammar.allows(state, token):
            break
        if tree.depth >= length and _is_open(grammar, state):
            break
        tree.add_token(grammar, sequence.state, token, len(tree) - 1)
        state = tree.states[-1]
    return tree


def _is_open(grammar: TokenAutomaton, state: int) -> bool:
    return grammar.steps[state].forced < 0


class RoutedStrategy:
    """Implements `DraftStrategy`: an edge's windows if there are some, else the cloud's own draft, else nothing.

    `draft` guesses for sequences that the cloud leads, and in flight if no window fits. `clock` (seconds) only measures
    it.
    """

    def __init__(
        self,
        draft: DraftStrategy | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.remote = RemoteDraftStrategy()
        self.draft = draft
        self.name = f"posted or {draft.name}" if draft else "posted"
        self._clock = clock
        self._leads: dict[SequenceState, DraftMode] = {}
        self._drafted: set[SequenceState] = set()  # known to the draft
        self._by_draft: set[SequenceState] = set()  # drafted for in the current round
        self.draft_s = 0.0
        self.num_drafted = 0  # tokens that the draft guessed
        self.led: list[bool] = []  # of the latest round: sequences that the draft was to guess for

    def lead(self, sequence: SequenceState, lead: DraftMode) -> None:
        """Set who drafts for a sequence from now on."""
        self._leads[sequence] = lead

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        trees = self.remote.speculate(sequences, lengths)
        self._by_draft.clear()
        self.led = [
            self.draft is not None and self._leads.get(sequence) in SELF_DRAFTED and not tree.tokens
            for sequence, tree in zip(sequences, trees, strict=True)
        ]
        if self.draft is None:
            return trees
        asking = [at for at, is_led in enumerate(self.led) if is_led and lengths[at] > 0]
        if asking:
            began_s = self._clock()
            led = [sequences[at] for at in asking]
            self._drafted.update(led)
            try:
                drafted = self.draft.speculate(led, [lengths[at] for at in asking])
            except DependencyUnavailable:  # windows are used all the same
                return trees
            for at, tree in zip(asking, drafted, strict=True):
                trees[at] = tree
                self.num_drafted += len(tree)
            self._by_draft.update(led)
            self.draft_s += self._clock() - began_s
        return trees

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        if self.draft is not None and self._by_draft:
            led = [
                (sequence, tree)
                for sequence, tree in zip(sequences, trees, strict=True)
                if sequence in self._by_draft
            ]
            self.draft.verification_starts([sequence for sequence, _ in led], [tree for _, tree in led])

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        if self.draft is not None and sequence in self._by_draft:
            self.draft.verified(sequence, tree, outcome)

    def finish(self, sequence: SequenceState) -> None:
        self.remote.finish(sequence)
        self._leads.pop(sequence, None)
        self._by_draft.discard(sequence)
        if self.draft is not None and sequence in self._drafted:
            self._drafted.discard(sequence)
            self.draft.finish(sequence)
