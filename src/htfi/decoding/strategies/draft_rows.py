"""The draft network's own sequences, one per answer, kept in step with the accepted tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from htfi.decoding.kv_cache import KVRow
from htfi.decoding.ports import Floats
from htfi.decoding.prefill import PromptToPrefill
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions


@dataclass(slots=True, eq=False)
class DraftKVRow:
    """A sequence's row: `read` are the answer's tokens that the draft has read, the first `num_accepted` of them
    accepted.
    """

    row: KVRow
    read: list[int]
    num_accepted: int


class DraftKVRows:
    """Rows of the draft by sequence. A sequence without room has no row and is not drafted for."""

    def __init__(self, sessions: KVSessions) -> None:
        self.sessions = sessions
        self._rows: dict[int, DraftKVRow] = {}

    def catch_up(self, sequences: Sequence[SequenceState]) -> list[tuple[DraftKVRow, Floats] | None]:
        """Each sequence's row with all accepted tokens read, and the logits [V] after the last; None without room.

        Rejected tokens are dropped; accepted ones are not read again.
        """
        found: list[tuple[DraftKVRow, Floats] | None] = [None] * len(sequences)
        behind: list[tuple[int, DraftKVRow, list[int]]] = []
        for place, sequence in enumerate(sequences):
            known = self._rows.get(id(sequence))
            if known is not None and not sequence.tokens:  # the logits after the prompt are needed again
                self.finish(sequence)
                known = None
            if known is None:
                found[place] = self._join(sequence)
                continue
            unread = self._forget(known, sequence)
            known.read += unread
            behind.append((place, known, unread))
        if behind:
            after = self.sessions.extend([known.row for _, known, _ in behind], [ids for _, _, ids in behind])
            for (place, known, _), logits in zip(behind, after, strict=True):
                found[place] = known, logits[-1]
        return found

    def unread_tokens(self, sequence: SequenceState) -> tuple[DraftKVRow, list[int]] | None:
        """A sequence's row and its accepted tokens that are still to be read, at least the last; None without room."""
        known = self._rows.get(id(sequence))
        if known is None:
            joined = self._join(sequence)
            if joined is None:
                return None
            known, _ = joined
        return known, self._forget(known, sequence)

    def _forget(self, known: DraftKVRow, sequence: SequenceState) -> list[int]:
        """Drop rejected tokens; the accepted tokens that are then unread, at least the last."""
        num_kept = known.num_accepted
        for token in known.read[
            num_kept : len(sequence.tokens) - 1
        ]:  # the last is read again, for its logits
            if token != sequence.tokens[num_kept]:
                break
            num_kept += 1
        num_kept = min(num_kept, len(sequence.tokens) - 1)
        if num_kept < len(known.read):
            self.sessions.rewind(known.row, known.row.length - len(known.read) + num_kept)
            del known.read[num_kept:]
        known.num_accepted = len(sequence.tokens)
        return sequence.tokens[num_kept:]

    def read(self, rows: Sequence[DraftKVRow], tokens: Sequence[Sequence[int]]) -> list[Floats]:
        """Read drafted tokens; the logits [V] after the last of each."""
        after = self.sessions.extend([drafted.row for drafted in rows], tokens)
        for drafted, ids in zip(rows, tokens, strict=True):
            drafted.read += ids
        return [logits[-1] for logits in after]

    def read_tree(
        self, rows: Sequence[DraftKVRow], tokens: Sequence[Sequence[int]], parents: Sequence[Sequence[int]]
    ) -> list[Floats]:
        """Read nodes of a tree, one level after another; the logits [T, V] after each. `accept_branch` follows.

        Nodes count in the order in which they were read; `parents` are those of all nodes of the tree so far.
        """
        after = self.sessions.extend([drafted.row for drafted in rows], tokens, parents)
        for drafted, ids in zip(rows, tokens, strict=True):
            drafted.read += ids
        return after

    def accept_branch(self, drafted: DraftKVRow, branch: Sequence[int]) -> None:
        """Keep the nodes of one branch, drop the others."""
        num_ahead = drafted.num_accepted
        length = drafted.row.length - len(drafted.read) + num_ahead
        self.sessions.keep_branch(drafted.row, length, branch)
        drafted.read[num_ahead:] = [drafted.read[num_ahead + node] for node in branch]

    def rewind(self, sequence: SequenceState, num_tokens: int) -> None:
        """A sequence's tokens changed from `num_tokens` on; tokens read after that are compared again."""
        known = self._rows.get(id(sequence))
        if known is not None:
            known.num_accepted = min(known.num_accepted, num_tokens)

    def finish(self, sequence: SequenceState, wipe: bool = False) -> None:
        """Free a sequence's row; `wipe` if it may hold values that are not finite."""
        known = self._rows.pop(id(sequence), None)
        if known is not None:
            self.sessions.close(known.row, wipe)

    def _join(self, sequence: SequenceState) -> tuple[DraftKVRow, Floats] | None:
        asked = sequence.tokenized
        if self.sessions.refusal(asked.max_length) is not None or not self.sessions.has_space(
            asked.max_length
        ):
            return None
        whole = [*asked.prompt, *sequence.tokens]
        (opened,) = self.sessions.open_all([PromptToPrefill(whole, asked.max_length, asked.num_shared)])
        known = self._rows[id(sequence)] = DraftKVRow(opened.row, list(sequence.tokens), len(sequence.tokens))
        return known, opened.logits
