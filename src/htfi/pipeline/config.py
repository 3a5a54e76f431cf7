"""Settings of the main path; wiring composes them with the other rooms'."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """`deadline_ms` is for the reading of one moment's news; within it as many series are read as have time.

    `group_ms` 0 commits at every moment: least delay; more amortises the disk's sync over a fast replay.
    """

    deadline_ms: float = 250.0
    group_entries: int = 256
    group_ms: float = 25.0
    snapshot_s: float = 5.0

    def __post_init__(self) -> None:
        if self.deadline_ms <= 0 or self.group_entries < 1 or self.group_ms < 0 or self.snapshot_s <= 0:
            raise InvalidInput(
                "pipeline: deadline_ms and snapshot_s must be above 0, group_entries at least 1, group_ms at least 0"
            )
