"""Why a decision waits for people, from facts of the decision alone. Pure: pipeline and auditors call it.

A limit that is set asks; a fact that is not a number is beyond every limit.
"""

from collections.abc import Sequence
from enum import StrEnum
from math import expm1, inf, isfinite, log
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import TICKS_PER_UNIT, Decision, FeatureDriver, Regime, Rung
from htfi.governance.checkpoints.config import CheckpointConfig

_SURELY = 1.0 - 1e-6  # expm1 of numpy and of math differ in the last bit; the record rounds experts to ticks


class CheckpointCause(StrEnum):
    """Which limit a decision passed. Names are never reused: logs quote them."""

    NOTIONAL = "notional"
    LOSS = "loss"
    NOVELTY = "novelty"
    BAND = "band"
    EXPERTS = "experts"
    DIVERGENCE = "divergence"
    REGIME = "regime"
    RUNG = "rung"
    SUSPICION = "suspicion"


class CheckpointReason(msgspec.Struct, frozen=True, gc=False):
    """One limit that was passed, in words with both figures."""

    cause: CheckpointCause
    words: str


class CheckpointFacts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is judged, all of it in the decision's record.

    Units: `low` and `high`, the ends of the 90% band at the first horizon, in log return. `novelty` is the largest
    |ln(value / usual)| of the features, `expert_spread` the distance between the experts' outermost medians at the
    first horizon over the band's width, `divergence_rank` that of the news' tilt, 0 without one.
    """

    symbol: str
    regime: Regime
    rung: Rung
    low: float
    high: float
    novelty: float = 0.0
    expert_spread: float = 0.0
    divergence_rank: float = 0.0
    suspicion: str = ""


class CheckpointColumns(Protocol):
    """The same of n decisions of one instant, as arrays, each made where a limit needs it. Shapes: all [n].

    `is_plain` is where no news counts: such a decision has no divergence and no suspicion. `bands` are the lower and
    the upper ends.
    """

    @property
    def is_plain(self) -> NDArray[np.bool_]: ...

    def symbols(self) -> Sequence[str]: ...

    def regimes(self) -> Sequence[Regime]: ...

    def rungs(self) -> Sequence[Rung]: ...

    def bands(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def novelty(self) -> NDArray[np.float64]: ...

    def expert_spread(self) -> NDArray[np.float64]: ...


def why_checked(facts: CheckpointFacts, config: CheckpointConfig) -> tuple[CheckpointReason, ...]:
    """The limits that a decision passes, in the order of the causes; empty where none asks."""
    found: list[CheckpointReason] = []
    if config.max_notional is not None or config.max_loss is not None:
        _check_stake(facts, config, found)
    if (limit := config.max_novelty) is not None and not facts.novelty <= limit:
        found.append(
            _reason(
                CheckpointCause.NOVELTY, f"a feature is {_ratio(facts.novelty)} from usual", _ratio(limit)
            )
        )
    if (limit := config.max_band_width) is not None and not facts.high - facts.low <= limit:
        found.append(
            _reason(
                CheckpointCause.BAND,
                f"the 90% band is {facts.high - facts.low:.3g} wide in log return",
                f"{limit:.3g}",
            )
        )
    if (limit := config.max_expert_spread) is not None and not facts.expert_spread <= limit:
        found.append(
            _reason(
                CheckpointCause.EXPERTS,
                f"experts' medians lie {facts.expert_spread:.3g} band widths apart",
                f"{limit:.3g}",
            )
        )
    if (limit := config.max_divergence_rank) is not None and not facts.divergence_rank <= limit:
        found.append(
            _reason(
                CheckpointCause.DIVERGENCE,
                f"news and numbers disagree at rank {facts.divergence_rank:.3g}",
                f"{limit:.3g}",
            )
        )
    if facts.regime in config.regimes:
        found.append(CheckpointReason(CheckpointCause.REGIME, f"the regime is {facts.regime.value}"))
    if facts.rung in config.rungs:
        found.append(CheckpointReason(CheckpointCause.RUNG, f"the rung is {facts.rung.value}"))
    if config.suspected and facts.suspicion:
        found.append(
            CheckpointReason(CheckpointCause.SUSPICION, f"manipulation is suspected: {facts.suspicion[:120]}")
        )
    return tuple(found)


def clear_rows(columns: CheckpointColumns, config: CheckpointConfig) -> NDArray[np.bool_]:
    """Which of n decisions surely wait for no person. Shapes: [n]."""
    is_clear = columns.is_plain.copy()
    num = len(is_clear)
    no_band = (np.zeros(0), np.zeros(0))
    low, high = no_band if config.max_loss is None and config.max_band_width is None else columns.bands()
    if config.max_notional is not None or config.max_loss is not None:
        notional = np.full(num, config.default_notional)
        if config.notional:
            notional[:] = [config.notional_of(symbol) for symbol in columns.symbols()]
        if config.max_notional is not None:
            is_clear &= notional <= config.max_notional
        if config.max_loss is not None:
            is_clear &= notional * _worst_move_rows(low, high) <= config.max_loss * _SURELY
    if config.max_novelty is not None:
        is_clear &= columns.novelty() <= config.max_novelty
    if config.max_band_width is not None:
        is_clear &= high - low <= config.max_band_width
    if config.max_expert_spread is not None:
        is_clear &= columns.expert_spread() <= config.max_expert_spread * _SURELY
    if config.regimes:
        is_clear &= np.fromiter((one not in config.regimes for one in columns.regimes()), np.bool_, num)
    if config.rungs:
        is_clear &= np.fromiter((one not in config.rungs for one in columns.rungs()), np.bool_, num)
    return is_clear


def facts_of(decision: Decision) -> CheckpointFacts:
    """The facts of a decision."""
    low, high = decision.forecast.central_band
    tilt, context = decision.forecast.tilt, decision.news_context
    return CheckpointFacts(
        symbol=decision.symbol,
        regime=decision.regime,
        rung=decision.plan.rung,
        low=low,
        high=high,
        novelty=novelty_of(decision.rationale.drivers),
        expert_spread=expert_spread(decision.forecast.expert_ticks, decision.forecast.levels, high - low),
        divergence_rank=tilt.divergence_rank if tilt is not None else 0.0,
        suspicion=context.suspicion if context is not None else "",
    )


def novelty_of(drivers: Sequence[FeatureDriver]) -> float:
    """The largest |ln(value / usual)| of a decision's drivers, which are the features that deviate most."""
    return max((abs(log(one.ratio)) if one.ratio > 0.0 else inf for one in drivers), default=0.0)


