"""What governance looks at of decisions that are to be made: what a hold may reach, and what checkpoints judge by."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Regime, Rung
from htfi.governance.checkpoints.reasons import CheckpointFacts, expert_spread, novelty_of, spread_rows
from htfi.governance.control.state import HoldSubject, readers_of
from htfi.pipeline.point import PointColumns
from htfi.pipeline.series import SeriesContext


class CheckedColumns:
    """What checkpoints look at of all decisions of a point. Implements `CheckpointColumns`.

    `contexts` are the series that numbers alone do not decide, by row.
    """

    def __init__(self, columns: PointColumns, contexts: Mapping[int, SeriesContext]) -> None:
        self._columns, self._contexts = columns, contexts
        self.is_plain = np.ones(len(columns), np.bool_)
        self.is_plain[list(contexts)] = False

    def symbols(self) -> Sequence[str]:
        return [bar.symbol for bar in self._columns.bars]

    def regimes(self) -> Sequence[Regime]:
        return self._columns.market.regimes()

    def rungs(self) -> Sequence[Rung]:
        contexts, columns = self._contexts, self._columns
        return [
            contexts[row].request.plan.rung if row in contexts else columns.plan(row).rung
            for row in range(len(columns))
        ]

    def bands(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._columns.forecasts.bands()

    def novelty(self) -> NDArray[np.float64]:
        return np.array([novelty_of(self._columns.drivers_at(row)) for row in range(len(self._columns))])

    def expert_spread(self) -> NDArray[np.float64]:
        forecasts = self._columns.forecasts
        return spread_rows(forecasts.experts[:, :, 0, forecasts.levels.index(0.5)], self._columns.widths())


def hold_subject(columns: PointColumns, row: int, context: SeriesContext | None) -> HoldSubject:
    """What a hold may reach of the decision on a row; `context` where numbers alone do not decide it."""
    forecasts = columns.forecasts
    spoke = np.isfinite(forecasts.experts[row, :, 0, 0]).tolist()
    names = [name for name, is_present in zip(forecasts.names, spoke, strict=True) if is_present]
    checks = partial(_checkpoint_facts, columns, row, context)
    if context is None:
        return HoldSubject(columns.series[row], names, checks=checks)
    return HoldSubject(
        columns.series[row],
        names,
        context.swaps,
        readers_of(context.view, context.request.plan.rung),
        context.forecast is not None and context.forecast.tilt is not None,
        checks,
        set_aside=context.set_aside,
    )


def _checkpoint_facts(columns: PointColumns, row: int, context: SeriesContext | None) -> CheckpointFacts:
    """What a checkpoint judges by of a decision that is to be made: that of its record."""
    forecast = columns.forecast(row)
    low, high = forecast.central_band
    return CheckpointFacts(
        symbol=columns.bars[row].symbol,
        regime=columns.market.regime(row),
        rung=(columns.plan(row) if context is None else context.request.plan).rung,
        low=low,
        high=high,
        novelty=novelty_of(columns.drivers_at(row)),
        expert_spread=expert_spread(forecast.expert_ticks, forecast.levels, high - low),
        divergence_rank=forecast.tilt.divergence_rank if forecast.tilt is not None else 0.0,
        suspicion="" if context is None else context.request.news.suspicion,
    )
