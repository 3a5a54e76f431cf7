"""Introduces scheduling's planner to the link: live figures in, places out. Edges own one."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence

from htfi.adapters.device.vitals import Device
from htfi.decoding.link.frames import Lead
from htfi.decoding.link.ports import Finished, Placed, Wanted
from htfi.domain.peers import PeerState
from htfi.scheduling.health.contact import Figures
from htfi.scheduling.placement.figures import Ask, Decision, Outcome, Plane, Priced, Way
from htfi.scheduling.placement.hedging import hedge_after_ms
from htfi.scheduling.placement.live import CloudReport
from htfi.scheduling.placement.planner import Planner
from htfi.wiring.node import NodeWatch

LEADS = {
    Way.CLOUD_PLAIN: Lead.PLAIN,
    Way.CLOUD_SPECULATIVE: Lead.CLOUD,
    Way.LOCKSTEP: Lead.LOCKSTEP,
    Way.FLIGHT: Lead.FLIGHT,
    Way.EDGE_ONLY: Lead.PLAIN,
}
_WAYS = {lead: way for way, lead in LEADS.items() if way is not Way.EDGE_ONLY}
_FIRST_RTT_MS = 50.0  # of a link, before its first heartbeat has come back
_SUSPECT = (PeerState.SUSPECT, PeerState.DEAD)


class PlannedPlaces:
    """Implements the link's Placer. `planner` may be exchanged between requests.

    `only`, for benches, leaves the plan one way: what comes of forced requests teaches whichever planner is there.
    """

    def __init__(
        self,
        planner: Planner,
        watch: NodeWatch,
        device: Device,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.planner = planner
        self.only: Way | None = None
        self._watch = watch
        self._device = device
        self._clock = clock
        self._seen: dict[tuple[Planner, str], int] = {}  # round trips that a planner was told of a cloud
        self.num_placed: Counter[tuple[str, Lead]] = Counter()
        self.came: Finished | None = None  # of the request before

    def place(self, wanted: Wanted, clouds: Sequence[str]) -> Placed:
        for cloud in clouds:
            self._observe(cloud, wanted.residency)
        own = self._device.vitals()
        self.planner.observe_edge(
            self._clock(),
            throttle=own.throttle_share,
            temperature_c=own.temperature_c,
            load=own.load,
            watts=own.power_w,
        )
        ask = Ask(wanted.kind, wanted.num_tokens, wanted.num_prompt, wanted.deadline_ms, wanted.residency)
        decision = self.planner.place(ask, clouds)
        choice, words = decision.choice, decision.words
        if self.only is not None and choice.way is not Way.EDGE_ONLY:
            choice, words = _first(decision, self.only)
        hedge_ms = hedge_after_ms(decision, wanted.deadline_ms)
        placed = _placed(choice, words, math.inf if hedge_ms is None else hedge_ms)
        self.num_placed[placed.cloud, placed.lead] += 1
        return placed

    def learn(self, finished: Finished) -> None:
        self.came, placed = finished, finished.placed
        self.planner.learn(
            Outcome(
                placed.cloud,
                _WAYS[placed.lead] if placed.cloud else Way.EDGE_ONLY,
                placed.window,
                placed.in_flight,
                placed.expected_ms,
                finished.kind,
                finished.num_tokens,
                finished.total_ms,
                finished.num_drafted,
                finished.num_stood,
                finished.is_whole,
            )
        )
        if finished.draft_ms > 0.0:
            self.planner.observe_edge(self._clock(), draft_ms=finished.draft_ms)

    def _observe(self, cloud: str, residency: frozenset[str]) -> None:
        """`residency`: the tags that this cloud admits of those that are asked for; the author names no other."""
        figures, now_s = self._watch.figures(cloud), self._clock()
        known = self.planner, cloud
        if not figures.num_rtts and known not in self._seen:
            self.planner.observe_link(cloud, now_s, rtt_ms=_FIRST_RTT_MS)
        num_new = figures.num_rtts - self._seen.get(known, 0)
        self._seen[known] = figures.num_rtts
        for rtt_ms in figures.rtts_ms[-num_new:] if num_new else ():
            self.planner.observe_link(cloud, now_s, rtt_ms=rtt_ms)
        self.planner.observe_link(cloud, now_s, is_suspect=figures.state in _SUSPECT)
        self.planner.observe_cloud(cloud, now_s, _report(figures, residency))


def _report(figures: Figures, residency: frozenset[str]) -> CloudReport:
    is_ill = figures.state is PeerState.ILL
    vitals = figures.vitals
    if vitals is None:
        return CloudReport(residency=residency, is_ill=is_ill)
    return CloudReport(
        queue_ms=vitals.queue_ms if vitals.queue else 0.0,  # a request for which there is room joins at once
        rows_busy=float(max(vitals.num_rows - 1, 0)),  # one is likely our own, of the moment before
        plane=Plane(*vitals.verify_ms) if any(vitals.verify_ms) else None,
        prompt_ms=vitals.prompt_ms_per_token or None,
        draft_ms=vitals.draft_ms_per_token or -1.0,
        watts=vitals.power_w or None,
        residency=residency,
        is_ill=is_ill,
    )


def _first(decision: Decision, way: Way) -> tuple[Priced, str]:
    """The cheapest place for one way, or the choice where it cannot be."""
    for priced in decision.priced:
        if priced.way is way and priced.can_be:
            return priced, f"{way.value}, as asked"
    return decision.choice, decision.words


def _placed(choice: Priced, words: str, late_ms: float) -> Placed:
    return Placed(
        choice.cloud,
        LEADS[choice.way],
        choice.window,
        choice.in_flight,
        choice.expected_ms,
        late_ms,
        words,
    )
