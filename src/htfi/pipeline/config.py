"""Settings of the main path; wiring composes them with the other rooms'."""

from dataclasses import dataclass

from htfi.domain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """`deadline_ms` is for the reading of one moment's news; within it as many series are read as have time.

    `group_ms` 0 commits at every moment: least delay; more amortises the disk's sync over a fast replay. At most
    `max_awaited` provisional decisions wait for the target, which is asked every `listen_ms` while events come; a run
    that ends waits `linger_ms` for it.
    """

    deadline_ms: float = 250.0
    group_entries: int = 256
    group_ms: float = 25.0
    snapshot_s: float = 5.0
    max_awaited: int = 1024
    listen_ms: float = 5.0
    linger_ms: float = 5_000.0

    def __post_init__(self) -> None:
        spans_ms = (self.listen_ms, self.linger_ms)
        if self.max_awaited < 1 or not all(0 <= span_ms <= 3_600_000 for span_ms in spans_ms):
            raise InvalidInput(
                "pipeline: max_awaited must be at least 1, listen_ms and linger_ms from 0 to 3600000 (an hour)"
            )
        if self.deadline_ms <= 0 or self.group_entries < 1 or self.group_ms < 0 or self.snapshot_s <= 0:
            raise InvalidInput(
                "pipeline: deadline_ms and snapshot_s must be above 0, group_entries at least 1, group_ms at least 0"
            )
