"""The nodes that a run works with, as far as its folder says: the edge's own file, changes of peers."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from htfi.adapters.device.metrics import DeviceMonitor
from htfi.adapters.stores.snapshot import read_whole
from htfi.client.node_bodies import NodeChange, NodesBody, PlacementCounts
from htfi.domain.decision import Decision
from htfi.domain.errors import InvalidInput
from htfi.domain.peers import PeerChange
from htfi.domain.time import NS_PER_S, format_ns
from htfi.wiring.cluster.node_status import (
    DeviceStatus,
    NodeStatusBody,
    device_status,
)
from htfi.wiring.outputs import NODES_FILE, PEERS
from htfi.wiring.service.submitted_news import is_live

MAX_AGE_NS = 5 * NS_PER_S  # of figures that are of now
_NUM_CHANGES = 50
_TAIL_BYTES = 64 << 10


class NodesReader:
    """Reads what a run's folder says of its nodes; for several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._device = DeviceMonitor()
        self._lock = threading.Lock()

    def read(self, newest: Iterable[Decision]) -> NodesBody:
        """`newest` are the newest decisions of the series. Raises: InvalidInput, DependencyUnavailable."""
        with self._lock:
            device = device_status(self._device)
        return _read(self._folder, newest, device)


def _read(folder: Path, newest: Iterable[Decision], device: DeviceStatus) -> NodesBody:
    status, is_running = _status(folder), is_live(folder)
    age_ns = None if status is None else time.time_ns() - status.at_ns
    return NodesBody(
        is_running=is_running,
        edge=None if status is None else status.node,
        at=None if status is None else format_ns(status.at_ns),
        is_current=None if age_ns is None else is_running and abs(age_ns) <= MAX_AGE_NS,
        edge_device=None if status is None else status.device,
        links=[] if status is None else status.links,
        num_alone=None if status is None else status.num_alone,
        changes=_changes(folder),
        placement=count_placements(newest),
        service_device=device,
    )


def count_placements(decisions: Iterable[Decision]) -> PlacementCounts:
    """Where the news of decisions was read."""
    rungs, places, num_provisional = Counter[str](), Counter[str](), 0
    for one in decisions:
        rungs[one.plan.rung.value] += 1
        trace = None if one.view is None else one.view.trace
        places["none" if trace is None else trace.place or "here"] += 1
        num_provisional += one.view is not None and one.view.provisional
    return PlacementCounts(dict(rungs), dict(places), num_provisional)


def _status(folder: Path) -> NodeStatusBody | None:
    content = read_whole(folder / NODES_FILE)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=NodeStatusBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{folder / NODES_FILE}: is not what an edge writes: remove it ({error})"
        ) from error


def _changes(folder: Path) -> list[NodeChange]:
    """The newest lines of the file; one that is being written, or cut at the beginning, is left out."""
    try:
        with (folder / PEERS).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - _TAIL_BYTES, 0))
            content = file.read()
    except OSError:
        return []
    found: list[NodeChange] = []
    for line in reversed(content[: content.rfind(b"\n") + 1].splitlines()):
        try:
            one = msgspec.json.decode(line, type=PeerChange)
            found.append(NodeChange(format_ns(one.at_ns), one.peer, one.what, one.words))
        except (msgspec.DecodeError, UnicodeDecodeError, InvalidInput):
            continue
        if len(found) == _NUM_CHANGES:
            break
    return found
