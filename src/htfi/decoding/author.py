"""The embedded author: answers requests in their forms with one network, many side by side. Narrative asks it.

Plain decoding with the shared noise (D2): the token at place t of an answer is chosen by logits, temperature and
the noise of (seed, stream 0, t), so every later strategy of decoding can be held against this one.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.config import DecodingConfig
from htfi.decoding.form import CompiledForm, Forms
from htfi.decoding.kv import Row
from htfi.decoding.noise import key
from htfi.decoding.ports import Floats, Network, Tokenizer
from htfi.decoding.sampling import check_temperature, choose
from htfi.decoding.sessions import Sessions, ToRead
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Writing

ANSWER_STREAM = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request in token ids: `head` is what the form forces at its beginning, read together with the prompt."""

    request: Request
    form: CompiledForm
    prompt: list[int]
    num_shared: int
    head: list[int]
    state: int  # of the form, after the head

    @property
    def limit(self) -> int:
        """Tokens of prompt and answer at most."""
        return len(self.prompt) + self.form.longest


@dataclass(slots=True, eq=False)
class _Job:
    """One request on its way: `pending` tokens are written and not yet read by the network."""

    place: int
    asked: Asked
    state: int
    tokens: list[int]
    pending: list[int] = field(default_factory=list[int])
    row: Row | None = None
    num_reused: int = 0


