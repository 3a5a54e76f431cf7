"""A feed whose events are pushed by a program, for `htfi.open_run`: it counts them and says where they came to."""

from collections.abc import Iterator
from typing import Any

from htfi.domain.events import Event, FeedItem, QuarantinedRow
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.ports import Position, RowQuarantine

PUSHED = "pushed"


def usable_event(made: Event | RepairedBar | QuarantinedRow, quarantine: RowQuarantine) -> Event | None:
    """The event to take in of what a row was made into; what was put right or cannot be used is noted."""
    if isinstance(made, RepairedBar):
        quarantine.set_aside(made.note)
        return made.bar
    if isinstance(made, QuarantinedRow):
        quarantine.set_aside(made)
        return None
    return made


class PushedFeed:
    """Implements `EventFeed`. Who pushes steps the loop itself; iterating gives nothing."""

    def __init__(self) -> None:
        self.num_rows = 0

    @property
    def sources(self) -> list[dict[str, Any]]:
        """What a run's identity says of it."""
        return [{"name": PUSHED, "settings": {}}]

    def restore(self, position: Position) -> None:
        self.num_rows = position["num_rows"]

    def __iter__(self) -> Iterator[FeedItem]:
        return iter(())

    def position(self) -> Position:
        return {"num_rows": self.num_rows}

    def progress(self) -> float | None:
        """Never None, which would say that it is live: what is pushed decides, and no clock."""
        return 0.0

    def stop(self) -> None: ...

    def close(self) -> None: ...
