"""The ways of decoding that the bench compares, over one target and one draft: an author each, with its own memory."""

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from htfi.apps.bench.decode_watch import ClockedSessions, Watch, Watched
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.evidence import Evidence
from htfi.decoding.lookahead.bandit import Bandit
from htfi.decoding.lookahead.closed_form import ClosedForm
from htfi.decoding.lookahead.plan import Fixed, Lookahead
from htfi.decoding.sessions import Sessions, ToRead
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategies.jacobi import Jacobi
from htfi.decoding.strategies.lookup import Lookup
from htfi.decoding.strategies.outcomes import Hits, OutcomeStrategy
from htfi.decoding.strategies.tree import Tree
from htfi.decoding.strategy import Plain, Strategy
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.writing import Refusal, Request, Writing
from htfi.wiring import models as wired
from htfi.wiring.draft_process import open_draft_process
from htfi.wiring.open_folder import OpenFolder

PLAIN, CHAIN, TREE, CHAIN_OF_8, BANDIT = "plain", "chain", "tree", "chain of 8", "chain by bandit"
LOOKUP, JACOBI = "look-up", "jacobi"
OUTCOMES, OUTCOMES_OF_4, OUTCOMES_OF_4_CLASSIC = "outcomes", "outcomes of 4", "outcomes of 4, classic"


@dataclass(frozen=True, slots=True)
class Measured:
    """One request in one way. `read_ms`: reading the prompt, by all networks that must; `write_ms`: all that follows.

    `draft_ms` and `verify_ms` are parts of it; `wait_ms` is what of `draft_ms` was waiting for another process.
    Passes are the target's after the prompt; `offered` and `stood` count rounds by depth, in chosen tokens; `hits`
    and `misses` are those of the outcome cache; `tokens` is a digest of the answer.
    """

    num_tokens: int
    read_ms: float
    write_ms: float
    draft_ms: float
    verify_ms: float
    wait_ms: float
    num_passes: int
    offered: list[int]
    stood: list[int]
    hits: int
    misses: int
    is_apart: bool  # the draft has a process of its own
    tokens: str


@dataclass(frozen=True, slots=True)
class Way:
    """An author that writes in one way, and what watches it. `drafts` are its draft's sequences, where it has one.

    A draft in a process of its own (`is_apart`) reads the prompt there: `drafts` then reads it once more, after the
    answer, to know how long that took. `hits` are those of its outcome cache.
    """

    author: LocalAuthor
    watched: Watched
    drafts: ClockedSessions | None = None
    is_apart: bool = False
    hits: Hits | None = None

    def write(self, request: Request) -> Writing:
        """Raises: DependencyUnavailable where it is refused."""
        (answer,) = self.author.write([request])
        if isinstance(answer, Refusal):
            raise DependencyUnavailable(f"{self.watched.name} refused: {answer.reason}")
        return answer

    def measure(self, request: Request) -> Measured:
        """Write one answer. Raises: DependencyUnavailable where it is refused."""
        watch = self.watched.watch = Watch()
        told = self.author.evidence = Evidence()
        before = (self.hits.hits, self.hits.misses) if self.hits else (0, 0)
        began_s = time.perf_counter()
        answer = self.write(request)
        ended_s = time.perf_counter()
        draft_read_s = self._draft_read_s(answer, request)
        draft_ms = 1e3 * max(watch.draft_s - draft_read_s, 0.0)
        after = (self.hits.hits, self.hits.misses) if self.hits else (0, 0)
        return Measured(
            num_tokens=len(answer.tokens),
            read_ms=1e3 * (watch.began_s - began_s + draft_read_s),
            write_ms=1e3 * (ended_s - watch.began_s - draft_read_s),
            draft_ms=draft_ms,
            verify_ms=1e3 * watch.verify_s,
            wait_ms=draft_ms if self.is_apart else 0.0,
            num_passes=told.num_passes,
            offered=told.offered,
            stood=told.stood,
            hits=after[0] - before[0],
            misses=after[1] - before[1],
            is_apart=self.is_apart,
            tokens=_digest(answer),
        )

    def _draft_read_s(self, answer: Writing, request: Request) -> float:
        """How long the draft read the prompt of the last request; 0 where it did not draft."""
        drafts = self.drafts
        if drafts is None:
            return 0.0
        if self.is_apart and self.author.evidence.offered:
            asked = self.author.ask(request)
            if not isinstance(asked, Refusal):
                whole = [*asked.prompt, *answer.tokens[: len(asked.head) + 1]]
                (opened,) = drafts.open_all([ToRead(whole, len(whole), asked.num_shared)])
                drafts.close(opened.row)
        read_s, drafts.read_s = drafts.read_s, 0.0
        return min(read_s, self.watched.watch.longest_s)  # beside us it may have read faster


