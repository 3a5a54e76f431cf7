"""A link whose round trip changes under way, 5, 120, 20 ms: `htfi bench link` compares the plan with the best ways."""

from collections.abc import Sequence

from htfi.apps.bench.link_runs import FORCED, Bench, Manner, Measured, asked_kinds
from htfi.apps.bench.link_stage import weather

STEPS_MS = (5.0, 120.0, 20.0)
Steps = list[list[list[Measured]]]


def step(bench: Bench, jitter: float, num_each: int) -> Steps:
    """Passes over the steps, the planned one first, then one in each way: [pass][step][request].

    All ask the same. The link changes between two requests and nobody is told; what the plan needs to notice counts
    against it.
    """
    asked = [[bench.fresh(kind) for _ in range(num_each) for kind in asked_kinds()] for _ in STEPS_MS]
    passes: Steps = []
    for manner in (Manner.PLANNED, *FORCED):
        bench.stage.enter(STEPS_MS[0], jitter)
        passes.append([])
        for rtt_ms, requests in zip(STEPS_MS, asked, strict=True):
            bench.stage.link.weather = weather(rtt_ms, jitter)
            passes[-1].append([bench.write(request, manner) for request in requests])
    return passes


def regret(passes: Sequence[Sequence[Sequence[Measured]]]) -> float:
    """The plan's time over that of the best way of each step, less one."""
    planned, *forced = [[sum(one.total_ms for one in of) for of in steps] for steps in passes]
    return sum(planned) / sum(min(of) for of in zip(*forced, strict=True)) - 1.0
