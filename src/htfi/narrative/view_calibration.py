"""What a reader's views mean, measured: the shift and the stretch of the returns that followed them.

`htfi models calibrate` measures it on stories with a known course and stores it beside the model, as
`ConfidenceCalibration`. Without it a view is taken as stated.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from htfi.domain.errors import InvalidInput
from htfi.domain.news_view import CalibratedEffect, NewsView
from htfi.narrative.answer import CAUSES, CONSISTENCIES

AGAINST_NEWS = CONSISTENCIES[2]
MAX_STRETCH = 4.0  # no view stretches a forecast further, or shrinks it below a quarter of it
MAX_SHIFT_SIGMAS = 12.0  # of one bar: no view shifts a forecast further
_DECIMALS = 4  # more would depend on the machine: its exponential may differ in the last bit
NUM_MOVE_FEATURES = len(CAUSES) + 1
NUM_WIDTH_FEATURES = 4 + len(CONSISTENCIES)


class ViewCalibration(msgspec.Struct, frozen=True):
    """Coefficients by horizon in bars for the features of a view; between horizons they are interpolated by the
    horizon's log.

    shift = move_features·shifts in sigmas of one bar, stretch = exp(width_features·stretches).
    """

    horizons: tuple[int, ...]
    shifts: tuple[tuple[float, ...], ...]  # [H][NUM_MOVE_FEATURES]
    stretches: tuple[tuple[float, ...], ...]  # [H][NUM_WIDTH_FEATURES]

    def __post_init__(self) -> None:
        for what, table, num in (
            ("shifts", self.shifts, NUM_MOVE_FEATURES),
            ("stretches", self.stretches, NUM_WIDTH_FEATURES),
        ):
            if len(table) != len(self.horizons) or any(len(row) != num for row in table):
                raise InvalidInput(
                    f"meaning: {what} need {num} numbers for each of {len(self.horizons)} horizons"
                )
            if not all(math.isfinite(value) for row in table for value in row):
                raise InvalidInput(f"meaning: {what} must be finite")
        if any(value < 0.0 for row in self.shifts for value in row):
            raise InvalidInput("meaning: shifts must be at least 0: what is stated is never turned round")
        if not self.horizons or any(not 1 <= a < b for a, b in pairwise((*self.horizons, 1 << 30))):
            raise InvalidInput(f"meaning: horizons {self.horizons} must be whole bars, rising")

    def meanings(self, view: NewsView) -> tuple[CalibratedEffect, ...]:
        """What such a view means at the horizons that were measured."""
        return tuple(
            CalibratedEffect(
                horizon,
                round(self.shift_sigmas(view, horizon), _DECIMALS),
                round(self.stretch(view, horizon), _DECIMALS),
            )
            for horizon in self.horizons
        )

    def shift_sigmas(self, view: NewsView, horizon: int) -> float:
        """The shift of the return over `horizon` bars, in sigmas of one bar."""
        shift = _dot(move_features(view), self._at(self.shifts, horizon))
        return min(max(shift, -MAX_SHIFT_SIGMAS), MAX_SHIFT_SIGMAS)

    def stretch(self, view: NewsView, horizon: int) -> float:
        """The factor on distances from the median over `horizon` bars."""
        return math.exp(
            min(
                max(_dot(width_features(view), self._at(self.stretches, horizon)), -_MAX_LOG_STRETCH),
                _MAX_LOG_STRETCH,
            )
        )

    def _at(self, table: Sequence[Sequence[float]], horizon: int) -> list[float]:
        """The coefficients of a horizon; beyond the longest, those of the longest."""
        last = len(self.horizons) - 1
        above = next((place for place, known in enumerate(self.horizons) if known >= horizon), last)
        below = max(above - 1, 0) if self.horizons[above] > horizon else above
        if below == above:
            return list(table[above])
        span = math.log(self.horizons[above]) - math.log(self.horizons[below])
        share = (math.log(horizon) - math.log(self.horizons[below])) / span
        return [low + share * (high - low) for low, high in zip(table[below], table[above], strict=True)]


_MAX_LOG_STRETCH = math.log(MAX_STRETCH)


def move_features(view: NewsView) -> list[float]:
    """The effect that the view states in sigmas, under its cause; and once more where prices moved against the news.

    A stated effect may be discounted but not reversed, so coefficients are at least 0.
    """
    effect = view.direction * view.size_sigmas
    by_cause = [effect if view.cause == cause else 0.0 for cause in CAUSES]
    return [*by_cause, effect if view.consistency == AGAINST_NEWS else 0.0]


def width_features(view: NewsView) -> list[float]:
    """One; whether the view states a move, and its size; its volatility; how prices compare with the news."""
    moving = float(view.direction != 0.0)
    return [
        1.0,
        moving,
        moving * view.size_sigmas,
        view.volatility_multiplier - 1.0,
        *(float(view.consistency == consistency) for consistency in CONSISTENCIES),
    ]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
