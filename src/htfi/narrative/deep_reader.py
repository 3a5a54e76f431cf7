"""Reads in depth: several answers to one question, sampled at a temperature, and their combination.

Wired at the DEEP rung with the target in full precision. A model asked in plain words is shown all recent items. At an
edge the target is elsewhere: the view claims nothing and is provisional until every answer has arrived.
"""

import zlib
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.generation import (
    Completion,
    GenerationRequest,
    RequestRefused,
    SpeculationStats,
)
from htfi.domain.generation_trace import GenerationTrace
from htfi.domain.news_view import CalibratedEffect, NewsView
from htfi.narrative.answer import (
    MAX_CITED,
    UNCALIBRATED,
    ConfidenceCalibration,
    ParsedAnswer,
    parse_answer,
    to_view,
    view_grammar,
)
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.ports import LateTextGenerator, NoiseKey, TextGenerator
from htfi.narrative.question import (
    MAX_ITEMS,
    Question,
    build_prompt,
    item_names,
    question_id,
    reading_seed,
    residency_tags,
    shown_items,
    shown_record,
    without_bodies,
)
from htfi.narrative.readers import LATE_DEADLINE_MS, DigestStates, TemplateReader
from htfi.narrative.view_calibration import ViewCalibration

DEEP_STRATEGY = "paths"
_ANSWERS_OF = " answers of "
_MEANT_DECIMALS = 4
_DECIMALS = 2  # of what several answers come to


class DeepReader:
    """Reads with a text generator, `config.deep_paths` times at `config.deep_temperature`, each with its own seed."""

    speculation_stats: SpeculationStats | None = None

    def __init__(
        self,
        generator: TextGenerator,
        config: NarrativeConfig | None = None,
        trust: ConfidenceCalibration = UNCALIBRATED,
        meaning: ViewCalibration | None = None,
        digest_states: DigestStates | None = None,
        key: NoiseKey | None = None,
    ) -> None:
        self._generator, self._digest_states = generator, digest_states
        self._key = key
        self._config = config or NarrativeConfig()
        self._trust, self._meaning = trust, meaning
        self._fallback = TemplateReader(self._config)

    @property
    def version(self) -> str:
        return deep_reader_version(self._generator.version, self._config.deep_paths)

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """One view per question; a question with a refused answer gets the template's view with the reason."""
        deep = [self._with_all_items(question) for question in questions]
        views = self._read(deep, deadline_ms)
        refused = [
            place
            for place, view in enumerate(views)
            if isinstance(view, RequestRefused) and len(shown_items(deep[place])) > MAX_ITEMS
        ]
        briefer = [replace(deep[place], most_items=MAX_ITEMS) for place in refused]
        for place, view in zip(refused, self._read(briefer, deadline_ms), strict=True):
            views[place] = view
        return [
            self._refused(question, view, deadline_ms) if isinstance(view, RequestRefused) else view
            for question, view in zip(questions, views, strict=True)
        ]

    def _with_all_items(self, question: Question) -> Question:
        """With as many items as the grammar admits: marks number six items, plain words any number."""
        if self._generator.dialect.is_mini:
            return question
        return replace(question, most_items=max(len(question.items), MAX_ITEMS))

    def _read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView | RequestRefused]:
        num = self._config.deep_paths
        requests = [
            self._request(question, path, deadline_ms) for question in questions for path in range(num)
        ]
        answers = self._generator.write(requests) if requests else []
        return [
            self._view(question, requests[start], answers[start : start + num])
            for question, start in zip(questions, range(0, len(requests), num), strict=True)
        ]

    def _request(self, question: Question, path: int, deadline_ms: float) -> GenerationRequest:
        prompt, _ = build_prompt(question, self._generator.dialect)
        return GenerationRequest(
            prompt=prompt,
            form=view_grammar(self._generator.dialect, len(shown_items(question))),
            seed=path_seed(first_seed(question), path, self._key),
            temperature=self._config.deep_temperature,
            deadline_ms=deadline_ms,
            shared=len(prompt),
            kind="view",
            max_draft=0,
            id=f"{question_id(question)}/{path}",
            residency=residency_tags(question),
            subjects=item_names(question),
        )

    def _view(
        self, question: Question, request: GenerationRequest, answers: Sequence[Completion | RequestRefused]
    ) -> NewsView | RequestRefused:
        written = [answer for answer in answers if isinstance(answer, Completion)]
        if len(written) < len(answers):
            return next(answer for answer in answers if isinstance(answer, RequestRefused))
        parsed = [parse_answer(answer.fields, self._trust) for answer in written]
        combined, nearest = combine_answers(parsed)
        view = to_view(combined, question, self._config.half_life_ns, self.version)
        if self._meaning is not None:
            each = [to_view(one, question, self._config.half_life_ns, self.version) for one in parsed]
            view = replace(view, calibrated_effects=combine_meanings(each, self._meaning))
        if not written[0].tokens:
            return view
        trace = GenerationTrace(
            target=self._generator.version,
            draft="",
            strategy=DEEP_STRATEGY,
            seed=first_seed(question),
            temperature=request.temperature,
            num_items=len(shown_items(question)),
            prompt=written[0].prompt,
            tokens=written[nearest].tokens,
            rounds=(),
            paths=tuple(answer.tokens for answer in written),
            shown=shown_record(question, self._generator.dialect),
            states=UNSET
            if self._digest_states is None
            else self._digest_states(question, written[0].prompt, written[nearest].tokens),
        )
        return replace(view, trace=trace)

    def _refused(self, question: Question, refusal: RequestRefused, deadline_ms: float) -> NewsView:
        (view,) = self._fallback.read([question], deadline_ms)
        return replace(view, words=f"not read: {refusal.reason}")


