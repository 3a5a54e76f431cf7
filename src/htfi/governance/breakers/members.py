"""Which series are of which desk, and what a desk bets: the mean of its series' bets, but for the largest two.

Leaving out the largest makes a mean smaller, so that the bet stays an e-value; one series or two that fail trip their
own breakers and not their desk's.
"""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter

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
        pairs.sort(key=itemgetter(1))  # by desk, so that each desk's series are neighbours
        table = np.array(pairs, np.intp).reshape(-1, 2)
        self._row: NDArray[np.intp] = table[:, 0]
        self._desk: NDArray[np.intp] = table[:, 1]
        self.sizes = np.bincount(self._desk, minlength=len(self.desks)).astype(np.float64)
        of_desks = np.where(self._desk > 0, self.sizes[self._desk], 1.0)
        self.largest_desk = np.ones(self.num)  # of each series
        np.maximum.at(self.largest_desk, self._row, of_desks)
        self._shared = len(self.desks) == 2 and len(pairs) == 2 * self.num  # all series are of one desk

    def bets(self, rows: Rows, ratio: Array, is_seen: Mask) -> tuple[Rows, Array, Array]:
        """The desks [D] of these rows, the excess ratio [D, B] that each bets on, and the number of its series [D].

        It is the mean of the ratios [n, B] of its series that were seen, less twice the largest, which is at most what
        the mean without the largest two is.
        """
        if self._shared:  # the desk's and the firm's are the same
            total, largest = np.add.reduce(ratio, axis=0), np.maximum.reduce(ratio, axis=0)
            bet = _without_largest(total, largest, np.add.reduce(is_seen, axis=0))
            return np.arange(2), np.stack([bet, bet]), np.full(2, float(len(rows)))
        place = np.full(self.num, -1, np.intp)
        place[rows] = np.arange(len(rows))
        at = place[self._row]
        desk, at = self._desk[at >= 0], at[at >= 0]
        first = np.flatnonzero(np.concatenate([[True], desk[1:] != desk[:-1]]))
        ratios = ratio[at]
        total, largest = np.add.reduceat(ratios, first), np.maximum.reduceat(ratios, first)
        count = np.add.reduceat(is_seen[at].astype(np.float64), first)
        present = np.diff(np.append(first, len(desk))).astype(np.float64)
        return desk[first], _without_largest(total, largest, count), present

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


def _without_largest(total: Array, largest: Array, count: Array) -> Array:
    """(Σ − 2·max) / n, at least −1: the bet of a desk with these sums, maxima and numbers of series."""
    return np.maximum((total - 2.0 * np.maximum(largest, 0.0)) / np.maximum(count, 1.0), -1.0)
