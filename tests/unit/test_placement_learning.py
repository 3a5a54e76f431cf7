"""What the planner learns from outcomes, what it may try, and how far its choices are from the best in hindsight."""

import pytest

from htfi.scheduling.placement.correction import CostCorrection
from htfi.scheduling.placement.figures import Placement, PlacementOutcome, PlacementRequest, PricedOption
from htfi.scheduling.placement.planner import PlacementPlanner
from placement_runs import regret

ASK = PlacementRequest("view", 17, 90, 1_000.0)


def outcome(
    choice: PricedOption, total_ms: float, num_tokens: int = 17, is_whole: bool = True
) -> PlacementOutcome:
    return PlacementOutcome(
        choice.cloud, choice.placement, choice.window, choice.in_flight, choice.expected_ms, "view", num_tokens,
        total_ms, is_whole=is_whole,
    )  # fmt: skip


def planner_at(rtt_ms: float, *clouds: str) -> PlacementPlanner:
    planner = PlacementPlanner()
    for cloud in clouds:
        for sample in range(20):
            planner.observe_link(cloud, sample * 0.075, rtt_ms=rtt_ms)
    return planner


def test_factors_come_to_what_is_true_of_each_way() -> None:
    correction = CostCorrection()
    for _ in range(60):
        correction.learn(Placement.CLOUD_PLAIN, 20.0, 30.0, 20.0 + 60.0)
        correction.learn(Placement.PIPELINED, 20.0, 10.0, 20.0 + 10.0)
    factors = correction.factors()
    assert factors.compute[Placement.CLOUD_PLAIN] == pytest.approx(2.0, rel=0.15)
    assert factors.compute[Placement.PIPELINED] == pytest.approx(1.0, rel=0.15)


def test_what_one_way_shows_is_believed_of_others_in_part() -> None:
    correction = CostCorrection()
    for _ in range(20):
        correction.learn(Placement.CLOUD_PLAIN, 1.0, 30.0, 61.0)
    assert 1.2 < correction.factors().compute[Placement.LOCKSTEP] < 2.0


def test_a_request_that_mostly_travelled_blames_the_trip_and_not_the_cloud() -> None:
    correction = CostCorrection()
    for _ in range(20):
        correction.learn(Placement.CLOUD_PLAIN, 200.0, 5.0, 220.0)
    factors = correction.factors()
    assert factors.network > 1.03
    assert factors.compute[Placement.CLOUD_PLAIN] < 1.5


def test_one_stall_moves_no_factor_far() -> None:
    correction = CostCorrection()
    for _ in range(40):
        correction.learn(Placement.CLOUD_PLAIN, 5.0, 30.0, 35.0)
    correction.learn(Placement.CLOUD_PLAIN, 5.0, 30.0, 3_000.0)
    assert correction.factors().compute[Placement.CLOUD_PLAIN] < 1.3


def test_a_cloud_that_gives_requests_up_late_is_left_for_another() -> None:
    planner = planner_at(20.0, "near", "other")
    for _ in range(20):
        choice = planner.place(ASK, ["near", "other"]).choice
        if choice.cloud == "near":
            planner.learn(outcome(choice, 900.0, num_tokens=3, is_whole=False))
        else:
            planner.learn(outcome(choice, choice.expected_ms))
    assert planner.place(ASK, ["near", "other"]).choice.cloud == "other"


def test_given_up_early_teaches_nothing() -> None:
    planner = planner_at(20.0, "near")
    before = planner.place(ASK, ["near"])
    planner.learn(outcome(before.choice, 1.0, num_tokens=3, is_whole=False))
    assert planner.place(ASK, ["near"]).options == before.options


def test_trying_is_bounded_where_nothing_is_ever_learnt() -> None:
    planner = planner_at(20.0, "near")
    extra_ms = spent_ms = 0.0
    for _ in range(500):
        decision = planner.place(ASK, ["near"])
        extra_ms += decision.choice.price_ms - decision.options[0].price_ms
        spent_ms += decision.options[0].price_ms
    assert extra_ms < 0.025 * spent_ms


def test_equal_histories_give_equal_decisions() -> None:
    def decisions() -> list[tuple[str, Placement, int]]:
        planner, made = planner_at(20.0, "near", "other"), list[tuple[str, Placement, int]]()
        for number in range(30):
            choice = planner.place(ASK, ["near", "other"] if number % 2 else ["other", "near"]).choice
            planner.learn(outcome(choice, choice.expected_ms * (0.8 + 0.1 * (number % 5))))
            made.append((choice.cloud, choice.placement, choice.window))
        return made

    assert decisions() == decisions()


def test_the_plan_is_near_the_best_in_steady_weather_and_where_the_trip_steps() -> None:
    assert regret(2, (20.0,), 120) < 0.10
    assert regret(11, (5.0, 120.0, 20.0), 60) < 0.25


@pytest.mark.slow
def test_over_many_worlds_the_plan_stays_near_the_best_at_every_trip() -> None:
    steady = {
        rtt: [regret(seed, (rtt,), 120) for seed in range(8)] for rtt in (0.0, 5.0, 20.0, 50.0, 100.0, 200.0)
    }
    means = {rtt: sum(of) / len(of) for rtt, of in steady.items()}
    assert max(means.values()) < 0.10, means
    stepping = [regret(seed, (5.0, 120.0, 20.0), 60) for seed in range(8)]
    assert max(stepping) < 0.25, stepping
