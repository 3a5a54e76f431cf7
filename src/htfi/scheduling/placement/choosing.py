"""Chooses among priced placements: what forbids one, which meet the deadline, which is cheapest, and why. Pure."""

import math

from htfi.scheduling.placement.figures import (
    CloudFigures,
    LinkFigures,
    Placement,
    PlacementDecision,
    PlacementRequest,
    PricedOption,
)
from htfi.scheduling.placement.pricing import OptionCost

_RANK = {placement: rank for rank, placement in enumerate(Placement)}


def choose(
    deadline_ms: float, priced: list[PricedOption], alone: PricedOption, can_draft: bool
) -> PlacementDecision:
    """The cheapest placement whose high quantile meets the deadline; else whose median does; else the edge alone.

    The edge alone does not compete with the others, however fast it is: no target verifies its answer. Without a draft
    the fastest cloud is chosen, even if it is late.
    """
    by_price = sorted(priced, key=_price_order)
    usable = [option for option in by_price if option.is_allowed]
    everything = (*by_price, alone)
    if not usable:
        why = "; ".join(dict.fromkeys(option.reason for option in by_price)) or "no cloud is connected"
        return PlacementDecision(alone, everything, None, f"edge alone: {why}")
    safe = [option for option in usable if option.late_ms <= deadline_ms]
    likely = safe or [option for option in usable if option.expected_ms <= deadline_ms]
    if likely:
        best = likely[0]
        reason = f"{'' if safe else 'may be late: '}cheapest of {len(likely)}: {best.reason}"
    else:
        best = min(usable, key=lambda option: (option.expected_ms, _RANK[option.placement], option.cloud))
        needs = f"{best.placement.value} at {best.cloud} needs {best.expected_ms:.0f} ms of {deadline_ms:.0f}"
        if can_draft:
            return PlacementDecision(alone, everything, None, f"edge alone: {needs}")
        reason = f"late: {needs}"
    return PlacementDecision(best, everything, _best_at_other_cloud(usable, best), reason)


def explore_instead(decision: PlacementDecision, candidate: PricedOption) -> PlacementDecision:
    reason = f"exploration: it may be cheaper than {decision.choice.placement.value}: {candidate.reason}"
    usable = [
        option
        for option in decision.options
        if option.is_allowed and option.placement is not Placement.EDGE_ONLY
    ]
    return PlacementDecision(candidate, decision.options, _best_at_other_cloud(usable, candidate), reason)


def exclusion_reason(
    cloud: str, ask: PlacementRequest, link: LinkFigures | None, figures: CloudFigures
) -> str:
    """What forbids a cloud, '' for nothing."""
    if not ask.residency <= figures.residency:
        missing = ", ".join(sorted(ask.residency - figures.residency))
        return f"data may not leave for {cloud}: {missing}"
    if link is None:
        return f"the link to {cloud} is not measured yet"
    if figures.is_degraded:
        return f"{cloud} is degraded"
    if link.is_suspect:
        return f"the link to {cloud} is suspect"
    return ""


def excluded_option(cloud: str, placement: Placement, reason: str) -> PricedOption:
    return PricedOption(cloud, placement, 0, 0, math.inf, math.inf, math.inf, math.inf, False, reason)


def describe_option(cost: OptionCost, link: LinkFigures) -> str:
    windows = f", windows of {cost.window}" if cost.window else ""
    if cost.placement is Placement.PIPELINED:
        windows = f", {cost.in_flight} × {cost.window} tokens"
    return f"{cost.placement.value}{windows}, {cost.num_trips:.1f} trips of {link.rtt_ms:.1f} ms"


def _best_at_other_cloud(usable: list[PricedOption], best: PricedOption) -> PricedOption | None:
    return next((option for option in usable if option.cloud != best.cloud), None)


def _price_order(option: PricedOption) -> tuple[bool, float, int, str]:
    return not option.is_allowed, option.price_ms, _RANK[option.placement], option.cloud


def hedge_after_ms(decision: PlacementDecision, deadline_ms: float) -> float | None:
    """ms after its opening from which on a request without an answer goes to `decision.second` as well; None: never.

    That is the high quantile of the choice's time, so few requests are sent twice; or sooner, while the second can
    still meet the deadline, but never before the choice's expected time. A second that is too slow is not asked.
    """
    choice, second = decision.choice, decision.hedge
    if second is None or choice.placement is Placement.EDGE_ONLY or not second.is_allowed:
        return None
    latest_ms = deadline_ms - second.expected_ms
    if not latest_ms >= choice.expected_ms:
        return None
    return min(choice.late_ms, latest_ms)
