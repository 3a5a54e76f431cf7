"""The embedded text generator: answers requests within their grammars with one network, many side by side."""

from collections import deque
from collections.abc import Generator, Sequence

from msgspec.structs import replace

from htfi.decoding.engine import DecodingEngine, GenerationJob, PassResult
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.generation import Completion, GenerationRequest, RequestRefused

_NO_MEMORY = "other sequences hold the memory; ask again"
_Results = list[Completion | RequestRefused]


class LocalGenerator(DecodingEngine):
    """Implements `TextGenerator` over any network. Every answer ends: its grammar bounds the number of tokens."""

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order; a request that cannot be answered is refused with a reason."""
        answers: _Results = [RequestRefused("not started")] * len(requests)
        waiting: deque[GenerationJob] = deque()
        for place, request in enumerate(requests):
            asked = self.tokenize(request)
            if isinstance(asked, RequestRefused):
                answers[place] = asked
            else:
                waiting.append(_new_job(place, asked))
        return self._write(waiting, answers)

    def write_in_passes(
        self, request: GenerationRequest
    ) -> Generator[dict[str, str], None, Completion | RequestRefused]:
        """Answer one request, and yield its fields as far as they are written after each pass of the network.

        Returns the answer that `write` gives. Closing it early frees what it held.
        """
        asked = self.tokenize(request)
        if isinstance(asked, RequestRefused):
            return asked
        if not self.num_admissible([asked.max_length], 0):
            return RequestRefused(_NO_MEMORY)
        job = _new_job(0, asked)
        try:
            (step,) = self.prefill([job])
            while step.answer is None:
                yield asked.grammar.fields_so_far(job.sequence.tokens)
                (step,) = self.decode_round([job])
        except DependencyUnavailable as error:
            return RequestRefused(str(error))
        finally:
            if job.row is not None:
                self.remove(job)
        return step.answer

    def regenerate(self, prompt: Sequence[int], request: GenerationRequest) -> Completion | RequestRefused:
        """The answer to a prompt given in token ids, as a record keeps it; the request's own prompt is not read."""
        return self.continue_from(prompt, request, ())

    def continue_from(
        self, prompt: Sequence[int], request: GenerationRequest, accepted: Sequence[int]
    ) -> Completion | RequestRefused:
        """The answer that begins with the tokens `accepted`, whichever model wrote them; the prompt is given in ids.

        Raises: InvalidInput for a prompt that is not of this vocabulary; IntegrityError for tokens that the grammar
        does not allow.
        """
        self.check_prompt(prompt)
        asked = self.tokenize(replace(request, prompt=()), list(prompt))
        if isinstance(asked, RequestRefused):
            return asked
        begun = _job_from_prefix(asked, accepted)
        if begun.sequence.is_done:
            fields = asked.grammar.fields(begun.sequence.tokens)
            return Completion(fields, tuple(begun.sequence.tokens), len(asked.prompt), 0, tuple(asked.prompt))
        return self._write(deque([begun]), [RequestRefused("")])[0]

    def _write(self, waiting: deque[GenerationJob], answers: _Results) -> list[Completion | RequestRefused]:
        writing: list[GenerationJob] = []
        try:
            self._run(waiting, writing, answers)
        except DependencyUnavailable as error:
            for job in (*waiting, *writing):
                answers[job.index] = RequestRefused(str(error))
        finally:
            for job in writing:
                self.remove(job)
        return answers

    def _run(self, waiting: deque[GenerationJob], writing: list[GenerationJob], answers: _Results) -> None:
        """Requests join as memory allows, all rows advance by one round, finished ones leave."""
        while waiting or writing:
            limits = [job.tokenized.max_length for job in waiting]
            joining = [waiting[place] for place in range(self.num_admissible(limits, len(writing)))]
            steps = self._prefill_apart(joining)
            writing += [waiting.popleft() for _ in joining]
            _collect_finished(steps, writing, answers)
            if waiting and not joining and not writing:
                answers[waiting.popleft().index] = RequestRefused(_NO_MEMORY)
            if writing:
                _collect_finished(self.decode_round(writing), writing, answers)

    def _prefill_apart(self, jobs: Sequence[GenerationJob]) -> list[PassResult]:
        """Read the prompts together; where that fails each alone, so that one that cannot be read harms no other."""
        try:
            return self.prefill(jobs)
        except DependencyUnavailable as error:
            if len(jobs) == 1:
                self.remove(jobs[0])
                return [PassResult(jobs[0], [], 0, 0, RequestRefused(str(error)))]
        return [result for job in jobs for result in self._prefill_apart([job])]


def _new_job(place: int, asked: TokenizedRequest) -> GenerationJob:
    return GenerationJob(place, SequenceState(asked, list(asked.forced_prefix), asked.start_state))


def _job_from_prefix(asked: TokenizedRequest, accepted: Sequence[int]) -> GenerationJob:
    """A job whose answer begins so. Its first tokens are the grammar's forced prefix, as with any job."""
    sequence = SequenceState(asked, list(asked.forced_prefix), asked.start_state)
    if len(accepted) > len(asked.forced_prefix):
        if list(accepted[: len(asked.forced_prefix)]) != asked.forced_prefix:
            raise IntegrityError("the tokens to continue from do not begin as the grammar does")
        for token in accepted[len(asked.forced_prefix) :]:
            sequence.tokens.append(token)
            sequence.state = asked.grammar.advance(sequence.state, token)
    forced, sequence.state = asked.grammar.forced(sequence.state)
    sequence.tokens += forced
    return GenerationJob(0, sequence)


def _collect_finished(steps: Sequence[PassResult], writing: list[GenerationJob], answers: _Results) -> None:
    for step in steps:
        if step.answer is not None:
            answers[step.job.index] = step.answer
            writing.remove(step.job)
