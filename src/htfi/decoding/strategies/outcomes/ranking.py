"""What a target may choose where a draft ends or is rejected, how likely each is, and how many to draft for."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from htfi.decoding.noise import gumbel_bounds, noise_hashes
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import SamplingParams, SamplingPosition, truncation_mask

NUM_RANKS = 5
_MAX_RANKED = (
    256  # of a large vocabulary only the likeliest are ranked: the noise seldom lifts another above them
)
# From 2,000 random distributions over 2,000 tokens: the target's token where its draft is rejected, by the rank that
# the draft gave it; and after all was accepted. A draft distilled from its target does better.
_REFUSED = {"noise": (0.43, 0.2, 0.1, 0.09, 0.03), "probability": (0.09, 0.05, 0.04, 0.04, 0.02)}
_AFTER = {"noise": (0.8, 0.08, 0.04, 0.02, 0.01), "probability": (0.18, 0.1, 0.07, 0.06, 0.05)}


def rank_outcomes(
    logits: Sequence[Floats], places: Sequence[SamplingPosition], num: int, by_noise: bool
) -> list[list[int]]:
    """The tokens that a target is likeliest to choose at each position, best first, at most `num`: logits [V] each.

    By the draft's score plus the noise that the target will use, or by the score alone. The noise comes from its table
    of bounds, accurate enough for ranking.
    """
    found: list[list[int]] = [[] for _ in places]
    groups: dict[tuple[int, SamplingParams], list[int]] = {}
    for at, (admitted, sampling, _) in enumerate(places):
        groups.setdefault((id(admitted), sampling), []).append(at)
    for (_, sampling), members in groups.items():
        admitted = places[members[0]].admitted
        rows = np.stack([logits[at] for at in members]).take(admitted.ids, axis=1)
        ids, counters = admitted.ids[None], admitted.counters[None]
        if rows.shape[1] > 2 * _MAX_RANKED and sampling.temperature <= 1.0:
            near = rows.argpartition(-_MAX_RANKED, axis=1)[:, -_MAX_RANKED:]
            rows, ids = np.take_along_axis(rows, near, axis=1), admitted.ids[near]
            counters = admitted.counters[near]
        scores = rows.astype(np.float64)  # [N, C]
        if sampling.temperature > 0.0:
            scores /= sampling.temperature
            if sampling.truncates:
                scores[~truncation_mask(scores, sampling)] = -np.inf
            if by_noise:
                row_keys = np.array([places[at].key for at in members], np.uint64)
                scores += gumbel_bounds(noise_hashes(row_keys, counters))[0]
        np.negative(scores, out=scores)
        most = min(num, scores.shape[1])
        best = scores.argpartition(most - 1, axis=1)[:, :most] if most < scores.shape[1] else None
        for row, at in enumerate(members):
            mine = scores[row] if best is None else scores[row, best[row]]
            order = mine.argsort(kind="stable")
            sound = order[np.isfinite(mine[order])]
            its_ids = ids[min(row, len(ids) - 1)]
            found[at] = its_ids[sound if best is None else best[row, sound]].tolist()
    return found


class RankRates:
    """How often the target chooses the first, second, … ranked token: fading counts over a prior."""

    def __init__(self, prior: Sequence[float], weight: float = 20.0, memory: float = 500.0) -> None:
        self._counts = [rate * weight for rate in prior]
        self._total = weight
        self._keep = 1.0 - 1.0 / memory

    @classmethod
    def refused(cls, ranked_by: str) -> "RankRates":
        """Where a drafted token, itself not ranked, was rejected."""
        return cls(_REFUSED[ranked_by])

    @classmethod
    def after(cls, ranked_by: str) -> "RankRates":
        """After all drafted tokens were accepted."""
        return cls(_AFTER[ranked_by])

    def learn(self, rank: int) -> None:
        """`rank` −1: it was not among the ranked."""
        self._counts = [count * self._keep for count in self._counts]
        self._total = self._total * self._keep + 1.0
        if 0 <= rank < len(self._counts):
            self._counts[rank] += 1.0

    @property
    def rates(self) -> list[float]:
        return [count / self._total for count in self._counts]


class DraftPassTimes:
    """The cost of a draft pass by its number of new tokens, learnt with forgetting."""

    def __init__(self, one_ms: float = 0.15, more_ms: float = 0.02) -> None:
        self.one_ms = one_ms
        self.more_ms = more_ms  # per token beyond the first

    def learn(self, num_tokens: int, ms: float) -> None:
        ms = min(ms, 4.0 * self.estimate(num_tokens))  # an interrupted pass says little
        if num_tokens == 1:
            self.one_ms += 0.05 * (ms - self.one_ms)
        elif num_tokens > 2:
            self.more_ms += 0.05 * (max((ms - self.one_ms) / (num_tokens - 1), 1e-4) - self.more_ms)

    def estimate(self, num_tokens: int) -> float:
        return self.one_ms + self.more_ms * (num_tokens - 1)


def choose_fan_out(chances: Sequence[float], times: DraftPassTimes, max_ms: float) -> int:
    """How many branches, likeliest first, the next pass should continue, so that most probability is served per ms.

    A branch joins while its probability per ms of its own token exceeds that of the pass without it: a likely one goes
    alone at first, and equally likely ones go side by side. No pass of several takes over `max_ms`.
    """
    served = cost_ms = 0.0
    for num, chance in enumerate(chances):
        joined_ms = times.estimate(num + 1)
        if num and (joined_ms > max_ms or chance * cost_ms < served * (joined_ms - cost_ms)):
            return num
        served, cost_ms = served + chance, joined_ms
    return len(chances)


def outcome_chances(
    reach: Sequence[float], refused: Sequence[float], after: Sequence[float]
) -> list[list[float]]:
    """P(outcome) for a block of k tokens: [j][r] for j accepted and the token ranked r next, j = 0 … k.

    `reach` [k + 1] is P(at least j accepted), 1 first; the rates are by rank.
    """
    chances = [[(here - there) * rate for rate in refused] for here, there in pairwise(reach)]
    return [*chances, [reach[-1] * rate for rate in after]]
