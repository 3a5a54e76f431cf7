"""Rates by group by fairlearn; exact intervals and tests of counts by scipy. Implements `GroupMetrics`."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.errors import require_extra

Flags = NDArray[np.bool_]

_LEVEL = 0.95


class FairlearnMetrics:
    """Implements `GroupMetrics`. Raises: MissingExtra where fairlearn is not installed."""

    def __init__(self) -> None:
        require_extra("the fairness audit", "fairness", "fairlearn", "scipy")
        self._fairlearn: Any = import_module("fairlearn")
        self._metrics: Any = import_module("fairlearn.metrics")
        self._stats: Any = import_module("scipy.stats")
        self._scipy: Any = import_module("scipy")

    @property
    def version(self) -> str:
        return f"fairlearn {self._fairlearn.__version__}, scipy {self._scipy.__version__}"

    def rates(self, flags: Flags, labels: list[str]) -> dict[str, float]:
        by_group = self._frame(flags, labels).by_group
        return {str(group): float(value) for group, value in by_group.items()}

    def largest_difference(self, flags: Flags, labels: list[str]) -> float:
        return float(self._frame(flags, labels).difference(method="between_groups"))

    def rate_interval(self, num_true: int, num: int) -> tuple[float, float]:
        found = self._stats.binomtest(num_true, num).proportion_ci(_LEVEL, method="exact")
        return float(found.low), float(found.high)

    def rates_p(self, first: tuple[int, int], second: tuple[int, int]) -> float:
        table = [[hits, num - hits] for hits, num in (first, second)]
        return float(self._stats.fisher_exact(table).pvalue)

    def _frame(self, flags: Flags, labels: list[str]) -> Any:
        """The share of positive predictions by group: what is true of the rows plays no part in it."""
        return self._metrics.MetricFrame(
            metrics=self._metrics.selection_rate,
            y_true=flags,
            y_pred=flags,
            sensitive_features={"group": labels},
        )
