"""Chain speculation: the draft writes on, token after token, with the target's own noise. The default of a pair."""

from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.draft import DraftTree
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import Place, choose_each
from htfi.decoding.sessions import Sessions
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.draft_rows import DraftRow, DraftRows
from htfi.decoding.strategy import Outcome


@dataclass(slots=True)
class _Branch:
    """A chain on its way: `num_left` tokens are still to be chosen, the next from `logits`."""

    stem: Stem
    tree: DraftTree
    num_left: int
    row: DraftRow
    logits: Floats

    @property
    def state(self) -> int:
        return self.tree.states[-1] if self.tree.states else self.stem.state

    def place(self) -> Place:
        return self.stem.place(self.state, len(self.stem.tokens) + len(self.tree))


class Chain:
    """Implements `Strategy` with a draft network's sequences, all of a batch side by side."""

    name = "chain"

    def __init__(self, sessions: Sessions) -> None:
        self._rows = DraftRows(sessions)

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in stems]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not stems[at].is_done]
        levels = self._rows.level([stems[at] for at in asked]) if asked else []
        live = [
            _Branch(stems[at], trees[at], lengths[at], *level)
            for at, level in zip(asked, levels, strict=True)
            if level is not None
        ]
        while live:
            tokens = choose_each([branch.logits for branch in live], [branch.place() for branch in live])
            put = [self._grow(branch, token) for branch, token in zip(live, tokens, strict=True)]
            going = [(branch, ids) for branch, ids in zip(live, put, strict=True) if ids and branch.num_left]
            live = [branch for branch, _ in going]
            if live:
                after = self._rows.read([branch.row for branch in live], [ids for _, ids in going])
                for branch, logits in zip(live, after, strict=True):
                    branch.logits = logits
        return trees

    def _grow(self, branch: "_Branch", token: int) -> list[int]:
        """Put a token and what it forces; what was put."""
        if token < 0:
            self._rows.leave(branch.stem, wipe=True)
            return []
        tree = branch.tree
        _, put = tree.grow(branch.stem.asked.form, branch.state, token, len(tree) - 1)
        branch.num_left = 0 if branch.state == branch.stem.asked.form.done else branch.num_left - 1
        return put

    def verifying(self, stems: Sequence[Stem], trees: Sequence[DraftTree]) -> None:
        pass

    def settle(self, stem: Stem, tree: DraftTree, outcome: Outcome) -> None:
        pass

    def leave(self, stem: Stem) -> None:
        self._rows.leave(stem)
