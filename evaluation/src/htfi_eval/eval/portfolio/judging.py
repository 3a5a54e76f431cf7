"""Tests of the forecasts of `walk`: misses, shortfall, the whole distribution; `htfi eval portfolio` reports them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.forecasting.evaluation import backtests
from htfi.forecasting.evaluation.backtests import BacktestResult, TrafficLight
from htfi.forecasting.evaluation.differences import diebold_mariano
from htfi_eval.eval.portfolio.methods import OURS
from htfi_eval.eval.portfolio.walk import LEVELS, BookForecasts, PortfolioWalk

Array = NDArray[np.float64]

_NUM_SIMULATED = 500
_SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class RiskTest:
    """One method's value at risk and shortfall of one book at one horizon and level."""

    horizon: int
    book: str
    method: str
    level: float
    num_days: int
    missed: float  # share of days
    kupiec: BacktestResult
    christoffersen: BacktestResult
    z1: BacktestResult
    z2: BacktestResult
    light: TrafficLight
    loss: float  # Fissler-Ziegel

    @property
    def var_passes(self) -> bool:
        """Whether no test of the value at risk rejects at 5%; a test that cannot be made does not reject."""
        return not any(test.p_value < _SIGNIFICANCE for test in (self.kupiec, self.christoffersen))

    @property
    def passes(self) -> bool:
        """The same for the tests of the shortfall."""
        return self.var_passes and not any(test.p_value < _SIGNIFICANCE for test in (self.z1, self.z2))


def judge(walked: PortfolioWalk, seed: int) -> list[RiskTest]:
    """Every method, book, horizon and level, ours first."""
    tested: list[RiskTest] = []
    for j, horizon in enumerate(walked.horizons):
        for b, book in enumerate(walked.books.names):
            for place, level in enumerate(LEVELS):
                profit, tail = walked.profit[j][:, b], round(1.0 - level, 12)
                for method in walked.methods:
                    forecasts = walked.forecasts[method, j]
                    value_at_risk, shortfall = _said(forecasts, b, place)
                    rng = np.random.default_rng(seed)
                    tested.append(
                        _test(
                            (horizon, book, method, level),
                            profit,
                            value_at_risk,
                            shortfall,
                            _simulated(forecasts, b, rng),
                            backtests.fissler_ziegel(profit, value_at_risk, shortfall, tail=tail),
                        )
                    )
    return tested


def _test(
    of: tuple[int, str, str, float],
    profit: Array,
    value_at_risk: Array,
    shortfall: Array,
    draws: Array,
    loss: Array,
) -> RiskTest:
    tail = round(1.0 - of[3], 12)
    missed = backtests.exceedances(profit, value_at_risk)
    z1, z2 = backtests.simulated_results(profit, value_at_risk, shortfall, tail, draws)
    return RiskTest(
        *of,
        num_days=len(profit),
        missed=float(missed.mean()),
        kupiec=backtests.kupiec(missed, tail),
        christoffersen=backtests.christoffersen(missed, tail),
        z1=z1,
        z2=z2,
        light=backtests.traffic_light(missed, tail),
        loss=float(loss.mean()),
    )


def _said(forecasts: BookForecasts, book: int, level: int) -> tuple[Array, Array]:
    return (
        np.array([day[book, level] for day in forecasts.value_at_risk]),
        np.array([day[book, level] for day in forecasts.shortfall]),
    )


def _simulated(forecasts: BookForecasts, book: int, rng: np.random.Generator) -> Array:
    """Profits [M, T] according to each day's forecast."""
    columns = [rng.choice(day[book], _NUM_SIMULATED) for day in forecasts.profits]
    return np.stack(columns, axis=1).astype(np.float64)


def pit(walked: PortfolioWalk, method: str, j: int, book: int) -> Array:
    """The place of each day's profit in its forecast distribution, 0–1; ties count half."""
    shares: list[float] = []
    for day, outcome in zip(
        walked.forecasts[method, j].profits, walked.profit[j][:, book].tolist(), strict=True
    ):
        rising = day[book]
        below, upto = float((rising < outcome).sum()), float((rising <= outcome).sum())
        shares.append((below + upto + 1.0) / (2.0 * len(rising) + 2.0))
    return np.array(shares)


