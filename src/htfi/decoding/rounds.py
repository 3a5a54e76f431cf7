"""The engine: one network, whose answers grow round by round, many side by side. Authors and a cloud's desk drive it.

A round is speculate, verify, settle: a strategy guesses ahead, one pass of the network reads all guesses, and the rule
keeps those that the network would have said itself. With the shared noise (D2) the token at place t of an answer is
chosen by logits, temperature and the noise of (seed, stream 0, t), so neither strategy nor plan nor company changes it.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from htfi.decoding.acceptance_alarm import AcceptanceAlarm, Change
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft import DraftTree
from htfi.decoding.evidence import Evidence
from htfi.decoding.form import Forms
from htfi.decoding.job import Job, cap, told
from htfi.decoding.kept_blocks import KeptBlocks
from htfi.decoding.lookahead.plan import Ask, Fixed, Lookahead, Round
from htfi.decoding.ports import Floats, Network, Tokenizer
from htfi.decoding.rules.shared_noise import Rule, settle
from htfi.decoding.sampling import Sampling, check_sampling
from htfi.decoding.sessions import Sessions, ToRead
from htfi.decoding.stem import Asked, Stem
from htfi.decoding.strategy import Outcome, Plain, Strategy
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Spoken, Writing


class Step(NamedTuple):
    """What a pass did for one job: the tokens that it settled (forced ones too), how many chosen ones of the draft were
    tried and stood, and the answer where it ended. No tokens: it was only read."""

    job: Job
    tokens: list[int]
    num_drafted: int
    num_stood: int
    answer: Writing | Refusal | None


class Rounds:
    """`opening` are ids put before every prompt (a folder's first token); `digest` says whose weights they are, the
    network's own where it is not given; `drafted_by` names the strategy's draft in what is written. `clock` (seconds)
    only feeds the plan. `kept` holds prompts that were read elsewhere.

    Raises InvalidInput when network and tokenizer differ in size of vocabulary.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        name: str,
        config: DecodingConfig | None = None,
        opening: Sequence[int] = (),
        digest: str = "",
        strategy: Strategy | None = None,
        lookahead: Lookahead | None = None,
        drafted_by: str = "",
        clock: Callable[[], float] = time.perf_counter,
        rule: Rule = settle,
        alarm: AcceptanceAlarm | None = None,
        kept: KeptBlocks | None = None,
    ) -> None:
        if tokenizer.vocab_size > network.shape.vocab_size:
            raise InvalidInput(
                f"{name}: the tokenizer has {tokenizer.vocab_size} tokens, the network {network.shape.vocab_size}; "
                "take both from the same folder"
            )
        self.vocabulary = Vocabulary(tokenizer)
        self.sessions = Sessions(network, config or DecodingConfig(), kept)
        self.digest = digest or network.digest
        self.version = f"{name}@{self.digest[:12]}"
        self.strategy: Strategy = strategy or Plain()
        self.lookahead: Lookahead = lookahead or Fixed(0 if strategy is None else 4)
        self._drafted_by = drafted_by
        self._clock = clock
        self._alarm = alarm
        self._warning = ""
        self.evidence = Evidence()
        self._rule = rule
        self._forms = Forms(self.vocabulary)
        self._opening = list(opening)

    @property
    def dialect(self) -> Dialect:
        return self.vocabulary.dialect

    @property
    def spoken(self) -> Spoken:
        told = self.evidence
        return Spoken(told.num_answers, told.num_tokens, told.num_passes, told.acceptance, self._warning)

    def ask(self, request: Request, ids: list[int] | None = None, num_shared: int = 0) -> Asked | Refusal:
        """The request in token ids, or why this model can never answer it.

        `ids` are its whole prompt where that is told in ids, the first `num_shared` of them likely in others too.
        """
        sampling = Sampling(request.temperature, request.top_k, request.top_p)
        try:
            check_sampling(sampling)
            form = self._forms.compiled(request.form)
            if ids is None:
                first = self.vocabulary.encode(request.prompt[: request.shared])
                rest = self.vocabulary.encode(request.prompt[request.shared :])
                prompt, num_shared = [*self._opening, *first, *rest], len(self._opening) + len(first)
            else:
                self.check(ids)
                prompt = ids
        except InvalidInput as error:
            return Refusal(str(error))
        head, state = form.forced(form.start)
        if not prompt and not head:
            return Refusal("an empty prompt: say something before the form")
        asked = Asked(request, form, prompt, num_shared, head, state, sampling)
        return self.sessions.refusal(asked.limit) or asked

    def check(self, ids: Sequence[int]) -> None:
        """Raises InvalidInput for a prompt that holds ids which are no tokens of this model."""
        if len(ids) and not 0 <= min(ids) <= max(ids) < self.sessions.network.shape.vocab_size:
            raise InvalidInput("the prompt holds tokens that this model does not have")

    def num_joining(self, limits: Sequence[int], num_writing: int) -> int:
        """How many of those that wait, in order, have room now; `limits` are the tokens that each may grow to.

        This depends on sizes alone, never on what the cache holds: a replay goes the same way.
        """
        most = min(self.sessions.config.max_batch - num_writing, len(limits))
        num = 0
        while num < most and self.sessions.has_room(*limits[: num + 1]):
            num += 1
        return num

    def join(self, jobs: Sequence[Job]) -> list[Step]:
        """Read the prompts, and settle the first token of each. Raises: DependencyUnavailable."""
        if not jobs:
            return []
        prompts = [
            ToRead(
                [*job.asked.prompt, *job.stem.tokens],
                job.asked.limit,
                job.asked.num_shared,
                job.asked.request.about,
                job.asked.request.residency,
            )
            for job in jobs
        ]
        opened = self.sessions.open_all(prompts)
        for job, (row, _, num_reused) in zip(jobs, opened, strict=True):
            job.row, job.num_reused = row, min(num_reused, len(job.asked.prompt))
        return self._settle(jobs, [DraftTree() for _ in jobs], [logits[None] for _, logits, _ in opened])

    def round(self, jobs: Sequence[Job], lengths: Sequence[int | None] | None = None) -> list[Step]:
        """Speculate, verify, settle: one pass over what is settled and what is guessed, of jobs that have joined.

        `lengths[i]` is how far to draft for a job; None leaves it to the plan. Raises: DependencyUnavailable.
        """
        sizes = [len(job.pending) for job in jobs]
        narrow = min(sizes)
        if max(sizes) * len(sizes) > 2 * sum(sizes):
            # A pass is as wide as its widest row. Where that would be mostly padding, it is as wide as the narrowest.
            return self._read_on(jobs, narrow)
        stems = [job.stem for job in jobs]
        began_s = self._clock()
        trees = [
            self._fitting(job, tree) for job, tree in zip(jobs, self._speculate(stems, lengths), strict=True)
        ]
        self.strategy.verifying(stems, trees)
        drafted_s = self._clock()
        steps = self._settle(jobs, trees, self._verify(jobs, trees))
        verified_s = self._clock()
        width = max(size + len(tree) for size, tree in zip(sizes, trees, strict=True))
        draft_ms, verify_ms = 1e3 * (drafted_s - began_s), 1e3 * (verified_s - drafted_s)
        for step in steps:
            self.evidence.note_round(step.num_drafted, step.num_stood)
            self._watch(step.job.asked.request.kind, step.num_drafted, step.num_stood)
        self.evidence.note_time(draft_ms, verify_ms)
        self.lookahead.learn(
            [
                Round(
                    step.job.asked.request.kind,
                    step.num_drafted,
                    step.num_stood,
                    draft_ms,
                    verify_ms,
                    len(jobs),
                    width,
                )
                for step in steps
            ]
        )
        return steps

    def leave(self, job: Job, wipe: bool = False) -> None:
        """Free a job's row, and the strategy's memory of it. `wipe` where its numbers may not be finite."""
        self.strategy.leave(job.stem)
        if job.row is not None:
            self.sessions.close(job.row, wipe)
            job.row = None

    def _read_on(self, jobs: Sequence[Job], num_tokens: int) -> list[Step]:
        """Let so many pending tokens of each job be read; those with no more pending settle their next token."""
        logits = self._read(jobs, [job.pending[:num_tokens] for job in jobs], None)
        for job in jobs:
            del job.pending[:num_tokens]
        ready = [(job, after[-1:]) for job, after in zip(jobs, logits, strict=True) if not job.pending]
        reading = [job for job in jobs if job.pending]
        settled = self._settle(
            [job for job, _ in ready], [DraftTree() for _ in ready], [after for _, after in ready]
        )
        for _ in ready:
            self.evidence.note_round(0, 0)
        return settled + [Step(job, [], 0, 0, None) for job in reading]

    def _watch(self, kind: str, num_drafted: int, num_stood: int) -> None:
        change = self._alarm.learn(kind, num_drafted, num_stood) if self._alarm else None
        if change is Change.RAISED:
            self._warning = (
                f"{change.value}, at answer {self.evidence.num_answers:,}: is the draft stale, or was it changed? "
                "Answers are the target's own all the same, only later"
            )
        elif change is Change.CLEARED:
            self._warning = ""

    def _speculate(self, stems: Sequence[Stem], lengths: Sequence[int | None] | None) -> list[DraftTree]:
        planned = self.lookahead.plan([Ask(stem.asked.request.kind, cap(stem)) for stem in stems])
        if lengths is not None:
            planned = [
                plan if length is None else min(length, cap(stem))
                for stem, plan, length in zip(stems, planned, lengths, strict=True)
            ]
        try:
            return self.strategy.speculate(stems, planned)
        except DependencyUnavailable:  # an answer needs the target alone
            return [DraftTree() for _ in stems]

    def _fitting(self, job: Job, tree: DraftTree) -> DraftTree:
        return tree.first(self.sessions.num_guesses(job.held, len(job.pending), len(tree)))

    def _verify(self, jobs: Sequence[Job], trees: Sequence[DraftTree]) -> list[Floats]:
        """The logits [1 + n, V] of each job: after its settled text, then after each node of its tree."""
        ids = [[*job.pending, *tree.tokens] for job, tree in zip(jobs, trees, strict=True)]
        parents = [job.parents(tree) for job, tree in zip(jobs, trees, strict=True)]
        after = self._read(jobs, ids, parents)
        return [logits[len(job.pending) - 1 :] for job, logits in zip(jobs, after, strict=True)]

    def _read(
        self, jobs: Sequence[Job], ids: Sequence[list[int]], parents: Sequence[Sequence[int]] | None
    ) -> list[Floats]:
        return self.sessions.extend([job.held for job in jobs], ids, parents)

    def _settle(
        self, jobs: Sequence[Job], trees: Sequence[DraftTree], logits: Sequence[Floats]
    ) -> list[Step]:
        """Settle a round of each job; those that are finished leave."""
        outcomes = self._rule([job.stem for job in jobs], trees, logits)
        return [
            self._take(job, tree, outcome) for job, tree, outcome in zip(jobs, trees, outcomes, strict=True)
        ]

    def _take(self, job: Job, tree: DraftTree, outcome: Outcome | None) -> Step:
        """Append what a round settled and what that forces; the answer where it ends the form."""
        stem = job.stem
        num_before = len(stem.tokens)
        if outcome is None:
            self.leave(job, wipe=True)
            refusal = Refusal("the network gave a logit that is not a finite number")
            return Step(job, [], tree.depth, 0, refusal)
        num_stood = tree.num_chosen[outcome.path[-1]] if outcome.path else 0
        if len(tree):
            length = job.held.length - len(tree)
            self.sessions.keep(job.held, length, outcome.path, wipe=not outcome.sound)
        if job.is_read:  # the first token comes of the prompt alone
            job.rounds.append(told(tree, outcome))
        job.is_read = True
        job.pending = []
        for node in outcome.path:
            stem.tokens.append(tree.tokens[node])
            stem.state = tree.states[node]
        if outcome.token >= 0:
            job.pending = stem.add(outcome.token)
        self.strategy.settle(stem, tree, outcome)
        answer = self._written(job) if stem.is_done else None
        return Step(job, stem.tokens[num_before:], tree.depth, num_stood, answer)

    def _written(self, job: Job) -> Writing:
        """The answer of a job that has ended; it leaves."""
        self.leave(job)
        stem = job.stem
        self.evidence.note_answer(len(stem.tokens))
        return Writing(
            stem.asked.form.fields(stem.tokens),
            tuple(stem.tokens),
            len(stem.asked.prompt),
            job.num_reused,
            tuple(stem.asked.prompt),
            self.strategy.name,
            self._drafted_by,
            tuple(job.rounds),
        )
