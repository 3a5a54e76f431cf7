"""Open, high and low held against the close of their bar: what disagrees is put right and noted. Row parsers call it.

Forecasting reads ln(high / low) as the bar's range, and the open only where a session begins. So high and low are
widened to hold an open or a close beside them, and a figure that is out of all proportion is left out, as where the
source has no such column: it must not be read as a range. A close that nothing supports makes no bar.
"""

import math
from collections.abc import Sequence
from typing import Any

from htfi.domain.events import Bar, Rejection, Repair
from htfi.pipeline.intake.cells import positive
from htfi.pipeline.intake.reasons import Reason, Refusal

BESIDE_CLOSE = ("open", "high", "low")
WILD = 5.0  # times another price of the bar: a digit or a point too many, not a move
_NEAR = 0.1  # of the price: an open so little outside high and low widens them, a farther one is left out
_ROUNDING = 1e-4  # of the price: how far a close may lie outside of all others
_UNUSABLE = (Reason.BAD_PRICE, Reason.MISSING_FIELD)
_WAS_CHARS = 40

Prices = tuple[float, float, float]  # open, high, low


class RepairedBar(Bar, frozen=True, gc=False, tag="bar", kw_only=True):
    """A bar on its way into the stream, with the note for the quarantine on what was put right."""

    note: Rejection

    @property
    def bar(self) -> Bar:
        return Bar(*(getattr(self, name) for name in Bar.__struct_fields__))


def usable(cells: Sequence[Any]) -> tuple[float | None, float | None, float | None]:
    """Open, high and low; None where a cell is empty or holds no price. Raises: Refusal for text."""
    opened, high, low = map(_price, cells, BESIDE_CLOSE)
    return opened, high, low


def hold_together(opened: float | None, high: float | None, low: float | None, closed: float) -> Prices:
    """Open, high and low that agree with the close. Raises: Refusal where the close itself is in doubt."""
    if opened is not None and high is not None and low is not None:
        top, bottom = (opened, closed) if opened > closed else (closed, opened)
        if low <= bottom and top <= high:
            return opened, top if high > WILD * top else high, bottom if low * WILD < bottom else low
    opened, high, low = _in_proportion(opened, high, low, closed)
    if high is not None and low is not None:
        low, high = min(low, high), max(low, high)
        if opened is not None and not low * (1.0 - _NEAR) <= opened <= high * (1.0 + _NEAR):
            opened = None
        others = [price for price in (opened, high, low) if price is not None]
        if not min(others) * (1.0 - _ROUNDING) <= closed <= max(others) * (1.0 + _ROUNDING):
            raise Refusal(Reason.BAD_BAR, f"close {closed} lies outside of {_shown(opened, high, low)}")
    opened = closed if opened is None else opened
    ends = (opened, closed)
    return opened, max(ends if high is None else (*ends, high)), min(ends if low is None else (*ends, low))


def repairs(cells: Sequence[Any], prices: Prices) -> tuple[Repair, ...]:
    """What was changed between three cells as they came and the prices that they became."""
    changed: list[Repair] = []
    for name, cell, price in zip(BESIDE_CLOSE, cells, prices, strict=True):
        try:
            was: float | str | None = None if cell is None or cell == "" else float(cell)
        except (TypeError, ValueError, OverflowError):
            was = str(cell)[:_WAS_CHARS]
        if was != price:
            shown = str(cell)[:_WAS_CHARS] if isinstance(was, float) and not math.isfinite(was) else was
            changed.append(Repair(name, shown, price))
    return tuple(changed)


def _price(cell: Any, name: str) -> float | None:
    try:
        return positive(cell, name)
    except Refusal as refusal:
        if refusal.reason in _UNUSABLE:
            return None
        raise


def _in_proportion(
    opened: float | None, high: float | None, low: float | None, closed: float
) -> tuple[float | None, float | None, float | None]:
    """The prices without one that is wildly off; where most are, it is the close that is off."""
    kept = [
        price if price is not None and closed <= WILD * price and price <= WILD * closed else None
        for price in (opened, high, low)
    ]
    num_known = 3 - (opened, high, low).count(None)
    num_wild = num_known - (3 - kept.count(None))
    if num_wild > 1 or num_wild == num_known > 0:
        raise Refusal(Reason.BAD_BAR, f"close {closed} is out of proportion to {_shown(opened, high, low)}")
    return kept[0], kept[1], kept[2]


def _shown(opened: float | None, high: float | None, low: float | None) -> str:
    named = zip(BESIDE_CLOSE, (opened, high, low), strict=True)
    return ", ".join(f"{name} {price}" for name, price in named if price is not None)
