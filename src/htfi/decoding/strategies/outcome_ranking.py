"""What a target may say where a draft ends or fails, how likely each is, and how many of them to draft for.

Pure functions and fading counts. The drafter that works through verification asks them.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from htfi.decoding.noise import gumbel_bounds, hashes
from htfi.decoding.ports import Floats
from htfi.decoding.sampling import Place, Sampling, kept

NUM_RANKS = 8
# Of 2,000 random laws of 2,000 words: what the target says where its draft fails, by the rank that the draft gave it
# among what it did not draft; and after all was accepted. A draft that has learnt from its target does better.
_REFUSED = {"noise": (0.43, 0.2, 0.1, 0.09, 0.03, 0.03, 0.03, 0.02), "probability": (0.09, *(0.04,) * 7)}
_AFTER = {"noise": (0.8, 0.08, 0.04, 0.02, 0.01, 0.01, 0.01, 0.01), "probability": (0.18, *(0.07,) * 7)}


def ranked(logits: Sequence[Floats], places: Sequence[Place], num: int, by_noise: bool) -> list[list[int]]:
    """The tokens that a target is likeliest to choose at each place, best first, at most `num`: logits [V] each.

    By the draft's score plus the noise that the target will use as well, or by the score alone. The noise is taken
    from its table of bounds, near enough to rank by.
    """
    found: list[list[int]] = [[] for _ in places]
    groups: dict[tuple[int, Sampling], list[int]] = {}
    for at, (admitted, sampling, _) in enumerate(places):
        groups.setdefault((id(admitted), sampling), []).append(at)
    for (_, sampling), members in groups.items():
        admitted = places[members[0]].admitted
        scores = np.stack([logits[at] for at in members]).take(admitted.ids, axis=1).astype(np.float64)
        if sampling.temperature > 0.0:
            scores /= sampling.temperature
            if sampling.truncates:
                scores[~kept(scores, sampling)] = -np.inf
            if by_noise:
                row_keys = np.array([places[at].key for at in members], np.uint64)
                scores += gumbel_bounds(hashes(row_keys, admitted.counters))[0]
        most = min(num, scores.shape[1])
        best = np.argpartition(-scores, most - 1, axis=1)[:, :most]
        tops = np.take_along_axis(scores, best, axis=1)
        order = np.argsort(-tops, axis=1, kind="stable")
        tops = np.take_along_axis(tops, order, axis=1)
        tokens = admitted.ids[np.take_along_axis(best, order, axis=1)]
        for at, row, top in zip(members, tokens.tolist(), np.isfinite(tops).tolist(), strict=True):
            found[at] = [token for token, sound in zip(row, top, strict=True) if sound]
    return found


class RankRates:
    """How often the target says what was ranked first, second, …: counts that fade, over a prior."""

    def __init__(self, prior: Sequence[float], weight: float = 20.0, memory: float = 500.0) -> None:
        self._counts = [rate * weight for rate in prior]
        self._total = weight
        self._keep = 1.0 - 1.0 / memory

    @classmethod
    def refused(cls, ranked_by: str) -> "RankRates":
        """Where a drafted token, itself not ranked, was refused."""
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


class PassTimes:
    """What a pass of the draft costs by its number of new tokens: fixed + each · n, from fading sums."""

    def __init__(self, fixed_ms: float = 0.15, each_ms: float = 0.015, memory: float = 300.0) -> None:
        self.fixed_ms, self.each_ms = fixed_ms, each_ms
        self._keep = 1.0 - 1.0 / memory
        sizes = np.array([1.0, 16.0])
        costs = fixed_ms + each_ms * sizes
        self._sums = [2.0, sizes.sum(), costs.sum(), (sizes * sizes).sum(), (sizes * costs).sum()]

    def learn(self, num_tokens: int, ms: float) -> None:
        ms = min(ms, 4.0 * self.estimate(num_tokens))  # a pass that was interrupted tells little
        terms = (1.0, num_tokens, ms, num_tokens * num_tokens, num_tokens * ms)
        self._sums = [total * self._keep + float(term) for total, term in zip(self._sums, terms, strict=True)]
        n, x, y, xx, xy = self._sums
        spread = n * xx - x * x
        if spread > 1e-9:
            self.each_ms = max((n * xy - x * y) / spread, 1e-4)
            self.fixed_ms = max((y - self.each_ms * x) / n, 1e-4)

    def estimate(self, num_tokens: int) -> float:
        return self.fixed_ms + self.each_ms * num_tokens


def fan_out(num_passes: int, budget_ms: float, times: PassTimes, most: int) -> int:
    """How many outcomes to draft for side by side so that `num_passes` passes end within the budget; at least one."""
    if num_passes < 1:
        return most
    each_pass_ms = budget_ms / num_passes
    return max(min(int((each_pass_ms - times.fixed_ms) / times.each_ms), most), 1)


def outcome_chances(
    reach: Sequence[float], refused: Sequence[float], after: Sequence[float]
) -> list[list[float]]:
    """P(outcome) for a block of k tokens: [j][r] for j accepted and the token ranked r next, j = 0 … k.

    `reach` [k + 1] is P(at least j accepted), 1 first; the rates are by rank.
    """
    chances = [[(here - there) * rate for rate in refused] for here, there in pairwise(reach)]
    return [*chances, [reach[-1] * rate for rate in after]]
