"""Chooses who reads an item, and gives the reason: no model, the encoder, the draft, the target, a frontier model.

Two pure steps, so that an auditor takes them again from the record: `max_route` when an item comes in, from what the
sanitiser and the encoder make of it and the position at stake; `choose_route` when a decision asks, from the time, the
rung and the money that are left. The reason is recorded in the words of the decision's version of the rationale.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET

from htfi.domain.decision import FidelityPlan, Rung
from htfi.domain.news import NewsContext, NewsScores, ReadingBudget, Route, Screening
from htfi.domain.plan import PlanReason
from htfi.narrative.config import RoutingConfig
from htfi.narrative.facts.bodies import MAX_PASSAGES
from htfi.narrative.facts.reading import Silence
from htfi.narrative.facts.record import TextFault

_ROUTE_OF_RUNG = {
    Rung.TEMPLATE: Route.TEMPLATE,
    Rung.EDGE: Route.DRAFT,
    Rung.SPECULATIVE: Route.TARGET,
    Rung.DEEP: Route.TARGET,
    Rung.SECURE: Route.TARGET,
}


# A symbol tag is a hint and no proof: an item that is not about its asset is read by no model, nor is one that can
# state nothing.
ABOUT_OTHERS = frozenset({Silence.UNRELATED.value, Silence.OTHERS.value})
_STATES_NOTHING = frozenset(one.value for one in TextFault if one is not TextFault.NONE)
UNREAD = ABOUT_OTHERS | _STATES_NOTHING


PASSAGE_MS = 8.0  # of one passage of a body on any machine, so that a replay reads the same passages
_BODY_SHARE = 0.25  # of the deadline of a reading, that the passages of one item may take
_OF_ENCODER_ALONE = 2  # passages of an item that no model is to read


def max_passages(most: Route, deadline_ms: float) -> int:
    """How many passages of an item's body are read, for an item that is worth `most`: none of what is set aside."""
    if most is Route.TEMPLATE:
        return 0
    affordable = int(min(_BODY_SHARE * deadline_ms / PASSAGE_MS, MAX_PASSAGES))
    return min(affordable, _OF_ENCODER_ALONE) if most is Route.ENCODER else affordable


class RouteReasons(NamedTuple):
    """The reasons of one version, with their figures in braces."""

    quarantined: str
    repeated: str
    discounted: str
    discounted_unscored: str
    unscored: str
    low_relevance: str
    low_novelty: str
    value: str
    encoder_suffices: str
    draft_suffices: str
    frontier: str
    not_about: str = "{silence}"


_REASONS_4 = RouteReasons(
    quarantined="in quarantine",
    repeated="told before by {first}",
    discounted="discounted: no model reads it",
    discounted_unscored="discounted, and there is no encoder",
    unscored="not scored: a model must look at it",
    low_relevance="relevance {relevance:.2f} is too low",
    low_novelty="novelty {novelty:.2f} is too low",
    value="worth {value:.2f}: relevance {relevance:.2f}, novelty {novelty:.2f}, position {position:.2f}",
    encoder_suffices="; the encoder is enough",
    draft_suffices="; the draft is enough",
    frontier="; there is time and money for a frontier model",
)
_REASONS_5 = RouteReasons(
    quarantined="held in quarantine",
    repeated="repeats {first}",
    discounted="discounted, so the encoder alone reads it",
    discounted_unscored="discounted, and no encoder is installed",
    unscored="not scored, so a model reads it",
    low_relevance="relevance {relevance:.2f} is below the minimum",
    low_novelty="novelty {novelty:.2f} is below the minimum",
    value="value {value:.2f} (relevance {relevance:.2f}, novelty {novelty:.2f}, position {position:.2f})",
    encoder_suffices=": the encoder suffices",
    draft_suffices=": the draft model suffices",
    frontier="; there is time and budget for a frontier model",
)
REASONS: Mapping[str, RouteReasons] = {
    "templates/4": _REASONS_4,
    "templates/5": _REASONS_5,
    "templates/6": _REASONS_5,
    "templates/7": _REASONS_5,
}


