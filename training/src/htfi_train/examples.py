"""Exchanges of a replay buffer as lessons for a draft, and what is held back from them. Distilling asks.

Needs no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from htfi.decoding.grammar import CompiledGrammar
from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.replay_buffer import RecordedAnswer, ReplayRecord, is_holdout, news_key
from htfi.domain.errors import IntegrityError
from htfi.domain.generation import RequestRefused
from htfi.wiring.models.loading import LoadableModel
from htfi_train.corpus import encoded_stories, open_story_facts
from htfi_train.simulation.draft_questions import answer_requests, simulated_requests
from htfi_train.torch.examples import (
    ALL_TOKENS,
    ANSWER,
    PATHS,
    REHEARSAL,
    AdmittedTokenSets,
    DistillationExample,
)

_MAX_HELD_BACK = 3_000  # exchanges, the latest
_MAX_PATHS_PER_PREFIX = 8  # learnt and judged: more of one prefix say little more
_SIMULATED_WEIGHT = 0.5  # the corpus counts a view's token twice


@dataclass(frozen=True, slots=True)
class ExchangeSplit:
    """What to learn from and what is held back, on `num_news` different news; how many were left out, and why."""

    training: list[ReplayRecord]
    held_back: list[ReplayRecord]
    num_news: int
    num_other_models: int  # of another target or vocabulary
    num_unusable: int  # that do not fit their form or this draft


def split_exchanges(
    exchanges: Sequence[ReplayRecord], target: LoadableModel, draft: LocalGenerator
) -> ExchangeSplit:
    """A fixed fifth of the news is held back."""
    digest = target.folder.digest[:12]
    examples: list[ReplayRecord] = []
    held_back: list[ReplayRecord] = []
    keys: set[bytes] = set()
    num_others = num_unfit = 0
    for exchange in exchanges:
        if exchange.target.rpartition("@")[2] != digest or exchange.tokenizer != target.tokenizer.digest:
            num_others += 1
            continue
        key = _usable_news_key(draft, exchange)
        if key is None:
            num_unfit += 1
        elif is_holdout(key):
            held_back.append(_limit_paths(exchange))
            keys.add(key)
        else:
            examples.append(_limit_paths(exchange))
    return ExchangeSplit(examples, held_back[-_MAX_HELD_BACK:], len(keys), num_others, num_unfit)


def examples_of(
    generator: LocalGenerator, exchange: ReplayRecord, sets: AdmittedTokenSets, kind: int | None = None
) -> list[DistillationExample]:
    """One lesson of an answer, one of each path."""
    if isinstance(exchange, RecordedAnswer):
        asked = generator.tokenize(exchange.request)
        if isinstance(asked, RequestRefused):
            return []
        begin, form = len(asked.prompt), asked.grammar
        assert isinstance(form, CompiledGrammar)  # of a reading, never of free text
        places = [
            (begin + place, step.allowed.ids) for place, step, _ in form.open_positions(exchange.tokens)
        ]
        ids = [*asked.prompt, *exchange.tokens]
        admitted = [sets.number(admitted) for _, admitted in places]
        temperature = exchange.request.temperature
        where = [place for place, _ in places]
        return [
            DistillationExample(
                ids, where, [1.0] * len(where), admitted, temperature, ANSWER if kind is None else kind
            )
        ]
    prices = sets.number(generator.vocabulary.prices.ids)
    tokens = generator.vocabulary.price_ids[np.array(exchange.bins)]
    begin, horizon = len(exchange.prefix), tokens.shape[1]
    return [
        DistillationExample(
            [*exchange.prefix, *path.tolist()],
            range(begin, begin + horizon),
            [1.0] * horizon,
            [prices] * horizon,
            exchange.sampling.temperature,
            PATHS if kind is None else kind,
        )
        for path in tokens
    ]


def simulated_examples(
    writer: LocalGenerator, target: LoadableModel, seed: int, sets: AdmittedTokenSets
) -> Iterator[DistillationExample]:
    """Simulated stories, complete where the vocabulary has their marks, else as the target answers them."""
    if not writer.dialect.is_mini:
        requests = simulated_requests(seed, writer.dialect, facts=open_story_facts(writer.dialect))
        for exchange in answer_requests(writer, requests, target.tokenizer.digest):
            yield from examples_of(writer, exchange, sets, REHEARSAL)
    for ids, weights, _ in encoded_stories(seed, 0, str(target.folder.tokenizer_file)):
        places = [place for place, weight in enumerate(weights) if weight and place]
        counted = [_SIMULATED_WEIGHT * weights[place] for place in places]
        yield DistillationExample(ids, places, counted, [ALL_TOKENS] * len(places), 1.0, REHEARSAL)


def _usable_news_key(generator: LocalGenerator, exchange: ReplayRecord) -> bytes | None:
    """The key of its news; None where the exchange does not fit this vocabulary, its form or its positions."""
    if isinstance(exchange, RecordedAnswer):
        asked = generator.tokenize(exchange.request)
        if isinstance(asked, RequestRefused) or len(exchange.tokens) > asked.grammar.max_tokens:
            return None
        form = asked.grammar
        assert isinstance(form, CompiledGrammar)
        try:
            form.open_positions(exchange.tokens)
        except IntegrityError:
            return None
        return news_key(asked.prompt, asked.num_shared)
    vocabulary, paths = generator.vocabulary, np.array(exchange.bins)
    length = len(exchange.prefix) + paths.shape[1]
    known = (
        0
        <= min(exchange.prefix, default=-1)
        <= max(exchange.prefix, default=0)
        < vocabulary.tokenizer.vocab_size
    )
    if not known or vocabulary.bins is None or generator.sessions.refusal(length) is not None:
        return None
    if paths.min() < 0 or paths.max() >= len(vocabulary.price_ids):
        return None
    return news_key(exchange.prefix, exchange.shared)


def _limit_paths(exchange: ReplayRecord) -> ReplayRecord:
    if isinstance(exchange, RecordedAnswer):
        return exchange
    return msgspec.structs.replace(exchange, bins=exchange.bins[:_MAX_PATHS_PER_PREFIX])
