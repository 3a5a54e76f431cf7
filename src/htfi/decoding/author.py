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
from htfi.decoding.sessions import Sessions
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
    """Implements `Author` over any network. `opening` are ids put before every prompt (a folder's first token).

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
    ) -> None:
        if tokenizer.vocab_size > network.shape.vocab_size:
            raise InvalidInput(
                f"{name}: the tokenizer has {tokenizer.vocab_size} tokens, the network {network.shape.vocab_size}; "
                "take both from the same folder"
            )
        self.vocabulary = Vocabulary(tokenizer)
        self.sessions = Sessions(network, config or DecodingConfig())
        self.version = f"{name}@{network.digest[:12]}"
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
            while waiting and self._can_join(waiting[0], len(writing)):
                logits = self._join(waiting[0])
                writing.append(job := waiting.popleft())
                self._take(job, logits, writing, answers)
            if waiting and not writing:
                answers[waiting.popleft().place] = Refusal("the memory is held by other sequences; ask again")
            if writing:
                asking = list(writing)
                for job, logits in zip(asking, self._read_pending(asking), strict=True):
                    self._take(job, logits, writing, answers)

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

    def _can_join(self, job: _Job, num_writing: int) -> bool:
        return num_writing < self.sessions.config.max_batch and self.sessions.has_room(job.asked.limit)

    def _join(self, job: _Job) -> Floats:
        asked = job.asked
        opened = self.sessions.open([*asked.prompt, *asked.head], asked.limit, asked.num_shared)
        job.row, job.num_reused = opened.row, min(opened.num_reused_tokens, len(asked.prompt))
        return opened.logits

    def _read_pending(self, writing: Sequence[_Job]) -> list[Floats]:
        rows = [job.row for job in writing if job.row is not None]
        logits = self.sessions.extend(rows, [job.pending for job in writing])
        return [after[-1] for after in logits]

    def _take(self, job: _Job, logits: Floats, writing: list[_Job], answers: list[Writing | Refusal]) -> None:
        answer = self._write_token(job, logits)
        if answer is not None:
            answers[job.place] = answer
            writing.remove(job)

    def _write_token(self, job: _Job, logits: Floats) -> Writing | Refusal | None:
        """Choose a token and take what its choice forces; the answer where that ends the form."""
        asked, form = job.asked, job.asked.form
        if job.state != form.done:
            noise = np.array([key(asked.request.seed, ANSWER_STREAM, len(job.tokens))], np.uint64)
            admitted = form.steps[job.state].admitted
            token = int(choose(logits[None], admitted, asked.request.temperature, noise)[0])
            if token < 0:
                self._leave(job, wipe=True)
                return Refusal("the network gave a logit that is not a finite number")
            forced, job.state = form.forced(form.advance(job.state, token))
            job.pending = [token, *forced]
            job.tokens += job.pending
        if job.state != form.done:
            return None
        self._leave(job)
        return Writing(form.fields(job.tokens), tuple(job.tokens), len(asked.prompt), job.num_reused)

    def _leave(self, job: _Job, wipe: bool = False) -> None:
        if job.row is not None:
            self.sessions.close(job.row, wipe)
            job.row = None
