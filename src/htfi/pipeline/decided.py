"""A decision as the main path hands it on: what recording and release need at once, all else when it is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Decision, PolicyVerdict
from htfi.pipeline.record.entry import encode_entry
from htfi.pipeline.record.wording import with_words


@dataclass(frozen=True, slots=True, eq=False)
class DecidedRows:
    """What was decided on n series together, a row each, and what makes the decision of a row.

    Shapes: quantiles [n, H, Q] of the log return; low, high [n], ends of the 90% band. Prices in the units of the feed.
    """

    as_of_ns: int
    series: Sequence[str]
    last_prices: Sequence[float]
    quantiles: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    make: Callable[[int], Decision]

    @classmethod
    def of(cls, decision: Decision) -> "DecidedRows":
        """The one row of a decision that is made already."""
        forecast = decision.forecast
        low, high = forecast.central_band
        return cls(
            decision.as_of_ns, [decision.series], [decision.last_price], np.array([forecast.quantiles]),
            np.array([low]), np.array([high]), lambda _: decision,
        )  # fmt: skip


class DecidedSeries:
    """What was decided on one series. `amends` as in `Decision`."""

    __slots__ = (
        "_decision", "_entry", "_row", "_rows", "_worded", "amends", "is_between_bars", "verdict",
    )  # fmt: skip

    def __init__(
        self, rows: DecidedRows, row: int, verdict: PolicyVerdict, entry: bytes | None = None
    ) -> None:
        """A row that was decided on a bar; `entry` where it is packed already."""
        self._rows, self._row, self._entry = rows, row, entry
        self.verdict = verdict
        self.amends, self.is_between_bars = "", False
        self._decision: Decision | None = None
        self._worded: Decision | None = None

    @classmethod
    def of(cls, decision: Decision) -> "DecidedSeries":
        """One that is made already."""
        decided = cls(DecidedRows.of(decision), 0, decision.verdict)
        decided.amends, decided.is_between_bars = decision.amends, decision.is_between_bars
        return decided

    @property
    def series(self) -> str:
        return self._rows.series[self._row]

    @property
    def as_of_ns(self) -> int:
        return self._rows.as_of_ns

    @property
    def last_price(self) -> float:
        """In the units of the feed."""
        return self._rows.last_prices[self._row]

    @property
    def quantiles(self) -> NDArray[np.float64]:
        """Of the log return [H, Q]."""
        return self._rows.quantiles[self._row]

    @property
    def central_band(self) -> tuple[float, float]:
        """The ends of the 90% band one bar ahead, as log returns."""
        return float(self._rows.low[self._row]), float(self._rows.high[self._row])

    @property
    def entry(self) -> bytes:
        """Its entry, of the newest version. Raises: IntegrityError where a number is not finite."""
        if self._entry is None:
            self._entry = encode_entry(self.decision)
        return self._entry

    @property
    def decision(self) -> Decision:
        """The decision; its rationale is stated and has no words."""
        if self._decision is None:
            self._decision = self._rows.make(self._row)
            self._rows, self._row = DecidedRows.of(self._decision), 0  # let go of the whole point
        return self._decision

    def worded(self) -> Decision:
        """The decision with the words of its rationale."""
        if self._worded is None:
            self._worded = with_words(self.decision)
        return self._worded
