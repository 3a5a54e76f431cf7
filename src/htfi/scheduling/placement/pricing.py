"""Prices every way of writing an answer at one cloud, and the edge alone: expected times before correction. Pure.

The planner corrects, compares and caches what comes from here.
"""

from typing import NamedTuple

from htfi.scheduling.placement.config import PlacementConfig
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures, Way
from htfi.scheduling.placement.writing_times import (
    Spent,
    best_window,
    covering,
    rounds_in_turn,
    windows_in_flight,
)

_TOKEN_BYTES = 2.5
_FRAME_BYTES = 200.0
_RESENT_MS = 200.0  # the least that a lost segment waits for (RFC 6298 allows 1 s; systems take 200 ms)


class Task(NamedTuple):
    """What is to be written: tokens expected, prompt tokens that a cloud and the edge have yet to read."""

    num_tokens: int
    num_prompt: int
    num_prompt_edge: int
    curve: tuple[float, ...]


class Cost(NamedTuple):
    """What one way is expected to take beside its round trips, the prompt, its upload and the queue.

    `ms` of drafting and verifying on the way of an answer of `num_tokens`; `strain_ms` is the price of a device that
    had better be spared. The edge alone reads its prompt within `ms`.
    """

    way: Way
    window: int
    in_flight: int
    num_trips: float
    ms: float
    joules: float
    strain_ms: float
    num_tokens: int


def strain(edge: EdgeFigures, config: PlacementConfig) -> float:
    """0–1: how much this device had better be spared."""
    heat = 0.0
    if edge.temperature_c is not None:
        heat = (edge.temperature_c - config.hot_c) / (config.critical_c - config.hot_c)
    return min(max(heat, edge.throttle, edge.load - 1.0, 0.0), 1.0)


def edge_alone(task: Task, edge: EdgeFigures, config: PlacementConfig) -> Cost:
    """The draft writes. Provisional: no target has seen it."""
    ms = task.num_prompt_edge * edge.prompt_ms + task.num_tokens * edge.draft_ms
    spared = strain(edge, config) * config.strain_ms_per_ms * ms
    return Cost(Way.EDGE_ONLY, 0, 0, 0.0, ms, ms * edge.watts / 1e3, spared, task.num_tokens)


def upload_ms(num_prompt: int, link: LinkFigures) -> float:
    if not link.bytes_per_s:
        return 0.0
    return (_FRAME_BYTES + _TOKEN_BYTES * num_prompt) / link.bytes_per_s * 1e3


def late_extra_ms(cost: Cost, link: LinkFigures, cloud: CloudFigures) -> float:
    """What link and queue add at a high quantile: not all trips are late ones, so their root counts."""
    trip = max(link.rtt_late_ms - link.rtt_ms, 0.0) + link.loss * max(_RESENT_MS, link.rtt_ms)
    return trip * max(cost.num_trips, 1.0) ** 0.5 + max(cloud.queue_late_ms - cloud.queue_ms, 0.0)


def at_cloud(
    task: Task, link: LinkFigures, cloud: CloudFigures, edge: EdgeFigures | None, config: PlacementConfig
) -> list[Cost]:
    """All ways that this cloud has: a draft beside its target or not, an edge that can draft or not."""
    widest = max(min(config.max_window, task.num_tokens - 1), 1)
    rows = cloud.rows_busy + 1.0
    pass_ms = [cloud.plane.ms(rows, 1.0 + g) for g in range(widest + 1)]
    watts = cloud.watts / rows  # a pass is shared
    prompt_ms = task.num_prompt * cloud.prompt_ms
    spare = strain(edge, config) if edge else 0.0

    def cost(way: Way, window: int, in_flight: int, trips: float, spent: Spent) -> Cost:
        joules = ((spent.ms + prompt_ms) * watts + spent.edge_ms * (edge.watts if edge else 0.0)) / 1e3
        spared = spare * config.strain_ms_per_ms * spent.edge_ms
        return Cost(way, window, in_flight, trips, spent.ms, joules, spared, task.num_tokens)

    n = task.num_tokens
    costs = [cost(Way.CLOUD_PLAIN, 0, 0, 1.0, Spent((n - 1) * pass_ms[0], n - 1.0, 0.0))]
    if n < 2:
        return costs

    def priced(one: Cost) -> float:
        return one.num_trips * link.rtt_ms + one.ms + one.strain_ms + one.joules * config.ms_per_joule

    if cloud.draft_ms is not None:
        beside: dict[int, Cost] = {}
        draft_ms = cloud.draft_ms

        def in_cloud(window: int) -> float:
            spent = rounds_in_turn(n - 1, window, task.curve, draft_ms, pass_ms)
            beside[window] = cost(Way.CLOUD_SPECULATIVE, window, 1, 1.0, spent._replace(edge_ms=0.0))
            return priced(beside[window])

        costs.append(beside[best_window(in_cloud, widest)])
    if edge is not None:
        locked: dict[int, Cost] = {}
        flying: dict[int, Cost] = {}
        # the edge reads its prompt and drafts while the request travels and the cloud reads
        lead_ms = task.num_prompt_edge * edge.prompt_ms - cloud.queue_ms - prompt_ms

        def in_turn(window: int) -> float:
            # the first window travels with the prompt, so a round is a trip and there is none beside them
            spent = rounds_in_turn(n, window, task.curve, edge.draft_ms + config.frame_ms / window, pass_ms)
            locked[window] = cost(Way.LOCKSTEP, window, 1, spent.rounds, spent)
            return priced(locked[window])

        def ahead(window: int) -> float:
            draft_ms = edge.draft_ms + config.frame_ms / window
            cover = covering(window, link.rtt_ms, draft_ms, pass_ms[min(window, widest)])
            most = max(min(config.max_in_flight, cloud.num_in_flight), 1)
            choices = {min(cover, most)}
            if spare > 0.0:  # windows that may be thrown away cost a device that is to be spared
                choices.add(min(max(cover // 2, 1), most))
            best: Cost | None = None
            for in_flight in sorted(choices):
                spent = windows_in_flight(
                    n, window, in_flight, task.curve, link.rtt_ms, draft_ms, pass_ms, lead_ms
                )
                one = cost(Way.FLIGHT, window, in_flight, 1.0, spent)
                if best is None or priced(one) < priced(best):
                    best = one
            assert best is not None
            flying[window] = best
            return priced(best)

        costs.append(flying[best_window(ahead, widest)])
        costs.append(locked[best_window(in_turn, widest)])
    return costs
