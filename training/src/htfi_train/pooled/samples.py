"""Samples of the pooled learner: what was known when a bar closed, and the returns that followed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import Bar
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts.pooled.expert import PooledExpert
from htfi.forecasting.experts.pooled.features import MIN_BARS
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.panel import BarBatch

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Instants = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PooledSamples:
    """S forecasts in the order of their instants.

    Shapes: x [S, F]; y [S, H], the return over the next h bars in units of the volatility of a bar and √h, NaN where
    there is none; made_ns [S], when the bar closed; known_ns [S], when the outcome of the longest horizon was, or the
    largest integer where it never was.
    """

    x: Single
    y: Single
    made_ns: Instants
    known_ns: Instants

    def __len__(self) -> int:
        return len(self.made_ns)

    def take(self, places: NDArray[np.intp]) -> "PooledSamples":
        return PooledSamples(self.x[places], self.y[places], self.made_ns[places], self.known_ns[places])


NEVER_NS = np.iinfo(np.int64).max


class _Recorder(PooledExpert):
    """The expert with typical terms, which keeps what it reads and the outcomes that come with each bar."""

    def __init__(self, config: ForecastConfig) -> None:
        super().__init__(config)
        self.rows: list[NDArray[np.intp]] = []
        self.x: list[Single] = []
        self.sigma: list[Array] = []
        self.outcomes: list[Array] = []
        self.ends_ns: list[Instants] = []
        self.is_old: list[NDArray[np.bool_]] = []

    def update(self, bars: BarBatch) -> None:
        x, sigma = self._features.update(bars)
        self._forecast(bars, x, sigma)
        self.rows.append(bars.index)
        self.x.append(x)
        self.sigma.append(sigma)
        self.ends_ns.append(bars.end_ns)
        self.is_old.append(bars.age >= MIN_BARS - 1)

    def learn(self, bars: BarBatch) -> None:
        super().learn(bars)
        self.outcomes.append(bars.outcomes)


def collect_samples(instants: Iterable[Sequence[Bar]], config: ForecastConfig) -> PooledSamples:
    """Walk bars, those of each instant together, through a forecaster, and look up the outcomes after each.

    So samples are of bars as an expert sees them: what is known of their variance is divided out.
    """
    config = replace(config, experts=(PooledExpert.name,))
    horizons, seen = config.horizons, _Recorder(config)
    forecaster = Forecaster(config, [seen])
    for bars in instants:
        if bars:
            forecaster.observe(bars)
    forecaster.learn()
    rows, xs, sigmas, outcomes, ends, old = (
        seen.rows, seen.x, seen.sigma, seen.outcomes, seen.ends_ns, seen.is_old,
    )  # fmt: skip
    if not rows:
        empty = np.zeros(0, np.int64)
        return PooledSamples(
            np.zeros((0, 0), np.float32), np.zeros((0, len(horizons)), np.float32), empty, empty
        )
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    first = np.flatnonzero(np.diff(row[order], prepend=-1))  # of each series, in `order`
    since, ended = np.concatenate(outcomes)[order], np.concatenate(ends)[order]
    after, known_ns = np.full_like(since, np.nan), np.full(len(ended), NEVER_NS)
    for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True):
        for j, h in enumerate(horizons):
            if end - begin > h:
                after[begin : end - h, j] = since[begin + h : end, j]
                if h == horizons[-1]:
                    known_ns[begin : end - h] = ended[begin + h : end]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    unit = np.concatenate(sigmas)[:, None] * np.sqrt(np.array(horizons, np.float64))
    made_ns = np.concatenate(ends)
    found = PooledSamples(
        np.concatenate(xs), (after[back] / unit).astype(np.float32), made_ns, known_ns[back]
    )
    return found.take(np.flatnonzero(np.concatenate(old)))


def merge_samples(parts: Sequence[PooledSamples]) -> PooledSamples:
    """Samples of several data sets in the order of their instants."""
    made_ns = np.concatenate([part.made_ns for part in parts])
    order = np.argsort(made_ns, kind="stable")
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "known_ns"))
    x, y, known_ns = (column[order] for column in columns)
    return PooledSamples(x, y, made_ns[order], known_ns)
