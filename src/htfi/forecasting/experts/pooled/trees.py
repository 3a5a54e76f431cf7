"""Linear terms and symmetric trees, whose sum is a log scale of each horizon; the same bits everywhere.

A symmetric tree asks the same question of every row at each level, so that a leaf's number is the answers' bits
(Prokhorenkova et al. 2018, CatBoost). Leaves are whole numbers of `LEAF_UNIT`, whose sum no order changes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]

LEAF_UNIT = 2.0**-20
_ROWS_AT_ONCE = 1024  # bounds the memory of a pass
MAX_LOG_SCALE = 2.0  # of a correction: beyond it a series is none that the model was fitted to


@dataclass(frozen=True, slots=True, eq=False)
class ScaleTrees:
    """H log scales from F features, by M trees of depth D.

    Shapes: linear [F + 1, H], the constant last; features [M, D]; thresholds [M, D] in single precision, a row that
    is above answers 1; leaves [M, 2^D, H] in LEAF_UNIT.
    """

    linear: Array
    features: NDArray[np.int64]
    thresholds: Single
    leaves: NDArray[np.int64]

    def predict(self, x: Single) -> Array:
        """Log scales [n, H] of rows [n, F], each held within ±MAX_LOG_SCALE."""
        found = np.broadcast_to(self.linear[-1], (len(x), self.linear.shape[1])).copy()
        for place in range(x.shape[1]):
            found += x[:, place, None].astype(np.float64) * self.linear[place]
        for begin in range(0, len(x), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            found[part] += self._sum_leaves(x[part]) * LEAF_UNIT
        return np.minimum(np.maximum(found, -MAX_LOG_SCALE), MAX_LOG_SCALE)

    def _sum_leaves(self, x: Single) -> NDArray[np.int64]:
        num, depth = self.features.shape
        answers = x[:, self.features.reshape(-1)] > self.thresholds.reshape(-1)  # [n, M·D]
        bits = answers.reshape(len(x), num, depth)
        leaf: NDArray[np.int64] = np.zeros((len(x), num), np.int64)
        leaf += self.leaves.shape[1] * np.arange(num, dtype=np.int64)
        for level in range(depth):
            leaf += np.where(bits[:, :, level], 2**level, 0)
        flat = self.leaves.reshape(-1, self.leaves.shape[2])
        return flat[leaf].sum(axis=1)  # [n, H]
