"""How surely and how soon breakers find failures, and how often they trip where nothing failed.

Thresholds were chosen on worlds of `TUNING`; what is reported is of other series, other histories and other seeds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi.domain.governance import BreakerState
from htfi.governance.breakers.observations import BreakerObservation, PointObservation
from htfi.governance.breakers.panel import BreakerPanel
from htfi.governance.breakers.states import BreakerChange
from htfi_eval.eval.governance.breaker_faults import FAULTS, MARKET, MINUTES, READINGS, Fault, FaultInjection
from htfi_eval.eval.governance.breaker_worlds import (
    MarketWorld,
    ReadingWorld,
    World,
    intraday_prices,
    read_pool,
)
from htfi_eval.eval.prices import Prices, data_folder, load_prices
from htfi_eval.results import PartFigures
from htfi_train.simulation.stories import FIRST_EVALUATION_SEED

NUM_SERIES = 20  # of a desk
_NS_PER_YEAR = 365.25 * 86_400e9
_MIN_SHARE = 0.99  # of the days that a series must have
_DESKS_OF_SEED = 4
_NUM_READING_DAYS = 3_000
_NUM_POOLED, _NUM_POOLED_QUICK = 240, 60  # readings, from which streams of them are drawn
_OTHER_HISTORIES = (
    ("ETFs and large stocks, daily 1998–2021", "etf", None, None),
    ("FX, daily 2012–2019", "fx_daily", None, None),
    ("FX, hourly 2015–2016", "fx_hourly", "2014-12-01", "2016-12-31"),
)


@dataclass(frozen=True, slots=True)
class WorldSeeds:
    """Which worlds: the desk drawn, the simulated minutes, the readings and the instants at which faults begin."""

    desk: int
    minutes: int
    readings: int
    starts: int


TUNING = WorldSeeds(desk=1, minutes=10, readings=FIRST_EVALUATION_SEED + 19, starts=5)
REPORTED = WorldSeeds(desk=2, minutes=20, readings=FIRST_EVALUATION_SEED + 77, starts=6)


@dataclass(frozen=True, slots=True)
class FaultTrial:
    """One fault in one world, with the severity that was drawn: after how many instants a finder tripped; None where
    none did in time.
    """

    fault: str
    severity: float | None
    delay: int | None


@dataclass(frozen=True, slots=True)
class TripCount:
    """Trips over a history without a fault, of a desk."""

    history: str
    years: float
    trips: list[BreakerChange]


def figures(quick: bool, data: Path | None = None) -> PartFigures:
    """breaker_detection and breaker_false_trips_a_year, on worlds that no threshold was chosen by."""
    return measure(REPORTED, 3 if quick else 20, quick=quick, data=data)


def measure(seeds: WorldSeeds, num: int, *, quick: bool, data: Path | None = None) -> PartFigures:
    """Detection over every kind of failure in `num` worlds each, and false trips by history."""
    num_pooled = _NUM_POOLED_QUICK if quick else _NUM_POOLED
    trials = list(run_all_trials(seeds, num, num_pooled, data))
    rows: list[dict[str, Any]] = []
    for fault in FAULTS:
        mine = [one for one in trials if one.fault == fault.name]
        delays = [one.delay for one in mine if one.delay is not None]
        rows.append({
            "failure": fault.name, "in": fault.world, "worlds": len(mine), "found": len(delays) / len(mine),
            "median delay": float(np.median(delays)) if delays else None, "deadline": fault.deadline,
            "missed severities": _missed(mine), "drawn severities": _span(mine),
        })  # fmt: skip
    has_data = data_folder(data) is not None
    counts = list(
        count_false_trips(seeds, quick=quick, data=data) if has_data else count_simulated_trips(seeds)
    )
    rows += [
        {
            "failure": f"none: {one.history}",
            "years": round(one.years, 1),
            "false trips a year": len(one.trips) / one.years,
        }
        for one in counts
    ]
    metrics: dict[str, float | None] = {
        "breaker_detection": float(np.mean([one.delay is not None for one in trials])),
        "breaker_false_trips_a_year": max(len(one.trips) / one.years for one in counts),
    }
    notes = ["breaker_false_trips_a_year: of the history with most, every trip counted as false"]
    if not has_data:
        notes.append("staged data were not found: prices are those of simulated sessions")
    return PartFigures(title="Circuit breakers", metrics=metrics, rows=rows, notes=notes)


def _missed(trials: Sequence[FaultTrial]) -> str:
    return _span([one for one in trials if one.delay is None])


def _span(trials: Sequence[FaultTrial]) -> str:
    """From the lowest to the highest severity; empty without any."""
    drawn = [one.severity for one in trials if one.severity is not None]
    return f"{min(drawn):.2f} to {max(drawn):.2f}" if drawn else ""


def draw_panels(prices: Prices, num: int, seed: int) -> list[Prices]:
    """Desks of series that trade all the time, no series in two, nor in those of another seed. Raises: InvalidInput."""
    full = np.flatnonzero(np.isfinite(prices.close).mean(axis=0) >= _MIN_SHARE)
    num_needed = seed * _DESKS_OF_SEED * NUM_SERIES
    if len(full) < num_needed or num > _DESKS_OF_SEED:
        raise InvalidInput(
            f"{prices.name} has {len(full)} whole series: {num} desks of seed {seed} need {num_needed}"
        )
    order: list[int] = np.random.default_rng(1).permutation(full).tolist()
    first = (seed - 1) * _DESKS_OF_SEED * NUM_SERIES
    parts = [order[first + k * NUM_SERIES : first + (k + 1) * NUM_SERIES] for k in range(num)]
    return [prices.cut([prices.symbols[place] for place in sorted(part)]) for part in parts]


def run_all_trials(
    seeds: WorldSeeds, num: int, num_pooled: int, data: Path | None = None
) -> Iterator[FaultTrial]:
    """Every fault in `num` worlds of its kind; without staged prices, those of simulated sessions stand in."""
    rng = np.random.default_rng(seeds.starts)
    by_world = {kind: [one for one in FAULTS if one.world == kind] for kind in (MARKET, MINUTES, READINGS)}
    if data_folder(data) is not None:
        panel = draw_panels(load_prices("us_equities", data), 1, seeds.desk)[0]
    else:
        panel = intraday_prices(seeds.desk, num_bars=3_000)
    yield from run_trials(MarketWorld(panel), by_world[MARKET], 500, 2_400 // num, num, rng)
    for number in range(num):
        minutes = MarketWorld(intraday_prices(1_000 * seeds.minutes + number))
        yield from run_trials(minutes, by_world[MINUTES], 400, 50, 1, rng)
    readings = ReadingWorld(read_pool(seeds.readings, num_pooled), seeds.starts)
    yield from run_trials(readings, by_world[READINGS], 250, 100, num, rng)


def run_trials(
    world: World, faults: Sequence[Fault], warm: int, spacing: int, num: int, rng: np.random.Generator
) -> Iterator[FaultTrial]:
    """Every fault at `num` instants of a world, `warm` after its beginning and up to `spacing` apart."""
    panel = BreakerPanel()
    for number in range(num):
        for seen in world.ahead(warm if number == 0 else int(rng.integers(spacing // 2, spacing))):
            panel.observe(seen)
        saved, known = world.saved(), panel.state()
        for fault in faults:
            world.load(saved)
            panel.restore(known)
            injection = fault.begin(rng)
            delay = measure_delay(fault, injection, world, panel)
            yield FaultTrial(fault.name, injection.severity, delay)
        world.load(saved)
        panel.restore(known)


def measure_delay(fault: Fault, injection: FaultInjection, world: World, panel: BreakerPanel) -> int | None:
    """After how many instants a finder of the fault trips; None where none does in time."""
    number = 0
    for seen in world.ahead(fault.deadline, injection.bars):
        for one in injection.observed(number, seen):
            if any(is_trip(change) and change.breaker in fault.finders for change in panel.observe(one)):
                return number + 1
        number += isinstance(seen, PointObservation)
    return None


def is_trip(change: BreakerChange) -> bool:
    return change.state is BreakerState.OPEN


def count_false_trips(seeds: WorldSeeds, *, quick: bool, data: Path | None = None) -> Iterator[TripCount]:
    """Trips of desks over histories without a fault, calm ones and crises."""
    desks = draw_panels(load_prices("us_equities", data), 1 if quick else 3, seeds.desk)
    trips: list[BreakerChange] = []
    for desk in desks:
        trips += trips_of(MarketWorld(desk).ahead(len(desk.ends_ns)), BreakerPanel())
    spans = {
        "calm, US equities 2012–2014": ("2012-01-01", "2014-12-31"),
        "crisis, US equities 2008–2009": ("2008-01-01", "2009-12-31"),
        "all, US equities 2006–2017": ("2006-01-01", "2017-12-31"),
    }
    for name, (first, last) in spans.items():
        begin, end = (int(np.datetime64(day, "ns").astype(np.int64)) for day in (first, last))
        inside = [one for one in trips if begin <= one.at_ns <= end]
        yield TripCount(name, len(desks) * (end - begin) / _NS_PER_YEAR, inside)
    if quick:
        return
    for name, panel, first, last in _OTHER_HISTORIES:
        prices = load_prices(panel, data).cut(first=first, last=last)
        found = trips_of(MarketWorld(prices).ahead(len(prices.ends_ns)), BreakerPanel())
        years = float(prices.ends_ns[-1] - prices.ends_ns[0]) / _NS_PER_YEAR
        yield TripCount(name, years, found)
        if panel == "etf":
            begin = int(np.datetime64("2020-01-01", "ns").astype(np.int64))
            crisis = [one for one in found if begin <= one.at_ns < begin + _NS_PER_YEAR]
            yield TripCount("crisis, of these 2020", 1.0, crisis)
    pool = read_pool(seeds.readings, _NUM_POOLED)
    read = trips_of(ReadingWorld(pool, seeds.starts + 100).ahead(_NUM_READING_DAYS), BreakerPanel())
    yield TripCount("readings of simulated news", _NUM_READING_DAYS / 252.0, read)


def count_simulated_trips(seeds: WorldSeeds) -> Iterator[TripCount]:
    """Trips over simulated sessions without a fault, where there are no staged histories."""
    prices = intraday_prices(seeds.minutes, num_bars=5_000)
    found = trips_of(MarketWorld(prices).ahead(len(prices.ends_ns)), BreakerPanel())
    yield TripCount("simulated sessions", float(prices.ends_ns[-1] - prices.ends_ns[0]) / _NS_PER_YEAR, found)


def trips_of(observed: Iterator[BreakerObservation], panel: BreakerPanel) -> list[BreakerChange]:
    """The trips of these observations, in order."""
    return [one for seen in observed for one in panel.observe(seen) if is_trip(one)]
