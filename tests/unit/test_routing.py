"""Who reads an item, and why: each reason once, and the same reasons again from the record."""

import pytest

from htfi.domain.decision import FidelityPlan, Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.news import NewsContext, NewsItemAudit, NewsScores, ReadingBudget, Route, Screening
from htfi.domain.plan import PlanReason
from htfi.narrative.config import RoutingConfig
from htfi.narrative.rationale.versions import PHRASINGS, VERSION
from htfi.narrative.routing import REASONS, cap_plan, choose_route, max_route, routing_problems

CONFIG = RoutingConfig()
MEANS = ReadingBudget(250.0, 250.0)


def scores(relevance: float = 0.9, novelty: float = 0.9, encoder: str = "encoder@1") -> NewsScores:
    return NewsScores(0.5, 0.0, "earnings", 0.8, relevance, novelty, (), encoder)


@pytest.mark.parametrize(
    ("verdict", "first_report", "scored", "position", "taken"),
    [
        (Screening.QUARANTINE, "", scores(), 1.0, Route.TEMPLATE),
        (Screening.PASS, "n0", scores(), 1.0, Route.TEMPLATE),
        (Screening.DISCOUNT, "", scores(), 1.0, Route.ENCODER),
        (Screening.DISCOUNT, "", scores(encoder=""), 1.0, Route.TEMPLATE),
        (Screening.PASS, "", scores(encoder=""), 1.0, Route.TARGET),
        (Screening.PASS, "", None, 1.0, Route.TARGET),
        (Screening.PASS, "", scores(relevance=0.1), 1.0, Route.TEMPLATE),
        (Screening.PASS, "", scores(novelty=0.01), 1.0, Route.TEMPLATE),
        (Screening.PASS, "", scores(0.3, 0.3), 1.0, Route.ENCODER),
        (Screening.PASS, "", scores(0.5, 0.5), 1.0, Route.DRAFT),
        (Screening.PASS, "", scores(0.8, 0.8), 1.0, Route.TARGET),
        (Screening.PASS, "", scores(1.0, 1.0), 1.0, Route.FRONTIER),
        (Screening.PASS, "", scores(0.8, 0.8), 0.0, Route.TARGET),
        (Screening.PASS, "", scores(0.7, 0.7), 0.0, Route.DRAFT),
    ],
)
def test_an_item_is_worth_a_reader(
    verdict: Screening, first_report: str, scored: NewsScores | None, position: float, taken: Route
) -> None:
    most, why = max_route(verdict, first_report, scored, position, CONFIG)
    assert most is taken
    assert why


def test_what_names_a_symbol_is_read_whatever_a_head_makes_of_it() -> None:
    doubted = scores(relevance=0.05)
    assert max_route(Screening.PASS, "", doubted, 1.0, CONFIG)[0] is Route.TEMPLATE
    most, why = max_route(Screening.PASS, "", doubted, 1.0, CONFIG, is_tagged=True)
    assert most is Route.TARGET
    assert "relevance 0.50" in why


def test_a_moment_without_time_has_nobody_read_and_says_so() -> None:
    plan = FidelityPlan(Rung.TEMPLATE, "no time for a model", 1.0)
    taken, why = choose_route(Route.TARGET, "worth 0.90", plan, MEANS, CONFIG)
    assert taken is Route.TEMPLATE
    assert why.endswith("no time for a model")


def test_where_a_model_could_hardly_move_the_forecast_the_encoder_reads_what_it_scored() -> None:
    plan = FidelityPlan(
        Rung.TEMPLATE, reason_codes=(PlanReason.NORMAL, PlanReason.LOW_INFLUENCE), deadline_ms=250.0
    )
    taken, why = choose_route(Route.TARGET, "worth 0.90", plan, MEANS, CONFIG, is_scored=True)
    assert taken is Route.ENCODER
    assert why.endswith("a model's reading could hardly move the forecast")
    assert choose_route(Route.TARGET, "not scored", plan, MEANS, CONFIG)[0] is Route.TEMPLATE
    audited = heard(plan, route=Route.ENCODER, why=heard(plan).why)
    assert routing_problems(NewsContext((audited,), (), MEANS), plan, CONFIG, VERSION) == []
    assert routing_problems(NewsContext((heard(plan),), (), MEANS), plan, CONFIG, VERSION) != []


