"""Introduces scheduling's planner to the link: live figures in, places out. Edges own one."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

from htfi.adapters.device.metrics import DeviceMonitor
from htfi.decoding.link.frames import DraftLead
from htfi.decoding.link.ports import PlacementQuery, PlacementResult, PlannedPlacement
from htfi.domain.peers import PeerState
from htfi.scheduling.health.peer_contact import PeerFigures
from htfi.scheduling.placement.choosing import hedge_after_ms
from htfi.scheduling.placement.figures import (
    PassCostModel,
    Placement,
    PlacementDecision,
    PlacementOutcome,
    PlacementRequest,
    PricedOption,
)
from htfi.scheduling.placement.live import CloudReport
from htfi.scheduling.placement.planner import PlacementPlanner
from htfi.wiring.cluster.node import NodeMonitor

LEAD_OF_ROUTE = {
    Placement.CLOUD_PLAIN: DraftLead.PLAIN,
    Placement.CLOUD_SPECULATIVE: DraftLead.CLOUD,
    Placement.LOCKSTEP: DraftLead.LOCKSTEP,
    Placement.PIPELINED: DraftLead.FLIGHT,
    Placement.EDGE_ONLY: DraftLead.PLAIN,
}
_ROUTE_OF_LEAD = {lead: way for way, lead in LEAD_OF_ROUTE.items() if way is not Placement.EDGE_ONLY}
_FIRST_RTT_MS = 50.0  # of a link, before its first heartbeat has come back
_UNRELIABLE = (PeerState.SUSPECT, PeerState.DEAD)


class PlannedPlacer:
    """Implements the link's Placer. `planner` may be exchanged between requests.

    `only`, for benches, leaves the plan one way: what comes of forced requests teaches whichever planner is there.
    """

    def __init__(
        self,
        planner: PlacementPlanner,
        watch: NodeMonitor,
        device: DeviceMonitor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.planner = planner
        self.forced_route: Placement | None = None
        self._watch = watch
        self._device = device
        self._clock = clock
        self._num_rtts_seen: dict[
            tuple[PlacementPlanner, str], int
        ] = {}  # round trips to a cloud that a planner has received
        self.num_placed: Counter[tuple[str, DraftLead]] = Counter()
        self.last_finished: PlacementResult | None = None  # of the request before

    def place(self, wanted: PlacementQuery, clouds: Sequence[str]) -> PlannedPlacement:
        for cloud in clouds:
            self._observe(cloud, wanted.residency)
        own = self._device.metrics()
        self.planner.observe_edge(
            self._clock(),
            throttle=own.throttle_share,
            temperature_c=own.temperature_c,
            load=own.load,
            watts=own.power_w,
        )
        ask = PlacementRequest(
            wanted.kind, wanted.num_tokens, wanted.num_prompt, wanted.deadline_ms, wanted.residency
        )
        decision = self.planner.place(ask, clouds)
        choice, words = decision.choice, decision.reason
        if self.forced_route is not None and choice.placement is not Placement.EDGE_ONLY:
            choice, words = _cheapest_by_route(decision, self.forced_route)
        hedge_ms = hedge_after_ms(decision, wanted.deadline_ms)
        placed = _to_placement(choice, words, math.inf if hedge_ms is None else hedge_ms)
        self.num_placed[placed.cloud, placed.lead] += 1
        return placed

    def learn(self, finished: PlacementResult) -> None:
        self.last_finished, placed = finished, finished.placed
        self.planner.learn(
            PlacementOutcome(
                placed.cloud,
                _ROUTE_OF_LEAD[placed.lead] if placed.cloud else Placement.EDGE_ONLY,
                placed.window,
                placed.in_flight,
                placed.expected_ms,
                finished.kind,
                finished.num_tokens,
                finished.total_ms,
                finished.num_drafted,
                finished.num_accepted,
                finished.is_whole,
            )
        )
        if finished.draft_ms > 0.0:
            self.planner.observe_edge(self._clock(), draft_ms=finished.draft_ms)

    def _observe(self, cloud: str, residency: frozenset[str]) -> None:
        """`residency`: the tags that this cloud admits of those that are asked for; the generator names no other."""
        figures, now_s = self._watch.figures(cloud), self._clock()
        known = self.planner, cloud
        if not figures.num_rtts and known not in self._num_rtts_seen:
            self.planner.observe_link(cloud, now_s, rtt_ms=_FIRST_RTT_MS)
        num_new = figures.num_rtts - self._num_rtts_seen.get(known, 0)
        self._num_rtts_seen[known] = figures.num_rtts
        for rtt_ms in figures.rtts_ms[-num_new:] if num_new else ():
            self.planner.observe_link(cloud, now_s, rtt_ms=rtt_ms)
        self.planner.observe_link(cloud, now_s, is_suspect=figures.state in _UNRELIABLE)
        self.planner.observe_cloud(cloud, now_s, _cloud_report(figures, residency))


def _cloud_report(figures: PeerFigures, residency: frozenset[str]) -> CloudReport:
    is_degraded = figures.state is PeerState.DEGRADED
    vitals = figures.metrics
    if vitals is None:
        return CloudReport(residency=residency, is_degraded=is_degraded)
    return CloudReport(
        queue_ms=vitals.queue_ms if vitals.queue else 0.0,  # a request that fits the batch joins at once
        rows_busy=float(max(vitals.num_rows - 1, 0)),  # one is likely our own, of the moment before
        plane=PassCostModel(*vitals.verify_ms) if any(vitals.verify_ms) else None,
        prompt_ms=vitals.prompt_ms_per_token or None,
        draft_ms=vitals.draft_ms_per_token or -1.0,
        watts=vitals.power_w or None,
        residency=residency,
        is_degraded=is_degraded,
    )


def _cheapest_by_route(decision: PlacementDecision, way: Placement) -> tuple[PricedOption, str]:
    """The cheapest place for one way, or the choice where it cannot be."""
    for priced in decision.options:
        if priced.placement is way and priced.is_allowed:
            return priced, f"{way.value}, as asked"
    return decision.choice, decision.reason


def _to_placement(choice: PricedOption, words: str, late_ms: float) -> PlannedPlacement:
    return PlannedPlacement(
        choice.cloud,
        LEAD_OF_ROUTE[choice.placement],
        choice.window,
        choice.in_flight,
        choice.expected_ms,
        late_ms,
        words,
    )
