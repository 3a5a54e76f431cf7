"""Owns the placement of an edge's requests by live figures: of its clouds from heartbeats, of its own machine."""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

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

_FIRST_RTT_MS = 50.0  # of a link, before its first heartbeat has come back
_UNRELIABLE = (PeerState.SUSPECT, PeerState.DEAD)


class DeviceFigures(Protocol):
    """This machine now; None where it does not say."""

    @property
    def temperature_c(self) -> float | None: ...

    @property
    def throttle_share(self) -> float | None: ...

    @property
    def load(self) -> float | None: ...

    @property
    def power_w(self) -> float | None: ...


class ChosenPlacement(NamedTuple):
    """A placement, why it was chosen, and from when on a second cloud is worth asking as well (may be never)."""

    option: PricedOption
    reason: str
    hedge_ms: float


class EdgePlacer:
    """Tells the planner what is known before each request, and what came of it. `planner` may be exchanged between.

    `forced_route`, for benchmarks, allows one route alone: the outcomes of forced requests teach the planner too.
    """

    def __init__(
        self,
        planner: PlacementPlanner,
        peer_figures: Callable[[str], PeerFigures],
        device_figures: Callable[[], DeviceFigures],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.planner = planner
        self.forced_route: Placement | None = None
        self._peer_figures = peer_figures
        self._device_figures = device_figures
        self._clock = clock
        # round trips to a cloud that a planner has received
        self._num_rtts_seen: dict[tuple[PlacementPlanner, str], int] = {}

    def choose(self, request: PlacementRequest, clouds: Sequence[str]) -> ChosenPlacement:
        for cloud in clouds:
            self._observe_cloud(cloud, request.residency)
        own = self._device_figures()
        self.planner.observe_edge(
            self._clock(),
            throttle=own.throttle_share,
            temperature_c=own.temperature_c,
            load=own.load,
            watts=own.power_w,
        )
        decision = self.planner.place(request, clouds)
        option, reason = decision.choice, decision.reason
        if self.forced_route is not None and option.placement is not Placement.EDGE_ONLY:
            option, reason = _cheapest_by_route(decision, self.forced_route)
        hedge_ms = hedge_after_ms(decision, request.deadline_ms)
        return ChosenPlacement(option, reason, math.inf if hedge_ms is None else hedge_ms)

    def learn(self, outcome: PlacementOutcome, draft_ms: float) -> None:
        """`draft_ms` per token drafted here, 0 if not measured."""
        self.planner.learn(outcome)
        if draft_ms > 0.0:
            self.planner.observe_edge(self._clock(), draft_ms=draft_ms)

    def _observe_cloud(self, cloud: str, residency: frozenset[str]) -> None:
        """`residency`: the tags that this cloud admits of those that are asked for; a request names no other cloud."""
        figures, now_s = self._peer_figures(cloud), self._clock()
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
    metrics = figures.metrics
    if metrics is None:
        return CloudReport(residency=residency, is_degraded=is_degraded)
    return CloudReport(
        queue_ms=metrics.queue_ms if metrics.queue else 0.0,  # a request that fits the batch joins at once
        rows_busy=float(max(metrics.num_rows - 1, 0)),  # one is likely our own, of the moment before
        pass_costs=PassCostModel(*metrics.verify_ms) if any(metrics.verify_ms) else None,
        prompt_ms=metrics.prompt_ms_per_token or None,
        draft_ms=metrics.draft_ms_per_token or -1.0,
        watts=metrics.power_w or None,
        residency=residency,
        is_degraded=is_degraded,
    )


def _cheapest_by_route(decision: PlacementDecision, route: Placement) -> tuple[PricedOption, str]:
    """The cheapest place for one route, or the choice where it cannot be."""
    for priced in decision.options:
        if priced.placement is route and priced.is_allowed:
            return priced, f"{route.value}, as asked"
    return decision.choice, decision.reason
