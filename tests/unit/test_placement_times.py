"""The formulae of placement against a world of events: the mean of many requests, within its own error and 3%."""

import numpy as np
import pytest

from htfi.scheduling.config import PlacementConfig
from htfi.scheduling.placement.decoding_times import lockstep_time, survival_and_hazards
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures, PassCostModel, Placement
from htfi.scheduling.placement.pricing import (
    DecodingTask,
    OptionCost,
    make_cost_inputs,
    price_at_cloud,
    price_window,
)
from placement_world import World, draw_matches, request_ms

MINI = PassCostModel(0.30, 0.07, 0.0, 0.056)
LARGE = PassCostModel(9.0, 1.3, 0.0, 0.9)
NUM_REQUESTS = 400
SIGMAS = 4.0  # 24 comparisons: a false alarm in some 600 runs, and 3% of slack beside


def world_of(pass_costs: PassCostModel, rtt_ms: float, rate: float, num_tokens: int) -> World:
    prompt_ms = 0.06 if pass_costs is MINI else 1.0
    return World(rtt_ms, pass_costs, 0.03, 0.05, prompt_ms, 0.007, rate, num_tokens, frame_ms=0.1)


def expected_ms(world: World, way: Placement, window: int, in_flight: int) -> float:
    curve = tuple(world.rate**place for place in range(1, 33))
    task = DecodingTask(world.num_tokens, world.num_prompt, world.num_prompt, curve)
    cloud = CloudFigures(world.pass_costs, world.prompt_ms, draft_ms=world.cloud_draft_ms)
    edge = EdgeFigures(world.draft_ms, world.edge_prompt_ms)
    seen = make_cost_inputs(task, LinkFigures(world.rtt_ms, world.rtt_ms), cloud, edge, PlacementConfig())
    cost = price_window(seen, way, window, in_flight)
    return cost.num_trips * world.rtt_ms + world.num_prompt * world.prompt_ms + cost.ms


@pytest.mark.parametrize("rtt_ms", [0.2, 20.0, 100.0])
@pytest.mark.parametrize(
    ("pass_costs", "rate", "num_tokens"), [(MINI, 0.966, 16), (MINI, 0.8, 40), (LARGE, 0.9, 24)]
)
def test_expected_times_are_those_of_the_protocol(
    pass_costs: PassCostModel, rate: float, num_tokens: int, rtt_ms: float
) -> None:
    world = world_of(pass_costs, rtt_ms, rate, num_tokens)
    rng = np.random.Generator(np.random.PCG64(17))
    for way, window, in_flight in (
        (Placement.PIPELINED, 3, 8),
        (Placement.PIPELINED, 8, 32),
        (Placement.LOCKSTEP, 6, 1),
        (Placement.CLOUD_SPECULATIVE, world.draft_length, 1),
        (Placement.CLOUD_PLAIN, 0, 0),
    ):
        took = [
            request_ms(world, way, window, in_flight, draw_matches(world, rng), rng)
            for _ in range(NUM_REQUESTS)
        ]
        mean, error = float(np.mean(took)), float(np.std(took)) / NUM_REQUESTS**0.5
        found = expected_ms(world, way, window, in_flight)
        assert found == pytest.approx(mean, abs=SIGMAS * error + 0.03 * mean), (
            way,
            window,
            found,
            mean,
            error,
        )


def test_few_windows_in_flight_starve_the_target_over_a_long_trip() -> None:
    world = world_of(LARGE, 200.0, 0.966, 40)
    few, many = (expected_ms(world, Placement.PIPELINED, 2, in_flight) for in_flight in (1, 16))
    assert few > 1.1 * many


def test_hazards_sum_to_one_less_what_survives_and_go_on_beyond_the_curve() -> None:
    alive, hazard = survival_and_hazards((0.9, 0.72), 6)
    assert sum(hazard) == pytest.approx(1.0 - alive[6])
    assert alive[3] / alive[2] == pytest.approx(0.8)


def test_rounds_are_counted_exactly() -> None:
    sure = lockstep_time(16, 3, (1.0,) * 8, 0.0, [1.0] * 4)
    assert sure.rounds == pytest.approx(4.0)
    never = lockstep_time(16, 3, (0.0,) * 8, 0.0, [1.0] * 4)
    assert never.rounds == pytest.approx(16.0)
    # two tokens left, one guess: it stands with .6, else another round of none
    assert lockstep_time(2, 3, (0.6, 0.36), 0.0, [1.0] * 4).rounds == pytest.approx(1.4)


def flight(
    rtt_ms: float = 50.0, rate: float = 0.93, throttle: float = 0.0, temperature_c: float | None = None
) -> OptionCost:
    curve = tuple(rate**place for place in range(1, 33))
    task = DecodingTask(48, 90, 90, curve)
    edge = EdgeFigures(0.5, 0.05, throttle, temperature_c, watts=5.0)
    seen = make_cost_inputs(
        task, LinkFigures(rtt_ms, rtt_ms), CloudFigures(LARGE, 1.0), edge, PlacementConfig()
    )
    return next(cost for cost in price_at_cloud(seen) if cost.placement is Placement.PIPELINED)


def test_look_ahead_widens_with_the_trip_and_narrows_with_heat_throttling_and_failing_guesses() -> None:
    def ahead(cost: OptionCost) -> int:
        return cost.window * cost.in_flight

    assert ahead(flight(5.0)) < ahead(flight(100.0))
    assert ahead(flight(throttle=0.9)) < ahead(flight())
    assert ahead(flight(temperature_c=95.0)) < ahead(flight(temperature_c=60.0))
    assert ahead(flight(rate=0.4)) < ahead(flight(rate=0.97))


def test_lock_step_drafts_longer_windows_over_longer_trips() -> None:
    def window(rtt_ms: float) -> int:
        task = DecodingTask(48, 90, 90, tuple(0.95**place for place in range(1, 33)))
        edge = EdgeFigures(0.5, 0.05)
        seen = make_cost_inputs(
            task, LinkFigures(rtt_ms, rtt_ms), CloudFigures(LARGE, 1.0), edge, PlacementConfig()
        )
        return next(cost.window for cost in price_at_cloud(seen) if cost.placement is Placement.LOCKSTEP)

    assert window(0.2) < window(20.0) <= window(200.0)
