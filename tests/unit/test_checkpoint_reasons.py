"""Which decisions wait for people: one limit at a time, and the form over columns against the plain one."""

from dataclasses import dataclass
from math import inf, nan

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from htfi.domain.decision import FeatureDriver, Regime, Rung
from htfi.domain.errors import InvalidInput
from htfi.governance.checkpoints.config import CheckpointConfig
from htfi.governance.checkpoints.reasons import (
    CheckpointCause,
    CheckpointFacts,
    clear_rows,
    expert_spread,
    novelty_of,
    why_checked,
)

QUIET = CheckpointFacts(symbol="SPX", regime=Regime.NORMAL, rung=Rung.TEMPLATE, low=-0.02, high=0.02)


@dataclass(frozen=True)
class ListedColumns:
    """Columns as they are given."""

    is_plain: NDArray[np.bool_]
    all_symbols: list[str]
    all_regimes: list[Regime]
    all_rungs: list[Rung]
    ends: tuple[NDArray[np.float64], NDArray[np.float64]]
    all_novelty: NDArray[np.float64]
    all_spreads: NDArray[np.float64]

    def symbols(self) -> list[str]:
        return self.all_symbols

    def regimes(self) -> list[Regime]:
        return self.all_regimes

    def rungs(self) -> list[Rung]:
        return self.all_rungs

    def bands(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.ends

    def novelty(self) -> NDArray[np.float64]:
        return self.all_novelty

    def expert_spread(self) -> NDArray[np.float64]:
        return self.all_spreads


def causes(facts: CheckpointFacts, **limits: object) -> list[CheckpointCause]:
    return [reason.cause for reason in why_checked(facts, CheckpointConfig(**limits))]  # type: ignore[arg-type]


def test_nothing_is_asked_where_no_limit_is_set() -> None:
    wild = replace(QUIET, regime=Regime.SHOCK, novelty=inf, expert_spread=inf, low=nan, suspicion="flood")
    assert causes(wild) == []


@pytest.mark.parametrize(
    ("limits", "change", "cause"),
    [
        ({"notional": {"SPX": 2e6}, "max_notional": 1e6}, {}, CheckpointCause.NOTIONAL),
        ({"default_notional": 2e6, "max_notional": 1e6}, {}, CheckpointCause.NOTIONAL),
        ({"notional": {"SPX": 2e6}, "max_loss": 4.1e4}, {"high": 0.0205}, CheckpointCause.LOSS),
        ({"max_novelty": 2.0}, {"novelty": 2.1}, CheckpointCause.NOVELTY),
        ({"max_band_width": 0.05}, {"low": -0.05}, CheckpointCause.BAND),
        ({"max_expert_spread": 0.5}, {"expert_spread": 0.6}, CheckpointCause.EXPERTS),
        ({"max_divergence_rank": 0.95}, {"divergence_rank": 0.96}, CheckpointCause.DIVERGENCE),
        ({"regimes": (Regime.SHOCK,)}, {"regime": Regime.SHOCK}, CheckpointCause.REGIME),
        ({"rungs": (Rung.SECURE,)}, {"rung": Rung.SECURE}, CheckpointCause.RUNG),
        ({"suspected": True}, {"suspicion": "a flood"}, CheckpointCause.SUSPICION),
    ],
)
def test_one_limit_asks_for_what_passes_it_and_for_nothing_else(
    limits: dict[str, object], change: dict[str, object], cause: CheckpointCause
) -> None:
    assert causes(replace(QUIET, **change), **limits) == [cause]
    if change:
        assert causes(QUIET, **limits) == []


@pytest.mark.parametrize(
    ("limits", "change"),
    [
        ({"default_notional": 1.0, "max_loss": 1e9}, {"low": nan}),
        ({"max_novelty": 10.0}, {"novelty": nan}),
        ({"max_band_width": 10.0}, {"high": nan}),
        ({"max_expert_spread": 10.0}, {"expert_spread": nan}),
        ({"max_divergence_rank": 1.0}, {"divergence_rank": nan}),
    ],
)
def test_a_fact_that_is_no_number_is_beyond_every_limit(
    limits: dict[str, object], change: dict[str, object]
) -> None:
    assert len(causes(replace(QUIET, **change), **limits)) == 1


def test_spread_of_experts_and_novelty_of_features_are_as_defined() -> None:
    ticks = {"a": [[0, 100, 200]], "b": [[0, 300, 400]]}
    assert expert_spread(ticks, (0.05, 0.5, 0.95), 4e-8) == pytest.approx(0.5)
    assert expert_spread({"a": ticks["a"]}, (0.05, 0.5, 0.95), 4e-8) == 0.0
    assert expert_spread(ticks, (0.05, 0.5, 0.95), 0.0) == inf
    drivers = [FeatureDriver("volume", 1.0, 4.0, 0.25), FeatureDriver("spread", 2.0, 1.0, 2.0)]
    assert novelty_of(drivers) == pytest.approx(np.log(4.0))
    assert novelty_of([]) == 0.0


def test_columns_clear_exactly_the_rows_that_nothing_asks_about() -> None:
    rng = np.random.default_rng(20261124)
    num = 400
    num_cleared = num_asked = 0
    for trial in range(40):
        config = CheckpointConfig(
            notional={"A": 2e6, "B": 5e5},
            default_notional=1e5,
            max_notional=None if trial % 2 else 1e6,
            max_loss=None if trial % 3 else 3e4,
            max_novelty=None if trial % 4 else 1.5,
            max_band_width=None if trial % 5 else 0.06,
            max_expert_spread=None if trial % 2 else 0.8,
            max_divergence_rank=None if trial % 3 else 0.9,
            regimes=(Regime.SHOCK,) if trial % 2 else (),
            rungs=(Rung.TEMPLATE,) if trial == 7 else (Rung.SECURE,),
        )
        symbols = rng.choice(["A", "B", "C"], num).tolist()
        regimes = [list(Regime)[int(at)] for at in rng.integers(0, 4, num)]
        low, high = -rng.random(num) * 0.05, rng.random(num) * 0.05
        low[rng.random(num) < 0.02] = nan
        novelty, spread = rng.random(num) * 2.0, rng.random(num)
        is_plain = rng.random(num) < 0.9  # news counts in the others: they are looked at one by one
        rungs = [(Rung.TEMPLATE, Rung.SPECULATIVE)[int(at)] for at in rng.integers(0, 2, num)]
        columns = ListedColumns(is_plain, symbols, regimes, rungs, (low, high), novelty, spread)
        plain = [
            bool(is_plain[at])
            and not why_checked(
                CheckpointFacts(
                    symbol=symbols[at], regime=regimes[at], rung=rungs[at], low=low[at], high=high[at],
                    novelty=novelty[at], expert_spread=spread[at],
                ),
                config,
            )
            for at in range(num)
        ]  # fmt: skip
        assert clear_rows(columns, config).tolist() == plain
        num_cleared += sum(plain)
        num_asked += num - sum(plain)
    assert num_cleared > 1_000
    assert num_asked > 1_000


def test_escalation_after_the_deadline_is_no_setting() -> None:
    with pytest.raises(InvalidInput, match="escalate_before_s"):
        CheckpointConfig(deadline_s=60.0, escalate_before_s=60.0)
    with pytest.raises(InvalidInput, match=r"checkpoints\.num_approvals"):
        CheckpointConfig(num_approvals=3)
