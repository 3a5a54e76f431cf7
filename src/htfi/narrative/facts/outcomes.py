"""What followed items of each kind of event: the share of the stated move that returns have shown, learnt online.

A kind starts at nothing: the direction of an item counts for no more than such items have earned.
"""

from typing import Any

PRIOR_SQUARES = 60.0  # squared standard deviations of stated moves before which little is earned
_KEEP = 0.999  # per outcome
_DECIMALS = 4


class KindOutcomes:
    """By kind of event: sums of stated move × return and of stated move², in squared daily standard deviations."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}

    def learn(self, kind: str, stated_sigmas: float, return_sigmas: float) -> None:
        """Learn the return over the bar after an item that stated a move."""
        product, square = self._sums.get(kind, (0.0, 0.0))
        bounded = max(-5.0, min(5.0, return_sigmas))
        self._sums[kind] = (
            round(_KEEP * product + stated_sigmas * bounded, 6),
            round(_KEEP * square + stated_sigmas * stated_sigmas, 6),
        )

    def earned(self, kind: str) -> float:
        """The share 0–1 of a stated move that counts: a regression on outcomes, drawn to nothing."""
        product, square = self._sums.get(kind, (0.0, 0.0))
        return round(min(max(product / (square + PRIOR_SQUARES), 0.0), 1.0), _DECIMALS)

    def state(self) -> dict[str, Any]:
        return {kind: list(sums) for kind, sums in self._sums.items()}

    def restore(self, state: dict[str, Any]) -> None:
        self._sums = {kind: (product, square) for kind, (product, square) in state.items()}
