"""What is known of coming bars, worked out before they come."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.known_variance.contributions import Contributions
from htfi.forecasting.known_variance.event_table import ScheduledLines

Array = NDArray[np.float64]
Instants = NDArray[np.int64]
Rows = NDArray[np.intp]
Mask = slice | NDArray[np.bool_]  # which of some rows; a slice for all of them


@dataclass(frozen=True, slots=True, eq=False)
class PreparedBars:
    """What was worked out after some bars of n series, for the case that the next ones come when they are expected.

    Shapes, of the m series that anything is known of: starts [m]; ends, begins, pattern and events [m, 2 + L], of the
    bars that closed, the next ones and those that follow; index and known [n]. No `events`: each is 1.
    """

    index: Rows
    known: Mask
    daily: NDArray[np.bool_]
    starts: Instants
    ends: Instants
    begins: Instants
    pattern: Array
    events: Array | None
    parts: list[Contributions]

    def serves(
        self,
        index: Rows,
        known: Mask,
        start_ns: Instants,
        end_ns: Instants,
        table: ScheduledLines,
    ) -> bool:
        """Whether bars that closed are those, of the same series anything is known, and no calendar line became known
        or was withdrawn meanwhile."""
        if len(index) != len(self.index) or not (index == self.index).all() or not len(self.starts):
            return False
        if isinstance(known, slice) or isinstance(self.known, slice):
            if not (isinstance(known, slice) and isinstance(self.known, slice)):
                return False  # the year's end came near, or is over
        elif not (known == self.known).all():
            return False
        came = (end_ns[self.known] == self.ends[:, 1]) & (self.daily | (start_ns[self.known] == self.starts))
        if not came.all():
            return False
        return not len(table.changes_ns) or not table.has_changed(
            int(self.ends[:, 0].min()), int(self.ends[:, 1].max())
        )


@dataclass(frozen=True, slots=True, eq=False)
class NextBars:
    """What was known of the next bars of m series, after some have closed.

    Shapes: rows, closes, of the bars before, begins, ends and pattern [m]; `parts` count bars, of which the next one is
    `bar`.
    """

    rows: Rows
    closes: Instants
    begins: Instants
    ends: Instants
    pattern: Array
    parts: list[Contributions]
    bar: int
