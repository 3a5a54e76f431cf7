"""Bodies of nodes: devices, links, placement."""

import msgspec


class DeviceStatus(msgspec.Struct, frozen=True):
    """A machine's own figures; None: unknown. Shares 0–1; `power_w` may be estimated from the load."""

    temperature_c: float | None = None
    throttle_share: float | None = None
    load: float | None = None
    power_w: float | None = None


class LinkStatus(msgspec.Struct, frozen=True):
    """A node that an edge reaches, by its heartbeats; None: unknown. `placed` counts readings by how they ran there."""

    name: str
    address: str | None
    state: str
    reason: str
    rtt_p50_ms: float | None
    rtt_p95_ms: float | None
    queue: int | None
    queue_ms: float | None
    num_rows: int | None
    step_p50_ms: float | None
    device: DeviceStatus
    placed: dict[str, int]


class NodeChange(msgspec.Struct, frozen=True):
    """What happened to a node, as the edge noted it."""

    at: str
    node: str
    what: str
    words: str


class PlacementCounts(msgspec.Struct, frozen=True):
    """Of the newest released decision of each series: by the rung that read the news and by where the target wrote.

    `here` is the machine of the run; `none` had nothing to read or no model's view.
    """

    rungs: dict[str, int]
    places: dict[str, int]
    num_provisional: int


class NodesBody(msgspec.Struct, frozen=True):
    """Nodes, links, queues and energy. What is not known is null.

    `edge`, `at`, `edge_device` and `links` are what the edge of the run wrote last; null and empty for a run on one
    machine. `is_current`: it was written within five seconds. `service_device` is the machine of this service.
    """

    is_running: bool
    edge: str | None
    at: str | None
    is_current: bool | None
    edge_device: DeviceStatus | None
    links: list[LinkStatus]
    num_alone: int | None
    changes: list[NodeChange]  # newest first
    placement: PlacementCounts
    service_device: DeviceStatus
