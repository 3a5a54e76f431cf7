"""Exchanges of a replay buffer as lessons for a draft, and what is held back from them. Distilling asks.

Needs no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from htfi.adapters.torch.lessons import ALL, ANSWER, PATHS, REHEARSAL, AdmittedSets, Lesson
from htfi.decoding.author import LocalAuthor
from htfi.decoding.replay_buffer import Exchange, Said, is_held_back, news_key
from htfi.domain.errors import IntegrityError
from htfi.domain.writing import Dialect, Refusal
from htfi.wiring.corpus import encoded_stories
from htfi.wiring.open_folder import OpenFolder
from htfi.wiring.rehearsal import answered, simulated_requests

_MOST_HELD_BACK = 3_000  # exchanges, the latest
_PATHS_A_DRAW = 8  # learnt and judged: more of one prefix say little more
_REHEARSAL_WEIGHT = 0.5  # the corpus counts a view's token twice


@dataclass(frozen=True, slots=True)
class Split:
    """What to learn from and what is held back, on `num_news` different news; how many were left out, and why."""

    lessons: list[Exchange]
    held_back: list[Exchange]
    num_news: int
    num_others: int  # of another target or vocabulary
    num_unfit: int  # that do not fit their form or this draft


def split_exchanges(exchanges: Sequence[Exchange], target: OpenFolder, draft: LocalAuthor) -> Split:
    """A fixed fifth of the news is held back."""
    digest = target.folder.digest[:12]
    lessons: list[Exchange] = []
    held_back: list[Exchange] = []
    keys: set[bytes] = set()
    num_others = num_unfit = 0
    for exchange in exchanges:
        if exchange.target.rpartition("@")[2] != digest or exchange.tokenizer != target.tokenizer.digest:
            num_others += 1
            continue
        key = _readable(draft, exchange)
        if key is None:
            num_unfit += 1
        elif is_held_back(key):
            held_back.append(_shortened(exchange))
            keys.add(key)
        else:
            lessons.append(_shortened(exchange))
    return Split(lessons, held_back[-_MOST_HELD_BACK:], len(keys), num_others, num_unfit)


def lessons_of(
    author: LocalAuthor, exchange: Exchange, sets: AdmittedSets, kind: int | None = None
) -> list[Lesson]:
    """One lesson of an answer, one of each path."""
    if isinstance(exchange, Said):
        asked = author.ask(exchange.request)
        if isinstance(asked, Refusal):
            return []
        begin = len(asked.prompt)
        places = [
            (begin + place, step.admitted.ids) for place, step, _ in asked.form.choices(exchange.tokens)
        ]
        ids = [*asked.prompt, *exchange.tokens]
        admitted = [sets.number(admitted) for _, admitted in places]
        temperature = exchange.request.temperature
        where = [place for place, _ in places]
        return [
            Lesson(ids, where, [1.0] * len(where), admitted, temperature, ANSWER if kind is None else kind)
        ]
    prices = sets.number(author.vocabulary.prices.ids)
    tokens = author.vocabulary.price_ids[np.array(exchange.bins)]
    begin, horizon = len(exchange.prefix), tokens.shape[1]
    return [
        Lesson(
            [*exchange.prefix, *path.tolist()],
            range(begin, begin + horizon),
            [1.0] * horizon,
            [prices] * horizon,
            exchange.sampling.temperature,
            PATHS if kind is None else kind,
        )
        for path in tokens
    ]


def rehearsal(writer: LocalAuthor, target: OpenFolder, seed: int, sets: AdmittedSets) -> Iterator[Lesson]:
    """Simulated stories, told whole where the vocabulary has their marks, else as the target answers them."""
    if writer.dialect is not Dialect.MINI:
        requests = simulated_requests(seed, writer.dialect)
        for exchange in answered(writer, requests, target.tokenizer.digest):
            yield from lessons_of(writer, exchange, sets, REHEARSAL)
    for ids, weights, _ in encoded_stories(seed, 0, str(target.folder.tokenizer_file)):
        places = [place for place, weight in enumerate(weights) if weight and place]
        counted = [_REHEARSAL_WEIGHT * weights[place] for place in places]
        yield Lesson(ids, places, counted, [ALL] * len(places), 1.0, REHEARSAL)


def _readable(author: LocalAuthor, exchange: Exchange) -> bytes | None:
    """The key of its news; None where the exchange does not fit this vocabulary, its form or its positions."""
    if isinstance(exchange, Said):
        asked = author.ask(exchange.request)
        if isinstance(asked, Refusal) or len(exchange.tokens) > asked.form.longest:
            return None
        try:
            asked.form.choices(exchange.tokens)
        except IntegrityError:
            return None
        return news_key(asked.prompt, asked.num_shared)
    vocabulary, paths = author.vocabulary, np.array(exchange.bins)
    length = len(exchange.prefix) + paths.shape[1]
    known = (
        0
        <= min(exchange.prefix, default=-1)
        <= max(exchange.prefix, default=0)
        < vocabulary.tokenizer.vocab_size
    )
    if not known or vocabulary.bins is None or author.sessions.refusal(length) is not None:
        return None
    if paths.min() < 0 or paths.max() >= len(vocabulary.price_ids):
        return None
    return news_key(exchange.prefix, exchange.shared)


def _shortened(exchange: Exchange) -> Exchange:
    if isinstance(exchange, Said):
        return exchange
    return msgspec.structs.replace(exchange, bins=exchange.bins[:_PATHS_A_DRAW])
