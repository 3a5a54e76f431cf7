"""Puts one source's items in order of time within a stated tolerance, and finds what came twice or too late.

`OrderedSource` owns one. Items are events and refused rows; a refused row keeps its place in the stream.

Two rows are the same where their source gave them the same id, else where all their cells are equal.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import NamedTuple, cast

import msgspec

from htfi.domain.events import Bar, Event, MacroAnnouncement, News, QuarantinedRow, Quote, Trade
from htfi.domain.time import NS_PER_S, format_ns
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason, retained_text

BEFORE_ALL_NS = -(1 << 63)
LEAP_NS = 60 * NS_PER_S
NO_LEAP_NS = 1 << 65  # for rows that this machine stamps itself
_MIN_VOTES_AGAINST = 3
_MAX_WAITING_ROWS = 32


class RefusedItem(msgspec.Struct, frozen=True, gc=False):
    """A rejection in its place: the time up to which its source was in order when it was read."""

    available_at_ns: int
    source: str
    row: int
    rejection: QuarantinedRow


StreamItem = Trade | Quote | Bar | News | MacroAnnouncement | RefusedItem
available_at: Callable[[StreamItem], int] = attrgetter("available_at_ns")


class SortedSpan(NamedTuple):
    """What is known of events that are sorted by time."""

    first_ns: int
    last_ns: int
    longest_step_ns: int


class RecentRowIds:
    """The identities of the last `window` rows, so that memory and restart stay bounded."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._rows: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def find_duplicate(self, identity: Hashable, row: int) -> int | None:
        """Note a row; the earlier row with the same identity, if it is within the window."""
        earlier = self._rows.pop(identity, None)
        self._rows[identity] = row
        if len(self._rows) > 2 * self.window:
            oldest = row - self.window
            self._rows = {known: at for known, at in self._rows.items() if at >= oldest}
        return earlier if earlier is not None and row - earlier <= self.window else None