def risk_rows(walked: PortfolioWalk, tested: list[RiskTest]) -> list[dict[str, Any]]:
    """A row per horizon, book and method, both levels side by side; p-values of K(upiec), C(hristoffersen), Z1, Z2."""
    rows: list[dict[str, Any]] = []
    for pair in zip(*[[one for one in tested if one.level == level] for level in LEVELS], strict=True):
        first = pair[0]
        row: dict[str, Any] = {
            "case": f"{walked.prices.name}, {first.horizon} d, {first.book}",
            "method": first.method,
            "days": first.num_days,
        }
        for one in pair:
            at = f"{one.level:.0%}"
            tests = (one.kupiec, one.christoffersen, one.z1, one.z2)
            row[f"missed {at}"] = f"{one.missed:.2%}"
            row[f"p {at}: K C Z1 Z2"] = " ".join(_digits(test.p_value) for test in tests)
        row |= {"light": pair[-1].light.value, "FZ loss 99%": round(pair[-1].loss, 3)}
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class JointTest:
    """Ours over another method's mean score of the whole joint distribution, and the chance of as low a ratio were
    both equally good."""

    horizon: int
    method: str
    energy: float
    p_energy: float
    variogram: float
    p_variogram: float


def judge_joint(walked: PortfolioWalk) -> list[JointTest]:
    """Every method but ours."""
    tested: list[JointTest] = []
    for j, horizon in enumerate(walked.horizons):
        ours = walked.forecasts[OURS, j]
        for method in walked.methods:
            if method != OURS and ours.energy:
                forecasts = walked.forecasts[method, j]
                energy = _against(ours.energy, forecasts.energy)
                tested.append(
                    JointTest(horizon, method, *energy, *_against(ours.variogram, forecasts.variogram))
                )
    return tested


def joint_notes(walked: PortfolioWalk, tested: list[JointTest]) -> list[str]:
    return [
        f"{walked.prices.name}, {horizon} d, all series together, score of joint scenarios over that of another "
        "method, energy and "
        "variogram: "
        + ", ".join(
            f"{one.method} {one.energy:.3f} (p {_digits(one.p_energy)}) and {one.variogram:.3f} "
            f"(p {_digits(one.p_variogram)})"
            for one in tested
            if one.horizon == horizon
        )
        for horizon in walked.horizons
    ]


def _against(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    mean = float(np.mean(theirs))
    ratio = float(np.mean(ours)) / mean if mean > 0.0 else float("nan")
    return ratio, diebold_mariano(np.array(ours), np.array(theirs), 1).p


def metrics_of(walked: PortfolioWalk, tested: list[RiskTest], joint: list[JointTest]) -> dict[str, float]:
    """Figures of one set: how many of all cells each method passes, and which cells ours fails."""
    metrics: dict[str, float] = {}
    for method in walked.methods:
        cells = [one for one in tested if one.method == method]
        metrics[f"var_passes_{_key(method)}"] = float(np.mean([one.var_passes for one in cells]))
        metrics[f"passes_{_key(method)}"] = float(np.mean([one.passes for one in cells]))
    for one in tested:
        if one.method == OURS and one.horizon == walked.horizons[0]:
            metrics[f"missed{one.level:.0%}_{_key(one.book)}".replace("%", "")] = one.missed
    for one in joint:
        if one.horizon == walked.horizons[0]:
            metrics[f"energy_vs_{_key(one.method)}"] = one.energy
            metrics[f"variogram_vs_{_key(one.method)}"] = one.variogram
    return metrics


def _key(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


def _digits(p: float) -> str:
    return "–" if not np.isfinite(p) else "<.001" if p < 0.001 else f"{p:.2f}".removeprefix("0")
