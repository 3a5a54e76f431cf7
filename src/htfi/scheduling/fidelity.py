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

from htfi.domain.decision import FidelityPlan, Regime, Rung
from htfi.scheduling.config import FidelityConfig

_DEFAULT = FidelityConfig()
DISAGREEMENT = "numbers and narrative disagree"
HIGH_VALUE = "the news are worth the best reader"
VERIFIED_SUFFIX = "; then the news itself"

# What stands in for a rung that is not wired, best first. Nothing that drafts from text stands in for SECURE.
_FALLBACKS = {
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
) -> FidelityPlan:
    """The rung that suits the moment, or the next lower one that is wired; TEMPLATE always is.

    Units: load is the share of capacity in use; divergence the share of cases in which narrative and numbers disagree
    less, so that 0.9 is exceeded once in ten; both 0–1.
    """
    rung, why = _preferred_rung(regime, deadline_ms, load, divergence, suspicion, config)
    if rung is Rung.TEMPLATE or rung in available:
        return FidelityPlan(rung, why, deadline_ms)
    for other in _FALLBACKS[rung]:
        if other in available:
            return FidelityPlan(other, f"{why}; {rung.value} is not wired, so {other.value}", deadline_ms)
    return FidelityPlan(Rung.TEMPLATE, f"{why}; {rung.value} is not wired, so template", deadline_ms)


def plan_deep_reads(
    plans: Sequence[FidelityPlan],
    divergences: Sequence[float],
    bars_ms: Sequence[float],
    config: FidelityConfig = _DEFAULT,
    most: int | None = None,
) -> tuple[dict[int, FidelityPlan], int]:
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


def mark_high_value(plan: FidelityPlan) -> FidelityPlan:
    """A plan to read again in depth because the news are worth it, whether or not the numbers disagree."""
    return replace(plan, reason=f"{plan.reason}; {HIGH_VALUE}")


def is_high_value(plan: FidelityPlan) -> bool:
    """Whether the news are read again in depth for what they are worth."""
    return plan.then is Rung.DEEP and plan.reason.endswith(HIGH_VALUE)


def deep_read_plan(first: FidelityPlan, config: FidelityConfig = _DEFAULT) -> FidelityPlan:
    """That of a decision which was read again in depth, from the plan of the first."""
    return FidelityPlan(Rung.DEEP, HIGH_VALUE if is_high_value(first) else DISAGREEMENT, config.deep_ms)


def verification_plan(first: FidelityPlan, config: FidelityConfig = _DEFAULT) -> FidelityPlan:
    """That of a decision whose news were read once it was released, with a view that was prepared ahead of them."""
    rung = first.then or first.rung
    return FidelityPlan(rung, first.reason + VERIFIED_SUFFIX, rung_time_ms(rung, config))


def rung_time_ms(rung: Rung, config: FidelityConfig = _DEFAULT) -> float:
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


def _preferred_rung(
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
        return Rung.DEEP, DISAGREEMENT
    return Rung.SPECULATIVE, "normal case"
