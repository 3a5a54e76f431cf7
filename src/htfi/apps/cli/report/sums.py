"""The sums that a survey of a run fills and the page shows: scores, calibration, weights, the series."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.apps.cli.report.late import LateTally
from htfi.apps.cli.report.notable import Noted
from htfi.apps.cli.report.readings import ReadingsTally
from htfi.domain.decision import Regime
from htfi.narrative.audit_summary import Summary

FUSED = "fused"
NUM_STRETCHES = 240
NUM_PIT_BINS = 10

Array = NDArray[np.float64]


class Axes(NamedTuple):
    """What a run's forecasts range over. `names` begins with the fused forecast, then the experts."""

    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(slots=True)
class SeriesTally:
    """One series: how much there is of it, how it stands and how well it was forecast."""

    name: str
    num: int = 0
    num_withheld: int = 0
    last_price: float = 0.0
    regime: Regime = Regime.NORMAL
    num_shock: int = 0
    crps: dict[str, float] = field(default_factory=dict[str, float])  # shortest horizon, sums
    num_scored: int = 0
    num_within90: int = 0


@dataclass(slots=True)
class Survey:
    """Sums over a run, by horizon (H), name (K, fused first), level (Q), stretch (T) and regime (R).

    The NUM_STRETCHES stretches hold equally many decisions, so that nights and gaps take no room.

    Shapes: crps [T, H, K]; num [T, H]; below [H, K, Q], the count of outcomes at or below each quantile; pit
    [H, NUM_PIT_BINS] for fused; weights [T, H, K−1]; num_weights [T]; regime_within and regime_num [R, H].
    """

    axes: Axes
    size: int  # lines of the journal
    times_ns: list[int]  # [T], the last decision of each stretch
    crps: Array
    num: Array
    below: Array
    pit: Array
    weights: Array
    num_weights: Array
    regime_within: Array
    regime_num: Array
    series: dict[str, SeriesTally] = field(default_factory=dict[str, SeriesTally])
    sources: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    models: dict[str, str] = field(default_factory=dict[str, str])
    digests: list[str] = field(default_factory=list[str])
    withheld: dict[str, int] = field(default_factory=dict[str, int])
    num_events: int = 0
    last_digest: str = ""
    num_lines: int = 0
    start_ns: int = 0
    end_ns: int = 0
    widest: list[Noted] = field(default_factory=list[Noted])
    surprises: list[Noted] = field(default_factory=list[Noted])
    readings: ReadingsTally = field(default_factory=ReadingsTally)
    late: LateTally = field(default_factory=LateTally)
    news: Summary = field(default_factory=Summary)

    def stretch(self, index: int) -> int:
        """The stretch of the journal's line `index`."""
        return min(NUM_STRETCHES - 1, index * NUM_STRETCHES // self.size)


def blank(axes: Axes, size: int) -> Survey:
    h, q, k, r = len(axes.horizons), len(axes.levels), len(axes.names), len(Regime)
    return Survey(
        axes=axes,
        size=size,
        times_ns=[0] * NUM_STRETCHES,
        crps=np.zeros((NUM_STRETCHES, h, k)),
        num=np.zeros((NUM_STRETCHES, h)),
        below=np.zeros((h, k, q)),
        pit=np.zeros((h, NUM_PIT_BINS)),
        weights=np.zeros((NUM_STRETCHES, h, k - 1)),
        num_weights=np.zeros(NUM_STRETCHES),
        regime_within=np.zeros((r, h)),
        regime_num=np.zeros((r, h)),
    )


def widen(survey: Survey, names: tuple[str, ...]) -> None:
    """Admit experts that speak for the first time; scores begin anew, all of the same forecasts."""
    before = survey.axes.names[1:]
    experts = sorted({*before, *names[1:]})
    survey.axes = survey.axes._replace(names=(FUSED, *experts))
    weights = np.zeros((*survey.weights.shape[:2], len(experts)))
    weights[:, :, [experts.index(name) for name in before]] = survey.weights
    survey.weights = weights
    h, k, q = len(survey.axes.horizons), 1 + len(experts), len(survey.axes.levels)
    survey.crps, survey.below = np.zeros((NUM_STRETCHES, h, k)), np.zeros((h, k, q))
    for sums in (survey.num, survey.pit, survey.regime_within, survey.regime_num):
        sums[:] = 0
    for tally in survey.series.values():
        tally.num_scored = tally.num_within90 = 0
        tally.crps.clear()
