"""What people do during a run: admit news from quarantine, end a suspicion, hand in news. Their actions enter between
two events. Wiring puts `OperatorFeed` around a run's feed.

The place of each action is recorded before it takes effect. So a resumed run, or a repeated one with the same actions,
applies it there and comes to the same ledger.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Protocol

import msgspec
from msgspec.structs import replace

from htfi.domain.errors import IntegrityError
from htfi.domain.events import FeedItem, News, SuspicionReset, TimePassed
from htfi.domain.news import ScreenedItem
from htfi.pipeline.ports import EventFeed, Position

MAX_REASON_CHARS = 120  # characters of a name, and of a reason
OPERATOR_SOURCE = "people"  # the source of operators' actions, in events
POSTED = "posted"  # the source of news that was handed in
_POLL_INTERVAL_NS = 100_000_000  # how often a run looks for new actions


class HeldItem(msgspec.Struct, frozen=True):
    """An item in quarantine: its number in the run from 1 on, the item as it came, and the sanitiser's verdict."""

    number: int
    item: News
    screened: ScreenedItem


class NewsAdmission(msgspec.Struct, frozen=True, tag="release"):
    """A person admits an item from quarantine. `digest` is that of its cleaned text; `signed` the person's signed note,
    unset without a governance folder.
    """

    number: int
    id: str
    digest: str
    by: str
    why: str
    signed: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def words(self) -> str:
        return f"{self.by}: {self.why}"


class ResetOrder(msgspec.Struct, frozen=True, tag="clearing"):
    """A person ends a suspicion: of a symbol, or of everything. `number` counts them from −1 down; `signed` is the
    person's signed note, unset without a governance folder; `request` names what asked for it, so that it counts once.
    """

    number: int
    by: str
    why: str
    symbol: str = ""
    signed: str | msgspec.UnsetType = msgspec.UNSET
    request: str | msgspec.UnsetType = msgspec.UNSET


class PostedEntry(msgspec.Struct, frozen=True, tag="posted"):
    """An item that was handed in enters the run. Its text is not here; `digest` is that of the item."""

    number: int
    id: str
    digest: str


class PostedNews(msgspec.Struct, frozen=True):
    """An item that was handed to the run from outside, untrusted as any. `number` counts them from 1 on.

    `by` is who posted it, at `at_ns`, UTC. Its `event_time_ns` is 0 where none was stated; when it becomes known is
    the run's to say.
    """

    number: int
    item: News
    by: str
    at_ns: int

    @property
    def entry(self) -> PostedEntry:
        digest = sha256(msgspec.json.encode(self.item)).hexdigest()[:32]
        return PostedEntry(self.number, self.item.id, digest)


OperatorAction = NewsAdmission | ResetOrder | PostedEntry


class AppliedAction(msgspec.Struct, frozen=True):
    """An action and its place: after so many events of the feed, at that instant of the run."""

    release: OperatorAction
    after: int
    at_ns: int


class HeldNewsStore(Protocol):
    """Items in quarantine, whole."""

    @property
    def num_held(self) -> int: ...

    def hold(self, item: News, screened: ScreenedItem) -> None:
        """Keep an item as it came. Raises: DependencyUnavailable."""
        ...

    def find(self, number: int) -> HeldItem | None: ...

    def position(self) -> Position: ...

    def close(self) -> None: ...


class NullHeldNews:
    """Null store of held news: discards everything. For evaluations and tests."""

    num_held = 0

    def hold(self, item: News, screened: ScreenedItem) -> None: ...

    def find(self, number: int) -> HeldItem | None:
        del number
        return None

    def position(self) -> Position:
        return {}

    def close(self) -> None: ...


class OperatorActions(Protocol):
    """Operators' actions on quarantined items and on suspicion, and where they took effect."""

    def applied(self) -> Sequence[AppliedAction]:
        """Actions that took effect in this run, or are to in this repetition of one, in order."""
        ...

    def requested(self) -> Sequence[OperatorAction]:
        """Actions that have not taken effect yet, in the order in which they were requested."""
        ...

    def find_posted(self, number: int) -> PostedNews | None:
        """The posted item of a number; None where there is none. Items are asked for once, in order."""
        ...

    def record_applied(self, applied: AppliedAction) -> None:
        """Record durably where one takes effect. Raises: DependencyUnavailable."""
        ...