@dataclass(frozen=True, slots=True)
class Pair:
    """Target and draft, loaded once for all ways. `closing` ends what they start."""

    target: OpenFolder
    draft: OpenFolder
    closing: ExitStack

    def sessions(self) -> ClockedSessions:
        return ClockedSessions(self.draft.drafting, DecodingConfig())

    def way(self, strategy: Strategy, lookahead: Lookahead) -> Way:
        watched = Watched(strategy)
        target = self.target
        author = LocalAuthor(
            target.network, target.tokenizer, target.name, DecodingConfig(), target.tokenizer.opening,
            target.folder.digest, watched, lookahead,
        )  # fmt: skip
        return Way(author, watched)


def open_pair(target: Path, draft: Path) -> Pair:
    """On the engines that a run would take. Raises: InvalidInput, DependencyUnavailable."""
    return Pair(*wired.open_pair(wired.ModelsConfig(str(target), str(draft))), ExitStack())


def _drafting(pair: Pair, strategy: Callable[[Sessions], Strategy], lookahead: Lookahead) -> Way:
    drafts = pair.sessions()
    return replace(pair.way(strategy(drafts), lookahead), drafts=drafts)


def _outcomes(pair: Pair, ranked_by: str, lookahead: Lookahead) -> Way:
    complaints: list[str] = []
    process = open_draft_process(pair.draft, DecodingConfig(), complaints.append, ranked_by=ranked_by)
    pair.closing.callback(process.close)
    process.await_ready()
    strategy = OutcomeStrategy(process)
    way = pair.way(strategy, lookahead)
    return replace(way, drafts=pair.sessions(), is_apart=True, hits=strategy.hits)


# Those of a fixed length show what planning is worth, and how often outcomes are found: 'classic' ranks them by
# probability alone.
WAYS: Mapping[str, Callable[[Pair], Way]] = {
    PLAIN: lambda pair: pair.way(Plain(), Fixed(0)),
    CHAIN_OF_8: lambda pair: _drafting(pair, Chain, Fixed(8)),
    BANDIT: lambda pair: _drafting(pair, Chain, Bandit()),
    CHAIN: lambda pair: _drafting(pair, Chain, ClosedForm()),
    TREE: lambda pair: _drafting(pair, Tree, ClosedForm()),
    OUTCOMES: lambda pair: _outcomes(pair, "noise", ClosedForm()),
    OUTCOMES_OF_4: lambda pair: _outcomes(pair, "noise", Fixed(4)),
    OUTCOMES_OF_4_CLASSIC: lambda pair: _outcomes(pair, "probability", Fixed(4)),
    LOOKUP: lambda pair: pair.way(Lookup(pair.target.network.shape.vocab_size), ClosedForm()),
    JACOBI: lambda pair: pair.way(Jacobi(), ClosedForm()),
}
# A fixed short length, for rounds that one can read.
EXPLAINED: Mapping[str, Callable[[Pair], Way]] = {
    CHAIN: lambda pair: _drafting(pair, Chain, Fixed(5)),
    TREE: lambda pair: _drafting(pair, Tree, Fixed(5)),
}


def _digest(answer: Writing) -> str:
    return hashlib.blake2b(repr(answer.tokens).encode(), digest_size=8).hexdigest()
