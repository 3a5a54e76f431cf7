"""Counters and histograms that one thread adds to and any thread reads, and the registry of what a process exposes.

What is counted somewhere already is read when it is asked for: a `Reader` of the registry gives its value. Only what
happens between two readings (times, outcomes) is added up here. Reading copies, so that a reader in another thread
never holds up the one that counts.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from htfi.telemetry.catalogue import MetricSpec

OTHER = "other"
_NUM_TRIES = 3

LabelValues = tuple[str, ...]
Reading = tuple[MetricSpec, LabelValues, float]
Reader = Callable[[], Iterable[Reading]]


class Exemplar(NamedTuple):
    """A value in a bucket, and the trace (hex) that it belongs to."""

    trace_id: str
    value: float


class HistogramSample(NamedTuple):
    """`counts` by bucket, one more than there are bounds, not cumulative; `exemplars` by bucket."""

    counts: tuple[int, ...]
    total: float
    exemplars: Mapping[int, Exemplar]


class MetricFamily(NamedTuple):
    """A metric with its values by label values, as they were when it was read."""

    spec: MetricSpec
    values: Mapping[LabelValues, float]
    histograms: Mapping[LabelValues, HistogramSample]


class Counter:
    """A sum by label values."""

    __slots__ = ("_values", "spec")

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self._values: dict[LabelValues, float] = {} if spec.labels else {(): 0.0}

    def add(self, num: float, *labels: str) -> None:
        values = self._values
        values[labels] = values.get(labels, 0.0) + num

    def collect(self) -> MetricFamily:
        return MetricFamily(self.spec, self._values.copy(), {})


class HistogramCells:
    """The counts of one histogram for one set of label values."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "_total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0
        self._exemplars: dict[int, Exemplar] = {}

    def observe(self, value: float, trace_id: str = "") -> None:
        """`trace_id` (hex) is that of the sampled trace that the value belongs to, where there is one."""
        place = bisect_left(self._bounds, value)
        self._counts[place] += 1
        self._total += value
        if trace_id:
            self._exemplars[place] = Exemplar(trace_id, value)

    def sample(self) -> HistogramSample:
        return HistogramSample(tuple(self._counts), self._total, self._exemplars.copy())


class Histogram:
    """Counts of values by bucket and by label values, with the newest exemplar of each bucket."""

    __slots__ = ("_cells", "spec")

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self._cells: dict[LabelValues, HistogramCells] = {}
        if not spec.labels:
            self.cells()

    def cells(self, *labels: str) -> HistogramCells:
        """The counts for these label values, the same object at each call."""
        found = self._cells.get(labels)
        if found is None:
            found = self._cells[labels] = HistogramCells(self.spec.buckets)
        return found

    def collect(self) -> MetricFamily:
        return MetricFamily(
            self.spec, {}, {labels: one.sample() for labels, one in self._cells.copy().items()}
        )


class BoundedLabel:
    """Values of a label that come from outside: the first `max_values` of them, all others are 'other'."""

    __slots__ = ("_known", "_max_values")

    def __init__(self, max_values: int) -> None:
        self._known: dict[str, str] = {}
        self._max_values = max_values

    def of(self, value: str) -> str:
        known = self._known.get(value)
        if known is not None:
            return known
        if len(self._known) >= self._max_values:
            return OTHER
        return self._known.setdefault(value, value)


class MetricsRegistry:
    """What a process exposes: instruments that it adds to, and readers of what is counted elsewhere."""

    def __init__(self) -> None:
        self._instruments: dict[str, Counter | Histogram] = {}
        self._readers: list[Reader] = []

    def counter(self, spec: MetricSpec) -> Counter:
        """The counter of a metric, the same at each call."""
        found = self._instruments.setdefault(spec.name, Counter(spec))
        assert isinstance(found, Counter)
        return found

    def histogram(self, spec: MetricSpec) -> Histogram:
        """The histogram of a metric, the same at each call."""
        found = self._instruments.setdefault(spec.name, Histogram(spec))
        assert isinstance(found, Histogram)
        return found

    def read_from(self, reader: Reader) -> None:
        """Ask `reader` at each collection; it is called in the thread that collects and must not wait."""
        self._readers.append(reader)

    def collect(self) -> list[MetricFamily]:
        """All metrics with a value, by name."""
        found = {name: each.collect() for name, each in list(self._instruments.items())}
        read: dict[str, tuple[MetricSpec, dict[LabelValues, float]]] = {}
        for reader in list(self._readers):
            for spec, labels, value in _read(reader):
                read.setdefault(spec.name, (spec, {}))[1][labels] = value
        found |= {name: MetricFamily(spec, values, {}) for name, (spec, values) in read.items()}
        return [found[name] for name in sorted(found)]


def _read(reader: Reader) -> list[Reading]:
    """A reader's values; none where what it reads changed under it each time that it was tried."""
    for _ in range(_NUM_TRIES):
        try:
            return list(reader())
        except RuntimeError:  # a dictionary that changed its size
            continue
    return []
