"""Chooses the rung of the fidelity ladder for one decision, and says why. The loop calls `plan` and `go_deeper`.

| rung        | when                                       |
|-------------|--------------------------------------------|
| TEMPLATE    | shock, or no time                          |
| EDGE        | short deadline, high load                  |
| SPECULATIVE | the normal case                            |
| DEEP        | numbers and narrative disagree             |
| SECURE      | manipulation suspected                     |
"""

from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from htfi.domain.decision import Plan, Regime, Rung
from htfi.scheduling.config import FidelityConfig

_DEFAULT = FidelityConfig()
DISAGREE = "numbers and narrative disagree"
WORTH_MOST = "the news are worth the best reader"
THEN_ITSELF = "; then the news itself"

# What stands in for a rung that is not wired, best first. Nothing that drafts from text stands in for SECURE.
_INSTEAD = {
    Rung.TEMPLATE: (),
    Rung.EDGE: (),
    Rung.SPECULATIVE: (Rung.EDGE,),
    Rung.DEEP: (Rung.SPECULATIVE, Rung.EDGE),
    Rung.SECURE: (),
}


@lru_cache(maxsize=256)  # the same few answers, again and again
def plan(
    regime: Regime,
    deadline_ms: float,
    available: frozenset[Rung],
    *,
    load: float = 0.0,
    divergence: float = 0.0,
    suspicion: bool = False,
    config: FidelityConfig = _DEFAULT,
) -> Plan:
    """The rung that suits the moment, or the next lower one that is wired; TEMPLATE always is.

    Units: load is the share of capacity in use; divergence the share of cases in which narrative and numbers disagree
    less, so that 0.9 is exceeded once in ten; both 0–1.
    """
    rung, why = _wanted(regime, deadline_ms, load, divergence, suspicion, config)
    if rung is Rung.TEMPLATE or rung in available:
        return Plan(rung, why, deadline_ms)
    for other in _INSTEAD[rung]:
        if other in available:
            return Plan(other, f"{why}; {rung.value} is not wired, so {other.value}", deadline_ms)
    return Plan(Rung.TEMPLATE, f"{why}; {rung.value} is not wired, so template", deadline_ms)


def go_deeper(
    plans: Sequence[Plan],
    divergences: Sequence[float],
    bars_ms: Sequence[float],
    config: FidelityConfig = _DEFAULT,
    most: int | None = None,
) -> tuple[dict[int, Plan], int]:
    """The plans, by place, whose news are to be read again in depth once they are released; and how many had to go
    without for want of time, or of money: at most `most` are affordable.

    `divergences` are shares as `plan` takes them. Those that disagree most come first. Time is as the settings reckon
    it, so that a replay asks for the same.
    """
    wanting = [place for place, divergence in enumerate(divergences) if divergence >= config.high_divergence]
    wanting = [place for place in wanting if plans[place].rung not in (Rung.DEEP, Rung.SECURE)]
    in_time = [place for place in wanting if 2.0 * config.deep_ms <= bars_ms[place]]
    in_time.sort(key=lambda place: -divergences[place])
    chosen = sorted(in_time[: int(config.deep_budget_ms / config.deep_ms)][:most])
    return {place: replace(plans[place], then=Rung.DEEP) for place in chosen}, len(wanting) - len(chosen)


def for_its_worth(plan: Plan) -> Plan:
    """A plan to read again in depth because the news are worth it, whether or not the numbers disagree."""
    return replace(plan, reason=f"{plan.reason}; {WORTH_MOST}")


def is_for_worth(plan: Plan) -> bool:
    """Whether the news are read again in depth for what they are worth."""
    return plan.then is Rung.DEEP and plan.reason.endswith(WORTH_MOST)


def deep_plan(first: Plan, config: FidelityConfig = _DEFAULT) -> Plan:
    """That of a decision which was read again in depth, from the plan of the first."""
    return Plan(Rung.DEEP, WORTH_MOST if is_for_worth(first) else DISAGREE, config.deep_ms)


def verifying_plan(first: Plan, config: FidelityConfig = _DEFAULT) -> Plan:
    """That of a decision whose news were read once it was released, with a view that was prepared ahead of them."""
    rung = first.then or first.rung
    return Plan(rung, first.reason + THEN_ITSELF, cost_ms(rung, config))


def cost_ms(rung: Rung, config: FidelityConfig = _DEFAULT) -> float:
    """The time that one reading at a rung is allowed for."""
    match rung:
        case Rung.TEMPLATE:
            return 0.0
        case Rung.EDGE:
            return config.edge_ms
        case Rung.SPECULATIVE | Rung.SECURE:
            return config.speculative_ms
        case Rung.DEEP:
            return config.deep_ms


def _wanted(
    regime: Regime,
    deadline_ms: float,
    load: float,
    divergence: float,
    suspicion: bool,
    config: FidelityConfig,
) -> tuple[Rung, str]:
    if suspicion:
        return Rung.SECURE, "manipulation suspected"
    if regime is Regime.SHOCK:
        return Rung.TEMPLATE, "shock: answer at once"
    # Written so that a deadline or load that is not a number counts as no time and full load.
    if not deadline_ms >= config.edge_ms:
        return Rung.TEMPLATE, "no time for a model"
    if not deadline_ms >= config.speculative_ms:
        return Rung.EDGE, "short deadline"
    if not load < config.high_load:
        return Rung.EDGE, "high load"
    if divergence >= config.high_divergence and deadline_ms >= config.deep_ms:
        return Rung.DEEP, DISAGREE
    return Rung.SPECULATIVE, "normal case"
