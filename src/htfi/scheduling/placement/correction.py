"""Corrections to a cloud's prices, from finished requests: by how much computing and travelling were misjudged.

The logarithms of the true over the expected time are taken for a common factor of the cloud's computing, one of each
way on top, and one of travelling: a Kalman filter over these. A measured total moves each by the share it had in the
expectation and by how little is known of it, so a request that mostly travelled teaches little about computing, and
what one way shows is believed of the others in part. The planner owns one per cloud and kind.
"""

import math
from typing import NamedTuple

import numpy as np

from htfi.scheduling.placement.figures import Placement
from htfi.scheduling.placement.live import RecentQuantiles

CORRECTED_PLACEMENTS = (
    Placement.CLOUD_PLAIN,
    Placement.CLOUD_SPECULATIVE,
    Placement.PIPELINED,
    Placement.LOCKSTEP,
)
_INDEX = {placement: 1 + index for index, placement in enumerate(CORRECTED_PLACEMENTS)}
_NETWORK = 1 + len(CORRECTED_PLACEMENTS)
_PRIOR = (
    np.array([0.45, *[0.25] * len(CORRECTED_PLACEMENTS), 0.10]) ** 2
)  # variances: factors of 1.6, 1.3 and 1.1
_IS_PLACEMENT = np.array([False, *[True] * len(CORRECTED_PLACEMENTS), False])
_NOISE = 0.3**2  # of one total against its expectation, beside the filter's own uncertainty; then as observed
_MIN_NOISE, _MAX_NOISE = 0.05**2, 0.5**2
_NOISE_MEMORY = 0.95
_MAX_DEVIATIONS = 2.5  # standard deviations beyond which a surprise counts no more: robust against a stall
_FORGETTING = 0.004  # of the prior's variance comes back with each request
_FORGETTING_NOISE = np.diag(_PRIOR * _FORGETTING)
_MAX_VARIANCE = _PRIOR * 1.2
_MAX_LOG_FACTOR = math.log(8.0)
_NUM_RATIOS = 64
_MIN_RATIOS = 16
_DEFAULT_P95_RATIO = 1.3  # until there are so many


class CorrectionFactors(NamedTuple):
    """Of computing by placement, and of travelling; `uncertainty`: standard deviations of the former's logarithms."""

    compute: dict[Placement, float]
    network: float
    uncertainty: dict[Placement, float]


class CostCorrection:
    """One cloud's, for one kind of request or for all."""

    __slots__ = ("_factors", "_mean", "_noise", "_num_learnt", "_ratios", "_spread")

    def __init__(self, like: "CostCorrection | None" = None) -> None:
        self._mean = like._mean.copy() if like else np.zeros(len(_PRIOR))
        self._spread = like._spread + np.diag(_PRIOR * 0.1) if like else np.diag(_PRIOR)
        self._noise = like._noise if like else _NOISE
        self._factors: CorrectionFactors | None = None
        self._ratios = RecentQuantiles(_NUM_RATIOS, 1e9)
        self._num_learnt = 0

    def learn(self, placement: Placement, network_ms: float, compute_ms: float, total_ms: float) -> None:
        """`network_ms` and `compute_ms` were expected, uncorrected, for as many tokens as there were."""
        if placement not in _INDEX:
            return
        factors = self.factors()
        network, compute = network_ms * factors.network, compute_ms * factors.compute[placement]
        expected = network + compute
        if not 0.0 < total_ms < math.inf or not 0.0 < expected < math.inf:
            return
        share = np.zeros(len(_PRIOR))
        share[0] = share[_INDEX[placement]] = compute / expected
        share[_NETWORK] = network / expected
        self._spread += _FORGETTING_NOISE
        toward = self._spread @ share
        own_doubt = float(share @ toward)
        doubt = own_doubt + self._noise
        self._num_learnt += 1
        self._ratios.add(total_ms / expected, float(self._num_learnt))
        # not its logarithm: totals are skewed, and their mean is what throughput goes by
        surprise = total_ms / expected - 1.0
        surprise = min(max(surprise, -_MAX_DEVIATIONS * math.sqrt(doubt)), _MAX_DEVIATIONS * math.sqrt(doubt))
        seen = min(max(surprise**2 - own_doubt, _MIN_NOISE), _MAX_NOISE)
        self._noise = _NOISE_MEMORY * self._noise + (1.0 - _NOISE_MEMORY) * seen
        self._mean = np.minimum(
            np.maximum(self._mean + toward * (surprise / doubt), -_MAX_LOG_FACTOR), _MAX_LOG_FACTOR
        )
        self._spread -= np.outer(toward, toward) / doubt
        within = np.sqrt(np.minimum(_MAX_VARIANCE / self._spread.diagonal(), 1.0))
        self._spread *= within[:, None] * within  # what is never tried is no less known than at first, nearly
        self._factors = None

    def link_changed(self) -> None:
        """Travelling is as unknown as at first; of computing, half the certainty stays."""
        self._mean[_NETWORK] = 0.0
        self._spread[_NETWORK, :] = 0.0
        self._spread[:, _NETWORK] = 0.0
        self._spread[_NETWORK, _NETWORK] = _PRIOR[_NETWORK]
        self._spread += np.diag(np.where(np.arange(len(_PRIOR)) < _NETWORK, _PRIOR * 0.05, 0.0))
        self._factors = None

    def acceptance_changed(self) -> None:
        """Corrections may have been due to acceptance: widen their uncertainty."""
        self._spread += np.diag(
            np.where(_IS_PLACEMENT, np.maximum(_PRIOR - np.diag(self._spread), 0.0) * 0.5, 0.0)
        )
        self._mean = np.where(_IS_PLACEMENT, self._mean * 0.5, self._mean)
        self._factors = None

    def p95_ratio(self) -> float:
        """A high quantile of the measured over the expected time, at least 1."""
        if len(self._ratios) < _MIN_RATIOS:
            return _DEFAULT_P95_RATIO
        return max(self._ratios.quantile(0.95) or 1.0, 1.0)

    def factors(self) -> CorrectionFactors:
        if self._factors is None:
            compute, doubt = {Placement.EDGE_ONLY: 1.0}, {Placement.EDGE_ONLY: 0.0}
            for placement, index in _INDEX.items():
                variance = self._spread[0, 0] + 2.0 * self._spread[0, index] + self._spread[index, index]
                compute[placement] = math.exp(self._mean[0] + self._mean[index])
                doubt[placement] = math.sqrt(max(float(variance), 0.0))
            self._factors = CorrectionFactors(compute, math.exp(self._mean[_NETWORK]), doubt)
        return self._factors

    def uncertainty_between(self, one: Placement, other: Placement) -> float:
        """The standard deviation of the logarithm of one way's factor over the other's: what is common cancels."""
        if one not in _INDEX or other not in _INDEX or one is other:
            return 0.0
        i, j = _INDEX[one], _INDEX[other]
        variance = self._spread[i, i] + self._spread[j, j] - 2.0 * self._spread[i, j]
        return math.sqrt(max(float(variance), 0.0))
