"""What the planner makes of a request, what it learns of outcomes and forgets, and what exploring may cost."""

import re

import pytest

from htfi.scheduling.config import EXPLORE_FIRST, PlacementConfig
from htfi.scheduling.placement.figures import (
    Placement,
    PlacementDecision,
    PlacementOutcome,
    PlacementRequest,
    PricedOption,
)
from htfi.scheduling.placement.live import CloudReport
from htfi.scheduling.placement.planner import PlacementPlanner

ASK = PlacementRequest("view", 17, 90, 1_000.0)


def planner_at(rtt_ms: float = 20.0, config: PlacementConfig | None = None) -> PlacementPlanner:
    planner = PlacementPlanner(config or PlacementConfig())
    observe(planner, rtt_ms)
    return planner


def observe(planner: PlacementPlanner, rtt_ms: float = 20.0) -> None:
    for sample in range(20):
        planner.observe_link("far", sample * 0.075, rtt_ms=rtt_ms)


def option(decision: PlacementDecision, placement: Placement) -> PricedOption:
    return next(one for one in decision.options if one.placement is placement)


def plain(planner: PlacementPlanner, ask: PlacementRequest = ASK) -> PricedOption:
    return option(planner.place(ask, ["far"]), Placement.CLOUD_PLAIN)


def outcome(
    of: PricedOption, total_ms: float, is_whole: bool = True, window: int | None = None
) -> PlacementOutcome:
    return PlacementOutcome(
        of.cloud, of.placement, of.window if window is None else window, of.in_flight, of.expected_ms, "view", 17,
        total_ms, is_whole=is_whole,
    )  # fmt: skip


def test_fewer_tokens_are_expected_where_fewer_are_and_never_more_than_allowed() -> None:
    whole = plain(planner_at()).compute_ms
    assert plain(planner_at(), ASK._replace(num_expected=5)).compute_ms < 0.7 * whole
    assert plain(planner_at(), ASK._replace(num_expected=500)).compute_ms == whole
    assert plain(planner_at(), ASK._replace(num_tokens=34)).compute_ms > 1.4 * whole


def test_what_a_cloud_has_read_already_need_not_be_read_again() -> None:
    fresh = plain(planner_at())
    known = plain(planner_at(), ASK._replace(num_known={"far": 50}))
    all_known = plain(planner_at(), ASK._replace(num_known={"far": 500}))
    elsewhere = plain(planner_at(), ASK._replace(num_known={"near": 50}))
    assert elsewhere.expected_ms == fresh.expected_ms
    assert fresh.expected_ms - known.expected_ms > 50 * 0.05  # milliseconds of prompt at a cloud's pace
    assert all_known.expected_ms < known.expected_ms


def test_a_queue_and_a_farther_cloud_add_what_they_take() -> None:
    near, far, queued = planner_at(20.0), planner_at(120.0), planner_at(20.0)
    queued.observe_cloud("far", 2.0, CloudReport(queue_ms=30.0))
    described = re.search(r"([\d.]+) trips of", plain(near).reason)
    assert described
    trips = float(described[1])
    assert plain(far).expected_ms - plain(near).expected_ms == pytest.approx(trips * 100.0, rel=0.05)
    assert plain(queued).expected_ms - plain(near).expected_ms == pytest.approx(30.0, rel=0.2)


def test_energy_is_priced_at_its_rate() -> None:
    free, dear, dearer = (
        plain(planner_at(config=PlacementConfig(ms_per_joule=rate))).price_ms for rate in (0.0, 3.0, 6.0)
    )
    assert dear > free
    assert dearer - dear == pytest.approx(dear - free)


def test_without_a_draft_the_edge_is_no_option() -> None:
    decision = PlacementPlanner(can_draft=False).place(ASK, [])
    assert not option(decision, Placement.EDGE_ONLY).is_allowed
    assert "no draft is here" in option(decision, Placement.EDGE_ONLY).reason


def test_a_cloud_that_has_left_is_forgotten_with_what_was_learnt_of_it() -> None:
    planner = planner_at()
    before = plain(planner).expected_ms
    for _ in range(30):
        planner.learn(outcome(plain(planner), 10.0 * before))
    assert plain(planner).expected_ms > 1.5 * before
    planner.forget("far")
    assert planner.place(ASK, ["far"]).choice.placement is Placement.EDGE_ONLY
    observe(planner)
    assert plain(planner).expected_ms == pytest.approx(before)


def test_an_outcome_teaches_only_where_its_placement_is_remembered() -> None:
    planner = planner_at()
    first = plain(planner)
    for _ in range(30):
        planner.learn(outcome(first, 10.0 * first.expected_ms, window=first.window + 77))
    assert plain(planner).expected_ms == first.expected_ms


def test_what_was_given_up_teaches_that_it_took_longer_and_nothing_else() -> None:
    planner = planner_at()
    first = plain(planner)
    for _ in range(30):
        planner.learn(outcome(first, first.expected_ms, is_whole=False))
    assert plain(planner).expected_ms == first.expected_ms
    for _ in range(30):
        planner.learn(outcome(first, 10.0 * first.expected_ms, is_whole=False))
    assert plain(planner).expected_ms > 1.2 * first.expected_ms


def explored_ms(share: float, num: int) -> list[float]:
    """How much dearer than the cheapest each of `num` decisions was."""
    planner = planner_at(60.0, PlacementConfig(explore_share=share))
    found: list[float] = []
    for _ in range(num):
        decision = planner.place(ASK, ["far"])
        allowed = [one.price_ms for one in decision.options if one.is_allowed and one.cloud]
        found.append(decision.choice.price_ms - min(allowed))
    return found


def test_exploring_costs_no_more_than_its_budget() -> None:
    cheapest = min(
        one.price_ms for one in planner_at(60.0).place(ASK, ["far"]).options if one.is_allowed and one.cloud
    )
    bounded = explored_ms(0.0, 300)
    assert any(spent > 0.0 for spent in bounded)
    assert sum(bounded) <= EXPLORE_FIRST * cheapest * (1.0 + 1e-9)
    assert max(bounded[-20:]) == 0.0
    assert sum(explored_ms(0.2, 300)) > 2.0 * sum(bounded)
