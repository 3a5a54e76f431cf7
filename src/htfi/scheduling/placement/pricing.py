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
    worth_reading,
)

_TOKEN_BYTES = 2.5
_FRAME_BYTES = 200.0
_LIKELY = 0.5  # four guesses in a row: below, it is weighed whether fewer in flight do
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
    had better be spared, and of frames. The edge alone reads its prompt within `ms`.
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
    spared = (config.edge_ms_per_ms + strain(edge, config) * config.strain_ms_per_ms) * ms
    return Cost(Way.EDGE_ONLY, 0, 0, 0.0, ms, ms * edge.watts / 1e3, spared, task.num_tokens)


def upload_ms(num_prompt: int, link: LinkFigures) -> float:
    if not link.bytes_per_s:
        return 0.0
    return (_FRAME_BYTES + _TOKEN_BYTES * num_prompt) / link.bytes_per_s * 1e3


def late_extra_ms(cost: Cost, link: LinkFigures, cloud: CloudFigures) -> float:
    """What link and queue add at a high quantile: not all trips are late ones, so their root counts."""
    trip = max(link.rtt_late_ms - link.rtt_ms, 0.0) + link.loss * max(_RESENT_MS, link.rtt_ms)
    return trip * max(cost.num_trips, 1.0) ** 0.5 + max(cloud.queue_late_ms - cloud.queue_ms, 0.0)


class Scene(NamedTuple):
    """All that costs at one cloud depend on. `pass_ms[g]`: verifying g guesses; `depth`: guesses read at once."""

    task: Task
    rtt_ms: float
    cloud: CloudFigures
    edge: EdgeFigures | None
    config: PlacementConfig
    pass_ms: list[float]
    depth: int
    strain: float

    @property
    def widest(self) -> int:
        return len(self.pass_ms) - 1


def scene(
    task: Task, link: LinkFigures, cloud: CloudFigures, edge: EdgeFigures | None, config: PlacementConfig
) -> Scene:
    widest = max(min(config.max_window, task.num_tokens - 1), 1)
    pass_ms = [cloud.plane.ms(cloud.rows_busy + 1.0, 1.0 + g) for g in range(widest + 1)]
    depth = worth_reading(task.curve, pass_ms)
    spare = strain(edge, config) if edge else 0.0
    return Scene(task, link.rtt_ms, cloud, edge, config, pass_ms, depth, spare)


def at_cloud(seen: Scene) -> list[Cost]:
    """All ways that this cloud has, at their best: a draft beside its target or not, an edge that drafts or not."""
    costs = [at_window(seen, Way.CLOUD_PLAIN, 0, 0)]
    if seen.task.num_tokens < 2:
        return costs
    if seen.cloud.draft_ms is not None:
        costs.append(_best(seen, Way.CLOUD_SPECULATIVE))
    if seen.edge is not None:
        costs += [_best(seen, Way.FLIGHT), _best(seen, Way.LOCKSTEP)]
    return costs


def at_window(seen: Scene, way: Way, window: int, in_flight: int) -> Cost:
    """One way with windows of so many guesses."""
    n, curve, edge, pass_ms = seen.task.num_tokens, seen.task.curve, seen.edge, seen.pass_ms
    draft_ms = edge.draft_ms + seen.config.frame_ms / max(window, 1) if edge else 0.0
    match way:
        case Way.CLOUD_SPECULATIVE:
            spent = rounds_in_turn(n - 1, window, curve, seen.cloud.draft_ms or 0.0, pass_ms)
            return _cost(seen, way, window, 1, 1.0, spent._replace(edge_ms=0.0))
        case Way.LOCKSTEP:
            # the first window travels with the prompt, so a round is a trip and there is none beside them
            spent = rounds_in_turn(n, window, curve, draft_ms, pass_ms)
            return _cost(seen, way, window, 1, spent.rounds, spent)
        case Way.FLIGHT:
            # the edge reads its prompt and drafts while the request travels and the cloud reads
            read_ms = seen.task.num_prompt_edge * edge.prompt_ms if edge else 0.0
            lead_ms = read_ms - seen.cloud.queue_ms - seen.task.num_prompt * seen.cloud.prompt_ms
            reads = pass_ms[: seen.depth + 1]
            spent = windows_in_flight(n, window, in_flight, curve, seen.rtt_ms, draft_ms, reads, lead_ms)
            return _cost(seen, way, window, in_flight, 1.0, spent)
        case Way.CLOUD_PLAIN | Way.EDGE_ONLY:
            return _cost(seen, Way.CLOUD_PLAIN, 0, 0, 1.0, Spent((n - 1) * pass_ms[0], n - 1.0, 0.0))


def _best(seen: Scene, way: Way) -> Cost:
    """A way with the window that makes it cheapest, and as many in flight as cover the trip."""
    found: dict[int, Cost] = {}

    def price(window: int) -> float:
        costs = [at_window(seen, way, window, in_flight) for in_flight in _in_flight(seen, way, window)]
        prices = [
            one.num_trips * seen.rtt_ms + one.ms + one.strain_ms + one.joules * seen.config.ms_per_joule
            for one in costs
        ]
        found[window] = costs[prices.index(min(prices))]
        return min(prices)

    return found[best_window(price, seen.widest)]


def _in_flight(seen: Scene, way: Way, window: int) -> list[int]:
    if way is not Way.FLIGHT or seen.edge is None:
        return [1]
    draft_ms = seen.edge.draft_ms + seen.config.frame_ms / window
    cover = covering(window, seen.rtt_ms, draft_ms, seen.pass_ms[min(window, seen.widest)])
    to_the_end = -(-seen.task.num_tokens // window) + 1
    most = max(min(seen.config.max_in_flight, seen.cloud.num_in_flight, to_the_end), 1)
    if seen.strain > 0.0 or seen.task.curve[3:4] < (
        _LIKELY,
    ):  # much would be thrown away, or would cost much
        return sorted({min(max(cover // share, 1), most) for share in (1, 2, 4)})
    return [min(cover, most)]


def _cost(seen: Scene, way: Way, window: int, in_flight: int, num_trips: float, spent: Spent) -> Cost:
    edge, config, cloud = seen.edge, seen.config, seen.cloud
    prompt_ms = seen.task.num_prompt * cloud.prompt_ms
    joules = (spent.ms + prompt_ms) * cloud.watts / (cloud.rows_busy + 1.0) / 1e3  # a pass is shared
    spared = 0.0
    if edge is not None and window:
        joules += spent.edge_ms * edge.watts / 1e3
        # of frames, the cloud's share delays others; without it windows of one token would often be as good
        frames = spent.edge_ms / (edge.draft_ms * window + config.frame_ms + 1e-6)
        price = config.edge_ms_per_ms + seen.strain * config.strain_ms_per_ms
        spared = price * spent.edge_ms + frames * config.frame_ms
    return Cost(way, window, in_flight, num_trips, spent.ms, joules, spared, seen.task.num_tokens)
