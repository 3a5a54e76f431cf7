"""Entries of plausible decisions, to measure and test the ledger with: compact as a run records them, and as JSON."""

import random
from statistics import NormalDist

import msgspec

from htfi.domain.decision import (
    TICKS_PER_UNIT,
    BarCircumstances,
    Decision,
    DecisionInputs,
    FeatureDriver,
    FidelityPlan,
    Forecast,
    PolicyOutcome,
    PolicyVerdict,
    Rationale,
    Regime,
    Rung,
    encode_decision,
)
from htfi.pipeline.record.entry import encode_entry

_LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_NORMAL = [NormalDist().inv_cdf(level) for level in _LEVELS]
_EXPERTS = ("ewma", "har", "fhs", "random_walk")
_SKEWED = ("har", "fhs")


def compact_entries(num_entries: int, seed: int) -> list[bytes]:
    """Entries of plausible decisions, as a run records them: of two experts in four, quantiles are symmetric."""
    noise = random.Random(seed)
    return [
        encode_entry(_with_usual_quantiles(_decision(index, noise), noise)) for index in range(num_entries)
    ]


def json_entries(num_entries: int, seed: int) -> list[bytes]:
    """Entries of version 1: 13 quantiles, 3 horizons, 4 experts, a dozen features."""
    noise = random.Random(seed)
    return [encode_decision(_decision(index, noise)) for index in range(num_entries)]


def _with_usual_quantiles(decision: Decision, noise: random.Random) -> Decision:
    """The decision with quantiles of the shapes that experts give, and their mean, in whole ticks."""

    def ticks(is_symmetric: bool) -> list[list[int]]:
        scales = [noise.lognormvariate(-4.6, 0.3) * horizon**0.5 for horizon in decision.forecast.horizons]
        shapes = [_NORMAL if is_symmetric else sorted(noise.gauss(0, 1) for _ in _LEVELS) for _ in scales]
        return [
            [round(TICKS_PER_UNIT * scale * value) for value in shape]
            for scale, shape in zip(scales, shapes, strict=True)
        ]

    tables = {name: ticks(is_symmetric=name not in _SKEWED) for name in _EXPERTS}
    fused = [
        [round(sum(values) / len(values)) / TICKS_PER_UNIT for values in zip(*rows, strict=True)]
        for rows in zip(*tables.values(), strict=True)
    ]
    forecast = msgspec.structs.replace(decision.forecast, expert_ticks=tables, quantiles=fused)
    return msgspec.structs.replace(decision, forecast=forecast)


def _decision(index: int, noise: random.Random) -> Decision:
    def fan() -> list[list[float]]:
        return [sorted(noise.gauss(0, 0.01) for _ in _LEVELS) for _ in range(3)]

    symbol = f"S{index % 100:03d}"
    features = {f"realised_volatility_{scale}_bps": noise.lognormvariate(2, 1) for scale in range(12)}
    drivers = [FeatureDriver(name, value, 7.4, value / 7.4) for name, value in list(features.items())[:2]]
    text = f"{symbol}: volatility is {drivers[0].ratio:.1f} times its usual level; the range is wider."
    return Decision(
        id=f"{symbol}/60s@2013-10-07T14:{index % 60:02d}:00Z",
        symbol=symbol,
        interval="60s",
        as_of_ns=1_381_154_400_000_000_000 + index,
        last_price=noise.uniform(10, 500),
        inputs=DecisionInputs(noise.randbytes(32).hex(), 57, {"ticks": (index * 57 + 1, index * 57 + 57)}),
        settings_digest="9f" * 32,
        models=dict.fromkeys(_EXPERTS, "1"),
        plan=FidelityPlan(Rung.TEMPLATE, "numeric experts only", 5.0),
        regime=Regime.NORMAL,
        features=features,
        forecast=Forecast(
            horizons=(1, 5, 22),
            levels=_LEVELS,
            quantiles=fan(),
            expert_ticks={
                name: [[round(q * TICKS_PER_UNIT) for q in row] for row in fan()] for name in _EXPERTS
            },
            weights={name: [[0.25, 0.25, 0.25]] * 3 for name in _EXPERTS},
            calibration=[1.0, 1.0, 1.0],
        ),
        view=None,
        rationale=Rationale(text, "volatility_up", {"ratio": f"{drivers[0].ratio:.1f}"}, drivers, []),
        circumstances=BarCircumstances(
            1_381_154_340_000_000_000 + index, 1_381_154_400_000_000_000 + index, 1_000, 0.0
        ),
        verdict=PolicyVerdict(PolicyOutcome.RELEASE, []),
    )
