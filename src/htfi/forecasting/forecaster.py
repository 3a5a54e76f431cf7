"""Bars in, fused predictive distributions out, for every series at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import Forecast, KnownEvents, Regime
from htfi.domain.errors import IntegrityError, InvalidInput, ShapeMismatch
from htfi.domain.events import Bar
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.forecasting import kinds
from htfi.forecasting.band_reversion import BandReversion
from htfi.forecasting.batch import ForecastBatch
from htfi.forecasting.calibration import Calibration
from htfi.forecasting.columns import SeriesColumns
from htfi.forecasting.config import SESSION_GAP_BARS, ForecastConfig
from htfi.forecasting.expected_moves import ExpectedMoves
from htfi.forecasting.fusion import ZONES, CrpsAggregation, MaturedForecasts, stack_on_grid
from htfi.forecasting.joint.history import JointHistory, NormalScores
from htfi.forecasting.kinds_of_series import KindsOfSeries
from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.event_facts import KindFacts
from htfi.forecasting.known_variance.factor import KnownVariance
from htfi.forecasting.opinions import OpinionTracker
from htfi.forecasting.panel import SIGMA_FLOOR, BarBatch, Panel, as_rows
from htfi.forecasting.ports import Expert
from htfi.forecasting.scores import Scoreboard, ScoreRow
from htfi.forecasting.tilts import VERSION as NARRATOR_VERSION
from htfi.forecasting.tilts import Opinion
from htfi.forecasting.track_record import TrackRecordRow
from htfi.forecasting.waiting import WaitingForecasts

Array = NDArray[np.float64]

VERSION = "10"
FUSED = "fused"
NARRATOR = "narrator"  # not an expert: the effect of news on the mix
# Where weights and calibration differ. A shock is stress that has just begun: too few to learn from alone.
_REGIMES = {Regime.CALM: 0, Regime.NORMAL: 1, Regime.STRESSED: 2, Regime.SHOCK: 2}
_NUM_REGIMES = 3


class Forecaster:
    """Experts, their weights, and the forecasts that await their outcome."""

    def __init__(
        self, config: ForecastConfig, experts: Sequence[Expert], events: Sequence[ScheduledEvent] = ()
    ) -> None:
        """`events` are what calendars state, in any order."""
        names = [expert.name for expert in experts]
        if not names or len(set(names)) < len(names) or {FUSED, NARRATOR} & set(names):
            raise InvalidInput(
                f"experts {names}: give one or more, each with its own name, none '{FUSED}' or '{NARRATOR}'"
            )
        self._config = config
        self._experts = sorted(experts, key=lambda expert: expert.name)
        self._names = tuple(expert.name for expert in self._experts)
        self._horizons = np.array(config.horizons)
        self._low, self._high = config.levels.index(0.05), config.levels.index(0.95)
        k, h, q = len(names), len(config.horizons), len(config.levels)
        self._panel = Panel(config.horizons, SESSION_GAP_BARS, config.covariates)
        self._known = KnownVariance(config.horizons, SESSION_GAP_BARS, events)
        self._kinds = KindsOfSeries(self._names, config.experts)
        self._learning = CrpsAggregation(
            config.levels, k, h, _NUM_REGIMES, config.weight_half_life_bars, config.horizons,
            kinds.starting_weights(self._names, config.horizons),
            steady_kinds=kinds.steady_kinds(self._kinds.experts_by_kind),
        )  # fmt: skip
        self._moves = ExpectedMoves(config.horizons) if kinds.AUTO in config.experts else None
        self._calibration = Calibration(config, _NUM_REGIMES)
        self._bands = BandReversion(config.horizons, self._low, self._high)
        self._joint = JointHistory(config.levels)
        self._opinions = OpinionTracker(config)
        self._scoreboard = Scoreboard((FUSED, *self._names), config.horizons, config.levels)
        self._newest = SeriesColumns()
        self._newest.declare("experts", np.full((k, h, q), np.nan))
        self._newest.declare("weights", np.zeros((k, h, len(ZONES))))
        self._newest.declare("regime", _REGIMES[Regime.NORMAL], np.int64)
        self._newest.declare("calibration", np.ones(h))
        self._newest.declare("fused", np.full((h, q), np.nan))
        self._newest.declare("usual_sigma", 0.0)
        self._newest.declare("num", 0, np.int64)
        self._newest.grow(1)  # row 0 stands in for a series that was never seen
        self._pending_batch: BarBatch | None = None
        self._waiting = WaitingForecasts(config, k)

    @property
    def models(self) -> dict[str, str]:
        """Name and version of every part that shapes a forecast, for the record."""
        return {FUSED: VERSION, NARRATOR: NARRATOR_VERSION, **self._known.models} | {
            expert.name: expert.version for expert in self._experts
        }

    @property
    def event_effects(self) -> EventEffects:
        """What is learnt of scheduled events."""
        return self._known.effects

    def event_facts(self) -> list[KindFacts]:
        """What was learnt of each kind of event of a calendar, the largest effect first."""
        self.learn()
        return self._known.event_facts(self._panel.names)

    def known_events(self, rows: NDArray[np.intp]) -> dict[int, KnownEvents]:
        """By place among rows of a batch, what events make of the next bar's band, right after these bars closed."""
        found = self._known.known_events()
        return {place: found[row] for place, row in enumerate(rows.tolist()) if row in found} if found else {}

    @property
    def choices(self) -> list[kinds.KindChoice]:
        """What was chosen for each kind of series that was observed; empty where settings name the experts."""
        return self._kinds.choices(self._panel.names) if kinds.AUTO in self._config.experts else []

    @property
    def returning(self) -> list[str]:
        """The series that are held to return to a level of their own."""
        if self._moves is None:
            return []
        rows = np.arange(len(self._panel))
        return self.names_of(rows[self._moves.returns(rows)])

    @property
    def series(self) -> list[str]:
        """Every series that was observed."""
        return list(self._panel.names)

    @property
    def price_faults(self) -> list[str]:
        """One line for each split that prices were not adjusted for and each series that seems renamed, since the
        start."""
        return self._panel.price_faults

    @property
    def covariates(self) -> tuple[str, ...]:
        """Those of the settings."""
        return self._config.covariates

    @property
    def missing_covariates(self) -> list[str]:
        """Covariates of the settings of which no bar came so far."""
        return self._panel.missing_covariates

    def observe(self, bars: Sequence[Bar], regimes: Sequence[Regime] | None = None) -> None:
        """Take in bars closing at one instant, each series at most once, and make a new forecast for each.

        `regimes` are the market's, one for each bar; normal where they are not given.
        Learning from these bars waits for `learn`, so that the forecast does not; the next bars call it otherwise.
        """
        self.learn()
        known = len(self._panel)
        batch = self._panel.enter(bars, self._factors_of_closed)
        if len(self._panel) > known:
            self._grow(known, len(self._panel))
        if batch is None:
            return
        if regimes is not None:
            self._enter_regimes(bars, regimes)
        self._kinds.classify(batch)
        if self._moves is not None and not self._kinds.are_intraday(batch.index).all():
            paths = self._panel.paths_of(batch.index)
            self._moves.update(batch, paths, self._kinds.drift_days(batch.index))
        for expert in self._needed_experts():
            expert.update(batch)
        self._renew(batch)
        self._pending_batch = batch

    def _factors_of_closed(
        self, index: NDArray[np.intp], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
    ) -> tuple[Array, Array] | None:
        if self._known.num_series < len(self._panel):
            self._known.grow(self._panel.series)
        return self._known.of_closed(index, start_ns, end_ns)

    def _enter_regimes(self, bars: Sequence[Bar], regimes: Sequence[Regime]) -> None:
        rows = np.array(self._panel.rows_of_bars(bars), np.intp)
        places = np.array([_REGIMES[regime] for regime in regimes], np.int64)
        self._newest["regime"][rows[rows >= 0]] = places[rows >= 0]

    def learn(self) -> None:
        """Score the forecasts that matured with the last bars; let weights, calibration and experts learn."""
        batch, self._pending_batch = self._pending_batch, None
        if batch is None:
            return
        seen = self._learn_from_outcomes(batch)
        for expert in self._needed_experts():
            expert.learn(seen)
        self._opinions.queue(batch)
        self._waiting.queue(batch, self._newest)

    def _needed_experts(self) -> list[Expert]:
        """Those that some series' kind has."""
        is_needed = self._kinds.is_needed
        return [expert for expert, needed in zip(self._experts, is_needed, strict=True) if needed]

    def _seen_by_experts(self, batch: BarBatch) -> BarBatch:
        """The batch whose outcomes are less the moves that were expected, and divided by what was known of their
        variance: the experts learn from it."""
        seen = batch
        if self._moves is not None:
            are_intraday = self._kinds.are_intraday(batch.index)
            if not are_intraday.all():
                seen = self._moves.less_expected(batch)
                self._moves.learn(batch, ~are_intraday)
        outcomes = self._known.divided(seen)
        return seen if outcomes is None else replace(seen, outcomes=outcomes)

    def _learn_from_outcomes(self, batch: BarBatch) -> BarBatch:
        """Score the forecasts of the experts and their mix of h bars ago; the batch as experts see it."""
        waited, known, outcome, regimes = self._waiting.matured(batch)
        seen = self._seen_by_experts(batch)
        self._known.learn(batch, self._ratio(batch, waited[:, 0, 0]))
        if not known.any():
            return seen
        ends_ns = self._panel.ends_ns(batch.index)
        self._joint.learn(batch.index, ends_ns, waited[:, 0, 0], batch.outcomes[:, 0])
        matured = MaturedForecasts(
            batch.index, batch.group, batch.end_ns, outcome, known[:, 0], regimes, self._panel.group_sizes
        )
        self._calibration.learn(matured, waited)
        pools, sizes = self._kinds.pools(batch.index), self._kinds.pool_sizes
        self._learning.learn(replace(matured, groups=pools, num_series=sizes), waited)
        plain = waited[:, 0]
        tilted = self._opinions.learn(batch, plain, outcome, known[:, 0])
        if tilted is not plain:
            waited[:, 0] = tilted
        self._scoreboard.add(waited, outcome, self._kinds.are_known(batch.index, known))
        return seen

    def _ratio(self, batch: BarBatch, waited: Array) -> Array:
        """The newest returns [n] over half the 90% band that was forecast for them; NaN where none was."""
        half = 0.5 * (waited[:, self._high] - waited[:, self._low])
        if self._config.horizons[0] != 1:
            half = np.full_like(half, np.nan)
        return batch.outcomes[:, 0] / np.maximum(half, SIGMA_FLOOR)

    def _renew(self, batch: BarBatch) -> None:
        """Take the experts' new quantiles and mix them."""
        rows, newest = batch.rows, self._newest
        shape = (len(batch.index), len(self._horizons), len(self._config.levels))
        found = [
            _checked(expert.name, expert.quantiles(rows), shape) if is_needed else None
            for expert, is_needed in zip(self._experts, self._kinds.is_needed, strict=True)
        ]
        ahead = self._known.ahead(batch.index)
        coming = None if self._moves is None else self._moves.coming(rows)
        names = ("experts", "weights", "fused")
        if isinstance(rows, slice):  # rows that are neighbours are written where they stand
            experts, weights, fused = (newest[name][rows] for name in names)
        else:
            n = len(batch.index)
            experts, weights, fused = (np.empty((n, *newest[name].shape[1:])) for name in names)
        stack_on_grid(found, experts, ahead, coming, self._kinds.idle_among_needed(batch.index))
        regimes = newest["regime"][batch.index]
        calibration = self._calibration.stretch(batch.index, batch.group, regimes)
        self._bands.apply(batch.index, experts, ahead, calibration)
        pools = self._kinds.pools(batch.index)
        self._learning.fuse(
            batch.index, pools, regimes, self._kinds.pool_sizes, experts, calibration, weights, fused
        )
        newest["calibration"][rows] = calibration
        if not isinstance(rows, slice):
            for name, renewed in zip(names, (experts, weights, fused), strict=True):
                newest[name][rows] = renewed
        self._opinions.forget(rows)

    def forecast(self, series: Sequence[str]) -> ForecastBatch:
        """The newest forecast of each series ('SYMBOL/interval'); reading changes nothing.

        A series that was never observed, or too briefly, is not `ready`.
        """
        return self._forecast(self._panel.rows_of(series))

    def forecast_bars(self, bars: Sequence[Bar]) -> ForecastBatch:
        """The same of the series of bars."""
        return self._forecast(np.array(self._panel.rows_of_bars(bars), np.intp))

    def choice_of(self, series: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each expert, by name, is among those of each series' kind [n, K]; the series were observed."""
        return ~self._kinds.idle(self._panel.rows_of(series))

    def names_of(self, rows: NDArray[np.intp]) -> list[str]:
        """The ids of series by their rows in a batch."""
        names = self._panel.names
        return [names[row] for row in rows.tolist()]

    def _forecast(self, found: NDArray[np.intp]) -> ForecastBatch:
        seen = found >= 0
        rows = as_rows(np.maximum(found, 0))
        newest = {name: column[rows].copy() for name, column in self._newest.items()}
        fused, names = newest["fused"], self._names
        is_needed = self._kinds.is_needed
        if not all(is_needed):
            names = tuple(expert.name for expert in self._needed_experts())
            for each in ("experts", "weights"):
                newest[each] = newest[each][:, is_needed]
        return ForecastBatch(
            names=names,
            horizons=self._config.horizons,
            levels=self._config.levels,
            ready=np.isfinite(fused[:, 0, 0]) & seen,
            quantiles=fused,
            experts=newest["experts"],
            weights=newest["weights"],
            calibration=newest["calibration"],
            usual_sigma=newest["usual_sigma"],
            rows=found,
        )

    def apply_opinions(
        self, batch: ForecastBatch, opinions: Mapping[int, Opinion], *, is_tracked: bool = True
    ) -> None:
        """Tilt the newest forecasts in `batch`, by place, as far as the track record of each narrator allows.

        Where it is not `is_tracked`, nothing is learnt from them: forecasts between bars end with those on bars.
        """
        self._opinions.weigh(batch, opinions, is_tracked=is_tracked)

    def replace_opinion(
        self,
        series: str,
        age: int,
        forecast: Forecast,
        opinion: Opinion,
        weight: list[float],
        *,
        is_tracked: bool = True,
    ) -> Forecast:
        """A forecast of `series`, made at `age`, with another opinion in place of its own, weighted by `weight` [H]."""
        self.learn()
        (row,) = self._panel.rows_of([series]).tolist()
        newest_age = self._panel.age(row)
        return self._opinions.reweigh(forecast, opinion, weight, row, age, newest_age, is_tracked=is_tracked)

    def age(self, series: str) -> int:
        """How many bars of a series that has a forecast came before its newest."""
        (row,) = self._panel.rows_of([series]).tolist()
        return self._panel.age(row)

    def divergence(self, series: str) -> float:
        """How rare the latest disagreement between news and numbers on a series was, as a rank 0–1; 0 for none."""
        (row,) = self._panel.rows_of([series]).tolist()
        return self._opinions.divergence(row) if row >= 0 else 0.0

    def track_record_weight(self, narrator: str) -> list[float]:
        """The weight [H] that a narrator's opinions have now."""
        return self._opinions.track_record_weight(narrator)

    def potential_weight(self, narrator: str) -> float:
        """The weight that a narrator's next opinion may be worth, 0–1 (`NarratorTrackRecords.potential`)."""
        return self._opinions.potential_weight(narrator)

    def track_records(self) -> list[TrackRecordRow]:
        """The track record of opinions, by narrator and horizon."""
        self.learn()
        return self._opinions.track_records()

    def surprises(self, series: Sequence[str]) -> NormalScores:
        """The surprises of n series at the last instants, from which joint scenarios are made.

        Raises: InvalidInput for a series that was never observed, or series of several intervals.
        """
        self.learn()
        rows = self._panel.rows_of(series)
        unknown = [name for name, row in zip(series, rows.tolist(), strict=True) if row < 0]
        if unknown or not series:
            raise InvalidInput(f"joint scenarios are of series that were observed, not {unknown or 'none'}")
        return self._joint.surprises(rows)

    def scores(self) -> list[ScoreRow]:
        """Mean scores so far, the fused forecast first."""
        self.learn()
        return self._scoreboard.rows()

    def state(self) -> dict[str, Any]:
        """Everything that the next forecast depends on; `restore` continues bit for bit."""
        self.learn()
        return {
            "panel": self._panel.state(),
            "experts": {expert.name: expert.state() for expert in self._experts},
            "calibration": self._calibration.state(),
            "bands": self._bands.state(),
            "learning": self._learning.state(),
            "newest": self._newest.state(),
            "pending": self._waiting.columns.state(),
            "hearing": self._opinions.state(),
            "scores": self._scoreboard.state(),
            "joint": self._joint.state(),
            "kinds": self._kinds.state(),
            "expected_moves": self._moves.state() if self._moves is not None else {},
            "known_variance": self._known.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Raises: IntegrityError where the state was saved under other experts or settings."""
        self._pending_batch = None
        if set(state["experts"]) != set(self._names):
            raise IntegrityError(
                f"saved forecasts are by {sorted(state['experts'])}, not {list(self._names)}: start again"
            )
        self._panel.restore(state["panel"])
        self._kinds.restore(state["kinds"])
        if self._moves is not None:
            self._moves.restore(state["expected_moves"])
        for expert in self._experts:
            expert.restore(state["experts"][expert.name])
        self._calibration.restore(state["calibration"])
        self._bands.columns.grow(len(self._panel))
        if "bands" in state:
            self._bands.restore(state["bands"])
        self._learning.restore(state["learning"])
        self._newest.restore(state["newest"])
        self._waiting.columns.restore(state["pending"])
        self._opinions.restore(state["hearing"])
        self._scoreboard.restore(state["scores"])
        self._joint.restore(state.get("joint", {}))
        self._known.grow(self._panel.series)
        if "known_variance" in state:
            self._known.restore(state["known_variance"])

    def _grow(self, num_before: int, num_series: int) -> None:
        self._kinds.enter(self._panel)
        for expert in self._needed_experts():
            expert.grow(num_series)
        if self._moves is not None:
            self._moves.grow(num_series)
        for part in (self._learning, self._calibration, self._bands, self._waiting):
            part.columns.grow(num_series)
        self._newest.grow(num_series)
        fresh = np.arange(num_before, num_series)
        self._learning.enter(fresh, self._kinds.pools(fresh))
        self._opinions.grow(num_series)
        self._joint.grow(self._panel.intervals)


def _checked(name: str, found: object, shape: tuple[int, int, int]) -> Array:
    """What the expert of a name returned as its quantiles [n, H, Q]: compiled code, which reads it, checks nothing.

    Raises: ShapeMismatch.
    """
    if isinstance(found, np.ndarray):
        array = cast("NDArray[Any]", found)
        if array.dtype == np.float64 and array.shape == shape:
            return array
        got = f"an array {list(array.shape)} of {array.dtype}"
    else:
        got = "None" if found is None else f"an object of type {type(found).__name__}"
    raise ShapeMismatch(
        f"expert '{name}': its quantiles must be a float64 array [n, H, Q] = {list(shape)}, not {got}: "
        "correct the expert, or leave it out of forecasting.experts"
    )