def deep_reader_version(generator: str, num_paths: int) -> str:
    """The reader's version: a combination of several answers is another narrator than the likeliest answer."""
    return f"{num_paths}{_ANSWERS_OF}{generator}"


def is_deep_reader_version(reader: str) -> bool:
    """Whether a reader's version names several answers of a local model."""
    return reader.partition(_ANSWERS_OF)[0].isdecimal() and _ANSWERS_OF in reader


def first_seed(question: Question) -> int:
    return reading_seed(question.symbol, question.as_of_ns, in_depth=True)


def path_seed(seed: int, path: int, key: NoiseKey | None = None) -> int:
    """The seed of one answer of several. A key has few seeds: those of a reading follow each other, so that no two
    answers are drawn with the same noise.
    """
    return zlib.crc32(f"{seed}/{path}".encode()) if key is None else key.seed(seed + path)


def answer_seeds(trace: GenerationTrace, key: NoiseKey | None = None) -> list[int]:
    """The seeds of the noise of a recorded reading's answers; `key` is the marking key that it follows from, if any."""
    if trace.paths:
        return [path_seed(trace.seed, path, key) for path in range(len(trace.paths))]
    return [trace.seed if key is None else key.seed(trace.seed)]


def combine_answers(answers: Sequence[ParsedAnswer]) -> tuple[ParsedAnswer, int]:
    """The combination of several answers, and the place of the answer nearest to it, whose words stand for all.

    Answers count by their confidence c. With x = direction · size for the move that an answer expects, confidence ·
    size is their mean effect: size is Σc|x|/Σc, and confidence is the mean c times the agreement on the direction,
    |Σcx|/Σc|x|. So answers that disagree leave little confidence.
    """
    sure = [one.confidence for one in answers]
    moves = [one.direction * one.size_sigmas for one in answers]
    total = sum(sure)
    net = sum(c * x for c, x in zip(sure, moves, strict=True))
    gross = sum(c * abs(x) for c, x in zip(sure, moves, strict=True))
    multiplier = sum(c * one.volatility_multiplier for c, one in zip(sure, answers, strict=True)) / total
    agreement = abs(net) / gross if gross > 0.0 else 1.0
    size = round(gross / total, _DECIMALS)
    direction = float((net > 0.0) - (net < 0.0)) if size else 0.0
    nearest = min(
        range(len(answers)),
        key=lambda place: (
            answers[place].direction != direction,
            abs(moves[place] - direction * size),
            place,
        ),
    )
    return ParsedAnswer(
        direction=direction,
        size_sigmas=size,
        volatility_multiplier=round(multiplier, _DECIMALS),
        confidence=round(total / len(answers) * agreement, _DECIMALS),
        consistency=_most_common([one.consistency for one in answers]),
        cause=_most_common([one.cause for one in answers]),
        cited=_most_cited(answers),
        words=answers[nearest].words,
    ), nearest


