"""What each item of news did to a recorded forecast, and which words of it carried the view.

An item's effect is the forecast without it: the model reads the other items again, with the seed of the recorded
reading, and its view is merged, bounded and weighed as the decision's was. A word's weight is how much less likely the
recorded answer is where the word is left out of its headline. Nothing is fitted: both only ask the model again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from htfi.decoding.config import DecodingConfig
from htfi.decoding.forward_pass import forward_text
from htfi.decoding.grammar import CompiledGrammar
from htfi.domain.decision import Decision, Quantiles
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import Completion, GenerationRequest
from htfi.domain.generation_trace import GenerationTrace, StateDigests
from htfi.domain.news import NewsContext
from htfi.domain.news_view import NewsView
from htfi.forecasting.tilts import derive_tilt, tilt_record
from htfi.narrative.answer import ParsedAnswer, parse_answer, view_grammar
from htfi.narrative.influence import bound_view, recorded_limits
from htfi.narrative.merging import merge_views, recorded_trust, unmerged
from htfi.narrative.question import Question, build_prompt, shown_items
from htfi.pipeline.audit.expected_views import expected_view
from htfi.pipeline.audit.replay import ReplayModel
from htfi.pipeline.weighing import is_influence_bounded, numeric_quantiles, recorded_opinion

MAX_WORDS = 64  # of a reading's headlines, the newest first; each costs one pass of the model
WORD_UNITS = 1e4  # of a recorded weight in a nat
_WORD = re.compile(r"\S+")


class WordWeight(msgspec.Struct, frozen=True):
    """A word of a headline, at `begin` to `end` in its characters. `nats`: what it adds to the answer's log likelihood;
    negative where the answer is likelier without it.
    """

    begin: int
    end: int
    nats: float


class ItemEffect(msgspec.Struct, frozen=True):
    """What an item did: the view and the forecast without it, and the weights of its words, if a model was shown it.

    Shapes: quantiles_without [H, Q], log returns.
    """

    id: str
    headline: str
    view_without: NewsView | None
    quantiles_without: Quantiles
    words: tuple[WordWeight, ...] = ()


class ExplainingModel(ReplayModel, Protocol):
    """A model that a trace names, which also shows the states of its passes as digests."""

    def state_digests(self, prompt: Sequence[int], tokens: Sequence[int]) -> StateDigests: ...


@dataclass(frozen=True, slots=True)
class RecordedReading:
    """A recorded reading with what was asked, the seeds of its answers' noise, and the model that answered, ready to
    answer again.
    """

    question: Question
    trace: GenerationTrace
    seeds: Sequence[int]
    opened: ExplainingModel
    opening: Sequence[int]
    config: DecodingConfig

    def read_again(self, question: Question) -> list[ParsedAnswer]:
        """The answers to a question with the recorded seeds and temperature. Raises: IntegrityError, InvalidInput."""
        vocabulary, trace = self.opened.vocabulary, self.trace
        prompt = [*self.opening, *vocabulary.encode(build_prompt(question, vocabulary.dialect)[0])]
        request = GenerationRequest(
            prompt=(),
            form=view_grammar(vocabulary.dialect, len(shown_items(question))),
            temperature=trace.temperature,
            kind="view",
        )
        generator = self.opened.plain_generator(self.config)
        answers: list[ParsedAnswer] = []
        for seed in self.seeds:
            answer = generator.regenerate(prompt, replace(request, seed=seed))
            if not isinstance(answer, Completion):
                raise IntegrityError(f"the reading cannot be generated again: {answer.reason}")
            answers.append(parse_answer(answer.fields, self.opened.trust))
        return answers

    def view(self, question: Question, read: NewsView) -> NewsView:
        """The view that the model states on a question, as the recorded one `read` was made."""
        trace = replace(self.trace, num_verified=-1)
        view = expected_view(self.read_again(question), read, trace, question, self.opened.meaning)
        return replace(view, reader=read.reader)


def item_effects(
    decision: Decision, reading: RecordedReading | None, *, with_words: bool
) -> list[ItemEffect]:
    """The effect of every item that the decision considered; those that were set aside had none.

    `reading` is that of the view's model; None where no model of ours read: readings by facts alone remain.
    Raises: IntegrityError where the recorded forecast does not follow from its record in the same way.
    """
    view, context = decision.view, decision.news_context
    if view is None or context is None:
        return []
    if _forecast(decision, view) != decision.forecast.quantiles:
        raise IntegrityError(
            f"{decision.id}: its forecast does not follow from its view: `htfi ledger verify` says why"
        )
    read = unmerged(view)
    if reading is not None and read is not None:
        again = reading.view(reading.question, read)
        if again != replace(read, trace=None):
            raise IntegrityError(
                f"{decision.id}: its model reads the same news otherwise now: "
                "`htfi ledger replay` names the first token"
            )
    shown = {} if reading is None else {item.id: item for item in shown_items(reading.question)}
    names = list(dict.fromkeys([*(item.id for item in context.considered), *shown]))
    words = reading_words(reading) if reading is not None and with_words else {}
    effects: list[ItemEffect] = []
    for name in names:
        without = _view_without(decision, view, context, name, reading)
        effects.append(
            ItemEffect(
                name,
                shown[name].headline if name in shown else "",
                without,
                numeric_quantiles(decision.forecast) if without is None else _forecast(decision, without),
                words.get(name, ()),
            )
        )
    return effects


def _forecast(decision: Decision, view: NewsView) -> Quantiles:
    """The decision's forecast with this view in place of its own, at the recorded weight."""
    forecast = decision.forecast
    plain, tilt = numeric_quantiles(forecast), forecast.tilt
    if tilt is None:
        return plain
    opinion = recorded_opinion(decision, view)
    found = derive_tilt(opinion, plain, forecast.horizons, forecast.levels, tilt.weight, tilt.divergence_rank)
    return plain if found is None else tilt_record(plain, found, forecast.levels)


