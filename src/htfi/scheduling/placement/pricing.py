"""Prices every placement at one cloud, and the edge alone: expected times before correction. Pure.

The planner corrects, compares and caches these costs. It holds one `CostTerms` for each cloud: the figures that costs
depend on, rounded to a grid and kept until one has moved, so that most requests need no new calculation.
"""

import math
from typing import NamedTuple

from htfi.scheduling.config import (
    EDGE_MS_PER_MS,
    FRAME_MS,
    MAX_IN_FLIGHT,
    MAX_WINDOW,
    STRAIN_MS_PER_MS,
    PlacementConfig,
)
from htfi.scheduling.placement.decoding_times import (
    DecodingTime,
    best_verify_window,
    best_window,
    lockstep_time,
    pipelined_time,
    windows_to_cover_trip,
)
from htfi.scheduling.placement.figures import CloudFigures, EdgeFigures, LinkFigures, PassCostModel, Placement

_TOKEN_BYTES = 2.5
_FRAME_BYTES = 200.0
_HIGH_ACCEPTANCE = 0.5  # four guesses in a row: below, it is weighed whether fewer in flight do
_RETRANSMIT_MS = 200.0  # the least that a lost segment waits for (RFC 6298 allows 1 s; systems take 200 ms)


class DecodingTask(NamedTuple):
    """What is to be generated: tokens expected, prompt tokens that a cloud and the edge have yet to read."""

    num_tokens: int
    num_prompt: int
    num_prompt_edge: int
    curve: tuple[float, ...]


class OptionCost(NamedTuple):
    """What one placement is expected to take besides its round trips, the prompt, its upload and the queue.

    `ms` of drafting and verifying on the way of an answer of `num_tokens`; `strain_ms` is the price of a device that
    had better be spared, and of frames. The edge alone reads its prompt within `ms`.
    """

    placement: Placement
    window: int
    in_flight: int
    num_trips: float
    ms: float
    joules: float
    strain_ms: float
    num_tokens: int


def device_strain(edge: EdgeFigures, config: PlacementConfig) -> float:
    """0–1: how strained this device is by heat, throttling and load."""
    heat = 0.0
    if edge.temperature_c is not None:
        heat = (edge.temperature_c - config.hot_c) / (config.critical_c - config.hot_c)
    return min(max(heat, edge.throttle, edge.load - 1.0, 0.0), 1.0)


def price_edge_only(task: DecodingTask, edge: EdgeFigures, config: PlacementConfig) -> OptionCost:
    """The draft model answers. Provisional: no target has verified it."""
    ms = task.num_prompt_edge * edge.prompt_ms + task.num_tokens * edge.draft_ms
    spared = (EDGE_MS_PER_MS + device_strain(edge, config) * STRAIN_MS_PER_MS) * ms
    return OptionCost(Placement.EDGE_ONLY, 0, 0, 0.0, ms, ms * edge.watts / 1e3, spared, task.num_tokens)


def upload_ms(num_prompt: int, link: LinkFigures) -> float:
    if not link.bytes_per_s:
        return 0.0
    return (_FRAME_BYTES + _TOKEN_BYTES * num_prompt) / link.bytes_per_s * 1e3


def tail_delay_ms(cost: OptionCost, link: LinkFigures, cloud: CloudFigures) -> float:
    """What link and queue add at a high quantile: not all trips are late ones, so their root counts."""
    trip = max(link.rtt_late_ms - link.rtt_ms, 0.0) + link.loss * max(_RETRANSMIT_MS, link.rtt_ms)
    return trip * max(cost.num_trips, 1.0) ** 0.5 + max(cloud.queue_late_ms - cloud.queue_ms, 0.0)


class CostInputs(NamedTuple):
    """All that costs at one cloud depend on. `pass_ms[g]`: verifying g guesses; `depth`: guesses read at once."""

    task: DecodingTask
    rtt_ms: float
    cloud: CloudFigures
    edge: EdgeFigures | None
    config: PlacementConfig
    pass_ms: list[float]
    verify_depth: int
    strain: float

    @property
    def max_window(self) -> int:
        return len(self.pass_ms) - 1


def make_cost_inputs(
    task: DecodingTask,
    link: LinkFigures,
    cloud: CloudFigures,
    edge: EdgeFigures | None,
    config: PlacementConfig,
) -> CostInputs:
    widest = max(min(MAX_WINDOW, task.num_tokens - 1), 1)
    pass_ms = [cloud.pass_costs.ms(cloud.rows_busy + 1.0, 1.0 + g) for g in range(widest + 1)]
    depth = best_verify_window(task.curve, pass_ms)
    spare = device_strain(edge, config) if edge else 0.0
    return CostInputs(task, link.rtt_ms, cloud, edge, config, pass_ms, depth, spare)


