"""What the audit needs of a statistics library: rates by group, disparities, exact intervals and tests."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


class GroupMetrics(Protocol):
    """Rates of flags by group, and what is exact about counts."""

    @property
    def version(self) -> str:
        """Name and version of the libraries that compute."""
        ...

    def rates(self, flags: Flags, labels: list[str]) -> dict[str, float]:
        """The share of true flags [N] in each group of `labels` [N]."""
        ...

    def largest_difference(self, flags: Flags, labels: list[str]) -> float:
        """The largest difference of those shares between two groups."""
        ...

    def rate_interval(self, num_true: int, num: int) -> tuple[float, float]:
        """The exact 95% interval of a share (Clopper and Pearson 1934); `num` ≥ 1."""
        ...

    def rates_p(self, first: tuple[int, int], second: tuple[int, int]) -> float:
        """Two-sided p-value that two shares, as (number true, number), are one (Fisher's exact test)."""
        ...
