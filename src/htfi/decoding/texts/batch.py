"""Texts written side by side: requests join and leave between rounds, so none waits for another to end."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from htfi.decoding.automaton import TokenAutomaton
from htfi.decoding.engine import DecodingEngine, GenerationJob, PassResult
from htfi.decoding.sampling import SamplingParams, check_sampling_params
from htfi.decoding.sequence import SequenceState, TokenizedRequest
from htfi.decoding.texts.logprobs import LogprobRule, TokenLogprob
from htfi.decoding.texts.stream import TextStream
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.generation import GenerationRequest, RequestRefused

_PROMPT_TOKENS = 1_024  # read between two rounds, at most, unless one prompt is longer


class FinishReason(StrEnum):
    """Why a text ended, as OpenAI names it."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(slots=True)
class TextCounts:
    """What one text took. `cpu_s`: its share of the processor time of the passes that it was in."""

    num_prompt: int = 0
    num_reused: int = 0
    num_written: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    num_rounds: int = 0
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class TextPart:
    """What became of one text in a round. `finish` on its last part; `problem` where it could not go on."""

    text: str
    tokens: Sequence[int]
    logprobs: Sequence[TokenLogprob]
    counts: TextCounts
    finish: FinishReason | None = None
    problem: str = ""


@dataclass(slots=True, eq=False)
class Text:
    """One text under way; `receive` gets its parts, in the thread that runs the batch."""

    job: GenerationJob
    stream: TextStream
    receive: Callable[[TextPart], None]
    num_logprobs: int | None
    counts: TextCounts = field(default_factory=TextCounts)
    is_paused: bool = False  # keeps what it holds, and no round takes it

    @property
    def num_left(self) -> int:
        return self.job.tokenized.grammar.max_tokens - self.counts.num_written


class TextBatch:
    """Writes texts by an engine whose acceptance rule is a `LogprobRule`. For one thread."""

    def __init__(self, engine: DecodingEngine, rule: LogprobRule) -> None:
        self._engine, self._rule = engine, rule
        self._waiting: deque[Text] = deque()
        self._writing: list[Text] = []

    @property
    def num_open(self) -> int:
        return len(self._waiting) + len(self._writing)

    def add(
        self,
        prompt: Sequence[int],
        grammar: TokenAutomaton,
        sampling: SamplingParams,
        seed: int,
        receive: Callable[[TextPart], None],
        stops: Sequence[str] = (),
        num_logprobs: int | None = None,
        max_draft: int | None = None,
    ) -> Text:
        """Have a text written after a prompt. `num_logprobs`: so many likeliest tokens at each place; None for no
        log-probabilities. Raises: InvalidInput.
        """
        check_sampling_params(sampling)
        self._engine.check_prompt(prompt)
        if not prompt:
            raise InvalidInput("an empty prompt: give at least one token")
        request = GenerationRequest(
            (), (), seed, sampling.temperature, kind="text", max_draft=max_draft, top_p=sampling.top_p
        )
        asked = TokenizedRequest(request, grammar, list(prompt), len(prompt), [], grammar.start, sampling)
        refusal = self._engine.sessions.refusal(asked.max_length)
        if refusal is not None:
            raise InvalidInput(refusal.reason)
        job = GenerationJob(0, SequenceState(asked, [], asked.start_state))
        text = Text(job, TextStream(self._engine.vocabulary.tokenizer, stops), receive, num_logprobs)
        text.counts.num_prompt = len(prompt)
        self._waiting.append(text)
        return text

    def holds(self, text: Text) -> bool:
        """Whether a text is not finished yet."""
        return text in self._waiting or text in self._writing

    def cancel(self, text: Text) -> None:
        """Write no more of it; what it held is free."""
        if text in self._waiting:
            self._waiting.remove(text)
        elif text in self._writing:
            self._remove(text)

    def step(self) -> None:
        """Read prompts that fit, then one round of all texts that are not paused.

        Where paused texts hold all space that others wait for, they go on, so that it comes free.
        """
        joining = self._joining()
        try:
            if joining:
                self._pass(joining, self._engine.prefill, is_round=False)
            going = [text for text in self._writing if not text.is_paused]
            if not going and any(not text.is_paused for text in self._waiting):
                going = list(self._writing)
            if going:
                self._pass(going, self._engine.decode_round, is_round=True)
        except DependencyUnavailable as error:
            for text in list(self._writing):
                self._remove(text)
                text.receive(TextPart("", (), (), text.counts, problem=str(error)))

    def _joining(self) -> list[Text]:
        waiting = [text for text in self._waiting if not text.is_paused]
        limits = [text.job.tokenized.max_length for text in waiting]
        num_going = sum(not text.is_paused for text in self._writing)
        num, num_tokens = 0, 0
        for text in waiting[: self._engine.num_admissible(limits, num_going)]:
            num_tokens += len(text.job.tokenized.prompt)
            if num and num_tokens > _PROMPT_TOKENS:
                break
            num += 1
        joining = waiting[:num]
        for text in joining:
            self._waiting.remove(text)
        self._writing += joining
        for text in joining:
            if text.num_logprobs is not None:
                self._rule.follow(text.job.sequence, text.num_logprobs)
        return joining

    def _pass(
        self,
        texts: Sequence[Text],
        read: Callable[[Sequence[GenerationJob]], list[PassResult]],
        *,
        is_round: bool,
    ) -> None:
        began_s = time.process_time()
        results = {result.job: result for result in read([text.job for text in texts])}
        share_s = (time.process_time() - began_s) / len(texts)
        for text in texts:
            result = results[text.job]
            text.counts.cpu_s += share_s
            text.counts.num_reused = text.job.num_reused
            text.counts.num_rounds += is_round
            text.counts.num_drafted += result.num_drafted
            text.counts.num_accepted += result.num_accepted
            if result.tokens or result.answer is not None:
                self._take(text, result)

    def _take(self, text: Text, result: PassResult) -> None:
        """Add what a pass wrote to a text, up to its bound or a stop string."""
        if isinstance(result.answer, RequestRefused):
            self._remove(text)
            text.receive(TextPart("", (), (), text.counts, problem=result.answer.reason))
            return
        tokens = result.tokens[: text.num_left]
        num_beyond = len(result.tokens) - len(tokens)
        is_done = (
            result.answer is not None and num_beyond <= 1
        )  # the last one of a whole answer is its end token
        plain = tokens[:-1] if is_done and not num_beyond else tokens
        pieces: list[str] = []
        num_taken = 0
        for token in plain:
            pieces.append(text.stream.add(token))
            num_taken += 1
            if text.stream.is_stopped:
                break
        is_stopped = text.stream.is_stopped
        text.counts.num_written += num_taken if is_stopped else len(tokens)
        finish = None
        if is_stopped or is_done:
            finish = FinishReason.STOP
        elif text.num_left == 0:
            finish = FinishReason.LENGTH
        if finish is not None:
            pieces.append(text.stream.end())
            is_stopped = text.stream.is_stopped
            finish = FinishReason.STOP if is_stopped else finish
        logprobs = self._rule.noted(text.job.sequence)[:num_taken]
        if finish is not None:
            self._remove(text)
        text.receive(TextPart("".join(pieces), plain[:num_taken], logprobs, text.counts, finish))

    def _remove(self, text: Text) -> None:
        self._writing.remove(text)
        self._rule.forget(text.job.sequence)
        if text.job.row is not None:
            self._engine.remove(text.job)
