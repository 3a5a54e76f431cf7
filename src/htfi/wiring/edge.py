"""Builds an edge: its watch over the clouds, its plan of where readings run, and the readers of its rungs.

The edge command opens one around a run; `open_run` then reads the news with it.
"""

import os
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from numpy.random import PCG64
from numpy.random import Generator as Dice

from htfi.adapters.device.vitals import Device
from htfi.adapters.grpc.tls import TlsFiles
from htfi.adapters.grpc.transport import GrpcTransport
from htfi.adapters.probes.server import Condition, Probes
from htfi.decoding.acceptance_alarm import AcceptanceAlarm
from htfi.decoding.author import LocalAuthor
from htfi.decoding.link.in_full import InFullAuthor
from htfi.decoding.link.linked_author import Expected, LinkedAuthor
from htfi.domain.decision import Rung
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.files import open_private
from htfi.domain.peers import PeerChange, PeerState
from htfi.narrative.late_deep_reader import LateDeepReader
from htfi.narrative.model_reader import ModelReader
from htfi.narrative.ports import Reader
from htfi.narrative.secure_reader import SecureReader
from htfi.narrative.template_reader import TemplateReader
from htfi.scheduling.health.config import HealthConfig
from htfi.scheduling.health.messages import Vitals
from htfi.scheduling.placement.planner import Planner
from htfi.wiring.cluster import ClusterConfig, Role
from htfi.wiring.leading import LeadingMirror
from htfi.wiring.models import LazyAuthor, frontier_reader, in_full, open_pair
from htfi.wiring.node import NodeWatch, giving_way
from htfi.wiring.placing import PlannedPlaces
from htfi.wiring.run_folder import PEERS
from htfi.wiring.settings import Settings

_GIVEN_UP = (PeerState.SUSPECT, PeerState.DEAD)


@dataclass(slots=True)
class Edge:
    """An edge that is open: who reads at which rung, and what it knows of the clouds."""

    node: str
    clouds: Mapping[str, str]
    desk: str
    readers: dict[Rung, Reader]
    author: LinkedAuthor
    alone: LocalAuthor
    places: PlannedPlaces
    watch: NodeWatch
    transport: GrpcTransport
    lease_s: float
    log: "PeerLog"

    def publishing(self, mirror: BinaryIO) -> BinaryIO:
        """A mirror of decisions, silent while another edge leads the desk."""
        if not self.desk:
            return mirror
        role = desk_role(self.desk)
        return cast(BinaryIO, LeadingMirror(mirror, lambda: self.watch.leads(role), 2.0 * self.lease_s))


class PeerLog:
    """What happens to other nodes, as lines of a file in the run's folder, from the time that there is a run."""

    def __init__(self) -> None:
        self._file: FileIO | None = None

    @contextmanager
    def recording(self, folder: Path, before: Iterable[PeerChange]) -> Generator[None]:
        """Append to the folder's file; `before` are the changes that came before the run."""
        try:
            descriptor = open_private(folder / PEERS, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise DependencyUnavailable(f"{folder / PEERS}: cannot be opened: {error.strerror}") from error
        with FileIO(descriptor, "ab") as file:
            self._file = file
            for change in before:
                self.note(change)
            try:
                yield
            finally:
                self._file = None

    def note(self, change: PeerChange) -> None:
        file = self._file
        if file is not None:
            try:
                file.write(msgspec.json.encode(change) + b"\n")
            except (OSError, ValueError):  # a full disk, a closed file: the run itself will say so
                self._file = None


def desk_role(desk: str) -> str:
    return f"desk:{desk}"


@contextmanager
def open_edge(settings: Settings, name: str, *, secure: bool = True) -> Generator[Edge]:
    """An edge of the cluster in the settings.

    Raises: InvalidInput, IntegrityError, DependencyUnavailable.
    """
    cluster = settings.cluster
    node = cluster.node(name, Role.EDGE)
    if not cluster.clouds:
        raise InvalidInput("an edge needs a cloud: --cloud NAME=HOST:PORT, or `htfi run` without one")
    target, draft = open_pair(settings.models)
    health = health_config(settings.health, cluster)
    device = Device()
    log = PeerLog()
    watch = NodeWatch(name, health, lambda: own_vitals(device), log.note)
    with ExitStack() as closing:
        closing.enter_context(giving_way())
        transport = GrpcTransport(
            name,
            tls=tls_files(cluster, name) if secure else None,
            dice=Dice(PCG64(int.from_bytes(os.urandom(8), "little"))),
            peers=cluster.clouds,
            watcher=watch,
            trouble=watch.troubled,
        )
        closing.callback(transport.close)
        places = PlannedPlaces(Planner(settings.placement), watch, device)
        alone = draft.drafting_author(settings.decoding)
        author = LinkedAuthor(
            alone,
            Expected(target.version, target.folder.digest),
            name,
            transport,
            places,
            lambda: [cloud for cloud in cluster.clouds if watch.state(cloud) not in _GIVEN_UP],
            time.monotonic,
            watch.note,
            settings.edge,
            AcceptanceAlarm(),
        )
        closing.callback(author.close)
        full = in_full(target)
        edge_author = LazyAuthor(draft, lambda: draft.author(settings.decoding))
        linked = ModelReader(
            author, settings.narrative, target.trust, draft.trust, target.meaning, draft.meaning
        )
        readers: dict[Rung, Reader] = {
            Rung.TEMPLATE: TemplateReader(settings.narrative),
            Rung.EDGE: ModelReader(edge_author, settings.narrative, draft.trust, meaning=draft.meaning),
            Rung.SPECULATIVE: linked,
            Rung.SECURE: SecureReader(linked, settings.narrative),
            Rung.DEEP: LateDeepReader(
                InFullAuthor(author, full.version), settings.narrative, full.trust, full.meaning
            ),
        }
        if settings.models.frontier_url:
            readers[Rung.DEEP] = frontier_reader(settings.models, settings.narrative)
        edge = Edge(
            name, cluster.clouds, cluster.desk, readers, author, alone, places, watch, transport,
            health.lease_ms / 1e3, log,
        )  # fmt: skip
        if cluster.desk:
            watch.seek(desk_role(cluster.desk))
            closing.callback(watch.resign, desk_role(cluster.desk))
        if node.probes:
            closing.enter_context(Probes(node.probes, lambda: Condition(True), lambda: _readiness(edge)))
        author.wait_ready(health.first_beat_ms / 1e3)
        yield edge


def _readiness(edge: Edge) -> Condition:
    """An edge is ready without a cloud too: it goes on alone."""
    well = [cloud for cloud in edge.clouds if edge.watch.state(cloud) is PeerState.WELL]
    return Condition(True, f"clouds that are well: {', '.join(well) or 'none, so answers are provisional'}")


def health_config(config: HealthConfig, cluster: ClusterConfig) -> HealthConfig:
    """All clouds vote, where the settings name no voters."""
    return config if config.voters else replace(config, voters=tuple(sorted(cluster.clouds)))


def tls_files(cluster: ClusterConfig, node: str) -> TlsFiles:
    """Where `htfi certs` put them."""
    folder = Path(cluster.certificates)
    return TlsFiles(folder / "ca.pem", folder / f"{node}.pem", folder / f"{node}.key")


def own_vitals(device: Device) -> Vitals:
    """This machine's own, without a queue."""
    vitals = device.vitals()
    return Vitals(
        temperature_c=vitals.temperature_c,
        throttle_share=min(max(vitals.throttle_share or 0.0, 0.0), 1.0),
        power_w=max(vitals.power_w or 0.0, 0.0),
    )
