"""What finished requests say about the prices of a cloud: by how much computing and travelling were misjudged.

The logarithms of the true over the expected time are taken for a common factor of the cloud's computing, one of each
way on top, and one of travelling: a Kalman filter over these. A measured total moves each by the share it had in the
expectation and by how little is known of it, so a request that mostly travelled says little about computing, and what
one way shows is believed of the others in part. The planner owns one per cloud and kind.
"""

import math
from typing import NamedTuple

import numpy as np

from htfi.scheduling.placement.figures import Way
from htfi.scheduling.placement.quantiles import Recent

WAYS = (Way.CLOUD_PLAIN, Way.CLOUD_SPECULATIVE, Way.FLIGHT, Way.LOCKSTEP)
_AT = {way: 1 + at for at, way in enumerate(WAYS)}
_NETWORK = 1 + len(WAYS)
_PRIOR = np.array([0.45, *[0.25] * len(WAYS), 0.10]) ** 2  # variances: factors of 1.6, 1.3 and 1.1
_IS_WAY = np.array([False, *[True] * len(WAYS), False])
_NOISE = 0.3**2  # of one total against its expectation, beside the filter's own doubt; then as it is seen
_LEAST_NOISE, _MOST_NOISE = 0.05**2, 0.5**2
_NOISE_KEEPS = 0.95
_WIDEST = 2.5  # standard deviations beyond which a surprise counts no more: robust against a stall
_FORGETS = 0.004  # of the prior's variance comes back with each request
_FORGOTTEN = np.diag(_PRIOR * _FORGETS)
_WIDEST_PRIOR = _PRIOR * 1.2
_MOST = math.log(8.0)
_NUM_RATIOS = 64
_ENOUGH_RATIOS = 16
_LATE_RATIO = 1.3  # until there are so many


class Factors(NamedTuple):
    """Of computing by way, and of travelling; `doubt`: standard deviations of the former's logarithms."""

    compute: dict[Way, float]
    network: float
    doubt: dict[Way, float]


class Correction:
    """One cloud's, for one kind of request or for all."""

    __slots__ = ("_factors", "_mean", "_noise", "_num_learnt", "_ratios", "_spread")

    def __init__(self, like: "Correction | None" = None) -> None:
        self._mean = like._mean.copy() if like else np.zeros(len(_PRIOR))
        self._spread = like._spread + np.diag(_PRIOR * 0.1) if like else np.diag(_PRIOR)
        self._noise = like._noise if like else _NOISE
        self._factors: Factors | None = None
        self._ratios = Recent(_NUM_RATIOS, 1e9)
        self._num_learnt = 0

    def learn(self, way: Way, network_ms: float, compute_ms: float, total_ms: float) -> None:
        """`network_ms` and `compute_ms` were expected, uncorrected, for as many tokens as there were."""
        if way not in _AT:
            return
        factors = self.factors()
        network, compute = network_ms * factors.network, compute_ms * factors.compute[way]
        expected = network + compute
        if not 0.0 < total_ms < math.inf or not 0.0 < expected < math.inf:
            return
        share = np.zeros(len(_PRIOR))
        share[0] = share[_AT[way]] = compute / expected
        share[_NETWORK] = network / expected
        self._spread += _FORGOTTEN
        toward = self._spread @ share
        own_doubt = float(share @ toward)
        doubt = own_doubt + self._noise
        self._num_learnt += 1
        self._ratios.add(total_ms / expected, float(self._num_learnt))
        # not its logarithm: totals are skewed, and their mean is what throughput goes by
        surprise = total_ms / expected - 1.0
        surprise = min(max(surprise, -_WIDEST * math.sqrt(doubt)), _WIDEST * math.sqrt(doubt))
        seen = min(max(surprise**2 - own_doubt, _LEAST_NOISE), _MOST_NOISE)
        self._noise = _NOISE_KEEPS * self._noise + (1.0 - _NOISE_KEEPS) * seen
        self._mean = np.minimum(np.maximum(self._mean + toward * (surprise / doubt), -_MOST), _MOST)
        self._spread -= np.outer(toward, toward) / doubt
        within = np.sqrt(np.minimum(_WIDEST_PRIOR / self._spread.diagonal(), 1.0))
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

    def curve_changed(self) -> None:
        """What was held against ways may have been the guesses' fault."""
        self._spread += np.diag(np.where(_IS_WAY, np.maximum(_PRIOR - np.diag(self._spread), 0.0) * 0.5, 0.0))
        self._mean = np.where(_IS_WAY, self._mean * 0.5, self._mean)
        self._factors = None

    def late_ratio(self) -> float:
        """A high quantile of the measured over the expected time, at least 1."""
        if len(self._ratios) < _ENOUGH_RATIOS:
            return _LATE_RATIO
        return max(self._ratios.quantile(0.95) or 1.0, 1.0)

    def factors(self) -> Factors:
        if self._factors is None:
            compute, doubt = {Way.EDGE_ONLY: 1.0}, {Way.EDGE_ONLY: 0.0}
            for way, at in _AT.items():
                variance = self._spread[0, 0] + 2.0 * self._spread[0, at] + self._spread[at, at]
                compute[way] = math.exp(self._mean[0] + self._mean[at])
                doubt[way] = math.sqrt(max(float(variance), 0.0))
            self._factors = Factors(compute, math.exp(self._mean[_NETWORK]), doubt)
        return self._factors

    def doubt_between(self, one: Way, other: Way) -> float:
        """The standard deviation of the logarithm of one way's factor over the other's: what is common cancels."""
        if one not in _AT or other not in _AT or one is other:
            return 0.0
        i, j = _AT[one], _AT[other]
        variance = self._spread[i, i] + self._spread[j, j] - 2.0 * self._spread[i, j]
        return math.sqrt(max(float(variance), 0.0))
