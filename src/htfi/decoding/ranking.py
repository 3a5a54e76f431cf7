"""Ranking tokens as `choose` would: by logits over temperature plus the shared noise. Drafters of several guesses ask.

The first of the ranks is what `choose` picks from the same logits; the next are what a target picks when its logits
differ a little, far more often than the next likeliest would be (D2).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from htfi.decoding.noise import Keys, gumbel_at
from htfi.decoding.ports import Floats, Ids
from htfi.decoding.sampling import Admitted, Place, Sampling, choose, kept


class Ranked(NamedTuple):
    """Tokens, the best first, and how far each lies behind the first, in logits. Empty where a logit is not finite."""

    tokens: list[int]
    gaps: list[float]


def rank(logits: Floats, admitted: Admitted, sampling: Sampling, row_keys: Keys, num: int) -> Ids:
    """The best `num` tokens of each row: logits [N, V], keys [N] → [N, num].

    −1 where fewer are admitted or kept, and for a whole row where a logit is not finite.
    """
    rest = logits.copy()
    temperature = sampling.temperature
    if sampling.truncates:
        stays = kept(logits.take(admitted.ids, axis=1).astype(np.float64) / temperature, sampling)
        rows, gone = (~stays).nonzero()
        rest[rows, admitted.ids[gone]] = -np.inf
    tokens = np.empty((num, len(logits)), np.int64)
    rows = np.arange(len(logits))
    for place in range(num):  # what is chosen once those before are gone
        tokens[place] = choose(rest, admitted, Sampling(temperature), row_keys)
        rest[rows, tokens[place]] = -np.inf
    return tokens.T


def rank_each(logits: Sequence[Floats], places: Sequence[Place], num: int) -> list[Ranked]:
    """The best `num` tokens at each place from its own logits [V]; places that choose alike are ranked together."""
    found = [Ranked([], [])] * len(places)
    groups: dict[tuple[int, Sampling], list[int]] = {}
    for at, (admitted, sampling, _) in enumerate(places):
        groups.setdefault((id(admitted), sampling), []).append(at)
    for (_, sampling), members in groups.items():
        rows = np.array([logits[at] for at in members])
        row_keys = np.array([places[at].key for at in members], np.uint64)
        tokens = rank(rows, places[members[0]].admitted, sampling, row_keys, num).tolist()
        for at, some in zip(members, tokens, strict=True):
            size = some.index(-1) if -1 in some else num
            found[at] = _behind(some[:size], logits[at], sampling.temperature, places[at].key)
    return found


def _behind(tokens: list[int], logits: Floats, temperature: float, place_key: int) -> Ranked:
    scores = logits[tokens].tolist()
    if temperature:
        scores = [
            score + temperature * gumbel_at(place_key, token)
            for score, token in zip(scores, tokens, strict=True)
        ]
    return Ranked(tokens, [scores[0] - score for score in scores] if tokens else [])
