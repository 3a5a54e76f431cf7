"""A run that is served: its record as it is read, and the process that works things out on it."""

from pathlib import Path

from htfi.library.serving.answer_turns import AnswerTurns
from htfi.library.serving.worker import AnswerProcess
from htfi.wiring.service.live_record import LiveRecord


class ReadableRun:
    """One run's folder, while a server is up: what is read of it, and asked."""

    def __init__(self, folder: Path, tenant: str = "", turns: AnswerTurns | None = None) -> None:
        """`turns` are those that the questions of several tenants take."""
        self.folder = folder
        self.record = LiveRecord(folder)
        self.worker = AnswerProcess(folder, tenant, turns)

    def open(self) -> None:
        """In the running event loop. Raises: as `LiveRecord.open`."""
        self.record.open()

    async def close(self) -> None:
        await self.record.close()
        await self.worker.close()
