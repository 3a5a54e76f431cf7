"""One source on its way into the merge: reads blocks, orders them, and knows from where to read again.

`MergedFeed` owns several. A `RowReader` (an adapter) delivers parsed rows in blocks and can begin at any mark.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from htfi.domain.events import Event, QuarantinedRow
from htfi.pipeline.intake.reorder import (
    BEFORE_ALL_NS,
    LEAP_NS,
    RecentRowIds,
    ReorderBuffer,
    SortedSpan,
    StreamItem,
)

IDENTITY_WINDOW_ROWS = 16_384
_ANCHOR_STRIDE_ROWS = 1024

ReadPosition = list[
    int
]  # what a reader needs to begin again: first the number of rows before, then its own figures


@dataclass(slots=True)
class RowBlock:
    """Consecutive rows of one source, parsed; `mark` is where they begin.

    `identities` has one entry per item, or is None where duplicates are kept. `in_order` is given where all
    items are events already in order of time. `known_until_ns` is a live reader's word that nothing earlier
    will come.
    """

    mark: ReadPosition
    items: Sequence[Event | QuarantinedRow]
    identities: Sequence[Hashable] | None = None
    in_order: SortedSpan | None = None
    known_until_ns: int | None = None


class RowReader(Protocol):
    """Where a source's rows come from. Rows are counted from 1, events and rejections together."""

    @property
    def live(self) -> bool:
        """An empty block means that more may come later."""
        ...

    def start(self, mark: ReadPosition | None) -> None:
        """Begin at a mark, or at the first row. Raises: InvalidInput, DependencyUnavailable."""
        ...

    def read(self) -> RowBlock | None:
        """The next rows; None at the end. Raises: InvalidInput, DependencyUnavailable."""
        ...

    def progress(self) -> float | None:
        """The fraction read, 0–1; None where the end is not known."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Anchor:
    """Where a block begins, the state before its first judged row, and the last of its items in time."""

    mark: ReadPosition
    row: int  # rows up to this one only teach identities
    max_seen_ns: int
    reach: tuple[int, int]
    is_final: bool  # False while a row of the block waits for the row after it


class OrderedSource:
    """Items that can be handed out stand in `ready`, in order of time and row."""

    def __init__(
        self,
        name: str,
        reader: RowReader,
        tolerance_ns: int,
        *,
        keep_duplicates: bool,
        leap_ns: int = LEAP_NS,
    ) -> None:
        self.name = name
        self.reader = reader
        self.ready: list[StreamItem] = []
        self.done = False
        self.known_until_ns: int | None = None
        self.last: tuple[int, int] | None = None  # instant and row of the last item handed out
        self._reorder = ReorderBuffer(tolerance_ns, leap_ns)
        self._recent = None if keep_duplicates else RecentRowIds(IDENTITY_WINDOW_ROWS)
        self._anchors: deque[_Anchor] = deque()
        self._saved: dict[str, Any] | None = None
        self._judge_after_row = 0
        self._num_rows = 0
        self._resuming = False

    def start(self, saved: dict[str, Any] | None) -> None:
        """Begin at the first row, or continue from a saved position."""
        self._saved = saved
        if saved is not None:
            self._reorder.max_seen_ns = saved["max_seen_ns"]
            self._reorder.floor = (saved["floor"][0], saved["floor"][1])
            self._judge_after_row = saved["row"]
            self.last = None if saved["last"] is None else (saved["last"][0], saved["last"][1])
            self._resuming = self.last is not None
        self.reader.start(None if saved is None else saved["mark"])

    def size(self) -> tuple[float, float] | None:
        """Rows handed out, and about how many there are in all; None where no end is known."""
        share = self.reader.progress()
        if share is None:
            return None
        handed_out = self._num_rows if self.done and not self.ready else self.last[1] if self.last else 0
        return handed_out, self._num_rows / share if share > 0.0 else self._num_rows

    def fill(self) -> None:
        """Read until something can be handed out, the source ends, or a live one has nothing more for now."""
        while not self.ready and not self.done:
            block = self.reader.read()
            if block is None:
                self.ready = self._reorder.flush()
                self.done = True
            else:
                self.known_until_ns = block.known_until_ns
                self.ready = self._order_block(block)
            if self._resuming and self.ready:
                self._drop_handed_out()
            if self.reader.live and (block is None or not block.items):
                break

    def position(self) -> dict[str, Any] | None:
        """Plain values from which `start` continues after `last`; None before the first row."""
        if not self._anchors:
            return self._saved
        last = self.last or (BEFORE_ALL_NS, 0)
        first = next(
            (anchor for anchor in self._anchors if anchor.reach > last or not anchor.is_final),
            self._anchors[-1],
        )
        needed_row = first.row - (IDENTITY_WINDOW_ROWS if self._recent else 0)
        while (
            len(self._anchors) > 1
            and self._anchors[1].mark[0] <= needed_row
            and self._anchors[0] is not first
        ):
            self._anchors.popleft()
        return {
            "mark": self._anchors[0].mark,
            "row": first.row,
            "max_seen_ns": first.max_seen_ns,
            # Where a stream ended, all was handed out; rows that a continuation brings stay behind that.
            "floor": [self._num_rows, last[0]] if self.done else list(self._reorder.floor),
            "last": None if self.last is None else list(self.last),
        }

    def _order_block(self, block: RowBlock) -> list[StreamItem]:
        if not block.items:
            return []
        self._num_rows = block.mark[0] + len(block.items)
        if self._judge_after_row > block.mark[0]:
            block = self._skip_judged_rows(block)
        before_ns, waited = self._reorder.max_seen_ns, self._reorder.is_waiting
        ready = self._reorder.take(block.items, block.identities, self._recent, block.in_order)
        row = max(block.mark[0], self._judge_after_row)
        anchor = _Anchor(block.mark, row, before_ns, self._reorder.reach, not self._reorder.is_waiting)
        self._anchor(anchor, begins=not waited)
        return ready

    def _skip_judged_rows(self, block: RowBlock) -> RowBlock:
        """Note the identities of rows that were judged before the restart; what is left is judged now."""
        cut = sum(item.row <= self._judge_after_row for item in block.items)
        identities = block.identities
        if identities is not None and self._recent is not None:
            for item, identity in zip(block.items[:cut], identities[:cut], strict=True):
                if not isinstance(item, QuarantinedRow):
                    self._recent.find_duplicate(identity, item.row)
            identities = identities[cut:]
        return RowBlock(
            block.mark, block.items[cut:], identities, None if cut else block.in_order, block.known_until_ns
        )

    def _anchor(self, anchor: _Anchor, *, begins: bool) -> None:
        """Keep where to begin again: not while a row waits for its next, nor at each of a live source's rows."""
        newest = self._anchors[-1] if self._anchors else None
        near = (
            newest is not None
            and newest.row == newest.mark[0]
            and anchor.mark[0] - newest.mark[0] < _ANCHOR_STRIDE_ROWS
        )
        if newest is not None and (near or not begins):
            newest.reach = max(newest.reach, anchor.reach)
            newest.is_final = anchor.is_final
        else:
            self._anchors.append(anchor)
            if len(self._anchors) > 2 * IDENTITY_WINDOW_ROWS // _ANCHOR_STRIDE_ROWS:
                self.position()  # forgets anchors that no restart needs

    def _drop_handed_out(self) -> None:
        last = self.last
        assert last is not None
        cut = 0
        while cut < len(self.ready) and (self.ready[cut].available_at_ns, self.ready[cut].row) <= last:
            cut += 1
        self._resuming = cut == len(self.ready)
        self.ready = self.ready[cut:]
