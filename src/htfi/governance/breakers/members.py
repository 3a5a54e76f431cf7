"""Which series are of which desk, and the mean of what their tests bet."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from htfi.governance.breakers.states import FIRM_SCOPE
from htfi.governance.breakers.wealth import Array, Mask, Rows

DEFAULT_DESK = "default"  # of series that are of no desk


class ScopeMembers:
    """The desks of series by row; desk 0, without a name, is the firm, of which every series is."""

    def __init__(
        self, series: Sequence[str], known: Sequence[str], desks_of: Mapping[str, Collection[str]]
    ) -> None:
        """`known` are the desks that have a row already; `desks_of` gives the desks of a symbol."""
        self.num = len(series)
        place_of = {"": 0} | {name: place for place, name in enumerate(known) if name}
        pairs: list[tuple[int, int]] = []
        for row, name in enumerate(series):
            pairs.append((row, 0))
            desks = desks_of.get(name.partition("/")[0]) or (DEFAULT_DESK,)
            pairs += [(row, place_of.setdefault(desk, len(place_of))) for desk in sorted(desks)]
        self.desks: list[str] = list(place_of)
        self.scopes = [f"desk:{name}" if name else FIRM_SCOPE for name in self.desks]
        table = np.array(pairs, np.intp).reshape(-1, 2)
        self._row: NDArray[np.intp] = table[:, 0]
        self._desk: NDArray[np.intp] = table[:, 1]
        self.sizes = np.bincount(self._desk, minlength=len(self.desks)).astype(np.float64)
        of_desks = np.where(self._desk > 0, self.sizes[self._desk], 1.0)
        self.largest_desk = np.ones(self.num)  # of each series
        np.maximum.at(self.largest_desk, self._row, of_desks)
        self._shared = len(self.desks) == 2 and len(pairs) == 2 * self.num  # all series are of one desk

    def means(self, rows: Rows, ratio: Array, is_seen: Mask) -> tuple[Rows, Array, Array]:
        """The desks [D] of these rows, the mean ratio [D, B] of their series that were seen, and their number [D]."""
        num_tests, num_desks = ratio.shape[1], len(self.desks)
        if self._shared:  # both means are the same
            count = np.maximum(np.add.reduce(is_seen, axis=0), 1)
            mean = np.add.reduce(ratio, axis=0) / count
            return np.arange(2), np.stack([mean, mean]), np.full(2, float(len(rows)))
        place = np.full(self.num, -1, np.intp)
        place[rows] = np.arange(len(rows))
        at = place[self._row]
        desk, at = self._desk[at >= 0], at[at >= 0]
        columns = range(num_tests)
        total = np.stack([np.bincount(desk, ratio[at, test], num_desks) for test in columns], axis=1)
        count = np.stack([np.bincount(desk, is_seen[at, test], num_desks) for test in columns], axis=1)
        present = np.bincount(desk, minlength=num_desks)
        touched = np.flatnonzero(present)
        return touched, total[touched] / np.maximum(count[touched], 1.0), present[touched].astype(np.float64)

    def places_by_scope(self, rows: Rows) -> dict[str, list[int]]:
        """The places among these rows of each desk's series."""
        found: dict[str, list[int]] = {}
        of_row: dict[int, list[int]] = {}
        for row, desk in zip(self._row.tolist(), self._desk.tolist(), strict=True):
            if desk:
                of_row.setdefault(row, []).append(desk)
        for place, row in enumerate(rows.tolist()):
            for desk in of_row.get(row, ()):
                found.setdefault(self.desks[desk], []).append(place)
        return found
