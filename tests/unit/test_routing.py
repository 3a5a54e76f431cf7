"""Who reads an item, and why: each reason once, and the same reasons again from the record."""

import pytest

from htfi.domain.decision import Plan, Rung
from htfi.domain.errors import InvalidInput
from htfi.domain.news import Heard, Hearing, Means, Route, Scores, Screening
from htfi.narrative.routing import capped, problems, route, worth_reading
from htfi.narrative.routing_config import RoutingConfig

CONFIG = RoutingConfig()
MEANS = Means(250.0, 250.0)


def scores(relevance: float = 0.9, novelty: float = 0.9, encoder: str = "encoder@1") -> Scores:
    return Scores(0.5, 0.0, "earnings", 0.8, relevance, novelty, (), encoder)


@pytest.mark.parametrize(
    ("verdict", "told_before", "scored", "position", "taken"),
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
    verdict: Screening, told_before: str, scored: Scores | None, position: float, taken: Route
) -> None:
    most, why = worth_reading(verdict, told_before, scored, position, CONFIG)
    assert most is taken
    assert why


def test_what_names_a_symbol_is_read_whatever_a_head_makes_of_it() -> None:
    doubted = scores(relevance=0.05)
    assert worth_reading(Screening.PASS, "", doubted, 1.0, CONFIG)[0] is Route.TEMPLATE
    most, why = worth_reading(Screening.PASS, "", doubted, 1.0, CONFIG, is_tagged=True)
    assert most is Route.TARGET
    assert "relevance 0.50" in why


def test_a_moment_without_time_has_nobody_read_and_says_so() -> None:
    plan = Plan(Rung.TEMPLATE, "no time for a model", 1.0)
    taken, why = route(Route.TARGET, "worth 0.90", plan, MEANS, CONFIG)
    assert taken is Route.TEMPLATE
    assert why.endswith("no time for a model")


def test_a_frontier_model_reads_after_the_release_where_there_is_money_and_time() -> None:
    rich = Means(250.0, 250.0, frontier_cents=5.0)
    plan = Plan(Rung.SPECULATIVE, "normal case", 250.0)
    then = Plan(Rung.SPECULATIVE, "normal case", 250.0, then=Rung.DEEP)
    assert route(Route.FRONTIER, "w", then, rich, CONFIG)[0] is Route.FRONTIER
    assert route(Route.FRONTIER, "w", then, MEANS, CONFIG)[0] is Route.TARGET
    assert route(Route.FRONTIER, "w", plan, rich, CONFIG)[0] is Route.TARGET
    assert route(Route.TARGET, "w", then, rich, CONFIG)[0] is Route.TARGET


def test_the_draft_reads_alone_only_where_nothing_is_worth_more() -> None:
    plan, wired = Plan(Rung.SPECULATIVE, "normal case", 250.0), frozenset({Rung.EDGE, Rung.SPECULATIVE})
    assert capped(plan, [Route.DRAFT, Route.DRAFT], wired).rung is Rung.EDGE
    assert capped(plan, [Route.DRAFT, Route.TARGET], wired) == plan
    assert capped(plan, [Route.DRAFT], frozenset({Rung.SPECULATIVE})) == plan


def heard(plan: Plan, **more: object) -> Heard:
    scored = scores(0.8, 0.8)
    most, why = worth_reading(Screening.PASS, "", scored, 1.0, CONFIG)
    taken, why = route(most, why, plan, MEANS, CONFIG)
    told = {
        "id": "n1", "source": "wire", "available_at_ns": 1, "verdict": Screening.PASS, "trust": 1.0, "reasons": (),
        "num_alike": 1, "scores": scored, "route": taken, "why": why,
    }  # fmt: skip
    return Heard(**{**told, **more})


def test_an_auditor_takes_the_same_route_and_finds_another() -> None:
    plan = Plan(Rung.SPECULATIVE, "normal case", 250.0)
    assert problems(Hearing((heard(plan),), (), MEANS), plan, CONFIG) == []
    assert problems(Hearing((heard(plan, route=Route.DRAFT),), (), MEANS), plan, CONFIG)
    assert problems(Hearing((heard(plan, scores=scores(0.1, 0.8)),), (), MEANS), plan, CONFIG)
    assert problems(Hearing((heard(plan),), (), MEANS, suspicion="symbol A suspected"), plan, CONFIG)


@pytest.mark.parametrize(
    "wrong",
    [{"min_relevance": 1.5}, {"draft_worth": 0.5}, {"positions": {"A": 2.0}}, {"frontier_cents": -1.0}],
)
def test_settings_out_of_range_stop_the_start(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="routing"):
        RoutingConfig(**wrong)
