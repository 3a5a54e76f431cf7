"""The reader that asks a language model. Wired at the EDGE rung with the draft, at the next one with the target.

Where its author keeps deadlines (`LateAuthor`), a view may be provisional, and the target's own comes `later`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from htfi.domain.decision import View, Wording
from htfi.domain.writing import Refusal, Request, Spoken, Writing
from htfi.narrative.answer import AS_STATED, Trust, to_view, understand, view_form
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.meaning import Meaning
from htfi.narrative.ports import Author, Closable, LateAuthor
from htfi.narrative.question import (
    Question,
    about,
    as_shown,
    briefly,
    put,
    question_id,
    residency,
    seed_of,
    shown,
)
from htfi.narrative.rationale import THEN
from htfi.narrative.template_reader import TemplateReader

PURSUIT_MS = 60_000.0  # what nobody waits for may take
MAX_AWAITED = 4_096


class ModelReader:
    """Reads with an author; a question that the author refuses gets the template's view, which says why.

    `draft_trust` is for provisional views, whose numbers the draft wrote: `trust` where it is not given. `meaning` is
    what its views have proved to mean, `draft_meaning` the draft's; without it they are taken at their word. An author
    that answers late is one reader's alone, for what came late is told once.
    """

    def __init__(
        self,
        author: Author,
        config: NarrativeConfig | None = None,
        trust: Trust = AS_STATED,
        draft_trust: Trust | None = None,
        meaning: Meaning | None = None,
        draft_meaning: Meaning | None = None,
    ) -> None:
        self._author = author
        self._late = author if isinstance(author, LateAuthor) else None
        self._trust = trust
        self._draft_trust = draft_trust or trust
        self._meaning, self._draft_meaning = meaning, draft_meaning
        self._config = config or NarrativeConfig()
        self._otherwise = TemplateReader(self._config)
        self._awaited: dict[str, Question] = {}

    @property
    def version(self) -> str:
        return self._author.version

    @property
    def spoken(self) -> Spoken | None:
        return self._author.spoken

    def read(
        self, questions: Sequence[Question], deadline_ms: float, *, max_draft: int | None = None
    ) -> list[View]:
        """One view per question; questions on the same news are read once (prefix reuse).

        `max_draft` is as in `Request`.
        """
        requests = [self._request(question, deadline_ms, max_draft) for question in questions]
        answers = self._author.write(requests)
        return [
            self._refused(question, answer, deadline_ms)
            if isinstance(answer, Refusal)
            else self._view(question, request, answer)
            for question, request, answer in zip(questions, requests, answers, strict=True)
        ]

    def later(self) -> list[tuple[str, View | Refusal]]:
        """Views that came since the last call, by the id of their question; a refusal where none will come."""
        told: list[tuple[str, View | Refusal]] = []
        for name, answer in self._late.late() if self._late is not None and self._awaited else ():
            question = self._awaited.pop(name, None)
            if question is None:
                continue
            if isinstance(answer, Writing) and answer.is_provisional:
                answer = Refusal("what came late is provisional as well")
            if isinstance(answer, Writing):
                told.append((name, self._view(question, self._request(question, 0.0), answer)))
            else:
                told.append((name, answer))
        return told

    def pursue(self, questions: Sequence[Question], *, max_draft: int | None = None) -> None:
        """Ask for views that nobody waits for; without an author that answers late, nothing is asked."""
        if self._late is None or not questions:
            return
        for question in questions:
            self._await(question_id(question), question)
        self._late.pursue([self._request(question, PURSUIT_MS, max_draft) for question in questions])

    def close(self) -> None:
        """Let go of what the author holds; nothing is asked after that."""
        if isinstance(self._author, Closable):
            self._author.close()

    def _await(self, name: str, question: Question) -> None:
        self._awaited[name] = briefly(question)
        while len(self._awaited) > MAX_AWAITED:
            del self._awaited[next(iter(self._awaited))]

    def _view(self, question: Question, request: Request, answer: Writing) -> View:
        if answer.is_provisional:
            self._await(request.id, question)
        trust = self._draft_trust if answer.is_provisional else self._trust
        reader = who_read(self.version, answer.draft, answer.num_settled)
        view = to_view(understand(answer.fields, trust), question, self._config.half_life_ns, reader)
        wording = _wording(question, request, answer, self.version)
        meaning = self._draft_meaning if answer.is_provisional else self._meaning
        meant = meaning.of(view) if meaning is not None else ()
        return replace(view, wording=wording, provisional=answer.is_provisional, meant=meant)

    def _request(self, question: Question, deadline_ms: float, max_draft: int | None = None) -> Request:
        prompt, shared = put(question, self._author.dialect)
        return Request(
            prompt=prompt,
            form=view_form(self._author.dialect, len(shown(question))),
            seed=seed_of(question.symbol, question.as_of_ns),
            temperature=self._config.temperature,
            deadline_ms=deadline_ms,
            shared=shared,
            kind="view",
            max_draft=max_draft,
            doubt=1.0
            if max_draft == 0
            else 0.0,  # a reading that opts out of speculation is one under suspicion
            id=question_id(question),
            residency=residency(question),
            about=about(question),
        )

    def _refused(self, question: Question, refusal: Refusal, deadline_ms: float) -> View:
        (view,) = self._otherwise.read([question], deadline_ms)
        return replace(view, words=f"not read: {refusal.reason}")


def who_read(target: str, draft: str, num_settled: int) -> str:
    """Who wrote, in the order of their words: the target has begun a provisional answer where it settled any of it."""
    if num_settled < 0:
        return target
    return f"{target}{THEN}{draft}" if num_settled else draft


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
        place=answer.place,
        num_settled=answer.num_settled,
        shown=as_shown(question),
    )
