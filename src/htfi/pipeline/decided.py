"""A decision as the main path hands it on: what recording and release need at once, all else when it is asked for."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Decision, PolicyVerdict
from htfi.pipeline.record.entry import encode_entry
from htfi.pipeline.record.wording import with_words


class DecidedSeries:
    """What was decided on one series. `last_price` is in the units of the feed; `amends` as in `Decision`."""

    __slots__ = (
        "_decision", "_entry", "_make", "_quantiles", "amends", "central_band", "is_between_bars", "last_price",
        "series", "verdict",
    )  # fmt: skip

    def __init__(
        self,
        series: str,
        last_price: float,
        verdict: PolicyVerdict,
        quantiles: NDArray[np.float64],
        central_band: tuple[float, float],
        make: Callable[[], Decision],
    ) -> None:
        """One on a bar: quantiles [H, Q] of the log return, ends of the 90% band, and what makes the decision."""
        self.series, self.last_price, self.verdict, self.central_band = (
            series,
            last_price,
            verdict,
            central_band,
        )
        self.amends, self.is_between_bars = "", False
        self._quantiles, self._make = quantiles, make
        self._entry: bytes | None = None
        self._decision: Decision | None = None

    @classmethod
    def of(cls, decision: Decision) -> "DecidedSeries":
        """One that is made already."""
        forecast = decision.forecast
        quantiles, band = np.array(forecast.quantiles), forecast.central_band
        decided = cls(
            decision.series, decision.last_price, decision.verdict, quantiles, band, lambda: decision
        )
        decided.amends, decided.is_between_bars = decision.amends, decision.is_between_bars
        return decided

    @property
    def quantiles(self) -> NDArray[np.float64]:
        """Of the fused log return over each horizon [H, Q]."""
        return self._quantiles

    @property
    def entry(self) -> bytes:
        """Its entry, of the newest version. Raises: IntegrityError where a number is not finite."""
        if self._entry is None:
            self._entry = encode_entry(self.decision)
        return self._entry

    @entry.setter
    def entry(self, encoded: bytes) -> None:
        self._entry = encoded

    @property
    def decision(self) -> Decision:
        """The decision; its rationale is stated and has no words."""
        if self._decision is None:
            self._decision = self._make()
            self._quantiles, self._make = self._quantiles.copy(), _made_already  # let go of the whole point
        return self._decision

    def worded(self) -> Decision:
        """The decision with the words of its rationale."""
        return with_words(self.decision)


def _made_already() -> Decision:
    raise AssertionError("a decision is made once")
