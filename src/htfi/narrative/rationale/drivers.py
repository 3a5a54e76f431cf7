"""Finds the features that stand out: those furthest from their usual magnitude, which is learnt per series.

All series of an instant at once. Compiled where a compiler is at hand (drivers.pxd): the same values either way.
"""

from array import array
from collections.abc import Sequence
from typing import Any

from htfi.narrative.config import USUAL_HALF_LIFE_BARS, USUAL_MIN_BARS, NarrativeConfig
from htfi.narrative.rationale.units import feature_family

MAX_DRIVERS = 3
MIN_RATIO = 1.25  # nearer to usual than this, either way, a feature does not stand out
MAX_RATIO = (
    1e6  # beyond it the ratio is not a measure: the mean has decayed to nothing, or the value is out of range
)
_MAX_RATIO_BELOW = 1.0 / MIN_RATIO
_RETURN_PREFIX = "return"  # a small last move is not a driver
_MAX_DRIVERS = MAX_DRIVERS  # drivers.pxd hides its C names from Python
_NAN = float("nan")

Numbers = Any  # contiguous numbers of one type: an array, or a numpy array of one axis


class FeatureNames:
    """The features that columns stand for: the place of each among those that were learnt, and what may be stated.

    `families` are numbers, −1 for one that is never stated; `ranks` order the names as texts.
    """

    def __init__(self, names: Sequence[str], places: Sequence[int]) -> None:
        stories = [feature_family(name) for name in names]
        known = {story: number for number, story in enumerate(dict.fromkeys(stories)) if story is not None}
        order = {name: rank for rank, name in enumerate(sorted(names))}
        self.places = array("q", places)
        self.families = array("q", [-1 if story is None else known[story] for story in stories])
        self.ranks = array("q", [order[name] for name in names])
        self.are_returns = array("q", [name.startswith(_RETURN_PREFIX) for name in names])


