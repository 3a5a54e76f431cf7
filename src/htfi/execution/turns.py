"""Turns of a run that trades: where it took in what comes from outside, so that it takes it there when made again."""

from dataclasses import dataclass
from typing import Protocol

from htfi.domain.orders import OrderEvent


@dataclass(slots=True)
class RunTurn:
    """How often the run has looked for reports and requests; who stamps or replays events shares it with the trader."""

    number: int = 0


class RecordedEvents(Protocol):
    """The events that an earlier start of the run recorded, as the run comes to them again."""

    @property
    def is_replaying(self) -> bool:
        """Whether the record holds what comes next."""
        ...

    @property
    def holds_newest(self) -> bool:
        """Whether the newest event was recorded by an earlier start."""
        ...

    def next_recorded(self) -> OrderEvent | None:
        """What is recorded where the next event will stand. Raises: IntegrityError."""
        ...