def _view_without(
    decision: Decision, view: NewsView, context: NewsContext, name: str, reading: RecordedReading | None
) -> NewsView | None:
    """The decision's view without an item: read again where the model was shown it."""
    read = unmerged(view)
    left = replace(context, considered=tuple(item for item in context.considered if item.id != name))
    if read is not None and reading is not None:
        shown = shown_items(reading.question)
        others = tuple(item for item in shown if item.id != name)
        if len(others) < len(shown):
            asked = msgspec.structs.replace(reading.question, items=others)
            read = reading.view(asked, read) if others else None
    noted = [part for part in view.parts if not part.is_worded and part.cited != (name,)]
    if not view.parts:
        return read
    merged = merge_views(read, 1.0 if read is None else recorded_trust(left, read), noted, view.as_of_ns)
    if merged is None or not is_influence_bounded(decision):
        return merged
    return bound_view(merged, recorded_limits(left))


def reading_words(reading: RecordedReading) -> dict[str, tuple[WordWeight, ...]]:
    """The weights of the words of each shown headline, by the item's id, computed by the model."""
    found = word_weights(reading.opened, reading.opening, reading.question, reading.trace.tokens)
    items = shown_items(reading.question)
    return {
        item.id: headline_weights(item.headline, weights) for item, weights in zip(items, found, strict=True)
    }


def headline_weights(headline: str, weights: Sequence[int]) -> tuple[WordWeight, ...]:
    """Recorded weights with the words that they are of, the first of the headline."""
    return tuple(
        WordWeight(word.start(), word.end(), weight / WORD_UNITS)
        for word, weight in zip(_WORD.finditer(headline), weights, strict=False)
    )


def word_weights(
    opened: ExplainingModel, opening: Sequence[int], question: Question, tokens: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """The weight of each word of each shown headline in an answer, in 1e-4 nats; of the first MAX_WORDS alone.

    Raises: InvalidInput, DependencyUnavailable.
    """
    items = shown_items(question)
    grammar = CompiledGrammar(view_grammar(opened.vocabulary.dialect, len(items)), opened.vocabulary)
    places = [
        (place, word.start(), word.end())
        for place, item in enumerate(items)
        for word in _WORD.finditer(item.headline)
    ]
    found: list[list[int]] = [[] for _ in items]
    whole = _log_likelihood(opened, opening, question, tokens, grammar)
    for place, begin, end in places[:MAX_WORDS]:
        item = items[place]
        rest = (item.headline[:begin] + item.headline[end:].lstrip()).strip()
        asked = replace(question, items=(*items[:place], replace(item, headline=rest), *items[place + 1 :]))
        nats = whole - _log_likelihood(opened, opening, asked, tokens, grammar)
        found[place].append(round(WORD_UNITS * nats))
    return tuple(map(tuple, found))


def _log_likelihood(
    opened: ExplainingModel,
    opening: Sequence[int],
    question: Question,
    tokens: Sequence[int],
    grammar: CompiledGrammar,
) -> float:
    """The log likelihood, at temperature 1, of what an answer chose outside its free words."""
    vocabulary = opened.vocabulary
    prompt = [*opening, *vocabulary.encode(build_prompt(question, vocabulary.dialect)[0])]
    logits = forward_text(opened.network, np.array([[*prompt, *tokens[:-1]]], np.int64)).logits[0]
    total = 0.0
    for place, step, name in grammar.open_positions(tokens):
        if name == "words":
            continue
        allowed = logits[len(prompt) + place - 1, step.allowed.ids].astype(np.float64)
        allowed -= allowed.max()
        chosen = int(np.searchsorted(step.allowed.ids, tokens[place]))
        total += float(allowed[chosen] - np.log(np.exp(allowed).sum()))
    return total


def traced_states(
    opened: ExplainingModel,
    opening: Sequence[int],
    question: Question,
    prompt: Sequence[int],
    tokens: Sequence[int],
) -> StateDigests:
    """What is recorded of how a model came to an answer. Raises: InvalidInput, DependencyUnavailable."""
    words = word_weights(opened, opening, question, tokens)
    return replace(opened.state_digests(prompt, tokens), words=words)


def same_states(reading: RecordedReading) -> bool | None:
    """Whether the model's states and the words' weights, computed again, are those that were recorded; None where none
    were.

    Raises: InvalidInput, DependencyUnavailable.
    """
    recorded, trace = reading.trace.states, reading.trace
    if isinstance(recorded, msgspec.UnsetType):
        return None
    found = traced_states(reading.opened, reading.opening, reading.question, trace.prompt, trace.tokens)
    return found == (recorded if recorded.words else replace(recorded, words=found.words))
