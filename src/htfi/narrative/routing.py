"""Chooses who reads an item, and says why: nobody, the encoder, the draft, the target, a frontier model.

Two pure steps, so that an auditor takes them again from the record: `worth_reading` when an item comes in, from what
the sanitiser and the encoder say of it and the position at stake; `route` when a decision asks, from the time, the rung
and the money that are left.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from htfi.domain.decision import FidelityPlan, Rung
from htfi.domain.news import NewsContext, NewsScores, ReadingBudget, Route, Screening
from htfi.narrative.config import RoutingConfig

SUSPECTED_REASON = "manipulation suspected"
_ROUTE_OF_RUNG = {
    Rung.TEMPLATE: Route.TEMPLATE,
    Rung.EDGE: Route.DRAFT,
    Rung.SPECULATIVE: Route.TARGET,
    Rung.DEEP: Route.TARGET,
    Rung.SECURE: Route.TARGET,
}


def max_route(
    verdict: Screening,
    told_before: str,
    scores: NewsScores | None,
    position: float,
    config: RoutingConfig,
    *,
    is_tagged: bool = False,
) -> tuple[Route, str]:
    """The dearest reader that an item is worth, and why.

    `told_before` is the id of the first item that told the same, '' where this is the first; `position` 0–1;
    `is_tagged` where it came with symbols, or names one of the run's.
    """
    if verdict is Screening.QUARANTINE:
        return Route.TEMPLATE, "in quarantine"
    if told_before:
        return Route.TEMPLATE, f"told before by {told_before}"
    scored = scores is not None and bool(scores.encoder)
    if verdict is Screening.DISCOUNT:
        return (
            (Route.ENCODER, "discounted: no model reads it")
            if scored
            else (Route.TEMPLATE, "discounted, and there is no encoder")
        )
    if not scored or scores is None:
        return Route.TARGET, "not scored: a model must look at it"
    relevance = max(scores.relevance, config.tagged_relevance) if is_tagged else scores.relevance
    if relevance < config.min_relevance:
        return Route.TEMPLATE, f"relevance {relevance:.2f} is too low"
    if scores.novelty < config.min_novelty:
        return Route.TEMPLATE, f"novelty {scores.novelty:.2f} is too low"
    value = relevance * scores.novelty * (0.5 + 0.5 * position)
    said = (
        f"worth {value:.2f}: relevance {relevance:.2f}, novelty {scores.novelty:.2f}, position {position:.2f}"
    )
    if value < config.draft_worth:
        return Route.ENCODER, f"{said}; the encoder is enough"
    if value < config.target_worth:
        return Route.DRAFT, f"{said}; the draft is enough"
    return Route.TARGET if value < config.frontier_worth else Route.FRONTIER, said


def choose_route(
    most: Route, why: str, plan: FidelityPlan, means: ReadingBudget, config: RoutingConfig
) -> tuple[Route, str]:
    """Who reads an item that is worth `most`, at a decision with this plan.

    A frontier model reads after the release, where it is worth it and the plan found money and time for it.
    """
    if most in (Route.TEMPLATE, Route.ENCODER):
        return most, why
    if plan.rung is Rung.TEMPLATE:
        return Route.TEMPLATE, f"{why}; {plan.reason}"
    affordable = 0.0 < config.frontier_cents <= means.frontier_cents
    if most is Route.FRONTIER and plan.then is Rung.DEEP and affordable:
        return Route.FRONTIER, f"{why}; there is time and money for a frontier model"
    return _ROUTE_OF_RUNG[plan.rung], f"{why}; {plan.reason}"


def cap_plan(plan: FidelityPlan, routes: Sequence[Route], available: frozenset[Rung]) -> FidelityPlan:
    """The plan for items that are worth these readers: the draft reads what is worth no more."""
    if plan.rung is not Rung.SPECULATIVE or Rung.EDGE not in available:
        return plan
    if all(one is Route.DRAFT for one in routes):
        return replace(plan, rung=Rung.EDGE, reason=f"{plan.reason}; the draft is enough")
    return plan


def routing_problems(hearing: NewsContext, plan: FidelityPlan, config: RoutingConfig) -> list[str]:
    """What of the items' routes does not follow from the record."""
    found: list[str] = []
    for heard in (*hearing.considered, *hearing.set_aside):
        most, why = max_route(
            heard.verdict, heard.told_before, heard.scores, heard.position, config, is_tagged=heard.is_tagged
        )
        if (heard.route, heard.why) != choose_route(most, why, plan, hearing.means, config):
            found.append(f"the route of {heard.id} does not follow from what is said of it")
    if hearing.suspicion and plan.rung is not Rung.SECURE and not plan.reason.startswith(SUSPECTED_REASON):
        found.append("manipulation is suspected, and the plan does not say so")
    return found
