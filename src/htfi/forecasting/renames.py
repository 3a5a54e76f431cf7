"""Series that end where another begins at the same price: probably one instrument renamed. Said; `market.renames`
joins them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY

Array = NDArray[np.float64]

_LONGEST_PAUSE_NS = (
    5 * NS_PER_DAY
)  # a weekend and holidays between the last bar of one and the first of the other
_MIN_APART, _MAX_APART = 0.01, 0.04  # in log, or two usual deviations between


@dataclass(frozen=True, slots=True)
class RenameFound:
    """`old`, whose last bar ended at `old_end_ns`, and `new`, whose first ended at `new_end_ns` at that price."""

    old: str
    new: str
    interval: str
    old_row: int
    old_end_ns: int
    new_end_ns: int

    def line(self, ended: str, began: str) -> str:
        """What was found and what to do, by the days of the last bar and the first."""
        old, new = f"{self.old}/{self.interval}", f"{self.new}/{self.interval}"
        return (
            f"{old} ends on {ended} where {new} begins on {began} at its price: if it was renamed, set "
            f'market.renames = {{"{self.old}" = "{self.new}"}}, so that its history counts'
        )


def find_predecessor(
    bar: Bar,
    ends_ns: NDArray[np.int64],
    log_closes: Array,
    usual_variance: Array,
    eligible: NDArray[np.bool_],
) -> int:
    """The row of the series that may have gone on as the one whose first bar this is; −1 for none.

    Arrays are [rows]: each series' last bar and usual variance of a return. `eligible` are those without a bar now.
    """
    if not bar.open > 0.0:
        return -1
    pause_ns = bar.end_ns - ends_ns
    apart = np.abs(np.log(bar.open) - log_closes)
    limit = np.clip(2.0 * np.sqrt(usual_variance), _MIN_APART, _MAX_APART)
    near = eligible & (pause_ns > 0) & (pause_ns <= _LONGEST_PAUSE_NS) & (apart <= limit)
    found = np.flatnonzero(near)
    return int(found[apart[found].argmin()]) if len(found) else -1