class ReorderBuffer:
    """Holds what may be overtaken yet: items newer than the watermark, the latest time less the tolerance.

    A refused row goes with the watermark. A row that leaps ahead of all before it waits until the rows after
    it agree or disagree, so that one wild time stamp does not make every row after it late.
    """

    def __init__(self, tolerance_ns: int, leap_ns: int = LEAP_NS) -> None:
        self.max_seen_ns: int = BEFORE_ALL_NS
        self.reach = (BEFORE_ALL_NS, 0)  # the last in order, instant and row, of the items last taken
        self.floor = (0, BEFORE_ALL_NS)  # rows after this one cannot come before this instant
        self._tolerance_ns = tolerance_ns
        self._leap_ns = leap_ns
        self._held: list[StreamItem] = []
        self._waiting: list[Event | QuarantinedRow] = []  # a row that leapt ahead, and the rows after it
        self._votes = 0  # of the events after it: for it less against it

    @property
    def is_waiting(self) -> bool:
        """Whether a row that leapt ahead waits for the rows after it."""
        return bool(self._waiting)

    def take(
        self,
        items: Sequence[Event | QuarantinedRow],
        identities: Sequence[Hashable] | None,
        recent: RecentRowIds | None,
        in_order: SortedSpan | None,
    ) -> list[StreamItem]:
        """Items come in order of the source's rows; those that nothing can overtake leave in order of time.

        `identities` has one entry per item; `in_order` is given for events known to be sorted.
        """
        if recent is None and in_order is not None and self._continues_in_order(in_order):
            self._held.extend(cast("Sequence[Event]", items))
            self.max_seen_ns = in_order.last_ns
            self.reach = (in_order.last_ns, items[-1].row)
        else:
            judged = self._classify(self._without_duplicates(items, identities, recent))
            self.reach = max(
                ((item.available_at_ns, item.row) for item in judged), default=(BEFORE_ALL_NS, 0)
            )
            self._held.extend(judged)
            self._held.sort(key=available_at)
        cut = bisect_right(self._held, self._watermark_ns(0), key=available_at)
        ready, self._held = self._held[:cut], self._held[cut:]
        return ready

    def flush(self) -> list[StreamItem]:
        """What is left, at the end of the source."""
        ready = self._held
        while self._waiting:
            ready += self._classify(self._resolve_leap(True, ready))
        ready.sort(key=available_at)
        self._held = []
        return ready

    def _continues_in_order(self, run: "SortedSpan") -> bool:
        """Whether sorted events continue where the ones before ended, without a leap anywhere."""
        step_ns = max(run.first_ns - self.max_seen_ns, run.longest_step_ns)
        return self.max_seen_ns <= run.first_ns and step_ns <= self._leap_ns and not self._waiting

    def _without_duplicates(
        self,
        items: Sequence[Event | QuarantinedRow],
        identities: Sequence[Hashable] | None,
        recent: RecentRowIds | None,
    ) -> Sequence[Event | QuarantinedRow]:
        if recent is None or identities is None:
            return items
        checked: list[Event | QuarantinedRow] = []
        for item, identity in zip(items, identities, strict=True):
            earlier = None if isinstance(item, QuarantinedRow) else recent.find_duplicate(identity, item.row)
            if earlier is not None and not isinstance(item, QuarantinedRow):
                item = _reject(item, QuarantineReason.DUPLICATE, f"equal to row {earlier}")
            checked.append(item)
        return checked

    def _classify(self, items: Sequence[Event | QuarantinedRow]) -> list[StreamItem]:
        judged: list[StreamItem] = []
        for item in items:
            if self._waiting:
                self._waiting.append(item)
                vote = self._vote(item)
                if vote is not None:
                    judged += self._classify(self._resolve_leap(vote, judged))
            elif isinstance(item, QuarantinedRow):
                judged.append(self._refused(item))
            else:
                known_ns = item.available_at_ns
                if known_ns - self.max_seen_ns > self._leap_ns:
                    self._waiting.append(item)
                    self._votes = 0
                elif known_ns >= self._watermark_ns(item.row):
                    self.max_seen_ns = max(self.max_seen_ns, known_ns)
                    judged.append(item)
                else:
                    judged.append(self._late(item))
        return judged

    def _vote(self, item: Event | QuarantinedRow) -> bool | None:
        """Whether the row that leapt is believed, once enough rows after it agree or disagree; None until then."""
        leapt = cast("Event", self._waiting[0])
        if not isinstance(item, QuarantinedRow):
            agrees = item.available_at_ns >= leapt.available_at_ns - self._tolerance_ns
            self._votes += 1 if agrees else -1
        if self._votes > 0 or len(self._waiting) >= _MAX_WAITING_ROWS:
            return True
        return False if self._votes <= -_MIN_VOTES_AGAINST else None

    def _resolve_leap(self, believed: bool, judged: list[StreamItem]) -> list[Event | QuarantinedRow]:
        """Judge the row that leapt; the rows that waited with it are to be judged again."""
        leapt, *after = self._waiting
        event = cast("Event", leapt)
        self._waiting = []
        if believed:
            self.max_seen_ns = max(self.max_seen_ns, event.available_at_ns)
            judged.append(event)
        else:
            detail = f"the {_MIN_VOTES_AGAINST} rows after it are earlier: a wrong time stamp"
            judged.append(self._refused(_reject(event, QuarantineReason.AHEAD, detail)))
        return after

    def _late(self, event: Event) -> RefusedItem:
        behind_s = (self.max_seen_ns - event.available_at_ns) / NS_PER_S
        latest = f"the latest row ({format_ns(self.max_seen_ns)})"
        detail = f"{behind_s:.9g} s behind {latest}: more than the tolerance"
        return self._refused(_reject(event, QuarantineReason.LATE, detail))

    def _watermark_ns(self, row: int) -> int:
        floor_row, floor_ns = self.floor
        return max(self.max_seen_ns - self._tolerance_ns, floor_ns if row > floor_row else BEFORE_ALL_NS)

    def _refused(self, rejection: QuarantinedRow) -> RefusedItem:
        return RefusedItem(self._watermark_ns(rejection.row), rejection.source, rejection.row, rejection)


def _reject(event: Event, reason: QuarantineReason, detail: str) -> QuarantinedRow:
    if isinstance(event, RepairedBar):
        note = event.note
        return msgspec.structs.replace(note, reason=reason.value, detail=detail, repairs=())
    return QuarantinedRow(
        event.source, event.row, reason.value, detail, *retained_text(msgspec.json.encode(event))
    )


_MAX_ID_CHARS = 200


def row_identity(event: Event, content: Hashable) -> Hashable:
    """`content` stands for all of the row; the time joins it for rows that do not hold their own."""
    known_as = event.id
    if known_as and not (type(event) is News and known_as == f"{event.source}:{event.row}"):
        if len(known_as) > _MAX_ID_CHARS:
            return content
        if isinstance(event, News):
            return (known_as, event.symbols, event.corrects, event.retracts)
        if isinstance(event, MacroAnnouncement):
            return (known_as, event.series)
        return (known_as, event.symbol) if isinstance(event, Bar) else (known_as, event.symbol, event.venue)
    return (event.event_time_ns, content)
