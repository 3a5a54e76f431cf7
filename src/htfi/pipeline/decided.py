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
        "_decision", "_entry", "_make", "_worded", "amends", "as_of_ns", "central_band", "is_between_bars",
        "last_price", "quantiles", "series", "verdict",
    )  # fmt: skip

    def __init__(
        self,
        series: str,
        as_of_ns: int,
        last_price: float,
        verdict: PolicyVerdict,
        quantiles: NDArray[np.float64],
        central_band: tuple[float, float],
        make: Callable[[], Decision],
        entry: bytes | None = None,
    ) -> None:
        """One on a bar: quantiles [H, Q] of the log return, ends of the 90% band, and what makes the decision."""
        self.series, self.as_of_ns = series, as_of_ns
        self.last_price, self.verdict = last_price, verdict
        self.quantiles, self.central_band = quantiles, central_band
        self.amends, self.is_between_bars = "", False
        self._make: Callable[[], Decision] | None = make
        self._entry = entry
        self._decision: Decision | None = None
        self._worded: Decision | None = None

    @classmethod
    def of(cls, decision: Decision) -> "DecidedSeries":
        """One that is made already."""
        forecast = decision.forecast
        quantiles, band = np.array(forecast.quantiles), forecast.central_band
        series, as_of_ns, last_price = decision.series, decision.as_of_ns, decision.last_price
        decided = cls(series, as_of_ns, last_price, decision.verdict, quantiles, band, lambda: decision)
        decided.amends, decided.is_between_bars = decision.amends, decision.is_between_bars
        return decided

    @property
    def entry(self) -> bytes:
        """Its entry, of the newest version. Raises: IntegrityError where a number is not finite."""
        if self._entry is None:
            self._entry = encode_entry(self.decision)
        return self._entry

    @property
    def decision(self) -> Decision:
        """The decision; its rationale is stated and has no words."""
        if self._make is not None:
            self._decision = self._make()
            self.quantiles, self._make = self.quantiles.copy(), None  # let go of the whole point
        assert self._decision is not None, "it is made once"
        return self._decision

    def worded(self) -> Decision:
        """The decision with the words of its rationale."""
        if self._worded is None:
            self._worded = with_words(self.decision)
        return self._worded
