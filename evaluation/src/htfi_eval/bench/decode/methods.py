"""The methods of decoding that the benchmarks compare, over one target and one draft, and how each is timed.

Each method is a generator with its own memory. Its strategy is wrapped, so that the time of reading the prompt, of
drafting and of verifying is known.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from htfi.decoding.acceptance import SpeculationCounts
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.closed_form import ThroughputPlanner
from htfi.decoding.draft_length.planner import BanditPlanner, DraftLengthPlanner, FixedLengthPlanner
from htfi.decoding.draft_tree import DraftTree
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.prefill import PromptToPrefill
from htfi.decoding.sequence import SequenceState
from htfi.decoding.sessions import KVSessions, PrefilledRow
from htfi.decoding.strategies.chain import ChainStrategy
from htfi.decoding.strategies.jacobi import JacobiStrategy
from htfi.decoding.strategies.lookup import LookupStrategy
from htfi.decoding.strategies.outcomes.strategy import CacheHits, OutcomeStrategy
from htfi.decoding.strategies.tree import TreeStrategy
from htfi.decoding.strategy import DraftStrategy, DraftVerification, NoDraft
from htfi.domain.errors import DependencyUnavailable
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused
from htfi.wiring.models import readers as wired
from htfi.wiring.models.draft_process import open_draft_process
from htfi.wiring.models.loading import LoadableModel


class TimedSessions(KVSessions):
    """A draft's sequences; `read_s` is the time of reading prompts."""

    read_s = 0.0

    def open_all(self, prompts: Sequence[PromptToPrefill]) -> list[PrefilledRow]:
        began_s = time.perf_counter()
        opened = super().open_all(prompts)
        self.read_s += time.perf_counter() - began_s
        return opened


@dataclass(slots=True)
class StrategyTiming:
    """Times of one request: `began_s`, when its prompt was read; `longest_s`, the longest draft."""

    began_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    longest_s: float = 0.0


class TimedStrategy:
    """Times the strategy `inner`, for one request at a time; `timing` is that of the last request."""

    def __init__(self, inner: DraftStrategy) -> None:
        self._inner = inner
        self._left_s = 0.0
        self.timing = StrategyTiming()

    @property
    def name(self) -> str:
        return self._inner.name

    def speculate(self, sequences: Sequence[SequenceState], lengths: Sequence[int]) -> list[DraftTree]:
        began_s = time.perf_counter()
        trees = self._inner.speculate(sequences, lengths)
        taken_s = time.perf_counter() - began_s
        self.timing.draft_s += taken_s
        self.timing.longest_s = max(self.timing.longest_s, taken_s)
        return trees

    def verification_starts(self, sequences: Sequence[SequenceState], trees: Sequence[DraftTree]) -> None:
        began_s = time.perf_counter()
        self._inner.verification_starts(sequences, trees)
        self._left_s = time.perf_counter()
        self.timing.draft_s += self._left_s - began_s

    def verified(self, sequence: SequenceState, tree: DraftTree, outcome: DraftVerification) -> None:
        now_s = time.perf_counter()
        watch = self.timing
        if not watch.began_s:  # the first token follows from the prompt alone
            watch.began_s = now_s
        else:
            watch.verify_s += now_s - self._left_s
        self._inner.verified(sequence, tree, outcome)

    def finish(self, sequence: SequenceState) -> None:
        self._inner.finish(sequence)


PLAIN, CHAIN, TREE, CHAIN_OF_8, BANDIT = "plain", "chain", "tree", "chain of 8", "chain by bandit"
LOOKUP, JACOBI = "look-up", "jacobi"
OUTCOMES, OUTCOMES_OF_4, OUTCOMES_OF_4_CLASSIC = "outcomes", "outcomes of 4", "outcomes of 4, classic"


