"""Chain speculation: the draft writes on, token after token, with the target's own noise. The default of a pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from htfi.decoding.chaining import Chaining, FlatForm, flat_form
from htfi.decoding.draft import DraftTree
from htfi.decoding.form import CompiledForm
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import Place, choose_each
from htfi.decoding.sessions import Sessions
from htfi.decoding.stem import Stem
from htfi.decoding.strategies.draft_rows import DraftRow, DraftRows
from htfi.decoding.strategy import Outcome

_FORCED = 8  # forced tokens that one chain may hold beside its chosen ones


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
    """Implements `Strategy` with a draft network's sequences, all of a batch side by side.

    One alone is drafted in one call, where the network offers that.
    """

    name = "chain"

    def __init__(self, sessions: Sessions) -> None:
        self._rows = DraftRows(sessions)
        self._chaining = sessions.network if isinstance(sessions.network, Chaining) else None
        self._flat: WeakKeyDictionary[CompiledForm, FlatForm] = WeakKeyDictionary()

    def speculate(self, stems: Sequence[Stem], lengths: Sequence[int]) -> list[DraftTree]:
        trees = [DraftTree() for _ in stems]
        asked = [at for at, length in enumerate(lengths) if length > 0 and not stems[at].is_done]
        if self._chaining is not None and len(asked) == 1 and not stems[asked[0]].asked.sampling.truncates:
            trees[asked[0]] = self._at_once(stems[asked[0]], lengths[asked[0]], self._chaining)
            return trees
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

    def _at_once(self, stem: Stem, length: int, network: Chaining) -> DraftTree:
        form, tree = stem.asked.form, DraftTree()
        if stem.tokens:
            found = self._rows.behind(stem)
            if found is None:
                return tree
            drafted, unread = found
        else:  # nothing is settled yet, so the prompt's own logits choose
            (level,) = self._rows.level([stem])
            if level is None:
                return tree
            branch = _Branch(stem, tree, length, *level)
            drafted, unread = branch.row, self._grow(branch, *choose_each([branch.logits], [branch.place()]))
            length = branch.num_left
        begin, state = len(stem.tokens) + len(tree), tree.states[-1] if tree.states else stem.state
        row, arena = drafted.row, self._rows.sessions.arena
        num_places = min(row.limit - row.length - len(unread), form.longest - begin, length + _FORCED)
        if not (length and unread and num_places > 0):
            return tree
        arena.make_room(row.length + len(unread) + num_places)
        noise = stem.noise[begin : begin + num_places]
        flat, temperature = self._flat_form(form), stem.asked.sampling.temperature
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
        arena.grew(row, chained.num_read)
        drafted.read += [*unread, *chained.tokens[: chained.num_read - len(unread)]]
        for token, after in zip(chained.tokens, chained.states, strict=True):
            tree.add(token, len(tree) - 1, after, forced=form.steps[state].forced >= 0)
            state = after
        return tree

    def _flat_form(self, form: CompiledForm) -> FlatForm:
        flat = self._flat.get(form)
        if flat is None:
            flat = self._flat[form] = flat_form(form)
        return flat

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

    def rewind(self, stem: Stem, num_tokens: int) -> None:
        """A stem whose tokens are guesses was put right: of those read, the first so many stand at most."""
        self._rows.rewind(stem, num_tokens)
