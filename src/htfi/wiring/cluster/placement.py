"""Introduces scheduling's placer to the link: their requests, placements and outcomes are translated. Edges own one."""

from collections import Counter
from collections.abc import Sequence

from htfi.decoding.link.frames import DraftMode
from htfi.decoding.link.ports import PlacementQuery, PlacementResult, PlannedPlacement
from htfi.scheduling.placement.edge_placer import EdgePlacer
from htfi.scheduling.placement.figures import Placement, PlacementOutcome, PlacementRequest

LEAD_OF_ROUTE = {
    Placement.CLOUD_PLAIN: DraftMode.PLAIN,
    Placement.CLOUD_SPECULATIVE: DraftMode.CLOUD,
    Placement.LOCKSTEP: DraftMode.LOCKSTEP,
    Placement.PIPELINED: DraftMode.PIPELINED,
    Placement.EDGE_ONLY: DraftMode.PLAIN,
}
_ROUTE_OF_LEAD = {lead: route for route, lead in LEAD_OF_ROUTE.items() if route is not Placement.EDGE_ONLY}


class PlannedPlacer:
    """Implements the link's `RequestPlacer` by `edge_placer`. Counts placements for the views."""

    def __init__(self, edge_placer: EdgePlacer) -> None:
        self.edge_placer = edge_placer
        self.num_placed: Counter[tuple[str, DraftMode]] = Counter()
        self.last_finished: PlacementResult | None = None  # of the request before

    def place(self, wanted: PlacementQuery, clouds: Sequence[str]) -> PlannedPlacement:
        request = PlacementRequest(
            wanted.kind, wanted.num_tokens, wanted.num_prompt, wanted.deadline_ms, wanted.residency
        )
        option, reason, hedge_ms = self.edge_placer.choose(request, clouds)
        lead = LEAD_OF_ROUTE[option.placement]
        self.num_placed[option.cloud, lead] += 1
        return PlannedPlacement(
            option.cloud, lead, option.window, option.in_flight, option.expected_ms, hedge_ms, reason
        )

    def learn(self, finished: PlacementResult) -> None:
        self.last_finished, placed = finished, finished.placed
        route = _ROUTE_OF_LEAD[placed.draft_mode] if placed.cloud else Placement.EDGE_ONLY
        outcome = PlacementOutcome(
            placed.cloud,
            route,
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
        self.edge_placer.learn(outcome, finished.draft_ms)
