"""Puts one source's items in order of time within a stated tolerance, and finds what came twice or too late.

`Source` owns one. Items are events and refused rows; a refused row keeps its place in the stream.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import cast

import msgspec

from htfi.domain.events import Bar, Event, MacroRelease, News, Quote, Rejection, Trade
from htfi.domain.time import NS_PER_S, format_ns
from htfi.pipeline.intake.reasons import RAW_CHARS, Reason

BEFORE_ALL_NS = -(1 << 63)


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A rejection in its place: the time up to which its source was in order when it was read."""

    available_at_ns: int
    source: str
    row: int
    rejection: Rejection


Item = Trade | Quote | Bar | News | MacroRelease | Refused
instant: Callable[[Item], int] = attrgetter("available_at_ns")


class Recent:
    """The identities of the last `window` rows, so that memory and restart stay bounded."""

    def __init__(self, window: int) -> None:
        self.window = window
        self._rows: dict[Hashable, int] = {}

    def seen(self, identity: Hashable, row: int) -> int | None:
        """Note a row; the earlier row with the same identity, if it is within the window."""
        earlier = self._rows.pop(identity, None)
        self._rows[identity] = row
        if len(self._rows) > 2 * self.window:
            oldest = row - self.window
            self._rows = {known: at for known, at in self._rows.items() if at >= oldest}
        return earlier if earlier is not None and row - earlier <= self.window else None


class Reorder:
    """Holds what may be overtaken yet: items newer than the watermark, the latest time less the tolerance.

    A refused row goes with the watermark, so that one wild time stamp cannot make the rest pile up.
    """

    def __init__(self, tolerance_ns: int, max_seen_ns: int = BEFORE_ALL_NS) -> None:
        self.max_seen_ns: int = max_seen_ns
        self.reach = (BEFORE_ALL_NS, 0)  # the last in order, instant and row, of the items last taken
        self._tolerance_ns = tolerance_ns
        self._held: list[Item] = []

    def take(
        self,
        items: Sequence[Event | Rejection],
        identities: Sequence[Hashable] | None,
        recent: Recent | None,
        in_order: tuple[int, int] | None,
    ) -> list[Item]:
        """Items come in order of the source's rows; those that nothing can overtake leave in order of time.

        `identities` has one entry per item; `in_order`: first and last instant of events known to be sorted.
        """
        if in_order is not None and recent is None and in_order[0] >= self.max_seen_ns:
            self._held.extend(cast("Sequence[Event]", items))
            self.max_seen_ns = in_order[1]
            self.reach = (in_order[1], items[-1].row)
        else:
            judged = self._judge(items, identities, recent)
            self.reach = max(
                ((item.available_at_ns, item.row) for item in judged), default=(BEFORE_ALL_NS, 0)
            )
            self._held.extend(judged)
            self._held.sort(key=instant)
        cut = bisect_right(self._held, self._watermark_ns(), key=instant)
        ready, self._held = self._held[:cut], self._held[cut:]
        return ready

    def flush(self) -> list[Item]:
        """What is left, at the end of the source."""
        ready, self._held = self._held, []
        return ready

    def _judge(
        self,
        items: Sequence[Event | Rejection],
        identities: Sequence[Hashable] | None,
        recent: Recent | None,
    ) -> list[Item]:
        judged: list[Item] = []
        for place, item in enumerate(items):
            if isinstance(item, Rejection):
                judged.append(self._refused(item))
                continue
            known_ns = item.available_at_ns
            if recent is not None and identities is not None:
                earlier = recent.seen(identities[place], item.row)
                if earlier is not None:
                    judged.append(self._refuse(item, Reason.DUPLICATE, f"the same as row {earlier}"))
                    continue
            if known_ns >= self.max_seen_ns:
                self.max_seen_ns = known_ns
            elif known_ns < self.max_seen_ns - self._tolerance_ns:
                behind_s = (self.max_seen_ns - known_ns) / NS_PER_S
                latest = f"the latest row ({format_ns(self.max_seen_ns)})"
                detail = f"{behind_s:.9g} s behind {latest}: more than the tolerance"
                judged.append(self._refuse(item, Reason.LATE, detail))
                continue
            judged.append(item)
        return judged

    def _watermark_ns(self) -> int:
        return max(self.max_seen_ns - self._tolerance_ns, BEFORE_ALL_NS)

    def _refuse(self, event: Event, reason: Reason, detail: str) -> Refused:
        said = msgspec.json.encode(event).decode()[:RAW_CHARS]
        return self._refused(Rejection(event.source, event.row, reason.value, detail, said))

    def _refused(self, rejection: Rejection) -> Refused:
        return Refused(self._watermark_ns(), rejection.source, rejection.row, rejection)
