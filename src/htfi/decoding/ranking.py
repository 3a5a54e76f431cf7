"""Ranking tokens as `choose` would: by logits over temperature plus the shared noise. Drafters of several guesses ask.

The first of the ranks is what `choose` picks from the same logits; the next are what a target picks when its logits
differ a little, far more often than the next likeliest would be (D2).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from htfi.decoding.noise import Doubles, Keys, gumbel_bounds, gumbel_of, hashes
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sampling import Admitted, Place, Sampling, kept


class Ranked(NamedTuple):
    """Tokens, the best first, and how far each lies behind the first, in logits. Empty where a logit is not finite."""

    tokens: list[int]
    gaps: list[float]


def rank(
    logits: Floats, admitted: Admitted, sampling: Sampling, row_keys: Keys, num: int
) -> tuple[Ids, Doubles]:
    """The best `num` tokens of each row and their noisy scores, falling: logits [N, V], keys [N] → [N, num] each.

    Where fewer are admitted or kept, −1 with a score of −inf; so is a whole row where a logit is not finite.
    """
    scaled = logits.take(admitted.ids, axis=1).astype(np.float64)  # [N, C]
    num_rows, num_admitted = scaled.shape
    tokens = np.full((num_rows, num), -1, np.int64)
    scores = np.full((num_rows, num), -np.inf)
    last = max(num_admitted - num, 0)
    bits = None
    low = high = scaled
    if sampling.temperature > 0.0:
        if sampling.temperature != 1.0:
            scaled /= sampling.temperature
        if sampling.truncates:
            scaled[~kept(scaled, sampling)] = -np.inf
        bits = hashes(row_keys, admitted.counters)
        low, high = gumbel_bounds(bits)
        low += scaled
        high += scaled
    floor = np.partition(low, last, axis=1)[:, last]  # as many are at least this
    for row in np.isfinite(low.max(axis=1)).nonzero()[0]:
        places = (high[row] >= floor[row]).nonzero()[0]
        exact = scaled[row, places] if bits is None else scaled[row, places] + gumbel_of(bits[row, places])
        order = np.argsort(-exact, kind="stable")[:num]  # equals: the lowest id first
        order = order[exact[order] > -np.inf]
        tokens[row, : len(order)] = admitted.ids[places[order]]
        scores[row, : len(order)] = exact[order]
    return tokens, scores


def rank_each(logits: Sequence[Floats], places: Sequence[Place], num: int) -> list[Ranked]:
    """The best `num` tokens at each place from its own logits [V]; places that choose alike are ranked together."""
    found = [Ranked([], [])] * len(places)
    groups: dict[tuple[int, Sampling], list[int]] = {}
    for at, (admitted, sampling, _) in enumerate(places):
        groups.setdefault((id(admitted), sampling), []).append(at)
    for (_, sampling), members in groups.items():
        rows = np.array([logits[at] for at in members])
        row_keys = np.array([places[at].key for at in members], np.uint64)
        tokens, scores = rank(rows, places[members[0]].admitted, sampling, row_keys, num)
        unit = sampling.temperature or 1.0
        for at, some, behind in zip(members, tokens.tolist(), scores.tolist(), strict=True):
            size = some.index(-1) if -1 in some else num
            found[at] = Ranked(some[:size], [(behind[0] - score) * unit for score in behind[:size]])
    return found
