"""Runs a planner through a world whose costs it has wrong by up to two times, and tells its regret."""

from dataclasses import replace

import numpy as np

from htfi.scheduling.placement.figures import (
    CloudFigures,
    PassCostModel,
    Placement,
    PlacementOutcome,
    PlacementRequest,
)
from htfi.scheduling.placement.planner import PlacementPlanner
from placement_world import World, draw_matches, request_ms

MINI = CloudFigures(PassCostModel(0.30, 0.07, 0.0, 0.056), prompt_ms=0.06, draft_ms=0.05, watts=5.0)
LARGE = CloudFigures(PassCostModel(9.0, 1.3, 0.0, 0.9), prompt_ms=1.0, draft_ms=0.05, watts=5.0)
JITTER = 0.05  # of the round trip
BEAT_S, BEATS_A_REQUEST = 0.075, 4
_WAYS = (
    *((Placement.CLOUD_PLAIN, 0, 0), (Placement.CLOUD_SPECULATIVE, 1, 1)),
    *((Placement.LOCKSTEP, window, 1) for window in (2, 4, 6, 8, 12, 16, 32)),
    *((Placement.PIPELINED, window, in_flight) for window in (2, 4, 8, 16) for in_flight in (3, 32)),
)


def drawn_world(seed: int) -> tuple[CloudFigures, World]:
    """What the planner believes of a cloud, and what is true: each cost up to twice or half of it."""
    rng = np.random.Generator(np.random.PCG64(seed))
    pace, draft, beside, prompt, edge_prompt = (float(of) for of in 2.0 ** rng.uniform(-1.0, 1.0, 5))
    prior = LARGE if seed % 2 else MINI
    pass_costs = PassCostModel(*(part * pace for part in prior.pass_costs))
    beside_ms = (0.05 if seed % 3 else 0.5) * beside
    return prior, World(
        rtt_ms=0.0,
        pass_costs=pass_costs,
        draft_ms=0.03 * draft,
        cloud_draft_ms=beside_ms,
        prompt_ms=prior.prompt_ms * prompt,
        edge_prompt_ms=0.007 * edge_prompt,
        rate=float(rng.uniform(0.6, 0.97)),
        num_tokens=int(rng.integers(8, 60)),
        noise=0.1,
        frame_ms=0.15,
    )


def regret(seed: int, rtts_ms: tuple[float, ...], num_each: int) -> float:
    """The planner's time over that of each step's best way with its best window, less one."""
    prior, true = drawn_world(seed)
    rng = np.random.Generator(np.random.PCG64(seed + 1_000))
    planner, now_s, spent_ms, best_ms = PlacementPlanner(cloud_prior=prior), 0.0, 0.0, 0.0
    for step, rtt_ms in enumerate(rtts_ms):
        world = replace(true.at(rtt_ms), jitter_ms=rtt_ms * JITTER / 2.0)
        best_ms += num_each * best_way_ms(world, rng)
        for request in range(num_each):
            for _ in range(BEATS_A_REQUEST if request or step else 20):
                now_s += BEAT_S
                planner.observe_link("far", now_s, rtt_ms=world.one_way_ms(rng) + world.one_way_ms(rng))
            spent_ms += _write(planner, world, now_s, rng)
    return spent_ms / best_ms - 1.0


def best_way_ms(world: World, rng: np.random.Generator, num_requests: int = 60) -> float:
    drawn = [draw_matches(world, rng) for _ in range(num_requests)]
    return min(
        float(np.mean([request_ms(world, way, window, in_flight, matches, rng) for matches in drawn]))
        for way, window, in_flight in _WAYS
    )


def _write(planner: PlacementPlanner, world: World, now_s: float, rng: np.random.Generator) -> float:
    """One request from its placing to what is learnt of it."""
    planner.observe_edge(now_s, draft_ms=world.draft_ms * float(np.exp(rng.normal(0.0, 0.1))))
    choice = planner.place(PlacementRequest("view", world.num_tokens, world.num_prompt, 1e5), ["far"]).choice
    matches = draw_matches(world, rng)
    took_ms = request_ms(world, choice.placement, choice.window, choice.in_flight, matches, rng)
    drafted = stood = 0
    if choice.placement in (
        Placement.PIPELINED,
        Placement.LOCKSTEP,
    ):  # as an edge counts: guesses that were read, and those that stood
        settled = 1
        while settled < world.num_tokens:
            guesses = min(choice.window, world.num_tokens - settled)
            stands = next((at for at in range(guesses) if not matches[settled + 1 + at]), guesses)
            drafted, stood, settled = drafted + guesses, stood + stands, settled + stands + 1
    planner.learn(
        PlacementOutcome(
            "far", choice.placement, choice.window, choice.in_flight, choice.expected_ms, "view", world.num_tokens,
            took_ms, drafted, stood,
        )
    )  # fmt: skip
    return took_ms
