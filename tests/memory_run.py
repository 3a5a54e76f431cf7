"""A run over a list of events, with its ledger and its outlet in memory."""

from collections.abc import Iterator, Sequence

from htfi.domain.decision import Receipt
from htfi.domain.errors import LedgerUnavailable
from htfi.domain.events import FeedItem
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.ports import MakeDecision
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import Settings, load_settings, override


class ListFeed:
    def __init__(self, items: Sequence[FeedItem]) -> None:
        self.items = list(items)
        self.stopped = False

    def __iter__(self) -> Iterator[FeedItem]:
        for item in self.items:
            if self.stopped:
                return
            yield item

    def position(self) -> dict[str, object]:
        return {}

    def progress(self) -> float | None:
        return None

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None: ...


class MemoryLedger:
    def __init__(self, log: list[str]) -> None:
        self.entries: list[bytes] = []
        self.log = log
        self.full = False

    @property
    def size(self) -> int:
        return len(self.entries)

    def entry(self, index: int) -> bytes:
        return self.entries[index]

    def append(self, entries: Sequence[bytes]) -> list[Receipt]:
        if self.full:
            raise LedgerUnavailable("the disk is full")
        start = len(self.entries)
        self.entries += entries
        self.log += [f"record {start + k}" for k in range(len(entries))]
        return [Receipt(start + k, leaf_hash(entry).hex()) for k, entry in enumerate(entries)]

    def tidy(self) -> None: ...

    def close(self) -> None: ...


class MemoryOutlet:
    def __init__(self, log: list[str]) -> None:
        self.released: list[tuple[Receipt, bytes]] = []
        self.log = log

    @property
    def num_released(self) -> int:
        return len(self.released)

    def release(self, receipt: Receipt, entry: bytes, make: MakeDecision | None = None) -> None:
        self.released.append((receipt, entry))
        self.log.append(f"release {receipt.index}")

    def flush(self) -> None: ...

    def close(self) -> None: ...


def loop_over(
    items: Sequence[FeedItem], group_ms: float = 0.0, settings: Settings | None = None
) -> tuple[DecisionLoop, MemoryLedger, MemoryOutlet]:
    log: list[str] = []
    ledger, outlet = MemoryLedger(log), MemoryOutlet(log)
    settings = override(settings or load_settings(environment={}), "pipeline", group_ms=group_ms)
    return build_loop(settings, ListFeed(items), ledger, outlet), ledger, outlet
