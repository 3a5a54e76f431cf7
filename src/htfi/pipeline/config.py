"""Settings of the main path; wiring composes them with those of the other packages."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import HOUR_MS, Count, check_bounds


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """`deadline_ms` limits the reading of news at one decision point; as many series are read as it leaves time for.

    `group_ms` 0 commits at every decision point, with the least delay; more spreads the disk's sync over a fast replay.
    At most `max_awaited` decisions with a provisional view wait for the target, which is polled every `listen_ms` while
    events come. A run that ends waits `linger_ms` for it.
    """

    deadline_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = 250.0
    group_entries: Count = 256
    group_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = 25.0
    snapshot_s: Annotated[float, Meta(gt=0.0, le=1e6)] = 5.0
    max_awaited: Count = 8192
    listen_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = 5.0
    linger_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = 5_000.0

    def __post_init__(self) -> None:
        check_bounds("pipeline", self)
