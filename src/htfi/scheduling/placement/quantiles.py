"""Live quantiles of a figure that drifts and jumps: few samples, the newest weighing most. Placement reads them."""

import math
from bisect import bisect_left, insort
from collections import deque
from itertools import accumulate

_SHIFT = (
    3  # samples in a row beyond all that is usual: the world has changed, and what was before says nothing
)
_SLACK = 0.25  # of the median: what lies nearer is no change
_SLACK_LEAST = 0.5
_USUAL = (0.05, 0.95)


class Recent:
    """Quantiles of the latest samples; one that is `half_life_s` older weighs half.

    A jump is followed within three samples: when so many in a row lie beyond what was usual, and on one side, the
    older ones are forgotten and `num_shifts` rises. Samples that are not finite or negative are passed over.
    """

    __slots__ = ("_half_life_s", "_ordered", "_samples", "_weighed", "num_shifts")

    def __init__(self, num_samples: int = 64, half_life_s: float = 5.0) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=num_samples)  # value, time
        self._ordered: list[tuple[float, float]] = []  # value, time
        self._half_life_s = half_life_s
        self._weighed: tuple[list[float], list[float]] | None = (
            None  # values, and weights up to and with each
        )
        self.num_shifts = 0

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, value: float, at_s: float) -> None:
        if not 0.0 <= value < math.inf:
            return
        if len(self._samples) == self._samples.maxlen:
            del self._ordered[bisect_left(self._ordered, self._samples[0])]
        self._samples.append((value, at_s))
        insort(self._ordered, (value, at_s))
        self._weighed = None
        if len(self._samples) > _SHIFT and self._has_jumped():
            for _ in range(len(self._samples) - _SHIFT):
                self._samples.popleft()
            self._ordered = sorted(self._samples)
            self.num_shifts += 1

    def quantile(self, q: float) -> float | None:
        """The smallest value with at least a share `q` of the weight at or below it; None before the first sample."""
        if not self._samples:
            return None
        if self._weighed is None:
            self._weighed = _weighed(self._ordered, self._half_life_s)
        return _at(self._weighed, q)

    def _has_jumped(self) -> bool:
        samples = self._samples
        newest = [samples[-place][0] for place in range(1, _SHIFT + 1)]
        low, high, other = min(newest), max(newest), samples[-_SHIFT - 1][0]
        if low <= other <= high:
            return False  # like the one before them: no need to look further
        before = _weighed(sorted(list(samples)[:-_SHIFT]), self._half_life_s)
        slack = max(_SLACK * _at(before, 0.5), _SLACK_LEAST)
        return low > _at(before, _USUAL[1]) + slack or high < _at(before, _USUAL[0]) - slack


def _weighed(ordered: list[tuple[float, float]], half_life_s: float) -> tuple[list[float], list[float]]:
    newest_s = max([at for _, at in ordered])
    weights = [0.5 ** ((newest_s - at) / half_life_s) for _, at in ordered]
    return [value for value, _ in ordered], list(accumulate(weights))


def _at(weighed: tuple[list[float], list[float]], q: float) -> float:
    values, reached = weighed
    return values[min(bisect_left(reached, q * reached[-1] - 1e-12), len(values) - 1)]
