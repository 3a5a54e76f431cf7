"""The past of a run or of files, as scenarios need it: closes, and values of macro series."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Decision, series_id
from htfi.domain.errors import InvalidInput
from htfi.domain.time import NS_PER_DAY, parse_duration
from htfi.forecasting.scenarios.history import PriceHistory

Array = NDArray[np.float64]

_MACRO = "macro_"


class DecisionSummary(msgspec.Struct):
    """The fields of a decision that the history needs; msgspec skips the rest."""

    symbol: str
    interval: str
    as_of_ns: int
    last_price: float
    features: dict[str, float] = {}
    amends: str = ""
    trigger: str = ""


@dataclass(slots=True)
class RunHistory:
    """Filled with the decisions of a run in their order, amendments and those between bars left out."""

    _closes: dict[str, tuple[list[int], list[float]]] = field(
        default_factory=dict[str, tuple[list[int], list[float]]]
    )
    macro: dict[str, list[tuple[int, float]]] = field(default_factory=dict[str, list[tuple[int, float]]])

    def add(self, decision: Decision | DecisionSummary) -> None:
        """Take in one decision."""
        if decision.amends or decision.trigger:
            return
        name = series_id(decision.symbol, decision.interval)
        self.add_closes(name, [decision.as_of_ns], [decision.last_price])
        for name, value in decision.features.items():
            if name.startswith(_MACRO):
                values = self.macro.setdefault(name.removeprefix(_MACRO), [])
                if not values or values[-1][1] != value:
                    values.append((decision.as_of_ns, value))

    def add_closes(self, series: str, ends_ns: Sequence[int], closes: Sequence[float]) -> None:
        """Take in the closes of a series that follow those it has."""
        ends, known = self._closes.setdefault(series, ([], []))
        ends += ends_ns
        known += closes

    def past(self, series: str) -> PriceHistory:
        ends, closes = self._closes.get(series, ([], []))
        is_daily = bar_length_ns(series.rpartition("/")[2]) >= NS_PER_DAY
        return PriceHistory(np.array(ends, np.int64), np.array(closes, np.float64), is_daily)


def bar_length_ns(interval: str) -> int:
    """The length of a bar; 1 ns where it has none."""
    try:
        return parse_duration(interval)
    except InvalidInput:
        return 1
