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
from htfi.decoding.noise import keys
from htfi.decoding.ports import Floats, Network, Tokenizer
from htfi.decoding.sampling import check_temperature, choose
from htfi.decoding.sessions import Sessions
from htfi.decoding.vocabulary import Vocabulary
from htfi.domain.errors import InvalidInput
from htfi.domain.writing import Dialect, Refusal, Request, Writing

ANSWER_STREAM = 0


@dataclass(slots=True)
class _Job:
    """One request on its way: `pending` tokens are written and not yet read by the network."""

    place: int
    request: Request
    form: CompiledForm
    prompt: list[int]
    head: list[int]  # what the form forces at its beginning: read with the prompt
    shared: int
    state: int
    tokens: list[int]
    pending: list[int] = field(default_factory=list[int])
    row: Row | None = None
    num_reused: int = 0

    @property
    def limit(self) -> int:
        return len(self.prompt) + self.form.longest


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
            job = self._prepare(place, request)
            if isinstance(job, Refusal):
                answers[place] = job
            else:
                waiting.append(job)
        writing: list[_Job] = []
        while waiting or writing:
            while waiting and self._can_join(waiting[0], len(writing)):
                job = waiting.popleft()
                self._take(job, self._join(job), writing, answers)
            if waiting and not writing:
                answers[waiting.popleft().place] = Refusal("the memory is held by other sequences; ask again")
            if writing:
                asked, writing = writing, []
                for job, logits in zip(asked, self._read_pending(asked), strict=True):
                    self._take(job, logits, writing, answers)
        return answers

    def _prepare(self, place: int, request: Request) -> _Job | Refusal:
        try:
            check_temperature(request.temperature)
            form = self._forms.compiled(request.form)
            first = self.vocabulary.encode(request.prompt[: request.shared])
            rest = self.vocabulary.encode(request.prompt[request.shared :])
        except InvalidInput as error:
            return Refusal(str(error))
        prompt = [*self._opening, *first, *rest]
        head, state = form.forced(form.start)
        job = _Job(place, request, form, prompt, head, len(self._opening) + len(first), state, list(head))
        if not prompt and not head:
            return Refusal("an empty prompt: say something before the form")
        return self.sessions.refusal(job.limit) or job

    def _can_join(self, job: _Job, num_writing: int) -> bool:
        return num_writing < self.sessions.config.max_batch and self.sessions.has_room(job.limit)

    def _join(self, job: _Job) -> Floats:
        opened = self.sessions.open([*job.prompt, *job.head], job.limit, job.shared)
        job.row, job.num_reused = opened.row, min(opened.num_reused_tokens, len(job.prompt))
        return opened.logits

    def _read_pending(self, writing: Sequence[_Job]) -> list[Floats]:
        rows = [job.row for job in writing if job.row is not None]
        logits = self.sessions.extend(rows, [job.pending for job in writing])
        return [after[-1] for after in logits]

    def _take(self, job: _Job, logits: Floats, writing: list[_Job], answers: list[Writing | Refusal]) -> None:
        answer = self._write_token(job, logits)
        if answer is None:
            writing.append(job)
        else:
            answers[job.place] = answer

    def _write_token(self, job: _Job, logits: Floats) -> Writing | Refusal | None:
        """Choose a token and take what its choice forces; the answer where that ends the form."""
        form = job.form
        if job.state != form.done:
            places = np.array([len(job.tokens)])
            noise = keys(job.request.seed, np.array([ANSWER_STREAM]), places)
            ids = form.steps[job.state].ids
            token = int(choose(logits[None], ids, job.request.temperature, noise)[0])
            if token < 0:
                self._leave(job, wipe=True)
                return Refusal("the network gave a logit that is not a finite number")
            forced, job.state = form.forced(form.advance(job.state, token))
            job.pending = [token, *forced]
            job.tokens += job.pending
        if job.state != form.done:
            return None
        self._leave(job)
        return Writing(form.fields(job.tokens), tuple(job.tokens), len(job.prompt), job.num_reused)

    def _leave(self, job: _Job, wipe: bool = False) -> None:
        if job.row is not None:
            self.sessions.close(job.row, wipe)
            job.row = None
