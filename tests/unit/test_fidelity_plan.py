"""The ladder's table, rung by rung, and what stands in where a rung is not wired."""

import pytest

from htfi.domain.decision import FidelityPlan, Regime, Rung
from htfi.domain.errors import InvalidInput
from htfi.scheduling.config import FidelityConfig
from htfi.scheduling.fidelity import plan

ALL = frozenset(Rung)
LONG_MS, MIDDLE_MS, SHORT_MS, NONE_MS = 5_000.0, 300.0, 50.0, 5.0


@pytest.mark.parametrize(
    ("regime", "deadline_ms", "facts", "rung"),
    [
        (Regime.NORMAL, MIDDLE_MS, {}, Rung.SPECULATIVE),
        (Regime.SHOCK, LONG_MS, {}, Rung.TEMPLATE),
        (Regime.CALM, NONE_MS, {}, Rung.TEMPLATE),
        (Regime.CALM, float("nan"), {}, Rung.TEMPLATE),
        (Regime.STRESSED, SHORT_MS, {}, Rung.EDGE),
        (Regime.NORMAL, LONG_MS, {"load": 0.9}, Rung.EDGE),
        (Regime.NORMAL, LONG_MS, {"load": float("nan")}, Rung.EDGE),
        (Regime.NORMAL, LONG_MS, {"divergence": 0.95}, Rung.DEEP),
        (Regime.NORMAL, MIDDLE_MS, {"divergence": 0.95}, Rung.SPECULATIVE),
        (Regime.NORMAL, LONG_MS, {"suspicion": True}, Rung.SECURE),
        (Regime.SHOCK, NONE_MS, {"suspicion": True}, Rung.SECURE),
    ],
)
def test_rung_follows_the_ladder(
    regime: Regime, deadline_ms: float, facts: dict[str, float], rung: Rung
) -> None:
    assert plan(regime, deadline_ms, ALL, **facts).rung is rung  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "available", "rung"),
    [
        ({}, set(), Rung.TEMPLATE),
        ({}, {Rung.EDGE, Rung.DEEP}, Rung.EDGE),
        ({"divergence": 0.95}, {Rung.EDGE, Rung.SPECULATIVE}, Rung.SPECULATIVE),
        ({"load": 0.9}, {Rung.SPECULATIVE, Rung.DEEP}, Rung.TEMPLATE),
        ({"suspicion": True}, {Rung.EDGE, Rung.SPECULATIVE, Rung.DEEP}, Rung.TEMPLATE),
    ],
)
def test_missing_rung_falls_to_a_lower_one(facts: dict[str, float], available: set[Rung], rung: Rung) -> None:
    found = plan(Regime.NORMAL, LONG_MS, frozenset(available), **facts)  # type: ignore[arg-type]
    assert found.rung is rung
    assert "is not wired" in found.reason


def test_plan_keeps_the_deadline_and_gives_its_reason_in_words() -> None:
    assert plan(Regime.SHOCK, 50.0, frozenset({Rung.TEMPLATE})) == FidelityPlan(
        Rung.TEMPLATE, "shock: answer at once", 50.0
    )


@pytest.mark.parametrize(
    "wrong", [{"edge_ms": 0.0}, {"deep_ms": 1.0}, {"high_load": 1.5}, {"high_divergence": float("nan")}]
)
def test_senseless_limits_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match="scheduling"):
        FidelityConfig(**wrong)
