"""A link whose round trip changes under way, 5, 120, 20 ms: `htfi bench link` compares the plan with the best ways."""

from collections.abc import Sequence

from htfi_eval.bench.link.runs import (
    FORCED_PLACEMENTS,
    LinkBench,
    LinkMeasurement,
    PlacementChoice,
    measured_kinds,
)
from htfi_eval.bench.link.setup import link_conditions

STEPS_MS = (5.0, 120.0, 20.0)
StepPasses = list[list[list[LinkMeasurement]]]


def measure_steps(bench: LinkBench, jitter: float, num_each: int) -> StepPasses:
    """Passes over the steps, the planned one first, then one in each way: [pass][step][request].

    All ask the same. The link changes between two requests and nobody is told; what the plan needs to notice counts
    against it.
    """
    asked = [
        [bench.next_request(kind) for _ in range(num_each) for kind in measured_kinds()] for _ in STEPS_MS
    ]
    passes: StepPasses = []
    for manner in (PlacementChoice.PLANNED, *FORCED_PLACEMENTS):
        bench.stage.set_round_trip(STEPS_MS[0], jitter)
        passes.append([])
        for rtt_ms, requests in zip(STEPS_MS, asked, strict=True):
            bench.stage.link.conditions = link_conditions(rtt_ms, jitter)
            passes[-1].append([bench.write(request, manner) for request in requests])
    return passes


def steps_regret(passes: Sequence[Sequence[Sequence[LinkMeasurement]]]) -> float:
    """The plan's time over that of the best way of each step, less one."""
    planned, *forced = [[sum(one.total_ms for one in of) for of in steps] for steps in passes]
    return sum(planned) / sum(min(of) for of in zip(*forced, strict=True)) - 1.0
