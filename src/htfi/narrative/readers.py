"""Readers of news: a template without an opinion, the encoder's scores of one item, a language model, and the SECURE
rung.

A model reader is wired at the EDGE rung with the draft model, at the SPECULATIVE rung with the target. Where its
generator keeps deadlines, a view may be provisional, and the target's own view follows.
"""

import math
from collections.abc import Callable, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from htfi.domain.generation import Completion, GenerationRequest, RequestRefused, SpeculationStats
from htfi.domain.generation_trace import GenerationTrace, StateDigests
from htfi.domain.news import ItemReading, NewsScores
from htfi.domain.news_view import CalibratedEffect, NewsView, ViewPart
from htfi.narrative.answer import UNCALIBRATED, ConfidenceCalibration, parse_answer, to_view, view_grammar
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.ports import Closable, LateTextGenerator, NoiseKey, TextGenerator
from htfi.narrative.question import (
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
from htfi.narrative.rationale.units import HANDOVER
from htfi.narrative.view_calibration import ViewCalibration


class TemplateReader:
    """Cites recent news without an opinion: direction 0 and confidence 0, because no model has read it. Used at the
    TEMPLATE rung.
    """

    version = "template-reader/1"
    speculation_stats = None

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        self._config = config or NarrativeConfig()

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """Cites the newest items; `deadline_ms` is part of the port and unused here."""
        del deadline_ms
        return [
            NewsView(
                direction=0.0,
                size_sigmas=0.0,
                volatility_multiplier=1.0,
                confidence=0.0,
                cited=tuple(item.id for item in question.items[: self._config.max_cited]),
                as_of_ns=question.as_of_ns,
                half_life_ns=self._config.half_life_ns,
                reader=self.version,
            )
            for question in questions
        ]


MIN_SENTIMENT = 0.2  # below it an item has no direction
MAX_CONFIDENCE = 0.5  # an encoder knows what is stated, not what it means for a price
VOLATILITY_GAIN = 0.25  # of the band, for news that is fully relevant and new
_SCORE_DECIMALS = 4


def part_from_scores(
    name: str, available_at_ns: int, trust: float, scores: NewsScores | None, config: NarrativeConfig
) -> ViewPart:
    """The encoder's reading of one item: a direction if the item is good or bad for its subject, a wider band if it is
    relevant and new.

    `name` is the item's id; `trust` 0–1 is how much of its effect counts.
    """
    sentiment = scores.sentiment if scores is not None and abs(scores.sentiment) >= MIN_SENTIMENT else 0.0
    relevance = scores.relevance if scores is not None else 0.0
    novelty = scores.novelty if scores is not None else 0.0
    return ViewPart(
        reader=part_reader(scores),
        direction=float((sentiment > 0.0) - (sentiment < 0.0)),
        size_sigmas=round(abs(sentiment), _SCORE_DECIMALS),
        volatility_multiplier=round(1.0 + VOLATILITY_GAIN * relevance * novelty, _SCORE_DECIMALS),
        confidence=round(MAX_CONFIDENCE * relevance * novelty, _SCORE_DECIMALS),
        cited=(name,),
        as_of_ns=available_at_ns,
        half_life_ns=config.half_life_ns,
        trust=trust,
        cause=scores.event if scores is not None else "",
    )


def part_reader(scores: NewsScores | None) -> str:
    """The reader of an encoder's part."""
    return f"encoder {scores.encoder}" if scores is not None else "encoder"


PRICED_SHARE = 0.15  # of an item's effect that is left once a bar has closed over it (d19-facts.md)
FRESH_BARS = 0.05  # an item that is younger has not been priced
_HORIZONS = (1, 5, 22)


def is_part(reading: ItemReading) -> bool:
    """Whether a reading goes into the view: it states a direction, or that prices move more than usual."""
    return reading.direction != 0 or reading.volatility > 1.0


def facts_reader(reading: ItemReading) -> str:
    """The reader of a part that facts give."""
    return f"facts {reading.reader}"


def part_from_reading(
    name: str,
    available_at_ns: int,
    trust: float,
    reading: ItemReading,
    as_of_ns: int,
    bar_ns: int,
    config: NarrativeConfig,
) -> ViewPart:
    """The reading of one item by its facts: a wider band, and of the stated move the share that such events earned.

    What a bar has closed over is mostly in the price already. Units as in `ViewPart`; a move lasts, a wider band is
    that of the first bar.
    """
    is_fresh = as_of_ns - available_at_ns <= FRESH_BARS * bar_ns
    left = 1.0 if is_fresh else PRICED_SHARE
    shift = left * reading.earned * reading.direction * reading.size_sigmas
    wide = 1.0 + left * (reading.volatility - 1.0)
    effects = tuple(
        CalibratedEffect(
            horizon,
            round(shift, _SCORE_DECIMALS),
            round(math.sqrt(1.0 + (wide * wide - 1.0) / horizon), _SCORE_DECIMALS),
        )
        for horizon in _HORIZONS
    )
    return ViewPart(
        reader=facts_reader(reading),
        direction=float(reading.direction),
        size_sigmas=reading.size_sigmas,
        volatility_multiplier=round(wide, _SCORE_DECIMALS),
        confidence=round(reading.confidence * reading.relevance, _SCORE_DECIMALS),
        cited=(name,),
        as_of_ns=available_at_ns,
        half_life_ns=config.half_life_ns,
        trust=trust,
        cause=reading.event,
        calibrated_effects=effects,
    )


LATE_DEADLINE_MS = 60_000.0  # of a reading that no decision waits for
MAX_PENDING_VIEWS = 4_096


DigestStates = Callable[[Question, Sequence[int], Sequence[int]], StateDigests]  # of a prompt and an answer


class ModelReader:
    """Reads with a text generator; a question that it refuses gets the template's view with the reason.

    `draft_trust` calibrates provisional views, whose numbers the draft wrote; the default is `trust`. `meaning` is the
    calibration of its views, `draft_meaning` the draft's; without it, views are taken as stated. A late generator
    belongs to one reader, because each late answer is handed out once. `digest_states` digests the states by which the
    model came to an answer, for the record. With a `key` the noise follows from it: who holds it can write it again.
    """

    def __init__(
        self,
        generator: TextGenerator,
        config: NarrativeConfig | None = None,
        trust: ConfidenceCalibration = UNCALIBRATED,
        draft_trust: ConfidenceCalibration | None = None,
        meaning: ViewCalibration | None = None,
        draft_meaning: ViewCalibration | None = None,
        digest_states: DigestStates | None = None,
        key: NoiseKey | None = None,
    ) -> None:
        self._generator = generator
        self._key = key
        self._digest_states = digest_states
        self._late = generator if isinstance(generator, LateTextGenerator) else None
        self._trust = trust
        self._draft_trust = draft_trust or trust
        self._meaning, self._draft_meaning = meaning, draft_meaning
        self._config = config or NarrativeConfig()
        self._fallback = TemplateReader(self._config)
        self._pending: dict[str, Question] = {}

    @property
    def version(self) -> str:
        return self._generator.version

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        return self._generator.speculation_stats

    def read(
        self, questions: Sequence[Question], deadline_ms: float, *, max_draft: int | None = None
    ) -> list[NewsView]:
        """One view per question; questions on the same news are read once (prefix reuse).

        `max_draft` is as in `GenerationRequest`.
        """
        requests = [self._request(question, deadline_ms, max_draft) for question in questions]
        answers = self._generator.write(requests)
        return [
            self._refused(question, answer, deadline_ms)
            if isinstance(answer, RequestRefused)
            else self._view(question, request, answer)
            for question, request, answer in zip(questions, requests, answers, strict=True)
        ]

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """Views that arrived since the last call, by the id of their question; a refusal where none will follow."""
        finished: list[tuple[str, NewsView | RequestRefused]] = []
        for name, answer in (
            self._late.take_late_completions() if self._late is not None and self._pending else ()
        ):
            question = self._pending.pop(name, None)
            if question is None:
                continue
            if isinstance(answer, Completion) and answer.is_provisional:
                answer = RequestRefused("what came late is provisional as well")
            if isinstance(answer, Completion):
                finished.append((name, self._view(question, self._request(question, 0.0), answer)))
            else:
                finished.append((name, answer))
        return finished

    def request_views(self, questions: Sequence[Question], *, max_draft: int | None = None) -> None:
        """Request views that no decision waits for; without a late generator, nothing is requested."""
        if self._late is None or not questions:
            return
        for question in questions:
            self._remember(question_id(question), question)
        self._late.request_completions(
            [self._request(question, LATE_DEADLINE_MS, max_draft) for question in questions]
        )

    def close(self) -> None:
        """Close what the generator holds; nothing may be asked after that."""
        if isinstance(self._generator, Closable):
            self._generator.close()

    def _remember(self, name: str, question: Question) -> None:
        self._pending[name] = without_bodies(question)
        while len(self._pending) > MAX_PENDING_VIEWS:
            del self._pending[next(iter(self._pending))]

    def _view(self, question: Question, request: GenerationRequest, answer: Completion) -> NewsView:
        if answer.is_provisional:
            self._remember(request.id, question)
        trust = self._draft_trust if answer.is_provisional else self._trust
        reader = combined_version(self.version, answer.draft, answer.num_verified)
        view = to_view(parse_answer(answer.fields, trust), question, self._config.half_life_ns, reader)
        trace = _generation_trace(question, request, answer, self._generator, self._digest_states)
        meaning = self._draft_meaning if answer.is_provisional else self._meaning
        meant = meaning.meanings(view) if meaning is not None else ()
        return replace(view, trace=trace, provisional=answer.is_provisional, calibrated_effects=meant)

    def _request(
        self, question: Question, deadline_ms: float, max_draft: int | None = None
    ) -> GenerationRequest:
        prompt, shared = build_prompt(question, self._generator.dialect)
        return GenerationRequest(
            prompt=prompt,
            form=view_grammar(self._generator.dialect, len(shown_items(question))),
            seed=self._noise_seed(question),
            temperature=self._config.temperature,
            deadline_ms=deadline_ms,
            shared=shared,
            kind="view",
            max_draft=max_draft,
            suspicion=1.0 if max_draft == 0 else 0.0,  # a reading without speculation is one under suspicion
            id=question_id(question),
            residency=residency_tags(question),
            subjects=item_names(question),
        )

    def _noise_seed(self, question: Question) -> int:
        seed = reading_seed(question.symbol, question.as_of_ns)
        return seed if self._key is None else self._key.seed(seed)

    def _refused(self, question: Question, refusal: RequestRefused, deadline_ms: float) -> NewsView:
        (view,) = self._fallback.read([question], deadline_ms)
        return replace(view, words=f"not read: {refusal.reason}")


def combined_version(target: str, draft: str, num_verified: int) -> str:
    """Who wrote, in the order of the words: the target began a provisional answer if it confirmed any of its tokens."""
    if num_verified < 0:
        return target
    return f"{target}{HANDOVER}{draft}" if num_verified else draft


def _generation_trace(
    question: Question,
    request: GenerationRequest,
    answer: Completion,
    generator: TextGenerator,
    digest_states: DigestStates | None,
) -> GenerationTrace | None:
    """None where the generator reports no tokens: a model behind a network."""
    if not answer.tokens:
        return None
    return GenerationTrace(
        target=generator.version,
        draft=answer.draft,
        strategy=answer.strategy,
        seed=reading_seed(question.symbol, question.as_of_ns),
        temperature=request.temperature,
        num_items=len(shown_items(question)),
        prompt=answer.prompt,
        tokens=answer.tokens,
        rounds=answer.rounds,
        place=answer.place,
        num_verified=answer.num_verified,
        shown=shown_record(question, generator.dialect),
        rule=UNSET if answer.rule is None else answer.rule,
        states=UNSET
        if digest_states is None or answer.is_provisional
        else digest_states(question, answer.prompt, answer.tokens),
    )


NO_DRAFT = 0  # tokens drafted at once


class SecureReader:
    """The reader of the SECURE rung where the target is elsewhere: nothing is drafted, and nothing that a draft wrote
    is used.

    Until the target answers, the view claims nothing and is provisional. It reads through `reads`, another rung's
    reader, which also receives the late answers: a generator has one receiver.
    """

    def __init__(self, reads: ModelReader, config: NarrativeConfig | None = None) -> None:
        self._reader = reads
        self._fallback = TemplateReader(config or NarrativeConfig())

    @property
    def version(self) -> str:
        return self._reader.version

    @property
    def speculation_stats(self) -> SpeculationStats | None:
        """None: the shared reader reports them."""
        return None

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        """One view per question: the target's own, or one that claims nothing."""
        views = self._reader.read(questions, deadline_ms, max_draft=NO_DRAFT)
        unsaid = self._fallback.read(questions, deadline_ms)
        return [
            replace(instead, provisional=True) if view.provisional else view
            for view, instead in zip(views, unsaid, strict=True)
        ]

    def take_late_views(self) -> list[tuple[str, NewsView | RequestRefused]]:
        """Nothing: the shared reader receives the late views."""
        return []

    def request_views(self, questions: Sequence[Question]) -> None:
        """Request views that no decision waits for."""
        self._reader.request_views(questions, max_draft=NO_DRAFT)
