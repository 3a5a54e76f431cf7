"""The decoding engine: one network that generates many answers side by side, round by round.

A round drafts, verifies and accepts: a strategy guesses ahead, one pass of the network reads all guesses, and the
acceptance rule keeps those that the network agrees with. Under the shared noise (D2) the token at position t is chosen
by logits, temperature and the noise of (seed, stream 0, t), so neither strategy nor batch changes an answer.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from htfi.decoding.acceptance import AcceptanceAlarm, AlarmChange, SpeculationCounts
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft_length.planner import (
    DraftLengthPlanner,
    FixedLengthPlanner,
    LengthRequest,
    RoundReport,
)
from htfi.decoding.draft_tree import DraftTree, is_chain
from htfi.decoding.grammar import GrammarCache
from htfi.decoding.kv_cache import KVRow, SharedKVBlocks
from htfi.decoding.ports import Floats, Network, Tokenizer
from htfi.decoding.prefill import PromptToPrefill
from htfi.decoding.rules.coupled import CoupledRule
from htfi.decoding.sampling import SamplingParams, check_sampling_params
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.decoding.sessions import KVSessions
from htfi.decoding.strategy import AcceptanceRule, DraftStrategy, DraftVerification, NoDraft
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import (
    Completion,
    DraftRound,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)
from htfi.telemetry.spans import NO_SPANS, StepSpans


@dataclass(slots=True, eq=False)
class GenerationJob:
    """One request under way. `pending` tokens are accepted but not yet read by the network."""

    index: int
    sequence: SequenceState
    pending: list[int] = field(default_factory=list[int])
    row: KVRow | None = None
    is_read: bool = False
    num_reused: int = 0
    rounds: list[DraftRound] = field(default_factory=list[DraftRound])

    @property
    def tokenized(self) -> TokenizedRequest:
        return self.sequence.tokenized

    @property
    def active_row(self) -> KVRow:
        """Its KV row; only jobs that were prefilled have one."""
        assert self.row is not None, "a job without a row is read"
        return self.row

    def parents(self, tree: DraftTree) -> list[int]:
        """The pending tokens and a tree after them, as one tree."""
        num_pending = len(self.pending)
        return [*range(-1, num_pending - 1), *(parent + num_pending for parent in tree.parents)]


def max_draft_length(sequence: SequenceState) -> int:
    """The most tokens that may be drafted: the rest of the answer less the pass's own token, within the cap."""
    allowed = sequence.tokenized.request.max_draft
    left = max(sequence.num_left - 1, 0)
    return left if allowed is None else min(left, max(allowed, 0))


def recorded_round(tree: DraftTree, outcome: DraftVerification) -> DraftRound:
    """A round as a record keeps it."""
    parents = () if is_chain(tree.parents) else tuple(tree.parents)
    return DraftRound(tuple(tree.tokens), parents, tuple(outcome.path), outcome.next_token)


class PassResult(NamedTuple):
    """What a pass did for one job: the accepted tokens (forced ones too), how many chosen tokens were drafted and
    accepted, and the answer if it is complete. No tokens: part of the prompt was read.
    """

    job: GenerationJob
    tokens: list[int]
    num_drafted: int
    num_accepted: int
    answer: Completion | RequestRefused | None