def spread_rows(medians: NDArray[np.float64], width: NDArray[np.float64]) -> NDArray[np.float64]:
    """`expert_spread` of n decisions, a hair larger than the record has it. Shapes: medians [n, K], width [n].

    Units: log return. A median that is NaN is of an expert without a forecast yet.
    """
    spread = np.fmax.reduce(medians, axis=1) - np.fmin.reduce(medians, axis=1)  # [n]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0.0, (spread + 1.0 / TICKS_PER_UNIT) / width, 0.0)


def expert_spread(expert_ticks: dict[str, list[list[int]]], levels: Sequence[float], width: float) -> float:
    """The distance between the outermost medians of the experts at the first horizon, over the band's width.

    Shapes: expert_ticks {name: [H, Q]}. Units: ticks; `width` in log return.
    """
    if len(expert_ticks) < 2:
        return 0.0
    middle = levels.index(0.5)
    medians = [table[0][middle] for table in expert_ticks.values()]
    spread = (max(medians) - min(medians)) / TICKS_PER_UNIT
    if spread == 0.0:
        return 0.0
    return spread / width if width > 0.0 else inf


def _check_stake(facts: CheckpointFacts, config: CheckpointConfig, found: list[CheckpointReason]) -> None:
    notional = config.notional_of(facts.symbol)
    if (limit := config.max_notional) is not None and not notional <= limit:
        found.append(_reason(CheckpointCause.NOTIONAL, f"the notional is {notional:,.0f}", f"{limit:,.0f}"))
    if (limit := config.max_loss) is not None:
        loss = notional * _worst_move(facts.low, facts.high)
        if not loss <= limit:
            found.append(
                _reason(CheckpointCause.LOSS, f"an end of the 90% band is {loss:,.0f} away", f"{limit:,.0f}")
            )


def _worst_move(low: float, high: float) -> float:
    """The larger simple return of a band's ends, either side. Units: log returns in, a share of the price out."""
    if not (isfinite(low) and isfinite(high)):
        return inf
    return max(abs(expm1(low)), abs(expm1(high)))


def _worst_move_rows(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(np.abs(np.expm1(low)), np.abs(np.expm1(high)))  # [n]


def _ratio(log_ratio: float) -> str:
    return f"{np.exp(min(log_ratio, 300.0)):.3g} times"


def _reason(cause: CheckpointCause, words: str, limit: str) -> CheckpointReason:
    return CheckpointReason(cause, f"{words}, limit {limit}")
