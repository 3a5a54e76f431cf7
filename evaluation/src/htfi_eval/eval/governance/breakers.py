"""How surely and how soon breakers find failures, and how often they trip where nothing failed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from htfi.domain.errors import InvalidInput
from htfi.governance.breakers.observations import AnswerObservation, PointObservation, ViewObservation
from htfi.governance.breakers.panel import BreakerPanel
from htfi.governance.breakers.states import BreakerChange, BreakerState
from htfi_eval.eval.governance.breaker_faults import FAULTS, Fault
from htfi_eval.eval.governance.breaker_worlds import open_walk, walk_points
from htfi_eval.eval.prices import Prices, load_prices
from htfi_eval.results import PartFigures

NUM_SERIES = 20  # of a desk
_NS_PER_YEAR = 365.25 * 86_400e9
_MIN_SHARE = 0.99  # of the days that a series must have


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault in one world: whether a finder tripped in time, and after how many instants."""

    fault: str
    delay: int | None


def figures(quick: bool, data: Path | None = None) -> PartFigures:
    """breaker_detection and breaker_false_trips_a_year, on worlds that no threshold was chosen by."""
    prices = load_prices("us_equities", data)
    desk = draw_desk(prices, seed=102)
    warm, num = 500, 3 if quick else 20
    rows: list[dict[str, Any]] = []
    trials = list(run_trials(desk, FAULTS, warm, num, seed=11))
    for fault in FAULTS:
        mine = [one for one in trials if one.fault == fault.name]
        delays = [one.delay for one in mine if one.delay is not None]
        rows.append({
            "failure": fault.name, "worlds": len(mine), "found": len(delays) / len(mine),
            "median delay": float(np.median(delays)) if delays else None,
        })  # fmt: skip
    false_trips, years = count_false_trips(desk)
    rows.append({"failure": "none: 2006–2017", "false trips a year": false_trips / years})
    found = float(np.mean([one.delay is not None for one in trials]))
    metrics: dict[str, float | None] = {
        "breaker_detection": found,
        "breaker_false_trips_a_year": false_trips / years,
    }
    return PartFigures(title="Circuit breakers", metrics=metrics, rows=rows)


def draw_desk(prices: Prices, seed: int) -> Prices:
    """A desk of series that trade all the time, drawn at random."""
    full = np.flatnonzero(np.isfinite(prices.close).mean(axis=0) >= _MIN_SHARE)
    if len(full) < NUM_SERIES:
        raise InvalidInput(f"{prices.name} has {len(full)} whole series: a desk needs {NUM_SERIES}")
    chosen = np.random.default_rng(seed).choice(full, NUM_SERIES, replace=False)
    return prices.cut([prices.symbols[place] for place in sorted(chosen.tolist())])


def run_trials(desk: Prices, faults: Sequence[Fault], warm: int, num: int, seed: int) -> Iterator[Trial]:
    """Every fault at `num` instants of a desk's history, each after `warm` instants without one at least."""
    rng = np.random.default_rng(seed)
    walk, panel = open_walk(desk), BreakerPanel()
    last = len(desk.ends_ns) - max(fault.deadline for fault in faults)
    starts = np.sort(rng.choice(np.arange(warm, last), num, replace=False)).tolist()
    at = 0
    for start in starts:
        for point in walk_points(walk, at, start):
            panel.observe(with_usual_views(point, rng))
        at = start
        saved, known = walk.saved(), panel.state()
        for fault in faults:
            walk.load(saved)
            panel.restore(known)
            yield Trial(fault.name, _delay(fault, walk, panel, start, rng))
        walk.load(saved)
        panel.restore(known)


def _delay(fault: Fault, walk: Any, panel: BreakerPanel, start: int, rng: np.random.Generator) -> int | None:
    change = None if fault.bars is None else lambda number, bars: fault.bars(number, bars, rng)
    for number, point in enumerate(walk_points(walk, start, start + fault.deadline, change)):
        seen = with_usual_views(point, rng)
        if fault.point is not None:
            seen = fault.point(number, seen, rng)
        if any(is_trip(one) and one.breaker in fault.finders for one in panel.observe(seen)):
            return number + 1
    return None


def is_trip(change: BreakerChange) -> bool:
    return change.state is BreakerState.OPEN


def with_usual_views(point: PointObservation, rng: np.random.Generator) -> PointObservation:
    """The point with views on a few series, drafted and accepted as usual."""
    views: dict[int, ViewObservation] = {}
    for place in rng.choice(len(point.series), 2, replace=False).tolist():
        drafted = int(rng.integers(8, 40))
        answer = AnswerObservation("target", "draft", 30, drafted, int(rng.binomial(drafted, 0.7)), 3.0)
        views[place] = ViewObservation(
            "target", float(rng.choice([-1.0, 1.0])), float(rng.normal()), 0.5, 1.0, ("item",), 0.0, answer
        )
    return replace(point, views=views)


def count_false_trips(desk: Prices) -> tuple[int, float]:
    """Trips on a desk's history without a fault, and its years."""
    walk, panel, rng = open_walk(desk), BreakerPanel(), np.random.default_rng(5)
    num = 0
    for point in walk_points(walk, 0, len(desk.ends_ns)):
        num += sum(is_trip(one) for one in panel.observe(with_usual_views(point, rng)))
    return num, float(desk.ends_ns[-1] - desk.ends_ns[0]) / _NS_PER_YEAR
