"""What people say while a run goes on: news out of quarantine, suspicion that is to end. Their words enter between two
events; wiring puts `ReleasingFeed` around a run's feed.

Where each one entered is written down before it is handed out. So a run that goes on after a crash, or runs again with
the same releases, has it at the same place and comes to the same ledger.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from htfi.domain.errors import IntegrityError
from htfi.domain.events import Cleared, FeedItem, News, TimePassed
from htfi.domain.news import Screened
from htfi.pipeline.ports import Feed, Position

MAX_WORDS = 120  # characters of a name, and of a reason
PEOPLE = "people"  # the source of what they say
_ASK_NS = 1_000_000_000  # how often a run looks whether somebody has released something


class Held(msgspec.Struct, frozen=True):
    """An item in quarantine: its number in the run from 1 on, the item as it came, and what the sanitiser said."""

    number: int
    item: News
    screened: Screened


class Release(msgspec.Struct, frozen=True, tag="release"):
    """A person's word that an item may be read. `digest` is that of its cleaned text."""

    number: int
    id: str
    digest: str
    by: str
    why: str

    @property
    def words(self) -> str:
        return f"{self.by}: {self.why}"


class Clearing(msgspec.Struct, frozen=True, tag="clearing"):
    """A person's word that suspicion is to end: of a symbol, or of everything. `number` counts them from −1 down."""

    number: int
    by: str
    why: str
    symbol: str = ""


Word = Release | Clearing


class Entered(msgspec.Struct, frozen=True):
    """A release or a clearing and its place: after so many events of the feed, at that instant of the run."""

    release: Word
    after: int
    at_ns: int


class HeldNews(Protocol):
    """Items in quarantine, whole."""

    @property
    def num_held(self) -> int: ...

    def hold(self, item: News, screened: Screened) -> None:
        """Keep an item as it came. Raises: DependencyUnavailable."""
        ...

    def find(self, number: int) -> Held | None: ...

    def position(self) -> Position: ...

    def close(self) -> None: ...


class HoldNothing:
    """Implements `HeldNews` for what nobody will look at again: an evaluation, a test."""

    num_held = 0

    def hold(self, item: News, screened: Screened) -> None: ...

    def find(self, number: int) -> Held | None:
        del number
        return None

    def position(self) -> Position:
        return {}

    def close(self) -> None: ...


class Releases(Protocol):
    """People's words on items in quarantine and on suspicion, and where they took effect."""

    def entered(self) -> Sequence[Entered]:
        """Those that took effect in this run, or are to in this repetition of one, in order."""
        ...

    def asked(self) -> Sequence[Word]:
        """Those that have not yet, in the order in which people gave them."""
        ...

    def enter(self, entered: Entered) -> None:
        """Write down for good where one takes effect. Raises: DependencyUnavailable."""
        ...


class ReleasingFeed:
    """A feed with the items that people let out of quarantine, and what else they say, in between."""

    def __init__(
        self,
        feed: Feed,
        held: HeldNews,
        releases: Releases,
        elapsed_ns: Callable[[], int],
        position: Position | None = None,
    ) -> None:
        self._feed, self._held, self._releases = feed, held, releases
        self._elapsed_ns = elapsed_ns
        saved = position or {"num_events": 0, "now_ns": 0, "num_entered": 0}
        self._num_events: int = saved["num_events"]
        self._now_ns: int = saved["now_ns"]
        self._num_entered: int = saved["num_entered"]
        self._next_ask_ns = 0
        self._stopped = False

    def __iter__(self) -> Iterator[FeedItem]:
        yield from self._due()
        for item in self._feed:
            self._now_ns = max(item.available_at_ns, self._now_ns)
            if not isinstance(item, TimePassed):
                self._num_events += 1
            yield item
            yield from self._due()
        if not self._stopped:
            yield from self._due(now=True)

    def _due(self, *, now: bool = False) -> Iterator[News | Cleared]:
        """Those that entered at this place before, then those that people have asked for since."""
        entered = self._releases.entered()
        while self._num_entered < len(entered) and entered[self._num_entered].after <= self._num_events:
            yield self._let_in(entered[self._num_entered])
        if self._num_entered < len(entered):
            return  # what people ask for now comes after what they asked for then
        if not now and self._elapsed_ns() < self._next_ask_ns:
            return
        self._next_ask_ns = self._elapsed_ns() + _ASK_NS
        for release in self._releases.asked():
            if self._now_ns <= 0 or (
                isinstance(release, Release) and self._held.find(release.number) is None
            ):
                return  # its item is held back further on, where this run has not come yet
            place = Entered(release, self._num_events, self._now_ns)
            self._releases.enter(place)
            yield self._let_in(place)

    def _let_in(self, place: Entered) -> News | Cleared:
        self._num_entered += 1
        release = place.release
        if isinstance(release, Clearing):
            self._now_ns = now_ns = max(place.at_ns, self._now_ns)
            return Cleared(now_ns, now_ns, PEOPLE, self._num_entered, release.by, release.why, release.symbol)
        held = self._held.find(release.number)
        if held is None or held.item.id != release.id or held.screened.digest != release.digest:
            raise IntegrityError(
                f"release {self._num_entered} is of item {release.number} ({release.id}), which this run does not hold "
                "back there: the inputs, the settings or the code changed since; use a new folder"
            )
        self._now_ns = max(place.at_ns, self._now_ns)
        return replace(held.item, available_at_ns=self._now_ns, released_by=release.words)

    def position(self) -> Position:
        return {
            "feed": self._feed.position(),
            "num_events": self._num_events,
            "now_ns": self._now_ns,
            "num_entered": self._num_entered,
        }

    def progress(self) -> float | None:
        return self._feed.progress()

    def stop(self) -> None:
        self._stopped = True
        self._feed.stop()

    def close(self) -> None:
        self._feed.close()
