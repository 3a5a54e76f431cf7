"""The reader that asks a language model. Wired at the EDGE rung with the draft, at the next one with the target."""

import zlib
from collections.abc import Sequence

from msgspec.structs import replace

from htfi.domain.decision import View, Wording
from htfi.domain.writing import Refusal, Request, Spoken, Writing
from htfi.narrative.answer import AS_STATED, Trust, to_view, understand, view_form
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.ports import Author
from htfi.narrative.question import Question, put, shown
from htfi.narrative.template_reader import TemplateReader


class ModelReader:
    """Reads with an author; a question that the author refuses gets the template's view, which says why."""

    def __init__(
        self, author: Author, config: NarrativeConfig | None = None, trust: Trust = AS_STATED
    ) -> None:
        self._author = author
        self._trust = trust
        self._config = config or NarrativeConfig()
        self._otherwise = TemplateReader(self._config)

    @property
    def version(self) -> str:
        return self._author.version

    @property
    def spoken(self) -> Spoken | None:
        return self._author.spoken

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[View]:
        """One view per question; questions on the same news are read once (prefix reuse)."""
        requests = [self._request(question, deadline_ms) for question in questions]
        answers = self._author.write(requests)
        return [
            self._refused(question, answer, deadline_ms)
            if isinstance(answer, Refusal)
            else self._view(question, request, answer)
            for question, request, answer in zip(questions, requests, answers, strict=True)
        ]

    def _view(self, question: Question, request: Request, answer: Writing) -> View:
        said = understand(answer.fields, self._trust)
        view = to_view(said, question, self._config.half_life_ns, self.version)
        return replace(view, wording=_wording(question, request, answer, self.version))

    def _request(self, question: Question, deadline_ms: float) -> Request:
        prompt, shared = put(question, self._author.dialect)
        return Request(
            prompt=prompt,
            form=view_form(self._author.dialect, len(shown(question))),
            seed=zlib.crc32(f"{question.symbol}@{question.as_of_ns}".encode()),
            temperature=self._config.temperature,
            deadline_ms=deadline_ms,
            shared=shared,
            kind="view",
        )

    def _refused(self, question: Question, refusal: Refusal, deadline_ms: float) -> View:
        (view,) = self._otherwise.read([question], deadline_ms)
        return replace(view, words=f"not read: {refusal.reason}")


def _wording(question: Question, request: Request, answer: Writing, target: str) -> Wording | None:
    """None where the author does not tell its tokens: a model behind a network."""
    if not answer.tokens:
        return None
    return Wording(
        target=target,
        draft=answer.draft,
        strategy=answer.strategy,
        seed=request.seed,
        temperature=request.temperature,
        num_items=len(shown(question)),
        prompt=answer.prompt,
        tokens=answer.tokens,
        rounds=answer.rounds,
    )
