"""Chooses among priced ways: what forbids one, which meet the deadline, which is cheapest, and why in words. Pure."""

import math

from htfi.scheduling.placement.figures import Ask, CloudFigures, Decision, LinkFigures, Priced, Way
from htfi.scheduling.placement.pricing import Cost

_RANK = {way: rank for rank, way in enumerate(Way)}


def choose(deadline_ms: float, priced: list[Priced], alone: Priced, can_draft: bool) -> Decision:
    """The cheapest way whose high quantile meets the deadline; else whose median does; else the edge alone.

    The edge alone is no rival of the others, however fast it is: no target has seen what it writes. Without a draft
    the soonest cloud is taken, late as it is.
    """
    ways = sorted(priced, key=_order)
    usable = [one for one in ways if one.can_be]
    everything = (*ways, alone)
    if not usable:
        why = "; ".join(dict.fromkeys(one.words for one in ways)) or "no cloud is connected"
        return Decision(alone, everything, None, f"edge alone: {why}")
    safe = [one for one in usable if one.late_ms <= deadline_ms]
    likely = safe or [one for one in usable if one.expected_ms <= deadline_ms]
    if likely:
        best = likely[0]
        words = f"{'' if safe else 'may be late: '}cheapest of {len(likely)}: {best.words}"
    else:
        best = min(usable, key=lambda one: (one.expected_ms, _RANK[one.way], one.cloud))
        needs = f"{best.way.value} at {best.cloud} needs {best.expected_ms:.0f} ms of {deadline_ms:.0f}"
        if can_draft:
            return Decision(alone, everything, None, f"edge alone: {needs}")
        words = f"late: {needs}"
    return Decision(best, everything, _second(usable, best), words)


def tried(decision: Decision, instead: Priced) -> Decision:
    words = f"tried, as it may be cheaper than {decision.choice.way.value}: {instead.words}"
    usable = [one for one in decision.priced if one.can_be and one.way is not Way.EDGE_ONLY]
    return Decision(instead, decision.priced, _second(usable, instead), words)


def why_not(cloud: str, ask: Ask, link: LinkFigures | None, figures: CloudFigures) -> str:
    """What forbids a cloud, '' for nothing."""
    if not ask.residency <= figures.residency:
        missing = ", ".join(sorted(ask.residency - figures.residency))
        return f"data may not leave for {cloud}: {missing}"
    if link is None:
        return f"the link to {cloud} was not measured yet"
    if figures.is_ill:
        return f"{cloud} is ill"
    if link.is_suspect:
        return f"the link to {cloud} is suspect"
    return ""


def cannot(cloud: str, way: Way, words: str) -> Priced:
    return Priced(cloud, way, 0, 0, math.inf, math.inf, math.inf, 0.0, 0.0, math.inf, False, words)


def told(cost: Cost, link: LinkFigures) -> str:
    windows = f", windows of {cost.window}" if cost.window else ""
    if cost.way is Way.FLIGHT:
        windows = f", {cost.in_flight} × {cost.window} tokens"
    return f"{cost.way.value}{windows}, {cost.num_trips:.1f} trips of {link.rtt_ms:.1f} ms"


def _second(usable: list[Priced], best: Priced) -> Priced | None:
    return next((one for one in usable if one.cloud != best.cloud), None)


def _order(one: Priced) -> tuple[bool, float, int, str]:
    return not one.can_be, one.price_ms, _RANK[one.way], one.cloud