@dataclass(frozen=True, slots=True)
class DecodeMeasurement:
    """One request by one method. `read_ms`: reading the prompt, by all networks that read it; `write_ms`: the rest.

    `draft_ms` and `verify_ms` are parts of `write_ms`; `wait_ms` is the part of `draft_ms` spent waiting for another
    process. Passes are the target's after the prompt; `offered` and `stood` count drafted and accepted tokens by
    depth; `hits` and `misses` are those of the outcome cache; `tokens` is a digest of the answer.
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
    has_own_process: bool  # the draft has a process of its own
    tokens: str


@dataclass(frozen=True, slots=True)
class DecodingMethod:
    """A generator with one method, and its timers. `drafts` are the sequences of its draft, if it has one.

    A draft in its own process (`has_own_process`) reads the prompt there; `drafts` then reads it again after the
    answer, to time it. `hits` are those of its outcome cache.
    """

    generator: LocalGenerator
    timed_strategy: TimedStrategy
    drafts: TimedSessions | None = None
    has_own_process: bool = False
    hits: CacheHits | None = None

    def write(self, request: GenerationRequest) -> Completion:
        """Raises: DependencyUnavailable where it is refused."""
        (answer,) = self.generator.write([request])
        if isinstance(answer, RequestRefused):
            raise DependencyUnavailable(f"{self.timed_strategy.name} refused: {answer.reason}")
        return answer

    def measure(self, request: GenerationRequest) -> DecodeMeasurement:
        """Generate one answer. Raises: DependencyUnavailable where it is refused."""
        watch = self.timed_strategy.timing = StrategyTiming()
        counts = self.generator.counts = SpeculationCounts()
        before = (self.hits.hits, self.hits.misses) if self.hits else (0, 0)
        began_s = time.perf_counter()
        answer = self.write(request)
        ended_s = time.perf_counter()
        draft_read_s = self._draft_read_s(answer, request)
        draft_ms = 1e3 * max(watch.draft_s - draft_read_s, 0.0)
        after = (self.hits.hits, self.hits.misses) if self.hits else (0, 0)
        return DecodeMeasurement(
            num_tokens=len(answer.tokens),
            read_ms=1e3 * (watch.began_s - began_s + draft_read_s),
            write_ms=1e3 * (ended_s - watch.began_s - draft_read_s),
            draft_ms=draft_ms,
            verify_ms=1e3 * watch.verify_s,
            wait_ms=draft_ms if self.has_own_process else 0.0,
            num_passes=counts.num_passes,
            offered=counts.num_drafted_at,
            stood=counts.num_accepted_at,
            hits=after[0] - before[0],
            misses=after[1] - before[1],
            has_own_process=self.has_own_process,
            tokens=_digest(answer),
        )

    def _draft_read_s(self, answer: Completion, request: GenerationRequest) -> float:
        """Time the draft took to read the last prompt; 0 if it did not draft."""
        drafts = self.drafts
        if drafts is None:
            return 0.0
        if self.has_own_process and self.generator.counts.num_drafted_at:
            asked = self.generator.tokenize(request)
            if not isinstance(asked, RequestRefused):
                whole = [*asked.prompt, *answer.tokens[: len(asked.forced_prefix) + 1]]
                (opened,) = drafts.open_all([PromptToPrefill(whole, len(whole), asked.num_shared)])
                drafts.close(opened.row)
        read_s, drafts.read_s = drafts.read_s, 0.0
        return min(read_s, self.timed_strategy.timing.longest_s)  # in parallel it may have been faster


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Target and draft, loaded once for all methods. `closing` ends their processes."""

    target: LoadableModel
    draft: LoadableModel
    closing: ExitStack

    def sessions(self) -> TimedSessions:
        return TimedSessions(self.draft.draft_network, DecodingConfig())

    def method(self, strategy: DraftStrategy, lookahead: DraftLengthPlanner) -> DecodingMethod:
        watched = TimedStrategy(strategy)
        target = self.target
        generator = LocalGenerator(
            target.network, target.tokenizer, target.name, DecodingConfig(), target.tokenizer.opening,
            target.folder.digest, watched, lookahead,
        )  # fmt: skip
        return DecodingMethod(generator, watched)


def open_pair(target: Path, draft: Path) -> ModelPair:
    """On the engines that a run would use. Raises: InvalidInput, DependencyUnavailable."""
    return ModelPair(*wired.open_model_pair(wired.ModelsConfig(str(target), str(draft))), ExitStack())


def _drafting(
    pair: ModelPair, strategy: Callable[[KVSessions], DraftStrategy], lookahead: DraftLengthPlanner
) -> DecodingMethod:
    drafts = pair.sessions()
    return replace(pair.method(strategy(drafts), lookahead), drafts=drafts)


def _outcomes(pair: ModelPair, ranked_by: str, lookahead: DraftLengthPlanner) -> DecodingMethod:
    complaints: list[str] = []
    process = open_draft_process(pair.draft, DecodingConfig(), complaints.append, ranked_by=ranked_by)
    pair.closing.callback(process.close)
    process.await_ready()
    strategy = OutcomeStrategy(process)
    way = pair.method(strategy, lookahead)
    return replace(way, drafts=pair.sessions(), has_own_process=True, hits=strategy.hits)


# Fixed lengths show the gain of planning and the hit rate of outcomes; 'classic' ranks outcomes by probability
# alone.
METHODS: Mapping[str, Callable[[ModelPair], DecodingMethod]] = {
    PLAIN: lambda pair: pair.method(NoDraft(), FixedLengthPlanner(0)),
    CHAIN_OF_8: lambda pair: _drafting(pair, ChainStrategy, FixedLengthPlanner(8)),
    BANDIT: lambda pair: _drafting(pair, ChainStrategy, BanditPlanner()),
    CHAIN: lambda pair: _drafting(pair, ChainStrategy, ThroughputPlanner()),
    TREE: lambda pair: _drafting(pair, TreeStrategy, ThroughputPlanner()),
    OUTCOMES: lambda pair: _outcomes(pair, "noise", ThroughputPlanner()),
    OUTCOMES_OF_4: lambda pair: _outcomes(pair, "noise", FixedLengthPlanner(4)),
    OUTCOMES_OF_4_CLASSIC: lambda pair: _outcomes(pair, "probability", FixedLengthPlanner(4)),
    LOOKUP: lambda pair: pair.method(
        LookupStrategy(pair.target.network.shape.vocab_size), ThroughputPlanner()
    ),
    JACOBI: lambda pair: pair.method(JacobiStrategy(), ThroughputPlanner()),
}
# A fixed short length gives rounds that are easy to read.
EXPLAINED: Mapping[str, Callable[[ModelPair], DecodingMethod]] = {
    CHAIN: lambda pair: _drafting(pair, ChainStrategy, FixedLengthPlanner(5)),
    TREE: lambda pair: _drafting(pair, TreeStrategy, FixedLengthPlanner(5)),
}


def _digest(answer: Completion) -> str:
    return hashlib.blake2b(repr(answer.tokens).encode(), digest_size=8).hexdigest()
