"""What an edge knows of its links, as a file in the run's folder, written anew each second for those who show it."""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from htfi.adapters.device.metrics import DeviceMonitor
from htfi.client.node_bodies import DeviceStatus, LinkStatus
from htfi.decoding.link.frames import DraftMode
from htfi.domain.files import write_atomically
from htfi.domain.peers import PeerState
from htfi.scheduling.health.peer_contact import PeerFigures
from htfi.wiring.outputs import NODES_FILE

WRITE_S = 1.0
LEAD_NAMES = {
    DraftMode.PLAIN: "plain",
    DraftMode.CLOUD: "cloud",
    DraftMode.LOCKSTEP: "lock-step",
    DraftMode.PIPELINED: "in flight",
}


class NodeStatusBody(msgspec.Struct, frozen=True):
    """An edge and its links at an instant, UTC. `num_alone` readings were placed nowhere."""

    node: str
    at_ns: int
    device: DeviceStatus
    links: list[LinkStatus]
    num_alone: int


def device_status(device: DeviceMonitor) -> DeviceStatus:
    """Of this machine, now."""
    found = device.metrics()
    return DeviceStatus(found.temperature_c, found.throttle_share, found.load, found.power_w)


def link_status(
    name: str, address: str | None, figures: PeerFigures, placed: Mapping[tuple[str, DraftMode], int]
) -> LinkStatus:
    """What an edge knows of a peer. A dead one's last figures are no figures of now."""
    metrics = figures.metrics if figures.state is not PeerState.DEAD else None
    device = DeviceStatus()
    if metrics is not None:
        device = DeviceStatus(metrics.temperature_c, metrics.throttle_share, None, metrics.power_w or None)
    return LinkStatus(
        name=name,
        address=address,
        state=figures.state.value,
        reason=figures.reason,
        rtt_p50_ms=figures.rtt_p50_ms,
        rtt_p95_ms=figures.rtt_p95_ms,
        queue=None if metrics is None else metrics.queue,
        queue_ms=None if metrics is None else metrics.queue_ms,
        num_rows=None if metrics is None else metrics.num_rows,
        step_p50_ms=None if metrics is None else metrics.step_p50_ms or None,
        device=device,
        placed={LEAD_NAMES[lead]: num for (cloud, lead), num in placed.items() if cloud == name},
    )


@contextmanager
def node_status_file(folder: Path, status: Callable[[DeviceMonitor], NodeStatusBody]) -> Generator[None]:
    """Write the file each second until the end of the block; a disk that takes it not is no fault of the run."""
    ended = threading.Event()
    device = DeviceMonitor()

    def work() -> None:
        while True:
            try:
                if folder.is_dir():
                    write_atomically(folder / NODES_FILE, msgspec.json.encode(status(device)))
            except OSError:
                pass
            if ended.wait(WRITE_S):
                return

    thread = threading.Thread(target=work, name="node status", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
