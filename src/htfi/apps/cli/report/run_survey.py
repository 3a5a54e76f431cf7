"""What a survey of decisions holds: sums by horizon, name, level, stretch and regime."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from htfi.apps.cli.report.amendments import AmendmentCounts
from htfi.apps.cli.report.cells import NUM_STRETCHES, CoverageCells
from htfi.apps.cli.report.news_answers import NewsAnswers
from htfi.apps.cli.report.notable import NotableDecision
from htfi.apps.cli.report.readings import ReadingScores, RecentReadings
from htfi.apps.cli.report.stated_confidence import StatedConfidence
from htfi.apps.cli.summary import BASELINE
from htfi.domain.decision import Regime
from htfi.narrative.audit_summary import AuditSummary

FUSED = "fused"
NUM_INTERVALS = NUM_STRETCHES
NUM_PIT_BINS = 10

FloatArray = NDArray[np.float64]


class ForecastAxes(NamedTuple):
    """What a run's forecasts range over. `names` begins with the fused forecast, then the experts."""

    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(slots=True)
class SeriesScore:
    """One series: how much there is of it, how it stands and how well it was forecast."""

    name: str
    num: int = 0
    num_withheld: int = 0
    last_price: float = 0.0
    last_end_ns: int = 0
    regime: Regime = Regime.NORMAL
    num_shock: int = 0
    crps: dict[str, float] = field(default_factory=dict[str, float])  # shortest horizon, sums
    num_scored: int = 0
    num_within90: int = 0


@dataclass(slots=True)
class RunSurvey:
    """Sums over a run, by horizon (H), name (K, fused first), level (Q), stretch (T) and regime (R).

    The NUM_STRETCHES stretches hold equally many decisions, so that nights and gaps take no space.

    Shapes: crps and num_by_name [T, H, K], each expert's where it is one for that kind of series; num [T, H]; below
    [H, K, Q], the count of outcomes at or below each quantile; pit [H, NUM_PIT_BINS] for fused; weights [T, H, K−1];
    num_weights [T]; regime_within and regime_num [R, H].
    """

    axes: ForecastAxes
    size: int  # lines of the journal
    times_ns: list[int]  # [T], the last decision of each stretch
    crps: FloatArray
    num: FloatArray
    num_by_name: FloatArray
    below: FloatArray
    pit: FloatArray
    weights: FloatArray
    num_weights: FloatArray
    regime_within: FloatArray
    regime_num: FloatArray
    series: dict[str, SeriesScore] = field(default_factory=dict[str, SeriesScore])
    sources: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    models: dict[str, str] = field(default_factory=dict[str, str])
    digests: list[str] = field(default_factory=list[str])
    withheld: dict[str, int] = field(default_factory=dict[str, int])
    num_events: int = 0
    last_digest: str = ""
    num_lines: int = 0
    start_ns: int = 0
    end_ns: int = 0
    widest: list[NotableDecision] = field(default_factory=list[NotableDecision])
    surprises: list[NotableDecision] = field(default_factory=list[NotableDecision])
    readings: ReadingScores = field(default_factory=ReadingScores)
    recent: RecentReadings = field(default_factory=RecentReadings)
    amendments: AmendmentCounts = field(default_factory=AmendmentCounts)
    answers: NewsAnswers = field(default_factory=NewsAnswers)
    news: AuditSummary = field(default_factory=AuditSummary)
    stated: StatedConfidence = field(default_factory=StatedConfidence)
    cells: CoverageCells = field(init=False)

    def __post_init__(self) -> None:
        self.cells = CoverageCells(len(self.axes.horizons))

    @property
    def baseline(self) -> int:
        """The place among the names of the random walk, or of the last name in a run without one."""
        names = self.axes.names
        return names.index(BASELINE) if BASELINE in names else len(names) - 1

    def interval(self, index: int) -> int:
        """The stretch of the journal's line `index`."""
        return min(NUM_INTERVALS - 1, index * NUM_INTERVALS // self.size)


def empty_survey(axes: ForecastAxes, size: int) -> RunSurvey:
    h, q, k, r = len(axes.horizons), len(axes.levels), len(axes.names), len(Regime)
    return RunSurvey(
        axes=axes,
        size=size,
        times_ns=[0] * NUM_INTERVALS,
        crps=np.zeros((NUM_INTERVALS, h, k)),
        num=np.zeros((NUM_INTERVALS, h)),
        num_by_name=np.zeros((NUM_INTERVALS, h, k)),
        below=np.zeros((h, k, q)),
        pit=np.zeros((h, NUM_PIT_BINS)),
        weights=np.zeros((NUM_INTERVALS, h, k - 1)),
        num_weights=np.zeros(NUM_INTERVALS),
        regime_within=np.zeros((r, h)),
        regime_num=np.zeros((r, h)),
    )


def add_experts(survey: RunSurvey, names: tuple[str, ...]) -> None:
    """Admit experts that forecast for the first time; scores begin again, all of the same forecasts."""
    before = survey.axes.names[1:]
    experts = sorted({*before, *names[1:]})
    survey.axes = survey.axes._replace(names=(FUSED, *experts))
    weights = np.zeros((*survey.weights.shape[:2], len(experts)))
    weights[:, :, [experts.index(name) for name in before]] = survey.weights
    survey.weights = weights
    h, k, q = len(survey.axes.horizons), 1 + len(experts), len(survey.axes.levels)
    survey.crps, survey.below = np.zeros((NUM_INTERVALS, h, k)), np.zeros((h, k, q))
    survey.num_by_name = np.zeros((NUM_INTERVALS, h, k))
    for sums in (survey.num, survey.pit, survey.regime_within, survey.regime_num):
        sums[:] = 0
    num_instants, last_ns = survey.cells.num_instants, survey.cells.last_instant_ns
    survey.cells = CoverageCells(h, num_instants=num_instants, last_instant_ns=last_ns)
    for tally in survey.series.values():
        tally.num_scored = tally.num_within90 = 0
        tally.crps.clear()