def price_at_cloud(seen: CostInputs) -> list[OptionCost]:
    """All placements at this cloud with their best windows: drafting there, here, or not at all."""
    costs = [price_window(seen, Placement.CLOUD_PLAIN, 0, 0)]
    if seen.task.num_tokens < 2:
        return costs
    if seen.cloud.draft_ms is not None:
        costs.append(_best_window_cost(seen, Placement.CLOUD_SPECULATIVE))
    if seen.edge is not None:
        costs += [_best_window_cost(seen, Placement.PIPELINED), _best_window_cost(seen, Placement.LOCKSTEP)]
    return costs


def price_window(seen: CostInputs, placement: Placement, window: int, in_flight: int) -> OptionCost:
    """One placement with windows of so many guesses."""
    n, curve, edge, pass_ms = seen.task.num_tokens, seen.task.curve, seen.edge, seen.pass_ms
    draft_ms = edge.draft_ms + FRAME_MS / max(window, 1) if edge else 0.0
    match placement:
        case Placement.CLOUD_SPECULATIVE:
            spent = lockstep_time(n - 1, window, curve, seen.cloud.draft_ms or 0.0, pass_ms)
            return _make_cost(seen, placement, window, 1, 1.0, spent._replace(edge_ms=0.0))
        case Placement.LOCKSTEP:
            # the first window travels with the prompt, so a round is a trip and there is none beside them
            spent = lockstep_time(n, window, curve, draft_ms, pass_ms)
            return _make_cost(seen, placement, window, 1, spent.rounds, spent)
        case Placement.PIPELINED:
            # the edge reads its prompt and drafts while the request travels and the cloud reads
            read_ms = seen.task.num_prompt_edge * edge.prompt_ms if edge else 0.0
            lead_ms = read_ms - seen.cloud.queue_ms - seen.task.num_prompt * seen.cloud.prompt_ms
            reads = pass_ms[: seen.verify_depth + 1]
            spent = pipelined_time(n, window, in_flight, curve, seen.rtt_ms, draft_ms, reads, lead_ms)
            return _make_cost(seen, placement, window, in_flight, 1.0, spent)
        case Placement.CLOUD_PLAIN | Placement.EDGE_ONLY:
            return _make_cost(
                seen, Placement.CLOUD_PLAIN, 0, 0, 1.0, DecodingTime((n - 1) * pass_ms[0], n - 1.0, 0.0)
            )


def _best_window_cost(seen: CostInputs, placement: Placement) -> OptionCost:
    """A placement with its cheapest window, and as many windows in flight as cover the trip."""
    found: dict[int, OptionCost] = {}

    def price(window: int) -> float:
        costs = [
            price_window(seen, placement, window, in_flight)
            for in_flight in _in_flight_candidates(seen, placement, window)
        ]
        prices = [
            cost.num_trips * seen.rtt_ms + cost.ms + cost.strain_ms + cost.joules * seen.config.ms_per_joule
            for cost in costs
        ]
        found[window] = costs[prices.index(min(prices))]
        return min(prices)

    return found[best_window(price, seen.max_window)]