class DecodingEngine:
    """`opening` are ids put before every prompt (a folder's first token). `digest` identifies the weights, by default
    the network's own; `drafted_by` names the draft in completions. `clock` (seconds) only feeds the length planner.
    `kept` holds prompts that were read elsewhere.

    Raises InvalidInput if network and tokenizer have different vocabulary sizes.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        name: str,
        config: DecodingConfig | None = None,
        opening: Sequence[int] = (),
        digest: str = "",
        strategy: DraftStrategy | None = None,
        length_planner: DraftLengthPlanner | None = None,
        drafted_by: str = "",
        clock: Callable[[], float] = time.perf_counter,
        rule: AcceptanceRule | None = None,
        alarm: AcceptanceAlarm | None = None,
        kept: SharedKVBlocks | None = None,
    ) -> None:
        if tokenizer.vocab_size > network.shape.vocab_size:
            raise InvalidInput(
                f"{name}: the tokenizer has {tokenizer.vocab_size} tokens, the network {network.shape.vocab_size}; "
                "take both from the same folder"
            )
        self.vocabulary = Vocabulary(tokenizer)
        self.sessions = KVSessions(network, config or DecodingConfig(), kept)
        self.digest = digest or network.digest
        self.version = f"{name}@{self.digest[:12]}"
        self.strategy: DraftStrategy = strategy or NoDraft()
        self.length_planner: DraftLengthPlanner = length_planner or FixedLengthPlanner(
            0 if strategy is None else 4
        )
        self._drafted_by = drafted_by
        self._clock = clock
        self._alarm = alarm
        self._warning = ""
        self.counts = SpeculationCounts()
        self.spans: StepSpans = NO_SPANS  # takes the time of each round, where it is traced
        self._rule = rule or CoupledRule()
        self._forms = GrammarCache(self.vocabulary)
        self._opening = list(opening)

    @property
    def dialect(self) -> PromptDialect:
        return self.vocabulary.dialect

    @property
    def speculation_stats(self) -> SpeculationStats:
        counts = self.counts
        return SpeculationStats(
            counts.num_answers,
            counts.num_tokens,
            counts.num_passes,
            counts.acceptance,
            self._warning,
            self._rule.trace.name if self._rule.trace is not None else "",
            counts.num_drafted,
            counts.num_accepted,
        )

    def tokenize(
        self, request: GenerationRequest, ids: list[int] | None = None, num_shared: int = 0
    ) -> TokenizedRequest | RequestRefused:
        """The request in token ids, or why this model can never answer it.

        `ids` are its whole prompt if it comes in ids, the first `num_shared` of them likely to be shared with others.
        """
        sampling = SamplingParams(request.temperature, request.top_k, request.top_p)
        try:
            check_sampling_params(sampling)
            grammar = self._forms.compiled(request.form)
            if ids is None:
                first = self.vocabulary.encode(request.prompt[: request.shared])
                rest = self.vocabulary.encode(request.prompt[request.shared :])
                prompt, num_shared = [*self._opening, *first, *rest], len(self._opening) + len(first)
            else:
                self.check_prompt(ids)
                prompt = ids
        except InvalidInput as error:
            return RequestRefused(str(error))
        head, state = grammar.forced(grammar.start)
        if not prompt and not head:
            return RequestRefused("an empty prompt: give at least one token before the grammar")
        asked = TokenizedRequest(request, grammar, prompt, num_shared, head, state, sampling)
        return self.sessions.refusal(asked.max_length) or asked

    def check_prompt(self, ids: Sequence[int]) -> None:
        """Raises InvalidInput for a prompt with ids that are not in this model's vocabulary."""
        if len(ids) and not 0 <= min(ids) <= max(ids) < self.sessions.network.shape.vocab_size:
            raise InvalidInput("the prompt holds ids that are not in this model's vocabulary")

    def num_admissible(self, limits: Sequence[int], num_writing: int) -> int:
        """How many of the waiting requests, in order, fit now; `limits` are their maximal lengths in tokens.

        Depends on sizes alone, never on the cache, so a replay does the same.
        """
        most = min(self.sessions.config.max_batch - num_writing, len(limits))
        num = 0
        while num < most and self.sessions.has_space(*limits[: num + 1]):
            num += 1
        return num

    def prefill(self, jobs: Sequence[GenerationJob]) -> list[PassResult]:
        """Read the prompts and accept the first token of each. Raises: DependencyUnavailable."""
        if not jobs:
            return []
        prompts = [
            PromptToPrefill(
                [*job.tokenized.prompt, *job.sequence.tokens],
                job.tokenized.max_length,
                job.tokenized.num_shared,
                job.tokenized.request.subjects,
                job.tokenized.request.residency,
            )
            for job in jobs
        ]
        began_s = self._clock() if self.spans.is_traced else 0.0
        opened = self.sessions.open_all(prompts)
        if began_s:
            figures = {"htfi.num_requests": len(jobs)}
            self.spans.add("prefill", self._clock() - began_s, 0.0, figures)
        for job, (row, _, num_reused) in zip(jobs, opened, strict=True):
            job.row, job.num_reused = row, min(num_reused, len(job.tokenized.prompt))
        return self._accept(jobs, [DraftTree() for _ in jobs], [logits[None] for _, logits, _ in opened])

    def decode_round(
        self, jobs: Sequence[GenerationJob], lengths: Sequence[int | None] | None = None
    ) -> list[PassResult]:
        """Draft, verify, accept: one pass over the pending and drafted tokens of prefilled jobs.

        `lengths[i]` is a job's draft length; None leaves it to the planner. Raises: DependencyUnavailable.
        """
        sizes = [len(job.pending) for job in jobs]
        narrow = min(sizes)
        if max(sizes) * len(sizes) > 2 * sum(sizes):
            # A pass is as wide as its widest row. If that were mostly padding, it is as wide as the narrowest.
            return self._continue_prefill(jobs, narrow)
        sequences = [job.sequence for job in jobs]
        began_s = self._clock()
        trees = [
            self._truncate_to_space(job, tree)
            for job, tree in zip(jobs, self._draft(sequences, lengths), strict=True)
        ]
        self.strategy.verification_starts(sequences, trees)
        drafted_s = self._clock()
        steps = self._accept(jobs, trees, self._verify(jobs, trees))
        verified_s = self._clock()
        width = max(size + len(tree) for size, tree in zip(sizes, trees, strict=True))
        draft_ms, verify_ms = 1e3 * (drafted_s - began_s), 1e3 * (verified_s - drafted_s)
        for step in steps:
            self.counts.record_round(step.num_drafted, step.num_accepted)
            self._update_alarm(step.job.tokenized.request.kind, step.num_drafted, step.num_accepted)
        self.counts.record_time(draft_ms, verify_ms)
        if self.spans.is_traced:
            self._trace_round(steps, drafted_s - began_s, verified_s - drafted_s)
        self.length_planner.learn(
            [
                RoundReport(
                    step.job.tokenized.request.kind,
                    step.num_drafted,
                    step.num_accepted,
                    draft_ms,
                    verify_ms,
                    len(jobs),
                    width,
                )
                for step in steps
            ]
        )
        return steps

    def _trace_round(self, steps: Sequence[PassResult], draft_s: float, verify_s: float) -> None:
        num_drafted = sum(step.num_drafted for step in steps)
        figures = {"htfi.num_requests": len(steps), "htfi.num_drafted": num_drafted}
        if num_drafted:
            self.spans.add("draft", draft_s, verify_s, figures)
        num_accepted = sum(step.num_accepted for step in steps)
        self.spans.add("verify", verify_s, 0.0, figures | {"htfi.num_accepted": num_accepted})

    def remove(self, job: GenerationJob, wipe: bool = False) -> None:
        """Free a job's row and the strategy's state. `wipe` if the row may hold values that are not finite."""
        self.strategy.finish(job.sequence)
        if job.row is not None:
            self.sessions.close(job.row, wipe)
            job.row = None

    def _continue_prefill(self, jobs: Sequence[GenerationJob], num_tokens: int) -> list[PassResult]:
        """Read `num_tokens` pending tokens of each job; jobs with none left accept their next token."""
        logits = self._read(jobs, [job.pending[:num_tokens] for job in jobs], None)
        for job in jobs:
            del job.pending[:num_tokens]
        ready = [(job, after[-1:]) for job, after in zip(jobs, logits, strict=True) if not job.pending]
        reading = [job for job in jobs if job.pending]
        results = self._accept(
            [job for job, _ in ready], [DraftTree() for _ in ready], [after for _, after in ready]
        )
        for _ in ready:
            self.counts.record_round(0, 0)
        return results + [PassResult(job, [], 0, 0, None) for job in reading]

    def _update_alarm(self, kind: str, num_drafted: int, num_stood: int) -> None:
        change = self._alarm.learn(kind, num_drafted, num_stood) if self._alarm else None
        if change is AlarmChange.RAISED:
            self._warning = (
                f"{change.value}, at answer {self.counts.num_answers:,}: is the draft stale, or was it changed? "
                "Answers are still the target's own, only slower"
            )
        elif change is AlarmChange.CLEARED:
            self._warning = ""

    def _draft(
        self, sequences: Sequence[SequenceState], lengths: Sequence[int | None] | None
    ) -> list[DraftTree]:
        planned = self.length_planner.plan(
            [
                LengthRequest(sequence.tokenized.request.kind, max_draft_length(sequence))
                for sequence in sequences
            ]
        )
        if lengths is not None:
            planned = [
                plan if length is None else min(length, max_draft_length(sequence))
                for sequence, plan, length in zip(sequences, planned, lengths, strict=True)
            ]
        try:
            return self.strategy.speculate(sequences, planned)
        except DependencyUnavailable:  # the target alone can answer
            return [DraftTree() for _ in sequences]

    def _truncate_to_space(self, job: GenerationJob, tree: DraftTree) -> DraftTree:
        return tree.truncated(
            self.sessions.num_draft_tokens_fitting(job.active_row, len(job.pending), len(tree))
        )

    def _verify(self, jobs: Sequence[GenerationJob], trees: Sequence[DraftTree]) -> list[Floats]:
        """The logits [1 + n, V] of each job: after its accepted text, then after each node of its tree."""
        ids = [[*job.pending, *tree.tokens] for job, tree in zip(jobs, trees, strict=True)]
        parents = [job.parents(tree) for job, tree in zip(jobs, trees, strict=True)]
        after = self._read(jobs, ids, parents)
        return [logits[len(job.pending) - 1 :] for job, logits in zip(jobs, after, strict=True)]

    def _read(
        self, jobs: Sequence[GenerationJob], ids: Sequence[list[int]], parents: Sequence[Sequence[int]] | None
    ) -> list[Floats]:
        return self.sessions.extend([job.active_row for job in jobs], ids, parents)

    def _accept(
        self, jobs: Sequence[GenerationJob], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[PassResult]:
        """Accept a round of each job; finished jobs are removed."""
        outcomes = self._rule([job.sequence for job in jobs], trees, logits)
        return [
            self._apply(job, tree, outcome) for job, tree, outcome in zip(jobs, trees, outcomes, strict=True)
        ]

    def _apply(self, job: GenerationJob, tree: DraftTree, outcome: DraftVerification | None) -> PassResult:
        """Append the accepted tokens and those that they force; the answer if the grammar is complete."""
        sequence = job.sequence
        num_before = len(sequence.tokens)
        if outcome is None:
            self.remove(job, wipe=True)
            refusal = RequestRefused("the network gave a logit that is not finite")
            return PassResult(job, [], tree.depth, 0, refusal)
        num_stood = tree.num_chosen[outcome.path[-1]] if outcome.path else 0
        if len(tree):
            length = job.active_row.length - len(tree)
            self.sessions.keep_branch(job.active_row, length, outcome.path, wipe=not outcome.is_finite)
        if job.is_read:  # the first token follows from the prompt alone
            job.rounds.append(recorded_round(tree, outcome))
        job.is_read = True
        job.pending = []
        for node in outcome.path:
            sequence.tokens.append(tree.tokens[node])
            sequence.state = tree.states[node]
        if outcome.next_token >= 0:
            job.pending = sequence.append(outcome.next_token)
        self.strategy.verified(sequence, tree, outcome)
        answer = self._completion(job) if sequence.is_done else None
        return PassResult(job, sequence.tokens[num_before:], tree.depth, num_stood, answer)

    def _completion(self, job: GenerationJob) -> Completion:
        """The answer of a finished job, which is removed."""
        self.remove(job)
        sequence = job.sequence
        self.counts.record_completion(len(sequence.tokens))
        return Completion(
            sequence.tokenized.grammar.fields(sequence.tokens),
            tuple(sequence.tokens),
            len(sequence.tokenized.prompt),
            job.num_reused,
            tuple(sequence.tokenized.prompt),
            self.strategy.name,
            self._drafted_by,
            tuple(job.rounds),
            rule=self._rule.trace,
        )