class FeatureBaseline:
    """The mean of |feature| per series: plain at first, exponentially weighted later on."""

    def __init__(self, config: NarrativeConfig | None = None) -> None:
        config = config or NarrativeConfig()
        self._min_bars = USUAL_MIN_BARS
        self._min_gain = 1.0 - 2.0 ** (-1.0 / USUAL_HALF_LIFE_BARS)
        self._row_of: dict[str, int] = {}
        self._place_of: dict[str, int] = {}
        self._names: dict[tuple[str, ...], FeatureNames] = {}
        self._num_rows = self._width = 0  # for which there is space
        self._means = array("d")  # [num_rows, width], NaN where nothing was learnt
        self._num_bars = array("q")  # [num_rows]
        self._num_known = array("q")  # features with a mean [num_rows]

    def learn(self, series: Sequence[str], names: tuple[str, ...], features: Numbers) -> None:
        """Learn the features of one bar of n series. Shapes: features [n, F], flat, NaN where undefined."""
        columns, width = self._columns(names), len(names)
        for name in series:
            if name not in self._row_of:
                self._begin(name)
        values, places, means = memoryview(features), columns.places, self._means
        for at, name in enumerate(series):
            row: int = self._row_of[name]
            self._num_bars[row] += 1
            gain = max(1.0 / self._num_bars[row], self._min_gain)
            for column in range(width):
                value = values[at * width + column]
                if value != value:
                    continue
                size = value if value >= 0.0 else -value
                place = row * self._width + places[column]
                before = means[place]
                if before != before:
                    means[place] = size
                    self._num_known[row] += 1
                else:
                    means[place] = before + gain * (size - before)

    def find_drivers(
        self,
        series: Sequence[str],
        names: tuple[str, ...],
        features: Numbers,
        found: Numbers,
        usual: Numbers,
        counts: Numbers,
    ) -> None:
        """Of each of n series at most three features, by |log(|value| / usual)|, largest first, one of each family.

        Shapes: features [n, F], found and usual [n, 3], all flat; counts [n]. Fills `found` with places in `names`,
        `usual` with their mean magnitudes, `counts` with how many there are, −1 where nothing is usual yet: before
        `usual_min_bars` bars were learnt. Where value or mean is 0, or one is more than `MAX_RATIO` times the other,
        there is no ratio.
        """
        columns, width = self._columns(names), len(names)
        means, places, families = self._means, columns.places, columns.families
        values: Numbers = memoryview(features)
        out_found: Numbers = memoryview(found)
        out_usual: Numbers = memoryview(usual)
        out_counts: Numbers = memoryview(counts)
        ratios: Numbers = array("d", bytes(8 * width))
        for at, name in enumerate(series):
            row: int = self._row_of.get(name, -1)
            out_counts[at] = -1
            if row < 0 or self._num_bars[row] < self._min_bars or not self._num_known[row]:
                continue
            for column in range(width):
                mean = means[row * self._width + places[column]]
                value = values[at * width + column]
                ratios[column] = _ratio(value, mean, columns.are_returns[column] != 0)
            num = 0
            while num < _MAX_DRIVERS:
                best = -1
                for column in range(width):
                    if ratios[column] > 0.0 and (
                        best < 0
                        or ratios[column] > ratios[best]
                        or (ratios[column] == ratios[best] and columns.ranks[column] > columns.ranks[best])
                    ):
                        best = column
                if best < 0:
                    break
                story = families[best]
                ratios[best] = 0.0
                if story < 0:
                    continue
                for column in range(width):
                    if families[column] == story:
                        ratios[column] = 0.0
                out_found[at * _MAX_DRIVERS + num] = best
                out_usual[at * _MAX_DRIVERS + num] = means[row * self._width + places[best]]
                num += 1
            out_counts[at] = num

    def _columns(self, names: tuple[str, ...]) -> FeatureNames:
        found = self._names.get(names)
        if found is None:
            for name in names:
                self._place_of.setdefault(name, len(self._place_of))
            if len(self._names) >= 64:  # names of macro series come in ever new orders
                self._names.clear()
            places = [self._place_of[name] for name in names]
            found = self._names[names] = FeatureNames(names, places)
            if len(self._place_of) > self._width:
                self._make_space(self._num_rows, 2 * len(self._place_of))
        return found

    def _begin(self, series: str) -> None:
        row = self._row_of[series] = len(self._row_of)
        if row >= self._num_rows:
            self._make_space(2 * (row + 1), self._width)

    def _make_space(self, num_rows: int, width: int) -> None:
        means = array("d", [_NAN]) * (num_rows * width)
        for row in range(self._num_rows):
            for place in range(self._width):
                means[row * width + place] = self._means[row * self._width + place]
        num_bars, num_known = array("q", bytes(8 * num_rows)), array("q", bytes(8 * num_rows))
        for row in range(self._num_rows):
            num_bars[row], num_known[row] = self._num_bars[row], self._num_known[row]
        self._means, self._num_bars, self._num_known = means, num_bars, num_known
        self._num_rows, self._width = num_rows, width

    def state(self) -> dict[str, Any]:
        means: dict[str, dict[str, float]] = {}
        for series, row in self._row_of.items():
            kept = {name: self._means[row * self._width + place] for name, place in self._place_of.items()}
            means[series] = {name: mean for name, mean in kept.items() if mean == mean}
        return {"means": means, "num_bars": {name: self._num_bars[row] for name, row in self._row_of.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        self._row_of, self._place_of, self._names = {}, {}, {}
        self._num_rows = self._width = 0
        self._means, self._num_bars, self._num_known = array("d"), array("q"), array("q")
        self._columns(tuple(dict.fromkeys(name for means in state["means"].values() for name in means)))
        for series, num_bars in state["num_bars"].items():
            self._begin(series)
            row: int = self._row_of[series]
            self._num_bars[row] = num_bars
            for name, mean in state["means"].get(series, {}).items():
                self._means[row * self._width + self._place_of[name]] = mean
                self._num_known[row] += 1


def _ratio(value: float, mean: float, is_return: bool) -> float:
    """How far a value is from usual, either way; 0 where it does not stand out."""
    size = value if value >= 0.0 else -value
    if not (mean > 0.0 and size > 0.0):
        return 0.0
    if MAX_RATIO * mean >= size >= MIN_RATIO * mean:
        return size / mean
    if mean / MAX_RATIO <= size <= _MAX_RATIO_BELOW * mean and not is_return:
        return mean / size
    return 0.0
