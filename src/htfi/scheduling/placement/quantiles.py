"""Live quantiles of a figure that drifts and jumps: few samples, the newest weighing most. Placement reads them."""

import math
from collections import deque

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

    __slots__ = ("_half_life_s", "_known", "_samples", "num_shifts")

    def __init__(self, num_samples: int = 64, half_life_s: float = 5.0) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=num_samples)
        self._half_life_s = half_life_s
        self._known: dict[float, float] = {}
        self.num_shifts = 0

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, value: float, at_s: float) -> None:
        if not 0.0 <= value < math.inf:
            return
        self._samples.append((at_s, value))
        self._known.clear()
        if len(self._samples) > _SHIFT and self._has_jumped():
            for _ in range(len(self._samples) - _SHIFT):
                self._samples.popleft()
            self.num_shifts += 1

    def quantile(self, q: float) -> float | None:
        """None before the first sample."""
        known = self._known.get(q)
        if known is None and self._samples:
            known = self._known[q] = _quantile(list(self._samples), q, self._half_life_s)
        return known

    def _has_jumped(self) -> bool:
        samples = list(self._samples)
        before, newest = samples[:-_SHIFT], [value for _, value in samples[-_SHIFT:]]
        slack = max(_SLACK * _quantile(before, 0.5, self._half_life_s), _SLACK_LEAST)
        if min(newest) > _quantile(before, _USUAL[1], self._half_life_s) + slack:
            return True
        return max(newest) < _quantile(before, _USUAL[0], self._half_life_s) - slack


def _quantile(samples: list[tuple[float, float]], q: float, half_life_s: float) -> float:
    """The smallest value with at least a share `q` of the weight at or below it."""
    newest_s = max(at for at, _ in samples)
    weighed = sorted((value, 0.5 ** ((newest_s - at) / half_life_s)) for at, value in samples)
    wanted = q * sum(weight for _, weight in weighed)
    reached = 0.0
    for value, weight in weighed:
        reached += weight
        if reached >= wanted - 1e-12:
            return value
    return weighed[-1][0]
