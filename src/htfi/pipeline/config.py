"""Settings of the main path; wiring composes them with those of the other packages."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from htfi.domain.settings import HOUR_MS, Count, check_bounds, setting


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """Time for reading, grouping of writes, saving of state, and late answers."""

    deadline_ms: Annotated[float, Meta(gt=0.0, le=HOUR_MS)] = setting(
        250.0, "time for reading the news at one decision point"
    )
    group_entries: Count = setting(256, "decisions written together, at most", "decisions")
    group_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        25.0, "how long decisions are grouped before they are written; 0 writes at once"
    )
    snapshot_s: Annotated[float, Meta(gt=0.0, le=1e6)] = setting(5.0, "how often the state of a run is saved")
    max_pending_amendments: Count = setting(
        8192, "provisional decisions that wait for the target model", "decisions"
    )
    late_poll_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        5.0, "how often the target is polled for late answers during the run"
    )
    late_wait_ms: Annotated[float, Meta(ge=0.0, le=HOUR_MS)] = setting(
        5_000.0, "how long a run that ends waits for the target's late answers"
    )

    def __post_init__(self) -> None:
        check_bounds("pipeline", self)
