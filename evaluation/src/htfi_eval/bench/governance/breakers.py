"""What governance costs a decision on a bar without news: circuit breakers, and the holds of stops and bundles."""

import time
from typing import Any

import numpy as np

from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import LEVELS
from htfi.forecasting.kinds import EQUITY, EXPERTS_BY_KIND
from htfi.governance.breakers.observations import PointObservation
from htfi.governance.breakers.panel import BreakerPanel
from htfi.governance.bundles.bundle import BundleHead, BundleKind, write_bundle
from htfi.governance.bundles.tables import BundleTables
from htfi.governance.config import PolicyConfig
from htfi.governance.control.requests import BundleOffer, StopRequest
from htfi.governance.control.state import HoldSubject
from htfi.pipeline.governance_ports import RequestQueue
from htfi.pipeline.governed import RunGovernance
from htfi_eval.results import PartFigures

NUM_SERIES = (1_000, 100, 20)  # a point; the figure is that of the first
NUM_OF_DESK = 20
NUM_POINTS, NUM_QUICK, NUM_WARM = 300, 30, 20
_HORIZONS = (1, 5, 22)
_SEED = 3
_BAR_NS = 60 * NS_PER_S


def figures(quick: bool) -> PartFigures:
    """Medians over points of 1,000 series in desks of 20; checks_us_per_decision is breakers and holds together."""
    rows: list[dict[str, Any]] = []
    for num in NUM_SERIES:
        times_us = measure_points(num, NUM_QUICK if quick else NUM_POINTS)
        median_us, high_us = np.percentile(times_us, (50, 99)).tolist()
        row = {"what": "all breakers, on bars without news", "series a point": num}
        rows.append(row | {"median us a decision": median_us, "p99 us a decision": high_us})
    holds_us = measure_holds(NUM_SERIES[0], NUM_QUICK if quick else NUM_POINTS)
    median_us, high_us = np.percentile(holds_us, (50, 99)).tolist()
    row = {"what": "holds under a bundle, one series stopped", "series a point": NUM_SERIES[0]}
    metrics: dict[str, float | None] = {
        "breakers_us_per_decision": rows[0]["median us a decision"],
        "checks_us_per_decision": rows[0]["median us a decision"] + median_us,
    }
    rows.append(row | {"median us a decision": median_us, "p99 us a decision": high_us})
    return PartFigures(title="Circuit breakers", metrics=metrics, rows=rows)


def measure_points(num_series: int, num_points: int) -> list[float]:
    """Microseconds of processor time a decision, of points that follow each other."""
    rng = np.random.default_rng(_SEED)
    names = [f"S{place:04d}/60s" for place in range(num_series)]
    desks = {f"S{place:04d}": (f"desk{place // NUM_OF_DESK}",) for place in range(num_series)}
    panel = BreakerPanel(desks_of=desks)
    found: list[float] = []
    for number in range(NUM_WARM + num_points):
        point = _point(rng, names, number + 1)
        began_ns = time.process_time_ns()
        panel.observe(point)
        found.append((time.process_time_ns() - began_ns) / (1e3 * num_series))
    return found[NUM_WARM:]


def measure_holds(num_series: int, num_points: int) -> list[float]:
    """Microseconds of processor time a decision for what is held back: a bundle in force, one series stopped."""
    names = [f"S{place:04d}/60s" for place in range(num_series)]
    queue, head = RequestQueue(), BundleHead(1, "", BundleKind.QUORUM, "bench", 0)
    queue.push(BundleOffer("bundle", 1, "ab" * 32, 1, write_bundle(head, BundleTables())))
    queue.push(StopRequest("stop", 1, f"series:{names[0]}", "bench", "one of them"))
    governance = RunGovernance(PolicyConfig(), requests=queue)
    governance.take_requests(0, 1)
    subjects = [HoldSubject(name, EXPERTS_BY_KIND[EQUITY]) for name in names]
    found: list[float] = []
    for _ in range(NUM_WARM + num_points):
        began_ns = time.process_time_ns()
        governance.facts(0, num_series, subjects.__getitem__, lambda _: [True] * num_series)
        found.append((time.process_time_ns() - began_ns) / (1e3 * num_series))
    return found[NUM_WARM:]


def _point(rng: np.random.Generator, names: list[str], number: int) -> PointObservation:
    """Calm bars of a minute, forecast by as many experts as are shipped."""
    num = len(names)
    returns = 1e-3 * rng.normal(size=num)
    levels = 1e-3 * np.linspace(-2.3, 2.3, len(LEVELS)) * np.ones((len(_HORIZONS), 1))
    spread = np.exp(0.1 * rng.normal(size=(num, len(EXPERTS_BY_KIND[EQUITY]))))
    end_ns = np.full(num, number * _BAR_NS, np.int64)
    unknown = np.full(num, np.nan)
    return PointObservation(
        as_of_ns=number * _BAR_NS,
        series=names,
        levels=LEVELS,
        horizons=_HORIZONS,
        expert_names=EXPERTS_BY_KIND[EQUITY],
        quantiles=np.tile(levels, (num, 1, 1)),
        experts=spread[:, :, None, None] * levels,
        bar_start_ns=end_ns - _BAR_NS,
        bar_end_ns=end_ns,
        price=np.full(num, 100.0),
        log_return=returns,
        return_sigmas=np.abs(returns) / 1e-3,
        range_last=np.abs(returns),
        volume_ratio=np.ones(num),
        quote_age_ns=unknown,
        quote_gap=unknown,
        quarantine_share=0.0,
        models={"fused": "2"},
        views={},
    )