class OperatorFeed:
    """A feed with operators' actions in between: items that they admit, suspicions that they end."""

    def __init__(
        self,
        feed: EventFeed,
        held: HeldNewsStore,
        releases: OperatorActions,
        elapsed_ns: Callable[[], int],
        position: Position | None = None,
    ) -> None:
        """`is_repeating`, set once there is a loop, says that it makes again what is recorded: nothing new enters."""
        self.is_repeating: Callable[[], bool] = lambda: False
        self._feed, self._held, self._releases = feed, held, releases
        self._elapsed_ns = elapsed_ns
        saved = position or {"num_events": 0, "now_ns": 0, "num_entered": 0}
        self._num_events: int = saved["num_events"]
        self._now_ns: int = saved["now_ns"]
        self._num_applied: int = saved["num_entered"]
        self._next_poll_ns = 0
        self._stopped = False

    def __iter__(self) -> Iterator[FeedItem]:
        yield from self._due_actions()
        for item in self._feed:
            self._now_ns = max(item.available_at_ns, self._now_ns)
            if not isinstance(item, TimePassed):
                self._num_events += 1
            yield item
            if self._may_be_due():
                yield from self._due_actions()
        if not self._stopped:
            yield from self._due_actions(now=True)

    def _may_be_due(self) -> bool:
        """Whether to look for actions: some took effect before, or it is time to ask for new ones."""
        return self._num_applied < len(self._releases.applied()) or self._elapsed_ns() >= self._next_poll_ns

    def _due_actions(self, *, now: bool = False) -> Iterator[News | SuspicionReset]:
        """Actions that took effect at this place before, then those that were requested since."""
        entered = self._releases.applied()
        while self._num_applied < len(entered) and entered[self._num_applied].after <= self._num_events:
            yield self._apply(entered[self._num_applied])
        if self._num_applied < len(entered) or self.is_repeating():
            return  # what people ask for now comes after what they asked for then
        if not now and self._elapsed_ns() < self._next_poll_ns:
            return
        self._next_poll_ns = self._elapsed_ns() + _POLL_INTERVAL_NS
        for release in self._releases.requested():
            if self._now_ns <= 0 or (
                isinstance(release, NewsAdmission) and self._held.find(release.number) is None
            ):
                return  # its item is held back further on, where this run has not come yet
            place = AppliedAction(release, self._num_events, self._now_ns)
            self._releases.record_applied(place)
            yield self._apply(place)

    def _apply(self, place: AppliedAction) -> News | SuspicionReset:
        self._num_applied += 1
        release = place.release
        if isinstance(release, PostedEntry):
            return self._apply_posted(release, place)
        if isinstance(release, ResetOrder):
            self._now_ns = now_ns = max(place.at_ns, self._now_ns)
            return SuspicionReset(
                now_ns, now_ns, OPERATOR_SOURCE, self._num_applied, release.by, release.why, release.symbol
            )
        held = self._held.find(release.number)
        if held is None or held.item.id != release.id or held.screened.digest != release.digest:
            raise IntegrityError(
                f"admission {self._num_applied} is of item {release.number} ({release.id}), which this run does "
                "not hold "
                "back there: the inputs, the settings or the code changed since; use a new folder"
            )
        self._now_ns = max(place.at_ns, self._now_ns)
        return replace(held.item, available_at_ns=self._now_ns, released_by=release.words)

    def _apply_posted(self, entry: PostedEntry, place: AppliedAction) -> News:
        posted = self._releases.find_posted(entry.number)
        if posted is None or posted.entry != entry:
            raise IntegrityError(
                f"admission {self._num_applied} is of posted item {entry.number} ({entry.id}), which is not in the "
                "run's folder: restore posted_news.jsonl from a copy, or use a new folder"
            )
        self._now_ns = now_ns = max(place.at_ns, self._now_ns)
        event_ns = min(posted.item.event_time_ns or now_ns, now_ns)
        return replace(posted.item, available_at_ns=now_ns, event_time_ns=event_ns)

    def position(self) -> Position:
        return {
            "feed": self._feed.position(),
            "num_events": self._num_events,
            "now_ns": self._now_ns,
            "num_entered": self._num_applied,
        }

    def progress(self) -> float | None:
        return self._feed.progress()

    def stop(self) -> None:
        self._stopped = True
        self._feed.stop()

    def close(self) -> None:
        self._feed.close()
