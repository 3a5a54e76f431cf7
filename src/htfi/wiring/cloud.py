"""Builds a cloud: the desk over its target, the streams to edges and other clouds, the watch over all of them.

The cloud command opens one and serves until it has drained.
"""

import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from msgspec import structs
from numpy.random import PCG64
from numpy.random import Generator as Dice

from htfi.adapters.device.vitals import Device
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.adapters.probes.server import Condition, Probes
from htfi.decoding.link.desk import Desk
from htfi.decoding.link.desk import Vitals as DeskVitals
from htfi.decoding.link.posted import Routed
from htfi.decoding.rounds import Rounds
from htfi.decoding.sessions import Sessions
from htfi.decoding.strategies.chain import Chain
from htfi.scheduling.health.messages import Vitals
from htfi.scheduling.turns.fair import FairTurns
from htfi.wiring.cluster import Role, split_address
from htfi.wiring.edge import health_config, own_vitals, tls_files
from htfi.wiring.models import in_full, open_pair
from htfi.wiring.node import NodeWatch, giving_way
from htfi.wiring.settings import Settings
from htfi.wiring.speculation import build_lookahead

_IDLE_S = 0.02  # how long a desk without work waits for a frame before it looks at the time
_TELL_S = 0.02  # between figures for heartbeats
_MOST_HEARD = 64  # frames heard between two passes
_CACHE_TOKENS = 32_768  # of prompts: many edges ask about the same news, each at moments of its own


@dataclass(slots=True)
class Cloud:
    """A cloud that is open: `serve` it, `drain` it."""

    node: str
    address: str
    model: str
    desk: Desk
    watch: NodeWatch
    transport: GrpcTransport
    drain_s: float
    standing: "_Standing"

    def serve(self, look: Callable[[], None] = lambda: None) -> None:
        """Hear, step, say, until it has drained; at most `drain_s` after `drain`."""
        desk, transport, tell_s = self.desk, self.transport, 0.0
        while not self._has_drained():
            is_busy = desk.step()
            arrival = transport.receive(0.0 if is_busy else min(desk.next_s() or _IDLE_S, _IDLE_S))
            for _ in range(_MOST_HEARD):
                if arrival is None:
                    break
                desk.heard(arrival)
                arrival = transport.receive(0.0)
            full: set[str] = set()  # what a stream does not take now must not be overtaken
            for stream, sealed in desk.outgoing():
                if stream in full or not transport.send(stream, sealed):
                    full.add(stream)
                    desk.unsent(stream, sealed)
            for stream, words in desk.drops():
                transport.drop(stream, words)
            now_s = time.monotonic()
            if now_s >= tell_s:
                tell_s = now_s + _TELL_S
                self.standing.vitals = desk.vitals
            look()

    def drain(self) -> None:
        """Take nothing new, finish what is begun. Safe in a signal handler."""
        self.standing.drains_at_s = self.standing.drains_at_s or time.monotonic()

    def _has_drained(self) -> bool:
        began_s = self.standing.drains_at_s
        if began_s is None:
            return False
        if not self.desk.vitals.is_draining:
            self.desk.drain()
        return self.desk.is_idle or time.monotonic() - began_s > self.drain_s


@dataclass(slots=True)
class _Standing:
    """What the watch's thread may read of the desk: the engine's thread leaves it here."""

    device: Device = field(default_factory=Device)
    vitals: DeskVitals | None = None
    drains_at_s: float | None = None

    def tell(self) -> Vitals:
        own, desk = own_vitals(self.device), self.vitals
        if desk is None:
            return own
        pace = desk.pace
        return structs.replace(
            own,
            queue=desk.num_waiting,
            queue_ms=desk.queue_ms,
            num_rows=desk.num_rows,
            step_p50_ms=desk.step_p50_ms,
            step_p95_ms=desk.step_p95_ms,
            prompt_ms_per_token=pace.prompt_ms,
            verify_ms=(pace.fixed_ms, pace.row_ms, pace.token_ms, pace.cell_ms),
            draft_ms_per_token=pace.draft_ms,
            progress=desk.num_passes,
            is_draining=desk.is_draining or self.drains_at_s is not None,
        )


@contextmanager
def open_cloud(
    settings: Settings, name: str, *, secure: bool = True, with_draft: bool = True
) -> Generator[Cloud]:
    """A cloud of the cluster in the settings. Raises: InvalidInput, IntegrityError, DependencyUnavailable."""
    cluster = settings.cluster
    node = cluster.node(name, Role.CLOUD)
    target, draft = open_pair(settings.models)
    decoding = replace(
        settings.decoding,
        max_batch=max(settings.decoding.max_batch, settings.turns.max_rows),
        cache_tokens=max(settings.decoding.cache_tokens, _CACHE_TOKENS),
    )
    routed = Routed(Chain(Sessions(draft.drafting, settings.decoding)) if with_draft else None)
    rounds = Rounds(
        target.network,
        target.tokenizer,
        target.name,
        decoding,
        target.tokenizer.opening,
        target.folder.digest,
        routed,
        build_lookahead(replace(settings.decoding, lookahead="measured")),
    )

    def full() -> tuple[Rounds, Routed, FairTurns]:
        """The target in full precision, with which nobody drafts."""
        of, alone = in_full(target), Routed()
        tokenizer = of.tokenizer
        rounds = Rounds(of.network, tokenizer, of.name, decoding, tokenizer.opening, of.folder.digest, alone)
        return rounds, alone, FairTurns(settings.turns)

    dice = Dice(PCG64(int.from_bytes(os.urandom(8), "little")))
    config = replace(settings.desk, node=name, residency=node.residency)
    desk = Desk(
        rounds,
        routed,
        FairTurns(settings.turns),
        time.monotonic,
        config,
        int(dice.integers(1, 1 << 31)),
        full,
    )
    stands = _Standing()
    watch = NodeWatch(name, health_config(settings.health, cluster), stands.tell)
    with ExitStack() as closing:
        closing.enter_context(giving_way())
        transport = GrpcTransport(
            name,
            tls=tls_files(cluster, name) if secure else None,
            dice=dice,
            listen=node.address,
            peers={other: address for other, address in cluster.clouds.items() if other != name},
            watcher=watch,
            trouble=watch.troubled,
        )
        closing.callback(transport.close)
        host, _ = split_address(node.address, name)
        address = f"{host}:{transport.port}"
        cloud = Cloud(name, address, target.version, desk, watch, transport, cluster.drain_s, stands)
        if node.probes:
            closing.enter_context(
                Probes(node.probes, lambda: Condition(True), lambda: _readiness(stands, transport))
            )
        yield cloud


def _readiness(stands: _Standing, transport: GrpcTransport) -> Condition:
    if stands.drains_at_s is not None:
        return Condition(False, "draining")
    return Condition(transport.is_listening, "" if transport.is_listening else "its port is closed")