class LocalAuthor:
    """Implements `Author` over any network. `opening` are ids put before every prompt (a folder's first token);
    `digest` says whose weights they are, the network's own where it is not given.

    Every answer ends: its form bounds the number of tokens. Raises InvalidInput when network and tokenizer differ
    in size of vocabulary.
    """

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        name: str,
        config: DecodingConfig | None = None,
        opening: Sequence[int] = (),
        digest: str = "",
    ) -> None:
        if tokenizer.vocab_size > network.shape.vocab_size:
            raise InvalidInput(
                f"{name}: the tokenizer has {tokenizer.vocab_size} tokens, the network {network.shape.vocab_size}; "
                "take both from the same folder"
            )
        self.vocabulary = Vocabulary(tokenizer)
        self.sessions = Sessions(network, config or DecodingConfig())
        self.version = f"{name}@{(digest or network.digest)[:12]}"
        self._forms = Forms(self.vocabulary)
        self._opening = list(opening)

    @property
    def dialect(self) -> Dialect:
        return self.vocabulary.dialect

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order; what cannot be answered is refused with a reason."""
        answers: list[Writing | Refusal] = [Refusal("not asked")] * len(requests)
        waiting: deque[_Job] = deque()
        for place, request in enumerate(requests):
            asked = self.ask(request)
            if isinstance(asked, Refusal):
                answers[place] = asked
            else:
                waiting.append(_Job(place, asked, asked.state, list(asked.head)))
        writing: list[_Job] = []
        try:
            self._run(waiting, writing, answers)
        except DependencyUnavailable as error:
            for job in (*waiting, *writing):
                answers[job.place] = Refusal(str(error))
        finally:
            for job in writing:
                self._leave(job)
        return answers

    def _run(self, waiting: deque[_Job], writing: list[_Job], answers: list[Writing | Refusal]) -> None:
        """Requests join as there is room, all rows go one step, and what is finished leaves.

        Who joins when depends on sizes alone, never on what the cache holds: a replay goes the same way.
        """
        while waiting or writing:
            joining = self._next(waiting, len(writing))
            logits = self._join(joining)
            writing += [waiting.popleft() for _ in joining]
            self._step(joining, logits, writing, answers)
            if waiting and not joining and not writing:
                answers[waiting.popleft().place] = Refusal("the memory is held by other sequences; ask again")
            if writing:
                jobs, logits = self._read_pending(writing)
                self._step(jobs, logits, writing, answers)

    def _step(
        self,
        jobs: Sequence[_Job],
        logits: Sequence[Floats],
        writing: list[_Job],
        answers: list[Writing | Refusal],
    ) -> None:
        """Write one token more of each job; those that are finished leave `writing` for `answers`."""
        for job, token in zip(jobs, _chosen(jobs, logits), strict=True):
            answer = self._take(job, token)
            if answer is not None:
                answers[job.place] = answer
                writing.remove(job)

    def ask(self, request: Request) -> Asked | Refusal:
        """The request in token ids, or why this model can never answer it."""
        try:
            check_temperature(request.temperature)
            form = self._forms.compiled(request.form)
            first = self.vocabulary.encode(request.prompt[: request.shared])
            rest = self.vocabulary.encode(request.prompt[request.shared :])
        except InvalidInput as error:
            return Refusal(str(error))
        prompt = [*self._opening, *first, *rest]
        head, state = form.forced(form.start)
        if not prompt and not head:
            return Refusal("an empty prompt: say something before the form")
        asked = Asked(request, form, prompt, len(self._opening) + len(first), head, state)
        return self.sessions.refusal(asked.limit) or asked

    def _next(self, waiting: Sequence[_Job], num_writing: int) -> list[_Job]:
        """The jobs at the head of the queue for which there is room."""
        joining: list[_Job] = []
        for job in waiting:
            limits = [other.asked.limit for other in (*joining, job)]
            if num_writing + len(limits) > self.sessions.config.max_batch or not self.sessions.has_room(
                *limits
            ):
                break
            joining.append(job)
        return joining

    def _join(self, jobs: Sequence[_Job]) -> list[Floats]:
        if not jobs:
            return []
        prompts = [
            ToRead([*asked.prompt, *asked.head], asked.limit, asked.num_shared)
            for asked in (job.asked for job in jobs)
        ]
        opened = self.sessions.open_all(prompts)
        for job, (row, _, num_reused) in zip(jobs, opened, strict=True):
            job.row, job.num_reused = row, min(num_reused, len(job.asked.prompt))
        return [logits for _, logits, _ in opened]

    def _read_pending(self, writing: Sequence[_Job]) -> tuple[list[_Job], list[Floats]]:
        """Let the network read what is written; the jobs of which nothing is left to read, with their logits.

        A pass is as wide as its widest row. Where that would be mostly padding, it is as wide as the narrowest.
        """
        sizes = [len(job.pending) for job in writing]
        width = max(sizes) if max(sizes) * len(sizes) <= 2 * sum(sizes) else min(sizes)
        rows = [job.row for job in writing if job.row is not None]
        after = self.sessions.extend(rows, [job.pending[:width] for job in writing])
        done: list[_Job] = []
        logits: list[Floats] = []
        for job, read in zip(writing, after, strict=True):
            del job.pending[:width]
            if not job.pending:
                done.append(job)
                logits.append(read[-1])
        return done, logits

    def _take(self, job: _Job, token: int | None) -> Writing | Refusal | None:
        """Append a token and what it forces; the answer where that ends the form."""
        form = job.asked.form
        if token is not None:
            if token < 0:
                self._leave(job, wipe=True)
                return Refusal("the network gave a logit that is not a finite number")
            forced, job.state = form.forced(form.advance(job.state, token))
            job.pending = [token, *forced]
            job.tokens += job.pending
        if job.state != form.done:
            return None
        self._leave(job)
        return Writing(form.fields(job.tokens), tuple(job.tokens), len(job.asked.prompt), job.num_reused)

    def _leave(self, job: _Job, wipe: bool = False) -> None:
        if job.row is not None:
            self.sessions.close(job.row, wipe)
            job.row = None


def _chosen(jobs: Sequence[_Job], logits: Sequence[Floats]) -> list[int | None]:
    """The next token of each job, None where its form is at an end; jobs that choose alike choose together."""
    tokens: list[int | None] = [None] * len(jobs)
    groups: dict[tuple[int, float], list[int]] = {}
    for place, job in enumerate(jobs):
        if job.state != job.asked.form.done:
            admitted = job.asked.form.steps[job.state].admitted
            groups.setdefault((id(admitted), job.asked.request.temperature), []).append(place)
    for (_, temperature), places in groups.items():
        admitted = jobs[places[0]].asked.form.steps[jobs[places[0]].state].admitted
        noise = [key(jobs[at].asked.request.seed, ANSWER_STREAM, len(jobs[at].tokens)) for at in places]
        rows = np.stack([logits[at] for at in places]) if len(places) > 1 else logits[places[0]][None]
        drawn = choose(rows, admitted, temperature, np.array(noise, np.uint64))
        for at, token in zip(places, drawn.tolist(), strict=True):
            tokens[at] = token
    return tokens
