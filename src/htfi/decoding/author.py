"""The embedded author: answers requests in their forms with one network, many side by side. Narrative asks it."""

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from htfi.decoding.job import Job
from htfi.decoding.rounds import Rounds, Step
from htfi.decoding.stem import Asked, Stem
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.writing import Refusal, Request, Writing

_Answers = list[Writing | Refusal]


class LocalAuthor(Rounds):
    """Implements `Author` over any network. Every answer ends: its form bounds the number of tokens."""

    def write(self, requests: Sequence[Request]) -> list[Writing | Refusal]:
        """One answer per request, in order; what cannot be answered is refused with a reason."""
        answers: _Answers = [Refusal("not asked")] * len(requests)
        waiting: deque[Job] = deque()
        for place, request in enumerate(requests):
            asked = self.ask(request)
            if isinstance(asked, Refusal):
                answers[place] = asked
            else:
                waiting.append(Job(place, Stem(asked, list(asked.head), asked.state)))
        return self._write(waiting, answers)

    def write_again(self, prompt: Sequence[int], request: Request) -> Writing | Refusal:
        """The answer to a prompt that is told in token ids, as a record keeps it; the request's own is not read."""
        return self.write_on(prompt, request, ())

    def write_on(self, prompt: Sequence[int], request: Request, settled: Sequence[int]) -> Writing | Refusal:
        """The answer that begins with the tokens `settled`, whoever said them; the prompt is told in token ids.

        Raises: InvalidInput for a prompt that is not of this vocabulary; IntegrityError for settled tokens that the
        form does not admit.
        """
        self.check(prompt)
        asked = self.ask(replace(request, prompt=()), list(prompt))
        if isinstance(asked, Refusal):
            return asked
        begun = _begun(asked, settled)
        if begun.stem.is_done:
            fields = asked.form.fields(begun.stem.tokens)
            return Writing(fields, tuple(begun.stem.tokens), len(asked.prompt), 0, tuple(asked.prompt))
        return self._write(deque([begun]), [Refusal("")])[0]

    def _write(self, waiting: deque[Job], answers: _Answers) -> list[Writing | Refusal]:
        writing: list[Job] = []
        try:
            self._run(waiting, writing, answers)
        except DependencyUnavailable as error:
            for job in (*waiting, *writing):
                answers[job.place] = Refusal(str(error))
        finally:
            for job in writing:
                self.leave(job)
        return answers

    def _run(self, waiting: deque[Job], writing: list[Job], answers: _Answers) -> None:
        """Requests join as there is room, all rows go one round, and what is finished leaves."""
        while waiting or writing:
            limits = [job.asked.limit for job in waiting]
            joining = [waiting[place] for place in range(self.num_joining(limits, len(writing)))]
            steps = self.join(joining)
            writing += [waiting.popleft() for _ in joining]
            _finish(steps, writing, answers)
            if waiting and not joining and not writing:
                answers[waiting.popleft().place] = Refusal("the memory is held by other sequences; ask again")
            if writing:
                _finish(self.round(writing), writing, answers)


def _begun(asked: Asked, settled: Sequence[int]) -> Job:
    """A job whose answer begins so. Its first settled tokens are what the form forces, as with any job."""
    stem = Stem(asked, list(asked.head), asked.state)
    if len(settled) > len(asked.head):
        if list(settled[: len(asked.head)]) != asked.head:
            raise IntegrityError("the tokens to go on from do not begin as the form does")
        for token in settled[len(asked.head) :]:
            stem.tokens.append(token)
            stem.state = asked.form.advance(stem.state, token)
    forced, stem.state = asked.form.forced(stem.state)
    stem.tokens += forced
    return Job(0, stem)


def _finish(steps: Sequence[Step], writing: list[Job], answers: _Answers) -> None:
    for step in steps:
        if step.answer is not None:
            answers[step.job.place] = step.answer
            writing.remove(step.job)
