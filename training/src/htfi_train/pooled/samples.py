"""Samples of the pooled learner: what was known when a bar closed, and the returns that followed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import Bar
from htfi.forecasting.config import SESSION_GAP_BARS
from htfi.forecasting.experts.pooled.features import MIN_BARS, PooledFeatures
from htfi.forecasting.panel import Panel

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


def collect_samples(instants: Iterable[Sequence[Bar]], horizons: Sequence[int]) -> PooledSamples:
    """Walk bars, those of each instant together, through what a forecast reads, and look up the outcomes after it."""
    panel, features = Panel(horizons, SESSION_GAP_BARS), PooledFeatures()
    rows: list[NDArray[np.intp]] = []
    xs: list[Single] = []
    sigmas: list[Array] = []
    outcomes: list[Array] = []
    ends: list[Instants] = []
    old: list[NDArray[np.bool_]] = []
    for bars in instants:
        batch = panel.enter(bars) if bars else None
        if batch is None:
            continue
        features.grow(len(panel))
        x, sigma = features.update(batch)
        rows.append(batch.index)
        xs.append(x)
        sigmas.append(sigma)
        outcomes.append(batch.outcomes)
        ends.append(batch.end_ns)
        old.append(batch.age >= MIN_BARS - 1)
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
