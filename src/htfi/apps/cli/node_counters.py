"""What the views show of other nodes: the open edge's and cloud's figures as counters. The commands ask for them."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from htfi.apps.cli.cloud_view import CloudCounters, TenantLine
from htfi.apps.cli.view_state import Counters, PeerLine
from htfi.decoding.link.frames import Lead
from htfi.domain.peers import PeerState
from htfi.wiring.node import NodeWatch

if TYPE_CHECKING:
    from htfi.wiring.cloud import Cloud
    from htfi.wiring.edge import Edge
    from htfi.wiring.engine import Run

WAYS = {Lead.PLAIN: "plain", Lead.CLOUD: "cloud", Lead.LOCKSTEP: "lock-step", Lead.FLIGHT: "in flight"}
_CHANGES_SHOWN = 16


def with_nodes(counters: Counters, run: "Run", edge: "Edge") -> Counters:
    """The run's counters with what the edge knows of clouds and of late answers."""
    placed: dict[str, Counter[str]] = {}
    for (cloud, lead), num in edge.places.num_placed.items():
        placed.setdefault(cloud, Counter())[WAYS[lead]] += num
    alone = placed.pop("", Counter())
    loop = run.loop
    return replace(
        counters,
        peers=tuple(_line(edge.watch, name, placed.get(name, Counter())) for name in edge.watch.peers()),
        changes=edge.watch.changes()[-_CHANGES_SHOWN:],
        num_alone=alone.total(),
        num_provisional=loop.recorder.num_amended + loop.awaited.num_decisions + loop.awaited.num_given_up,
        num_amended=loop.recorder.num_amended,
        num_awaited=loop.awaited.num_decisions,
        num_lost=loop.awaited.num_given_up,
    )


def cloud_counters(cloud: "Cloud") -> CloudCounters:
    """What a cloud shows of its work."""
    vitals, tally = cloud.desk.vitals, cloud.desk.tally
    num_open = vitals.num_rows + vitals.num_waiting
    evidence = cloud.desk.engine.rounds.evidence
    return CloudCounters(
        model=cloud.model,
        num_streams=vitals.num_streams,
        num_rows=vitals.num_rows,
        num_rows_most=cloud.desk.engine.rounds.sessions.config.max_batch,
        num_queued=vitals.num_waiting,
        num_requests=num_open + sum(account.num_answers for account in tally.accounts.values()),
        num_answers=evidence.num_answers,
        num_tokens=vitals.num_tokens,
        num_drafted=sum(evidence.offered),
        num_stood=sum(evidence.stood),
        step_ms=vitals.step_p50_ms or None,
        temperature_c=cloud.standing.device.vitals().temperature_c,
        is_draining=vitals.is_draining,
        refused=dict(tally.refused),
        tenants=tuple(
            TenantLine(
                name,
                num_requests=account.num_answers,
                num_tokens=account.num_tokens,
                num_refused=account.num_refused,
                p95_ms=account.p95_ms,
            )
            for name, account in tally.accounts.items()
        ),
        peers=tuple(_line(cloud.watch, name, Counter()) for name in cloud.watch.peers()),
        changes=cloud.watch.changes()[-_CHANGES_SHOWN:],
    )


def _line(watch: NodeWatch, name: str, ways: Counter[str]) -> PeerLine:
    figures = watch.figures(name)
    vitals = figures.vitals if figures.state is not PeerState.DEAD else None
    return PeerLine(
        name,
        figures.state,
        figures.rtt_p50_ms,
        figures.rtt_p95_ms,
        vitals.queue if vitals else None,
        (vitals.step_p50_ms or None) if vitals else None,
        vitals.temperature_c if vitals else None,
        ways.total(),
        dict(ways),
    )
