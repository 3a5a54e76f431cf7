"""The reader that asks many times: several answers to one question, drawn by chance, and what they come to together.

Wired at the DEEP rung with the target in full precision. A model asked in plain words is shown all recent items.
"""

import zlib
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from htfi.domain.decision import Meant, View, Wording
from htfi.domain.writing import Dialect, Refusal, Request, Spoken, Writing
from htfi.narrative.answer import AS_STATED, MAX_CITED, Trust, Understanding, to_view, understand, view_form
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.meaning import Meaning
from htfi.narrative.ports import Author
from htfi.narrative.question import (
    MAX_ITEMS,
    Question,
    about,
    as_shown,
    put,
    question_id,
    residency,
    seed_of,
    shown,
)
from htfi.narrative.template_reader import TemplateReader

STRATEGY = "paths"
_ANSWERS = " answers of "
_MEANT_DECIMALS = 4
_DECIMALS = 2  # of what several answers come to


class DeepReader:
    """Reads with an author, `config.deep_paths` times at `config.deep_temperature`, each with its own seed."""

    spoken: Spoken | None = None

    def __init__(
        self,
        author: Author,
        config: NarrativeConfig | None = None,
        trust: Trust = AS_STATED,
        meaning: Meaning | None = None,
    ) -> None:
        self._author = author
        self._config = config or NarrativeConfig()
        self._trust, self._meaning = trust, meaning
        self._otherwise = TemplateReader(self._config)

    @property
    def version(self) -> str:
        return deep_version(self._author.version, self._config.deep_paths)

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[View]:
        """One view per question; a question whose every answer is refused gets the template's, which says why."""
        deep = [self._deepened(question) for question in questions]
        views = self._read(deep, deadline_ms)
        refused = [
            place
            for place, view in enumerate(views)
            if isinstance(view, Refusal) and len(shown(deep[place])) > MAX_ITEMS
        ]
        briefer = [replace(deep[place], most_items=MAX_ITEMS) for place in refused]
        for place, view in zip(refused, self._read(briefer, deadline_ms), strict=True):
            views[place] = view
        return [
            self._refused(question, view, deadline_ms) if isinstance(view, Refusal) else view
            for question, view in zip(questions, views, strict=True)
        ]

    def _deepened(self, question: Question) -> Question:
        """With as much as the form admits: marks number six items, plain words number any."""
        if self._author.dialect is Dialect.MINI:
            return question
        return replace(question, most_items=max(len(question.items), MAX_ITEMS))

    def _read(self, questions: Sequence[Question], deadline_ms: float) -> list[View | Refusal]:
        num = self._config.deep_paths
        requests = [
            self._request(question, path, deadline_ms) for question in questions for path in range(num)
        ]
        answers = self._author.write(requests) if requests else []
        return [
            self._view(question, requests[start], answers[start : start + num])
            for question, start in zip(questions, range(0, len(requests), num), strict=True)
        ]

    def _request(self, question: Question, path: int, deadline_ms: float) -> Request:
        prompt, _ = put(question, self._author.dialect)
        return Request(
            prompt=prompt,
            form=view_form(self._author.dialect, len(shown(question))),
            seed=path_seed(first_seed(question), path),
            temperature=self._config.deep_temperature,
            deadline_ms=deadline_ms,
            shared=len(prompt),
            kind="view",
            max_draft=0,
            id=f"{question_id(question)}/{path}",
            residency=residency(question),
            about=about(question),
        )

    def _view(
        self, question: Question, request: Request, answers: Sequence[Writing | Refusal]
    ) -> View | Refusal:
        written = [answer for answer in answers if isinstance(answer, Writing)]
        if len(written) < len(answers):
            return next(answer for answer in answers if isinstance(answer, Refusal))
        told = [understand(answer.fields, self._trust) for answer in written]
        said, nearest = together(told)
        view = to_view(said, question, self._config.half_life_ns, self.version)
        if self._meaning is not None:
            each = [to_view(one, question, self._config.half_life_ns, self.version) for one in told]
            view = replace(view, meant=meant_together(each, self._meaning))
        if not written[0].tokens:
            return view
        wording = Wording(
            target=self._author.version,
            draft="",
            strategy=STRATEGY,
            seed=first_seed(question),
            temperature=request.temperature,
            num_items=len(shown(question)),
            prompt=written[0].prompt,
            tokens=written[nearest].tokens,
            rounds=(),
            paths=tuple(answer.tokens for answer in written),
            shown=as_shown(question),
        )
        return replace(view, wording=wording)

    def _refused(self, question: Question, refusal: Refusal, deadline_ms: float) -> View:
        (view,) = self._otherwise.read([question], deadline_ms)
        return replace(view, words=f"not read: {refusal.reason}")