def test_where_every_model_is_held_the_encoder_reads_but_not_what_is_suspected() -> None:
    for reason, expected in ((PlanReason.NORMAL, Route.ENCODER), (PlanReason.SUSPICION, Route.TEMPLATE)):
        plan = FidelityPlan(Rung.TEMPLATE, reason_codes=(reason, PlanReason.HELD), deadline_ms=250.0)
        assert choose_route(Route.TARGET, "worth 0.90", plan, MEANS, CONFIG, is_scored=True)[0] is expected
        assert choose_route(Route.TARGET, "not scored", plan, MEANS, CONFIG)[0] is Route.TEMPLATE


def test_where_no_reading_could_move_the_forecast_nobody_reads() -> None:
    plan = FidelityPlan(
        Rung.TEMPLATE, reason_codes=(PlanReason.NORMAL, PlanReason.NO_INFLUENCE), deadline_ms=250.0
    )
    for most in (Route.ENCODER, Route.DRAFT, Route.TARGET):
        taken, why = choose_route(most, "worth 0.90", plan, MEANS, CONFIG, is_scored=True)
        assert taken is Route.TEMPLATE
        assert why.endswith("no reading could move the forecast")


def test_a_frontier_model_reads_after_the_release_where_there_is_money_and_time() -> None:
    rich = ReadingBudget(250.0, 250.0, frontier_cents=5.0)
    plan = FidelityPlan(Rung.SPECULATIVE, "normal case", 250.0)
    then = FidelityPlan(Rung.SPECULATIVE, "normal case", 250.0, rung_after_release=Rung.DEEP)
    assert choose_route(Route.FRONTIER, "w", then, rich, CONFIG)[0] is Route.FRONTIER
    assert choose_route(Route.FRONTIER, "w", then, MEANS, CONFIG)[0] is Route.TARGET
    assert choose_route(Route.FRONTIER, "w", plan, rich, CONFIG)[0] is Route.TARGET
    assert choose_route(Route.TARGET, "w", then, rich, CONFIG)[0] is Route.TARGET


def test_the_draft_reads_alone_only_where_nothing_is_worth_more() -> None:
    plan, wired = (
        FidelityPlan(Rung.SPECULATIVE, "normal case", 250.0),
        frozenset({Rung.EDGE, Rung.SPECULATIVE}),
    )
    assert cap_plan(plan, [Route.DRAFT, Route.DRAFT], wired).rung is Rung.EDGE
    assert cap_plan(plan, [Route.DRAFT, Route.TARGET], wired) == plan
    assert cap_plan(plan, [Route.DRAFT], frozenset({Rung.SPECULATIVE})) == plan


def heard(plan: FidelityPlan, **more: object) -> NewsItemAudit:
    scored = scores(0.8, 0.8)
    most, why = max_route(Screening.PASS, "", scored, 1.0, CONFIG)
    taken, why = choose_route(most, why, plan, MEANS, CONFIG)
    told = {
        "id": "n1", "source": "wire", "available_at_ns": 1, "verdict": Screening.PASS, "trust": 1.0, "reasons": (),
        "num_alike": 1, "scores": scored, "route": taken, "why": why,
    }  # fmt: skip
    return NewsItemAudit(**{**told, **more})


def test_an_auditor_takes_the_same_route_and_finds_another() -> None:
    plan = FidelityPlan(Rung.SPECULATIVE, "normal case", 250.0)
    assert routing_problems(NewsContext((heard(plan),), (), MEANS), plan, CONFIG, VERSION) == []
    assert routing_problems(NewsContext((heard(plan, route=Route.DRAFT),), (), MEANS), plan, CONFIG, VERSION)
    assert routing_problems(
        NewsContext((heard(plan, scores=scores(0.1, 0.8)),), (), MEANS), plan, CONFIG, VERSION
    )
    assert routing_problems(
        NewsContext((heard(plan),), (), MEANS, suspicion="symbol A suspected"), plan, CONFIG, VERSION
    )


def test_each_version_of_the_rationale_has_its_reasons_and_only_they_are_accepted() -> None:
    plan = FidelityPlan(Rung.SPECULATIVE, "normal case", 250.0)
    assert REASONS.keys() == PHRASINGS.keys()
    old = heard(plan, why="worth 0.64: relevance 0.80, novelty 0.80, position 1.00; normal case")
    assert routing_problems(NewsContext((old,), (), MEANS), plan, CONFIG, "templates/4") == []
    assert routing_problems(NewsContext((old,), (), MEANS), plan, CONFIG, VERSION)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_relevance": 1.5},
        {"min_draft_worth": 0.5},
        {"positions": {"A": 2.0}},
        {"frontier_cents_per_reading": -1.0},
    ],
)
def test_settings_out_of_range_stop_the_start(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="routing"):
        RoutingConfig(**wrong)
