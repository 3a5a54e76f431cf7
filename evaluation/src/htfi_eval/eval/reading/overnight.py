"""Strong items before the open against the standing forecast: is the day's distribution better with what was read?

The standing forecast was made at the last close, by the live forecaster. A strong view before the open widens its band
by the reading's `volatility`. Its direction moves the band by nothing until its kind of event has earned a weight on
earlier years; the year that is judged is never among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.scores import crps
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.price_grid import Prices
from htfi_eval.eval.reading.event_study import FIRST_UNSEEN_YEAR, EventTable, quiet_size
from htfi_eval.eval.reading.moves import Moves, Window
from htfi_eval.eval.reading.scores import NOTHING, Array, Interval, ratio_by_day
from htfi_eval.eval.reading.staged_news import Phase
from htfi_eval.eval.walk import Walk

MIN_EARNED = 40  # strong views of a kind in earlier years, from which its direction may count
_MIN_T = 2.0  # and by how many standard errors
_SHRINK_EVENTS = 50.0  # events of a kind that count as much as knowing nothing of it
_MAX_MOVE = 6.0  # usual days, at which a move is cut while weights are learnt
_WARM_UP_YEARS = 2
_MIN_CELLS = 20

STANDING = "the standing forecast"
AS_READ = "band as the reading says, direction as earned"


@dataclass(frozen=True, slots=True)
class EarnedEvents:
    """Strong overnight views and what followed, of one or more sources: `pull` is direction times size [n]."""

    years: NDArray[np.int64]
    kinds: tuple[str, ...]
    pull: Array
    moves: Array
    quiet: Array

    def joined(self, other: "EarnedEvents") -> "EarnedEvents":
        return EarnedEvents(
            np.concatenate([self.years, other.years]),
            self.kinds + other.kinds,
            np.concatenate([self.pull, other.pull]),
            np.concatenate([self.moves, other.moves]),
            np.concatenate([self.quiet, other.quiet]),
        )


@dataclass(frozen=True, slots=True)
class OvernightGain:
    """1 − CRPS over that of the standing forecast, with its interval by day."""

    source: str
    way: str
    gain: Interval

    def row(self) -> dict[str, object]:
        return {
            "source": self.source,
            "forecast of the day": self.way,
            "events": self.gain.num,
            "CRPS gain": self.gain.text if self.gain.num else "too few",
        }


@dataclass(frozen=True, slots=True)
class OvernightScores:
    """Losses [n] by way, of the strong overnight events of unseen years of one source; `days` [n] for resampling."""

    source: str
    days: NDArray[np.int64]
    losses: Mapping[str, Array]

    def gains(self, seed: int) -> list[OvernightGain]:
        return [
            OvernightGain(self.source, way, crps_gain(losses, self.losses[STANDING], self.days, seed))
            for way, losses in self.losses.items()
            if way != STANDING
        ]


def crps_gain(losses: Array, standing: Array, days: NDArray[np.int64], seed: int) -> Interval:
    """1 − Σ losses / Σ standing."""
    if len(losses) < _MIN_CELLS:
        return NOTHING
    ratio = ratio_by_day(losses, standing, days, seed)
    return Interval(1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low, ratio.num)


def earned_events(table: EventTable, moves: Moves) -> EarnedEvents:
    """The strong overnight views whose day is known."""
    day = moves.by_window[Window.DAY][table.rows, table.columns]
    chosen = table.inside(Phase.OVERNIGHT) & table.strong & np.isfinite(day)
    places: list[int] = np.flatnonzero(chosen).tolist()
    return EarnedEvents(
        table.years[chosen],
        tuple(table.kinds[place] for place in places),
        (table.direction * table.size)[chosen],
        np.clip(day[chosen], -_MAX_MOVE, _MAX_MOVE),
        np.full(len(places), quiet_size(table, moves)),
    )


def earned_weights(earlier: EarnedEvents, before_year: int) -> dict[str, float]:
    """By kind of event the usual days that a pull of 1 moves, from years before; only kinds that earned a weight."""
    found: dict[str, float] = {}
    kinds = np.array(earlier.kinds)
    for kind in sorted(set(earlier.kinds)):
        chosen = (kinds == kind) & (earlier.years < before_year)
        pull, moves = earlier.pull[chosen], earlier.moves[chosen]
        squares = float((pull * pull).sum())
        if chosen.sum() < MIN_EARNED or squares <= 0.0:
            continue
        slope = float((pull * moves).sum()) / squares
        error = float(np.sqrt(np.square(moves - slope * pull).mean() / squares))
        if slope > _MIN_T * error:
            found[kind] = slope * len(pull) / (len(pull) + _SHRINK_EVENTS)
    return found


def earned_bands(earlier: EarnedEvents, before_year: int) -> dict[str, float]:
    """By kind of event how many times a quiet day's move its days moved in years before, drawn towards 1."""
    found: dict[str, float] = {}
    kinds = np.array(earlier.kinds)
    for kind in sorted(set(earlier.kinds)):
        chosen = (kinds == kind) & (earlier.years < before_year)
        num = int(chosen.sum())
        if num:
            times = float(np.abs(earlier.moves[chosen]).sum() / earlier.quiet[chosen].sum())
            found[kind] = 1.0 + (times - 1.0) * num / (num + _SHRINK_EVENTS)
    return found