def deep_version(author: str, num_paths: int) -> str:
    """Who reads: a reading of many answers is another narrator than one of the likeliest."""
    return f"{num_paths}{_ANSWERS}{author}"


def is_deep_version(reader: str) -> bool:
    """Whether a reader is one of several answers by a model of ours."""
    return reader.partition(_ANSWERS)[0].isdecimal() and _ANSWERS in reader


def first_seed(question: Question) -> int:
    return seed_of(question.symbol, question.as_of_ns, in_depth=True)


def path_seed(seed: int, path: int) -> int:
    """The seed of one answer of several."""
    return zlib.crc32(f"{seed}/{path}".encode())


def together(said: Sequence[Understanding]) -> tuple[Understanding, int]:
    """What several answers come to, and the place of the one nearest to it, whose words stand for all.

    Answers count by their confidence c. With x = direction · size for the move that an answer expects,
    confidence · size is their mean effect: size is Σc|x|/Σc, and confidence the mean c times how far they agree on
    the direction, |Σcx|/Σc|x|. So answers that spread leave little of an opinion.
    """
    sure = [one.confidence for one in said]
    moves = [one.direction * one.size_sigmas for one in said]
    total = sum(sure)
    net = sum(c * x for c, x in zip(sure, moves, strict=True))
    gross = sum(c * abs(x) for c, x in zip(sure, moves, strict=True))
    multiplier = sum(c * one.volatility_multiplier for c, one in zip(sure, said, strict=True)) / total
    agreement = abs(net) / gross if gross > 0.0 else 1.0
    size = round(gross / total, _DECIMALS)
    direction = float((net > 0.0) - (net < 0.0)) if size else 0.0
    nearest = min(
        range(len(said)),
        key=lambda place: (said[place].direction != direction, abs(moves[place] - direction * size), place),
    )
    return Understanding(
        direction=direction,
        size_sigmas=size,
        volatility_multiplier=round(multiplier, _DECIMALS),
        confidence=round(total / len(said) * agreement, _DECIMALS),
        consistency=_commonest([one.consistency for one in said]),
        cause=_commonest([one.cause for one in said]),
        cited=_most_cited(said),
        words=said[nearest].words,
    ), nearest


def meant_together(views: Sequence[View], meaning: Meaning) -> tuple[Meant, ...]:
    """The mean of what several answers mean."""
    found = [meaning.of(view) for view in views]
    num = len(found)
    return tuple(
        Meant(
            at[0].horizon,
            round(sum(one.shift_sigmas for one in at) / num, _MEANT_DECIMALS),
            round(sum(one.stretch for one in at) / num, _MEANT_DECIMALS),
        )
        for at in zip(*found, strict=True)
    )


def _commonest(told: Sequence[str]) -> str:
    """The first of those told most often."""
    counts = Counter(told)
    return max(told, key=counts.__getitem__)


def _most_cited(said: Sequence[Understanding]) -> tuple[int, ...]:
    counts = Counter(place for one in said for place in one.cited)
    often = sorted(
        (place for place, num in counts.items() if 2 * num >= len(said)), key=lambda place: -counts[place]
    )
    first = sorted(counts, key=lambda place: (-counts[place], place))[:1]
    return tuple(sorted(often[:MAX_CITED] or first))
