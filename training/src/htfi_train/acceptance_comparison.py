"""How often a draft would have said what its target said, over exchanges, and whether another draft does better.

Distilling asks it of the draft before and after, through the engine that will run it: pairs, question by question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from htfi.decoding.local_generator import LocalGenerator
from htfi.decoding.replay_buffer import RecordedAnswer, ReplayRecord, news_key
from htfi.domain.errors import InvalidInput
from htfi.domain.generation import RequestRefused
from htfi_train.agreement import measure_agreement
from htfi_train.paths.sample import count_path_matches

PATH_FIELD = "path"

MatchCounts = dict[tuple[bytes, str], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class AcceptanceCounts:
    """Of the places left open, how many the draft fills alike: (matches, places) by news and field."""

    counts: MatchCounts = field(default_factory=MatchCounts)

    @property
    def fields(self) -> list[str]:
        return list(dict.fromkeys(name for _, name in self.counts))


@dataclass(frozen=True, slots=True)
class AcceptanceChange:
    """Shares before and after, and the standard error of their difference over questions on different news."""

    before: float
    after: float
    error: float
    num_places: int

    @property
    def gain(self) -> float:
        return self.after - self.before

    @property
    def is_rise(self) -> bool:
        return self.gain > self.error

    @property
    def is_fall(self) -> bool:
        return self.gain < -self.error


def count_matches(draft: LocalGenerator, exchanges: Sequence[ReplayRecord]) -> AcceptanceCounts:
    """Raises: InvalidInput where the draft refuses an exchange; IntegrityError where one leaves its grammar."""
    found = AcceptanceCounts()
    for exchange in exchanges:
        for name, (same, num) in _match_exchange(draft, exchange).items():
            place = (_exchange_key(draft, exchange), name)
            matches, places = found.counts.get(place, (0, 0))
            found.counts[place] = (matches + same, places + num)
    return found


def compare_acceptance(
    before: AcceptanceCounts, after: AcceptanceCounts, fields: Sequence[str] | None = None
) -> AcceptanceChange | None:
    """Over all fields or some; None where nothing was open in them.

    The error is that of a ratio of sums (delta method), news by news, since answers on the same news go together.
    """
    sums: dict[bytes, list[int]] = {}
    for (key, name), (matches, places) in before.counts.items():
        if fields is None or name in fields:
            group = sums.setdefault(key, [0, 0, 0])
            group[0] += matches
            group[1] += after.counts[key, name][0]
            group[2] += places
    if not sums:
        return None
    old, new, num = np.array(list(sums.values()), np.float64).T
    total = num.sum()
    gain = (new.sum() - old.sum()) / total
    error = np.sqrt(np.square(new - old - gain * num).sum()) / total
    return AcceptanceChange(float(old.sum() / total), float(new.sum() / total), float(error), int(total))


def _match_exchange(draft: LocalGenerator, exchange: ReplayRecord) -> dict[str, tuple[int, int]]:
    if isinstance(exchange, RecordedAnswer):
        counted = measure_agreement(draft, [exchange.request], [exchange.tokens])
        if isinstance(counted, RequestRefused):
            raise InvalidInput(f"{draft.version} refuses an exchange of the buffer: {counted.reason}")
        return {name: (counted.num_matches[name], num) for name, num in counted.num_choices.items()}
    drawn = count_path_matches(
        draft.sessions,
        draft.vocabulary,
        exchange.prefix,
        np.array(exchange.bins, np.int64),
        seed=exchange.seed,
        sampling=exchange.sampling,
        shared=exchange.shared,
    )
    if isinstance(drawn, RequestRefused):
        raise InvalidInput(f"{draft.version} refuses paths of the buffer: {drawn.reason}")
    return {PATH_FIELD: drawn}


def _exchange_key(draft: LocalGenerator, exchange: ReplayRecord) -> bytes:
    if isinstance(exchange, RecordedAnswer):
        asked = draft.tokenize(exchange.request)
        if isinstance(asked, RequestRefused):
            raise InvalidInput(f"{draft.version} refuses an exchange of the buffer: {asked.reason}")
        return news_key(asked.prompt, asked.num_shared)
    return news_key(exchange.prefix, exchange.shared)
