"""Derives a recorded decision again from its own record: quantiles, words, verdict. Auditors call it.

What needs the inputs themselves (features, expert quantiles, weights) is recomputed by running the same inputs
into a fresh folder: the roots must be equal.
"""

from htfi.domain.decision import decode_decision, encode_decision
from htfi.forecasting.fusion import combine
from htfi.governance.config import PolicyConfig
from htfi.governance.policy import judge
from htfi.narrative.rationale import fill, tell_view
from htfi.pipeline.decide import facts


def recompute(entry: bytes, settings_digest: str, policy: PolicyConfig) -> list[str]:
    """What does not come out as recorded, in words; empty when all does.

    Raises: msgspec.ValidationError where the entry is no decision.
    """
    decision = decode_decision(entry)
    forecast = decision.forecast
    problems: list[str] = []
    if decision.settings_digest != settings_digest:
        problems.append("it was made under other settings than those at hand")
    if encode_decision(decision) != entry:
        problems.append("the entry is not in canonical form")
    fused = combine(forecast.experts, forecast.weights, forecast.calibration, forecast.levels)
    if fused != forecast.quantiles:
        problems.append("the fused quantiles do not follow from the experts' and their weights")
    if fill(decision.rationale.template, decision.rationale.slots) != decision.rationale.text:
        problems.append("the rationale does not follow from its template and slots")
    told = tell_view(decision.view, decision.symbol) if decision.view is not None else {}
    if any(decision.rationale.slots.get(slot) != words for slot, words in told.items()):
        problems.append("what the rationale says of the news does not follow from the view")
    known = facts(
        decision.symbol,
        decision.as_of_ns,
        decision.regime,
        decision.features,
        forecast,
        decision.circumstances,
    )
    if judge(known, policy) != decision.verdict:
        problems.append("the verdict does not follow from the policy")
    return problems
