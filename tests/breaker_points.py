"""Points of calm daily bars for tests of circuit breakers: returns that their forecasts expect, exactly."""

from collections.abc import Mapping, Sequence

import numpy as np

from htfi.domain.time import NS_PER_DAY
from htfi.governance.breakers.observations import AnswerObservation, PointObservation, ViewObservation

SIGMA = 0.01
LEVELS = (0.0225, 0.05, 0.5, 0.95, 0.9775)
SCORES = (-2.0046545, -1.6448536, 0.0, 1.6448536, 2.0046545)  # standard normal quantiles at LEVELS
EXPERTS = ("ewma", "market_har", "random_walk")
LAG_NS = 900 * 10**9


def calm_point(
    number: int,
    rng: np.random.Generator,
    names: Sequence[str],
    returns: np.ndarray | None = None,
    views: Mapping[int, ViewObservation] | None = None,
    models: Mapping[str, str] | None = None,
    bundle: str = "b1",
    end_ns: int | None = None,
) -> PointObservation:
    """The point of day `number`; `returns` are drawn as forecast where they are not given."""
    num = len(names)
    drawn = SIGMA * rng.normal(size=num)
    moved = drawn if returns is None else returns
    quantiles = np.tile(SIGMA * np.array(SCORES), (num, 1, 1))
    spread = np.exp(0.1 * rng.normal(size=(num, len(EXPERTS))))
    ends = np.full(num, number * NS_PER_DAY if end_ns is None else end_ns, np.int64)
    unknown = np.full(num, np.nan)
    return PointObservation(
        as_of_ns=number * NS_PER_DAY + LAG_NS,
        series=list(names),
        levels=LEVELS,
        horizons=(1,),
        expert_names=EXPERTS,
        quantiles=quantiles,
        experts=spread[:, :, None, None] * (SIGMA * np.array(SCORES)),
        bar_start_ns=ends - NS_PER_DAY,
        bar_end_ns=ends,
        price=np.full(num, 100.0),
        log_return=moved,
        return_sigmas=np.abs(moved) / SIGMA,
        range_last=np.abs(drawn) + 1e-4,
        volume_ratio=np.ones(num),
        quote_age_ns=unknown,
        quote_gap=unknown,
        quarantine_share=0.0,
        models=models or {"fused": "2"},
        views=views or {},
        bundle=bundle,
    )


def usual_view(rng: np.random.Generator, item: str) -> ViewObservation:
    """A view of a reader whose draft is accepted seven times in ten."""
    drafted = int(rng.integers(10, 30))
    answer = AnswerObservation("target", "draft", 24, drafted, int(rng.binomial(drafted, 0.7)), 3.0)
    direction = float(rng.choice([-1.0, 0.0, 1.0]))
    return ViewObservation(
        "target",
        direction,
        direction * float(rng.uniform(0.25, 3.0)),
        0.55,
        1.0,
        (item,),
        0.0,
        0.0,
        True,
        answer,
    )
