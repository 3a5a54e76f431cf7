"""The embedded author: answers requests in their forms with one network, many side by side. Narrative asks it.

It decodes with the shared noise (D2): the token at place t of an answer is chosen by logits, temperature and the
noise of (seed, stream 0, t). A strategy guesses ahead so that one pass settles several tokens; the plan says how far.
Neither can change an answer: what is guessed wrong is replaced by what the network itself says.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from htfi.decoding.acceptance_alarm import AcceptanceAlarm, Change
from htfi.decoding.config import DecodingConfig
from htfi.decoding.draft import DraftTree
from htfi.decoding.evidence import Evidence
from htfi.decoding.form import Forms
from htfi.decoding.job import Job, cap, told
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


class LocalAuthor:
    """Implements `Author` over any network. `opening` are ids put before every prompt (a folder's first token);
    `digest` says whose weights they are, the network's own where it is not given; `drafted_by` names the strategy's
    draft in what is written.

    Every answer ends: its form bounds the number of tokens. `clock` (seconds) only feeds the plan.
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
    ) -> None:
        if tokenizer.vocab_size > network.shape.vocab_size:
            raise InvalidInput(
                f"{name}: the tokenizer has {tokenizer.vocab_size} tokens, the network {network.shape.vocab_size}; "
                "take both from the same folder"
            )
        self.vocabulary = Vocabulary(tokenizer)
        self.sessions = Sessions(network, config or DecodingConfig())
        self.version = f"{name}@{(digest or network.digest)[:12]}"
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

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order; what cannot be answered is refused with a reason."""
        answers: list[Writing | Refusal] = [Refusal("not asked")] * len(requests)
        waiting: deque[Job] = deque()
        for place, request in enumerate(requests):
            asked = self.ask(request)
            if isinstance(asked, Refusal):
                answers[place] = asked
            else:
                waiting.append(Job(place, Stem(asked, list(asked.head), asked.state)))
        return self._write(waiting, answers)

    def write_again(self, prompt: Sequence[int], request: Request) -> Writing | Refusal:
        """The answer to a prompt that is told in token ids, as a record keeps it; the request's own is not read.

        Raises InvalidInput for ids that are not of this vocabulary.
        """
        if prompt and not 0 <= min(prompt) <= max(prompt) < self.sessions.network.shape.vocab_size:
            raise InvalidInput("the recorded prompt holds tokens that this model does not have")
        asked = self.ask(replace(request, prompt=()), list(prompt))
        if isinstance(asked, Refusal):
            return asked
        return self._write(deque([Job(0, Stem(asked, list(asked.head), asked.state))]), [Refusal("")])[0]

    def _write(self, waiting: deque[Job], answers: list[Writing | Refusal]) -> list[Writing | Refusal]:
        writing: list[Job] = []
        try:
            self._run(waiting, writing, answers)
        except DependencyUnavailable as error:
            for job in (*waiting, *writing):
                answers[job.place] = Refusal(str(error))
        finally:
            for job in writing:
                self._leave(job)
        return answers

    def ask(self, request: Request, again: list[int] | None = None) -> Asked | Refusal:
        """The request in token ids, or why this model can never answer it; `again` is its prompt in ids."""
        sampling = Sampling(request.temperature, request.top_k, request.top_p)
        try:
            check_sampling(sampling)
            form = self._forms.compiled(request.form)
            first = self.vocabulary.encode(request.prompt[: request.shared])
            rest = self.vocabulary.encode(request.prompt[request.shared :])
        except InvalidInput as error:
            return Refusal(str(error))
        prompt = [*self._opening, *first, *rest] if again is None else again
        head, state = form.forced(form.start)
        if not prompt and not head:
            return Refusal("an empty prompt: say something before the form")
        asked = Asked(request, form, prompt, len(self._opening) + len(first), head, state, sampling)
        return self.sessions.refusal(asked.limit) or asked

    def _run(self, waiting: deque[Job], writing: list[Job], answers: list[Writing | Refusal]) -> None:
        """Requests join as there is room, all rows go one round, and what is finished leaves.

        Who joins when depends on sizes alone, never on what the cache holds: a replay goes the same way.
        """
        while waiting or writing:
            joining = self._next(waiting, len(writing))
            logits = self._join(joining)
            writing += [waiting.popleft() for _ in joining]
            self._settle(joining, [DraftTree() for _ in joining], logits, writing, answers)
            if waiting and not joining and not writing:
                answers[waiting.popleft().place] = Refusal("the memory is held by other sequences; ask again")
            if writing:
                self._round(writing, answers)

    def _next(self, waiting: Sequence[Job], num_writing: int) -> list[Job]:
        """The jobs at the head of the queue for which there is room."""
        joining: list[Job] = []
        for job in waiting:
            limits = [other.asked.limit for other in (*joining, job)]
            if num_writing + len(limits) > self.sessions.config.max_batch or not self.sessions.has_room(
                *limits
            ):
                break
            joining.append(job)
        return joining

    def _join(self, jobs: Sequence[Job]) -> list[Floats]:
        """Read the prompts; the logits [1, V] after each."""
        if not jobs:
            return []
        prompts = [
            ToRead([*asked.prompt, *asked.head], asked.limit, asked.num_shared)
            for asked in (job.asked for job in jobs)
        ]
        opened = self.sessions.open_all(prompts)
        for job, (row, _, num_reused) in zip(jobs, opened, strict=True):
            job.row, job.num_reused = row, min(num_reused, len(job.asked.prompt))
        return [logits[None] for _, logits, _ in opened]

    def _round(self, writing: list[Job], answers: list[Writing | Refusal]) -> None:
        """Speculate, verify, settle: one pass of the network over what is settled and what is guessed."""
        sizes = [len(job.pending) for job in writing]
        narrow = min(sizes)
        if max(sizes) * len(sizes) > 2 * sum(sizes):
            # A pass is as wide as its widest row. Where that would be mostly padding, it is as wide as the narrowest.
            logits = self._read(writing, [job.pending[:narrow] for job in writing], None)
            for job in writing:
                del job.pending[:narrow]
            ready = [(job, after[-1:]) for job, after in zip(writing, logits, strict=True) if not job.pending]
            jobs = [job for job, _ in ready]
            self._settle(jobs, [DraftTree() for _ in jobs], [after for _, after in ready], writing, answers)
            for _ in jobs:
                self.evidence.note_round(0, 0)
            return
        jobs = list(writing)
        stems = [job.stem for job in jobs]
        began_s = self._clock()
        trees = [self._fitting(job, tree) for job, tree in zip(jobs, self._speculate(stems), strict=True)]
        self.strategy.verifying(stems, trees)
        drafted_s = self._clock()
        logits = self._verify(jobs, trees)
        accepted = self._settle(jobs, trees, logits, writing, answers)
        verified_s = self._clock()
        width = max(size + len(tree) for size, tree in zip(sizes, trees, strict=True))
        draft_ms, verify_ms = 1e3 * (drafted_s - began_s), 1e3 * (verified_s - drafted_s)
        for stem, tree, num in zip(stems, trees, accepted, strict=True):
            self.evidence.note_round(tree.depth, num)
            self._watch(stem.asked.request.kind, tree.depth, num)
        self.evidence.note_time(draft_ms, verify_ms)
        self.lookahead.learn(
            [
                Round(stem.asked.request.kind, tree.depth, num, draft_ms, verify_ms, len(jobs), width)
                for stem, tree, num in zip(stems, trees, accepted, strict=True)
            ]
        )

    def _watch(self, kind: str, num_drafted: int, num_stood: int) -> None:
        change = self._alarm.learn(kind, num_drafted, num_stood) if self._alarm else None
        if change is Change.RAISED:
            self._warning = (
                f"{change.value}, at answer {self.evidence.num_answers:,}: is the draft stale, or was it changed? "
                "Answers are the target's own all the same, only later"
            )
        elif change is Change.CLEARED:
            self._warning = ""

    def _speculate(self, stems: Sequence[Stem]) -> list[DraftTree]:
        asks = [Ask(stem.asked.request.kind, cap(stem)) for stem in stems]
        try:
            return self.strategy.speculate(stems, self.lookahead.plan(asks))
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
        self,
        jobs: Sequence[Job],
        trees: Sequence[DraftTree],
        logits: Sequence[Floats],
        writing: list[Job],
        answers: list[Writing | Refusal],
    ) -> list[int]:
        """Settle a round of each job; those that are finished leave `writing` for `answers`.

        Returns how many chosen tokens of each tree stood.
        """
        stems = [job.stem for job in jobs]
        outcomes = self._rule(stems, trees, logits)
        for job, tree, outcome in zip(jobs, trees, outcomes, strict=True):
            answer = self._take(job, tree, outcome)
            if answer is not None:
                answers[job.place] = answer
                writing.remove(job)
        return [
            tree.num_chosen[outcome.path[-1]] if outcome and outcome.path else 0
            for tree, outcome in zip(trees, outcomes, strict=True)
        ]

    def _take(self, job: Job, tree: DraftTree, outcome: Outcome | None) -> Writing | Refusal | None:
        """Append what a round settled and what that forces; the answer where it ends the form."""
        stem = job.stem
        if outcome is None:
            self._leave(job, wipe=True)
            return Refusal("the network gave a logit that is not a finite number")
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
        if not stem.is_done:
            return None
        self._leave(job)
        self.evidence.note_answer(len(stem.tokens))
        fields = stem.asked.form.fields(stem.tokens)
        return Writing(
            fields,
            tuple(stem.tokens),
            len(stem.asked.prompt),
            job.num_reused,
            tuple(stem.asked.prompt),
            self.strategy.name,
            self._drafted_by,
            tuple(job.rounds),
        )

    def _leave(self, job: Job, wipe: bool = False) -> None:
        self.strategy.leave(job.stem)
        if job.row is not None:
            self.sessions.close(job.row, wipe)
            job.row = None
