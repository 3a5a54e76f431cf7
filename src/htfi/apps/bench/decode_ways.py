"""The ways of decoding that the bench compares, over one target and one draft: an author each, with its own memory."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from htfi.apps.bench.decode_watch import ClockedSessions, Watch, Watched
from htfi.decoding.author import LocalAuthor
from htfi.decoding.config import DecodingConfig
from htfi.decoding.lookahead import ClosedForm, Fixed, Lookahead
from htfi.decoding.ports import Network, Tokenizer
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.decoding.strategies.tree import Tree
from htfi.decoding.strategy import Plain, Strategy
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.writing import Refusal, Request, Writing
from htfi.wiring.open_folder import load_network, open_folder

PLAIN, CHAIN, TREE, CHAIN_OF_8 = "plain", "chain", "tree", "chain of 8"
PRECISION = "int8"


@dataclass(frozen=True, slots=True)
class Measured:
    """One request in one way. `read_ms`: reading the prompt, by all networks that must; `write_ms`: all that follows.

    `draft_ms`, `verify_ms` and `wait_ms` (for a draft in another process) are parts of it. Passes are the target's
    after the prompt; `offered` and `stood` count rounds by depth; `tokens` is a digest of the answer.
    """

    num_tokens: int
    read_ms: float
    write_ms: float
    draft_ms: float
    verify_ms: float
    wait_ms: float
    num_passes: int
    num_drafted: int
    num_accepted: int
    offered: list[int]
    stood: list[int]
    tokens: str


@dataclass(frozen=True, slots=True)
class Way:
    """An author that writes in one way, and what watches it."""

    author: LocalAuthor
    watched: Watched
    drafts: ClockedSessions | None

    def measure(self, request: Request) -> Measured:
        """Write one answer. Raises: DependencyUnavailable where it is refused."""
        watch = self.watched.watch = Watch()
        read_before_s = self.drafts.read_s if self.drafts else 0.0
        began_s = time.perf_counter()
        (answer,) = self.author.write([request])
        ended_s = time.perf_counter()
        if isinstance(answer, Refusal):
            raise DependencyUnavailable(f"{self.watched.name} refused: {answer.reason}")
        draft_read_s = (self.drafts.read_s if self.drafts else 0.0) - read_before_s
        return Measured(
            num_tokens=len(answer.tokens),
            read_ms=1e3 * (watch.began_s - began_s + draft_read_s),
            write_ms=1e3 * (ended_s - watch.began_s - draft_read_s),
            draft_ms=1e3 * (watch.draft_s - draft_read_s),
            verify_ms=1e3 * watch.verify_s,
            wait_ms=0.0,
            num_passes=watch.num_rounds,
            num_drafted=watch.num_drafted,
            num_accepted=watch.num_accepted,
            offered=watch.offered,
            stood=watch.stood,
            tokens=_digest(answer),
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """Target and draft, loaded once for all ways."""

    target: Network
    draft: Network
    tokenizer: Tokenizer
    label: str

    def sessions(self) -> ClockedSessions:
        return ClockedSessions(self.draft, DecodingConfig())

    def way(self, strategy: Strategy, lookahead: Lookahead, drafts: ClockedSessions | None = None) -> Way:
        watched = Watched(strategy)
        author = LocalAuthor(
            self.target, self.tokenizer, self.label, DecodingConfig(), strategy=watched, lookahead=lookahead
        )
        return Way(author, watched, drafts)


def open_pair(target: Path, draft: Path, cache: Path | None) -> Pair:
    """Raises: InvalidInput, DependencyUnavailable."""
    opened = open_folder(target, PRECISION), open_folder(draft, PRECISION)
    networks = [load_network(one.folder, PRECISION, cache) for one in opened]
    return Pair(networks[0], networks[1], opened[0].tokenizer, target.name)


def _plain(pair: Pair) -> Way:
    return pair.way(Plain(), Fixed(0))


def _drafting(pair: Pair, strategy: Callable[[Sessions], Strategy], lookahead: Lookahead) -> Way:
    drafts = pair.sessions()
    return pair.way(strategy(drafts), lookahead, drafts)


# Every way but one plans its lengths by what it has learnt; the chain of 8 shows what planning is worth.
WAYS: Mapping[str, Callable[[Pair], Way]] = {
    PLAIN: _plain,
    CHAIN_OF_8: lambda pair: _drafting(pair, Chain, Fixed(8)),
    CHAIN: lambda pair: _drafting(pair, Chain, ClosedForm()),
    TREE: lambda pair: _drafting(pair, Tree, ClosedForm()),
}
# A fixed short length, for rounds that one can read.
EXPLAINED: Mapping[str, Callable[[Pair], Way]] = {
    CHAIN: lambda pair: _drafting(pair, Chain, Fixed(5)),
    TREE: lambda pair: _drafting(pair, Tree, Fixed(5)),
}


def _digest(answer: Writing) -> str:
    return hashlib.blake2b(repr(answer.tokens).encode(), digest_size=8).hexdigest()