def max_route(
    verdict: Screening,
    first_report: str,
    scores: NewsScores | None,
    position: float,
    config: RoutingConfig,
    *,
    is_tagged: bool = False,
    silence: str = "",
    reasons: RouteReasons = _REASONS_5,
) -> tuple[Route, str]:
    """The most expensive reader that an item is worth, and the reason.

    `silence` is why its facts say nothing about the symbol of the decision, '' where they do. `first_report` is the id
    of the first item with the same story, '' where this is the first; `position` 0–1; `is_tagged` says that it came
    with symbols, or names one of the run's.
    """
    if verdict is Screening.QUARANTINE:
        return Route.TEMPLATE, reasons.quarantined
    if first_report:
        return Route.TEMPLATE, reasons.repeated.format(first=first_report)
    if silence in UNREAD:
        return Route.TEMPLATE, reasons.not_about.format(silence=silence)
    scored = scores is not None and bool(scores.encoder)
    if verdict is Screening.DISCOUNT:
        return (
            (Route.ENCODER, reasons.discounted) if scored else (Route.TEMPLATE, reasons.discounted_unscored)
        )
    if not scored or scores is None:
        return Route.TARGET, reasons.unscored
    relevance = max(scores.relevance, config.min_tagged_relevance) if is_tagged else scores.relevance
    if relevance < config.min_relevance:
        return Route.TEMPLATE, reasons.low_relevance.format(relevance=relevance)
    if scores.novelty < config.min_novelty:
        return Route.TEMPLATE, reasons.low_novelty.format(novelty=scores.novelty)
    value = relevance * scores.novelty * (0.5 + 0.5 * position)
    why = reasons.value.format(value=value, relevance=relevance, novelty=scores.novelty, position=position)
    if value < config.min_draft_worth:
        return Route.ENCODER, why + reasons.encoder_suffices
    if value < config.min_target_worth:
        return Route.DRAFT, why + reasons.draft_suffices
    return Route.TARGET if value < config.min_frontier_worth else Route.FRONTIER, why


def choose_route(
    most: Route,
    why: str,
    plan: FidelityPlan,
    means: ReadingBudget,
    config: RoutingConfig,
    reasons: RouteReasons = _REASONS_5,
    *,
    is_scored: bool = False,
) -> tuple[Route, str]:
    """Who reads an item that is worth `most`, at a decision with this plan.

    A frontier model reads after the release, where the item is worth it and the plan found budget and time for it. The
    encoder's reading of an item that `is_scored` counts where a model's could hardly move the forecast, or is held.
    """
    if most is Route.TEMPLATE or (most is Route.ENCODER and PlanReason.NO_INFLUENCE not in plan.reasons):
        return most, why
    if plan.rung is Rung.TEMPLATE:
        is_read = is_scored and plan.counts_encoder_alone
        return Route.ENCODER if is_read else Route.TEMPLATE, f"{why}; {plan.reason_text}"
    affordable = 0.0 < config.frontier_cents_per_reading <= means.frontier_cents
    if most is Route.FRONTIER and plan.rung_after_release is Rung.DEEP and affordable:
        return Route.FRONTIER, why + reasons.frontier
    return _ROUTE_OF_RUNG[plan.rung], f"{why}; {plan.reason_text}"


def cap_plan(plan: FidelityPlan, routes: Sequence[Route], available: frozenset[Rung]) -> FidelityPlan:
    """The plan for items that are worth these readers: the draft reads what is worth no more."""
    if plan.rung is not Rung.SPECULATIVE or Rung.EDGE not in available:
        return plan
    if all(one is Route.DRAFT for one in routes):
        return plan.with_reason(PlanReason.DRAFT_SUFFICES, Rung.EDGE)
    return plan


def routing_problems(
    news_context: NewsContext, plan: FidelityPlan, config: RoutingConfig, version: str
) -> list[str]:
    """What of the items' routes does not follow from the record; `version` is that of the rationale's words."""
    reasons = REASONS.get(version, _REASONS_5)
    found: list[str] = []
    for audited in (*news_context.considered, *news_context.set_aside):
        most, why = max_route(
            audited.verdict,
            audited.first_report,
            audited.scores,
            audited.position,
            config,
            is_tagged=audited.is_tagged,
            silence="" if audited.reading is UNSET else audited.reading.silence,
            reasons=reasons,
        )
        is_scored = audited.scores is not None and bool(audited.scores.encoder)
        if (audited.route, audited.why) != choose_route(
            most, why, plan, news_context.reading_budget, config, reasons, is_scored=is_scored
        ):
            found.append(f"the route of {audited.id} does not follow from its record")
    if news_context.suspicion and plan.rung is not Rung.SECURE and PlanReason.SUSPICION not in plan.reasons:
        found.append("manipulation is suspected, but the plan does not state it")
    return found
