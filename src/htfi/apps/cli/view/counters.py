"""What the views show of other nodes: the open edge's and cloud's figures as counters. The commands ask for them."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from htfi.apps.cli.view.cloud import CloudCounters, TenantLine
from htfi.apps.cli.view.state import PeerStatus, RunCounters
from htfi.domain.peers import PeerState
from htfi.scheduling.health.node import NodeMonitor
from htfi.wiring.cluster.node_status import LEAD_NAMES

if TYPE_CHECKING:
    from htfi.wiring.cluster.cloud import CloudServer
    from htfi.wiring.cluster.edge import EdgeNode
    from htfi.wiring.run import OpenRun

_CHANGES_SHOWN = 16


def add_node_counters(counters: RunCounters, run: "OpenRun", edge: "EdgeNode") -> RunCounters:
    """The run's counters with what the edge knows of clouds and of late answers."""
    placed: dict[str, Counter[str]] = {}
    for (cloud, lead), num in edge.placer.num_placed.items():
        placed.setdefault(cloud, Counter())[LEAD_NAMES[lead]] += num
    alone = placed.pop("", Counter())
    loop = run.loop
    return replace(
        counters,
        peers=tuple(
            _peer_status(edge.monitor, name, placed.get(name, Counter())) for name in edge.monitor.peers()
        ),
        changes=edge.monitor.changes()[-_CHANGES_SHOWN:],
        num_answered_locally=alone.total(),
        num_provisional=loop.recorder.num_amended
        + loop.late.pending.num_decisions
        + loop.late.pending.num_abandoned,
        num_amended=loop.recorder.num_amended,
        num_pending=loop.late.pending.num_decisions,
        num_lost=loop.late.pending.num_abandoned,
    )


def cloud_counters(cloud: "CloudServer") -> CloudCounters:
    """What a cloud shows of its work."""
    vital_signs, tally = cloud.server.metrics, cloud.server.accounts
    num_open = vital_signs.num_rows + vital_signs.num_waiting
    evidence = cloud.server.scheduler.engine.counts
    return CloudCounters(
        model=cloud.model,
        num_streams=vital_signs.num_streams,
        num_rows=vital_signs.num_rows,
        max_rows=cloud.server.scheduler.engine.sessions.config.max_batch,
        num_queued=vital_signs.num_waiting,
        num_requests=num_open + sum(account.num_answers for account in tally.accounts.values()),
        num_answers=evidence.num_answers,
        num_tokens=vital_signs.num_tokens,
        num_drafted=sum(evidence.num_drafted_at),
        num_accepted=sum(evidence.num_accepted_at),
        step_ms=vital_signs.step_p50_ms or None,
        temperature_c=cloud.status.device.metrics().temperature_c,
        is_draining=vital_signs.is_draining,
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
        peers=tuple(_peer_status(cloud.monitor, name, Counter()) for name in cloud.monitor.peers()),
        changes=cloud.monitor.changes()[-_CHANGES_SHOWN:],
    )


def _peer_status(watch: NodeMonitor, name: str, ways: Counter[str]) -> PeerStatus:
    figures = watch.figures(name)
    vital_signs = figures.metrics if figures.state is not PeerState.DEAD else None
    return PeerStatus(
        name,
        figures.state,
        figures.rtt_p50_ms,
        figures.rtt_p95_ms,
        vital_signs.queue if vital_signs else None,
        (vital_signs.step_p50_ms or None) if vital_signs else None,
        vital_signs.temperature_c if vital_signs else None,
        ways.total(),
        dict(ways),
    )
