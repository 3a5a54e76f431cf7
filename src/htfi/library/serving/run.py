"""A run that is served: its record as it is read, and the process that works things out on it."""

from collections.abc import Callable
from pathlib import Path

from htfi.library.serving.answer_turns import AnswerTurns
from htfi.library.serving.worker import AnswerProcess
from htfi.wiring.service.live_record import LiveRecord


def _say_nothing(_: str) -> None: ...


class ReadableRun:
    """One run's folder, while a server is up: what is read of it, and asked."""

    def __init__(
        self,
        folder: Path,
        tenant: str = "",
        turns: AnswerTurns | None = None,
        report: Callable[[str], None] = _say_nothing,
    ) -> None:
        """`turns` are those that the questions of several tenants take; `report` gets what ends the reading."""
        self.folder = folder
        self.record = LiveRecord(folder, report)
        self.worker = AnswerProcess(folder, tenant, turns)

    def open(self) -> None:
        """In the running event loop. Raises: as `LiveRecord.open`."""
        self.record.open()

    async def close(self) -> None:
        await self.record.close()
        await self.worker.close()