def _in_flight_candidates(seen: CostInputs, placement: Placement, window: int) -> list[int]:
    if placement is not Placement.PIPELINED or seen.edge is None:
        return [1]
    draft_ms = seen.edge.draft_ms + FRAME_MS / window
    cover = windows_to_cover_trip(window, seen.rtt_ms, draft_ms, seen.pass_ms[min(window, seen.max_window)])
    to_the_end = -(-seen.task.num_tokens // window) + 1
    most = max(min(MAX_IN_FLIGHT, seen.cloud.num_in_flight, to_the_end), 1)
    if seen.strain > 0.0 or seen.task.curve[3:4] < (
        _HIGH_ACCEPTANCE,
    ):  # much would be thrown away, or would cost much
        return sorted({min(max(cover // share, 1), most) for share in (1, 2, 4)})
    return [min(cover, most)]


def _make_cost(
    seen: CostInputs, placement: Placement, window: int, in_flight: int, num_trips: float, spent: DecodingTime
) -> OptionCost:
    edge, cloud = seen.edge, seen.cloud
    prompt_ms = seen.task.num_prompt * cloud.prompt_ms
    joules = (spent.ms + prompt_ms) * cloud.watts / (cloud.rows_busy + 1.0) / 1e3  # a pass is shared
    spared = 0.0
    if edge is not None and window:
        joules += spent.edge_ms * edge.watts / 1e3
        # of frames, the cloud's share delays others; without it windows of one token would often be as good
        frames = spent.edge_ms / (edge.draft_ms * window + FRAME_MS + 1e-6)
        price = EDGE_MS_PER_MS + seen.strain * STRAIN_MS_PER_MS
        spared = price * spent.edge_ms + frames * FRAME_MS
    return OptionCost(placement, window, in_flight, num_trips, spent.ms, joules, spared, seen.task.num_tokens)


_FINE, _COARSE = math.log(1.1), math.log(2.0)  # steps of the grid
_NEGLIGIBLE = 1e-4
_TOLERANCE_MS = 0.05  # of a trip, a queue: less is not a move
_TOLERANCE_WATTS = 1.0
_TOLERANCE_STRAIN = 0.05
_TOLERANCE_ACCEPTANCE = 0.02


class CostTerms(NamedTuple):
    """What costs at a cloud depend on."""

    link: LinkFigures
    cloud: CloudFigures
    edge: EdgeFigures


def round_terms(
    link: LinkFigures, cloud: CloudFigures, edge: EdgeFigures, config: PlacementConfig
) -> CostTerms:
    """Figures on a coarse grid, so that a fluctuating one returns to a cached price."""
    rtt_ms = _snap_to_grid(link.rtt_ms)
    return CostTerms(
        LinkFigures(rtt_ms, rtt_ms),
        cloud._replace(
            pass_costs=PassCostModel(*map(_snap_to_grid, cloud.pass_costs)),
            prompt_ms=_snap_to_grid(cloud.prompt_ms),
            queue_ms=_snap_to_grid(cloud.queue_ms, _COARSE),
            rows_busy=_snap_to_grid(cloud.rows_busy, _COARSE),
            draft_ms=None if cloud.draft_ms is None else _snap_to_grid(cloud.draft_ms),
            queue_late_ms=0.0,
            residency=frozenset[str](),
            is_degraded=False,
        ),
        edge._replace(
            draft_ms=_snap_to_grid(edge.draft_ms),
            prompt_ms=_snap_to_grid(edge.prompt_ms),
            throttle=device_strain(edge, config),
            temperature_c=None,
            load=0.0,
        ),
    )


def _snap_to_grid(value: float, step: float = _FINE) -> float:
    """The nearest power of a step."""
    return 0.0 if value <= _NEGLIGIBLE else math.exp(round(math.log(value) / step) * step)


def hold_terms(before: CostTerms | None, now: CostTerms, moved: float) -> CostTerms:
    """The terms held, or the new ones once a figure has moved by more than that share."""
    if before is None or before.cloud.num_in_flight != now.cloud.num_in_flight:
        return now
    if (before.cloud.draft_ms is None) != (now.cloud.draft_ms is None):
        return now
    for (was, still), (value, _) in zip(_compared_figures(before), _compared_figures(now), strict=True):
        if was != value and abs(was - value) > moved * max(was, value) + still:
            return now
    return before


def hold_curve(before: tuple[float, ...] | None, now: tuple[float, ...]) -> tuple[float, ...]:
    if before is None or before is now or len(before) != len(now):
        return now
    return (
        before if all(abs(a - b) <= _TOLERANCE_ACCEPTANCE for a, b in zip(before, now, strict=True)) else now
    )


def _compared_figures(of: CostTerms) -> list[tuple[float, float]]:
    """Each figure, and its tolerance. A cost model is compared by its passes, as its parts are learnt jointly."""
    cloud, edge = of.cloud, of.edge
    rows = cloud.rows_busy + 1.0
    return [
        (of.link.rtt_ms, _TOLERANCE_MS),
        (cloud.queue_ms, _TOLERANCE_MS),
        (cloud.pass_costs.ms(rows, 1.0), 0.0),
        (cloud.pass_costs.ms(rows, 8.0), 0.0),
        (cloud.prompt_ms, 0.0),
        (cloud.draft_ms or 0.0, 0.0),
        (cloud.watts / rows, _TOLERANCE_WATTS),
        (edge.draft_ms, 0.0),
        (edge.prompt_ms, 0.0),
        (edge.watts, _TOLERANCE_WATTS),
        (edge.throttle, _TOLERANCE_STRAIN),
    ]