def score_overnight(
    table: EventTable,
    prices: Prices,
    moves: Moves,
    earlier: EarnedEvents,
    seed: int,
    progress: ProgressCallback,
) -> OvernightScores | None:
    """Every way to forecast the day of the strong overnight events since the first unseen year; None without any."""
    chosen = np.flatnonzero(table.inside(Phase.OVERNIGHT) & table.strong & (table.years >= FIRST_UNSEEN_YEAR))
    outcome = moves.raw_day[table.rows[chosen], table.columns[chosen]]
    chosen = chosen[np.isfinite(outcome)]
    if not len(chosen):
        return None
    config = ForecastConfig()
    standing = _standing(prices, table.rows[chosen], table.columns[chosen], config, progress)
    known = np.isfinite(standing).all(axis=1)
    chosen, standing = chosen[known], standing[known]
    outcome = moves.raw_day[table.rows[chosen], table.columns[chosen]]
    levels = np.array(config.levels)
    read = table.volatility[chosen]
    pull = (table.direction * table.size)[chosen]
    years: list[int] = table.years[chosen].tolist()
    rows: list[int] = chosen.tolist()
    pairs = [(year, table.kinds[row]) for year, row in zip(years, rows, strict=True)]
    weights = {year: earned_weights(earlier, year) for year in set(years)}
    bands = {year: earned_bands(earlier, year) for year in set(years)}
    shift = np.array([weights[year].get(kind, 0.0) for year, kind in pairs], np.float64) * pull
    band = np.array([bands[year].get(kind, 1.0) for year, kind in pairs], np.float64)
    still = np.zeros(len(chosen))
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(chosen))
    ways = {
        STANDING: (np.ones(len(chosen)), still),
        AS_READ: (read, shift),
        "band as the reading says": (read, still),
        "direction as earned": (np.ones(len(chosen)), shift),
        "band as earlier years moved, direction as earned": (band, shift),
        "band as earlier years moved": (band, still),
        "the readings in another order": (read[order], shift[order]),
    }
    losses = {
        way: crps(moved(standing, widths, shifts, levels), outcome, levels)
        for way, (widths, shifts) in ways.items()
    }
    return OvernightScores(table.name, table.rows[chosen], losses)


def moved(quantiles: Array, widths: Array, shifts: Array, levels: Array) -> Array:
    """Quantiles [n, Q] widened about their median and shifted by `shifts` of their usual days."""
    middle = int(np.abs(levels - 0.5).argmin())
    low, high = int(np.abs(levels - 0.2).argmin()), int(np.abs(levels - 0.8).argmin())
    usual = (quantiles[:, high] - quantiles[:, low]) / 1.683  # of a Gaussian, from 20% to 80%
    centre = quantiles[:, middle]
    return centre[:, None] + widths[:, None] * (quantiles - centre[:, None]) + (shifts * usual)[:, None]


def _standing(
    prices: Prices,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    config: ForecastConfig,
    progress: ProgressCallback,
) -> Array:
    """The forecasts [n, Q] of one session ahead that stood when sessions `rows` of series `columns` opened."""
    days = prices.ends_ns.astype("datetime64[ns]").astype("datetime64[D]")
    series: list[int] = np.unique(columns).tolist()
    first, last = str(days[int(rows.min())]), str(days[int(rows.max())])
    cut = prices.cut(
        [prices.symbols[place] for place in series], f"{int(first[:4]) - _WARM_UP_YEARS}-01-01", last
    )
    began_ns: int = cut.ends_ns.tolist()[0]
    offset = int((prices.ends_ns < began_ns).sum())
    place_of = {column: place for place, column in enumerate(series)}
    # The last session of the series before each event.
    wanted: dict[int, list[tuple[int, int]]] = {}
    events: list[tuple[int, int]] = list(zip(rows.tolist(), columns.tolist(), strict=True))
    for number, (row, column) in enumerate(events):
        before: list[int] = np.flatnonzero(np.isfinite(prices.close[:row, column])).tolist()
        if before and before[-1] >= offset:
            wanted.setdefault(before[-1] - offset, []).append((number, place_of[column]))
    found = np.full((len(rows), len(config.levels)), np.nan)
    for instant in Walk(cut, config).instants(min(wanted, default=0), progress):
        present: list[int] = instant.places.tolist()
        where = {place: at for at, place in enumerate(present)}
        for number, place in wanted.get(instant.t, ()):
            if place in where:
                found[number] = instant.quantiles[0, where[place], 0]
    return found


def pooled(scores: Sequence[OvernightScores]) -> OvernightScores:
    """All sources as one; a session of one source is another day than that of another."""
    offsets = np.cumsum([0, *(int(one.days.max()) + 1 for one in scores)])
    return OvernightScores(
        "all sources",
        np.concatenate([one.days + offset for one, offset in zip(scores, offsets, strict=False)]),
        {way: np.concatenate([one.losses[way] for one in scores]) for way in scores[0].losses},
    )