def combine_meanings(views: Sequence[NewsView], meaning: ViewCalibration) -> tuple[CalibratedEffect, ...]:
    """The mean of the calibrated meanings of several answers."""
    found = [meaning.meanings(view) for view in views]
    num = len(found)
    return tuple(
        CalibratedEffect(
            at[0].horizon,
            round(sum(one.shift_sigmas for one in at) / num, _MEANT_DECIMALS),
            round(sum(one.stretch for one in at) / num, _MEANT_DECIMALS),
        )
        for at in zip(*found, strict=True)
    )


def _most_common(values: Sequence[str]) -> str:
    """The most common value; of equally common ones, the first."""
    counts = Counter(values)
    return max(values, key=counts.__getitem__)


def _most_cited(answers: Sequence[ParsedAnswer]) -> tuple[int, ...]:
    counts = Counter(place for one in answers for place in one.cited)
    often = sorted(
        (place for place, num in counts.items() if 2 * num >= len(answers)), key=lambda place: -counts[place]
    )
    first = sorted(counts, key=lambda place: (-counts[place], place))[:1]
    return tuple(sorted(often[:MAX_CITED] or first))


MAX_PENDING_READINGS = 256  # readings
MAX_READINGS_IN_FLIGHT = 8  # of them at once, each so many answers


@dataclass(slots=True)
class _PendingReading:
    question: Question
    requests: list[GenerationRequest]
    is_sent: bool = False
    answers: dict[str, Completion] = field(default_factory=dict[str, Completion])  # by request


class LateDeepReader(DeepReader):
    """Implements `LateNewsReader`. A late generator belongs to one reader."""

    def __init__(
        self,
        generator: LateTextGenerator,
        config: NarrativeConfig | None = None,
        trust: ConfidenceCalibration = UNCALIBRATED,
        meaning: ViewCalibration | None = None,
        key: NoiseKey | None = None,
    ) -> None:
        super().__init__(generator, config, trust, meaning, key=key)
        self._late_generator = generator
        self._pending: OrderedDict[str, _PendingReading] = OrderedDict()
        self._abandoned: list[str] = []

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """Request the readings; every view claims nothing yet."""
        self.request_views(questions)
        unsaid = self._fallback.read(questions, deadline_ms)
        return [replace(view, provisional=True) for view in unsaid]

    def request_views(self, questions: Sequence[Question]) -> None:
        """Request views that arrive later. A question in flight is not asked again."""
        for question in questions:
            name = question_id(question)
            if name not in self._pending:
                self._pending[name] = self._start(name, without_bodies(self._with_all_items(question)))
        while len(self._pending) > MAX_PENDING_READINGS:
            self._abandoned.append(self._pending.popitem(last=False)[0])
        self._send()

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """Views whose answers have all arrived, by the id of their question; a refusal where none will follow."""
        arrived: list[tuple[str, NewsView | RequestRefused]] = [
            (name, RequestRefused("given up: too many readings in depth are awaited"))
            for name in self._abandoned
        ]
        self._abandoned.clear()
        for request_id, answer in self._late_generator.take_late_completions() if self._pending else ():
            name = request_id.partition("/")[0]
            one = self._pending.get(name)
            if one is None:
                continue
            if isinstance(answer, RequestRefused):
                del self._pending[name]
                arrived.append((name, answer))
                continue
            one.answers[request_id] = answer
            if len(one.answers) == len(one.requests):
                del self._pending[name]
                answers = [one.answers[request.id] for request in one.requests]
                view = self._view(one.question, one.requests[0], answers)
                arrived.append((name, view))
        self._send()
        return arrived

    def _start(self, name: str, question: Question) -> _PendingReading:
        paths = range(self._config.deep_paths)
        requests = [self._request(question, path, LATE_DEADLINE_MS) for path in paths]
        return _PendingReading(
            question,
            [replace(request, id=f"{name}/{path}") for path, request in enumerate(requests)],
        )

    def _send(self) -> None:
        """Send as many readings as may be in flight, the oldest first."""
        num_asked = sum(one.is_sent for one in self._pending.values())
        for one in self._pending.values():
            if num_asked >= MAX_READINGS_IN_FLIGHT:
                return
            if not one.is_sent:
                one.is_sent = True
                num_asked += 1
                self._late_generator.request_completions(one.requests)
