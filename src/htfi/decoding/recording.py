"""Owns the recording of a service's answers, from which drafts are distilled."""

from collections.abc import Callable, Sequence
from typing import Protocol

from htfi.decoding.promotion import DraftedGenerator
from htfi.decoding.replay_buffer import RecordedAnswer
from htfi.domain.generation import (
    Completion,
    GenerationRequest,
    PromptDialect,
    RequestRefused,
    SpeculationStats,
)


class AnswerBuffer(Protocol):
    """Where answers are kept. What is lost is no error: `last_error` says why the last one was."""

    @property
    def last_error(self) -> str: ...

    def add(self, exchange: RecordedAnswer) -> bool: ...


class RecordingGenerator:
    """A generator whose completions go into a replay buffer, for `htfi models distil`. `tokenizer` is its digest.

    Where the buffer cannot be written, `report` is called once for each reason, and answers continue.
    """

    def __init__(
        self,
        generator: DraftedGenerator,
        buffer: AnswerBuffer,
        tokenizer: str,
        report: Callable[[str], None],
    ) -> None:
        self._generator = generator
        self._buffer = buffer
        self._tokenizer = tokenizer
        self._report = report
        self._reported = ""

    @property
    def version(self) -> str:
        return self._generator.version

    @property
    def dialect(self) -> PromptDialect:
        return self._generator.dialect

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return self._generator.speculation_stats

    def write(self, requests: Sequence[GenerationRequest]) -> list[Completion | RequestRefused]:
        """One answer per request, in order."""
        answers = self._generator.write(requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Completion) and answer.tokens:
                self._buffer.add(
                    RecordedAnswer(request, answer.tokens, self._generator.version, self._tokenizer)
                )
        if self._buffer.last_error != self._reported:
            self._reported = self._buffer.last_error
            self._report(f"{self._reported}: answers are not kept for distillation")
        return answers
