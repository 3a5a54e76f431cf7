"""Prices of placement: which way is chosen where, and what forbids one."""

from htfi.scheduling.placement.choosing import hedge_after_ms
from htfi.scheduling.placement.figures import Placement, PlacementDecision, PlacementRequest
from htfi.scheduling.placement.live import CloudReport
from htfi.scheduling.placement.planner import PlacementPlanner

ASK = PlacementRequest("view", 17, 90, 1_000.0)


def planner_at(rtt_ms: float, *clouds: str) -> PlacementPlanner:
    planner = PlacementPlanner()
    for cloud in clouds or ("far",):
        for sample in range(20):
            planner.observe_link(cloud, sample * 0.075, rtt_ms=rtt_ms)
    return planner


def priced(decision: PlacementDecision, way: Placement) -> float:
    return next(one.expected_ms for one in decision.options if one.placement is way)


def test_every_way_is_priced_and_lock_step_pays_the_trip_each_round() -> None:
    decision = planner_at(100.0).place(ASK, ["far"])
    assert {one.placement for one in decision.options} == set(Placement)
    assert priced(decision, Placement.LOCKSTEP) > 2.0 * priced(decision, Placement.PIPELINED)
    assert 100.0 < priced(decision, Placement.PIPELINED) < priced(decision, Placement.CLOUD_PLAIN)


def test_data_that_must_not_leave_stays_and_the_reason_is_said() -> None:
    planner = planner_at(5.0)
    decision = planner.place(ASK._replace(residency=frozenset({"eu"})), ["far"])
    assert decision.choice.placement is Placement.EDGE_ONLY
    assert "may not leave" in decision.reason
    assert "eu" in decision.reason
    planner.observe_cloud("far", 2.0, CloudReport(residency=frozenset({"eu", "uk"})))
    assert planner.place(ASK._replace(residency=frozenset({"eu"})), ["far"]).choice.cloud == "far"


def test_a_deadline_that_no_cloud_meets_leaves_the_edge_alone() -> None:
    decision = planner_at(100.0).place(ASK._replace(deadline_ms=50.0), ["far"])
    assert decision.choice.placement is Placement.EDGE_ONLY
    assert "of 50" in decision.reason


def test_no_cloud_or_an_ill_one_leaves_the_edge_alone() -> None:
    planner = planner_at(5.0)
    assert planner.place(ASK, []).choice.placement is Placement.EDGE_ONLY
    planner.observe_cloud("far", 2.0, CloudReport(is_degraded=True))
    decision = planner.place(ASK, ["far"])
    assert decision.choice.placement is Placement.EDGE_ONLY
    assert "degraded" in decision.reason


def test_a_hedge_goes_to_the_second_cloud_while_it_can_meet_the_deadline() -> None:
    decision = planner_at(20.0, "near", "far").place(ASK, ["near", "far"])
    assert decision.hedge is not None
    assert decision.hedge.cloud != decision.choice.cloud
    wait_ms = hedge_after_ms(decision, 1_000.0)
    assert wait_ms is not None
    assert wait_ms >= decision.choice.expected_ms
    assert hedge_after_ms(decision, decision.choice.expected_ms + 1.0) is None
    alone = planner_at(20.0, "near").place(ASK, ["near"])
    assert hedge_after_ms(alone, 1_000.0) is None


def test_a_faster_draft_is_noticed_however_small_its_times_are() -> None:
    planner = planner_at(5.0)
    before = priced(planner.place(ASK, ["far"]), Placement.CLOUD_SPECULATIVE)
    planner.observe_cloud("far", 2.0, CloudReport(draft_ms=0.02))
    assert priced(planner.place(ASK, ["far"]), Placement.CLOUD_SPECULATIVE) < before - 0.2


def test_a_cloud_that_loses_its_draft_has_no_speculation_of_its_own() -> None:
    planner = planner_at(5.0)
    planner.place(ASK, ["far"])
    planner.observe_cloud("far", 2.0, CloudReport(draft_ms=-1.0))
    assert Placement.CLOUD_SPECULATIVE not in {one.placement for one in planner.place(ASK, ["far"]).options}
    assert PlacementPlanner(can_draft=False).place(ASK, []).choice.is_allowed is False


def test_slow_passes_queues_and_busy_rows_raise_prices() -> None:
    planner = planner_at(5.0, "near", "far")
    at_first = planner.place(ASK, ["far"]).options[0].expected_ms
    for beat in range(20):
        planner.observe_cloud("far", beat * 0.075, CloudReport(queue_ms=30.0, rows_busy=8.0, step_ms=5.0))
    assert planner.place(ASK, ["far"]).options[0].expected_ms > at_first + 30.0
    assert planner.place(ASK, ["near", "far"]).choice.cloud == "near"


def test_a_suspect_link_is_avoided_and_a_tie_goes_by_name() -> None:
    planner = planner_at(5.0, "a", "b")
    assert planner.place(ASK, ["b", "a"]).options[0].cloud == "a"
    planner.observe_link("a", 2.0, is_suspect=True)
    decision = planner.place(ASK, ["b", "a"])
    assert decision.choice.cloud == "b"
    assert any("suspect" in one.reason for one in decision.options if one.cloud == "a")
