"""One request on its way through an author: its row, what is read and what is pending, the rounds it has had."""

from dataclasses import dataclass, field

from htfi.decoding.draft import DraftTree, is_chain
from htfi.decoding.kv import Row
from htfi.decoding.stem import Asked, Stem
from htfi.decoding.strategy import Outcome
from htfi.domain.writing import DraftRound


@dataclass(slots=True, eq=False)
class Job:
    """`pending` tokens are settled and not yet read by the network."""

    place: int
    stem: Stem
    pending: list[int] = field(default_factory=list[int])
    row: Row | None = None
    is_read: bool = False
    num_reused: int = 0
    rounds: list[DraftRound] = field(default_factory=list[DraftRound])

    @property
    def asked(self) -> Asked:
        return self.stem.asked

    @property
    def held(self) -> Row:
        """Its row; only jobs that have joined are read for."""
        assert self.row is not None, "a job without a row is read for"
        return self.row

    def parents(self, tree: DraftTree) -> list[int]:
        """What is pending and a tree after it, as one tree."""
        num_pending = len(self.pending)
        return [*range(-1, num_pending - 1), *(parent + num_pending for parent in tree.parents)]


def cap(stem: Stem) -> int:
    """The most that may be drafted: what is left of the answer but for the pass's own token, as the request allows."""
    allowed = stem.asked.request.max_draft
    left = max(stem.num_left - 1, 0)
    return left if allowed is None else min(left, max(allowed, 0))


def told(tree: DraftTree, outcome: Outcome) -> DraftRound:
    """A round as the record tells it."""
    parents = () if is_chain(tree.parents) else tuple(tree.parents)
    return DraftRound(tuple(tree.tokens), parents, tuple(outcome.path), outcome.token)
