"""What the simulated venue answers its client by FIX, once each: what was sent already is compared, the rest is sent.

What the client has sent is in the journal and gives the same answers again. When the connection broke is noted beside
it, since what is open is cancelled then; of a venue with prices and a clock of its own, too, on which prices.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.domain.errors import DependencyUnavailable, IntegrityError
from htfi.domain.files import open_private
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.price_messages import Price
from htfi.simulation.venue.fix_venue import FixVenue
from htfi.wiring.venue_prices import PriceFiles, PricePlace, PricePublisher

INTERRUPTIONS = "interruptions.txt"  # after how many received messages the connection broke, a line each
PRICE_PLACES = "prices.txt"  # of a venue with prices and a clock of its own: a line for each message received


class ServedVenue:
    """The application of the session: what the venue answers, sent once each."""

    def __init__(
        self,
        venue: FixVenue,
        journal: MessageJournal,
        dictionary: Dictionary,
        show: Callable[[str], None],
        *,
        cancel_on_disconnect: bool,
        own_clock: tuple[PriceFiles, PricePublisher] | None = None,
    ) -> None:
        """`own_clock`: the prices that the venue trades on as it publishes them.

        Raises: IntegrityError where the journal holds other answers than follow from what it received.
        """
        self._venue, self._dictionary, self._show = venue, dictionary, show
        self._own_clock = own_clock
        self._places = journal.folder / PRICE_PLACES
        self._runner: SessionRunner | None = None
        self._cancel_on_disconnect = cancel_on_disconnect
        self._path = journal.folder / INTERRUPTIONS
        self._unsent: deque[Composed] = deque()
        self._num_received = 0
        self._is_first_logon = True
        self._make_again(journal)
        if own_clock is not None:
            own_clock[1].on_price, own_clock[1].on_new_run = self._trade_on, venue.begin_again

    def _trade_on(self, price: Price) -> None:
        """A price that was published."""
        self._unsent.extend(self._venue.publish(price))
        if self._runner is not None:
            self._send(self._runner)

    def on_logon(self, runner: SessionRunner) -> None:
        """Send what is left; cancel first what was open when the connection broke."""
        self._runner = runner
        self._show(f"{runner.settings.target} has logged on")
        if self._cancel_on_disconnect and self._venue.has_open_orders:
            self._note_interruption()
            self._unsent.extend(self._venue.interrupt())
        self._send(runner)

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        """Answer a message of the client."""
        self._num_received += 1
        if self._own_clock is not None:
            place = self._own_clock[1].place
            self._note(self._places, f"{self._num_received} {place.number} {place.run}")
        if message.msg_type in ("D", "F", "G", "q"):
            self._show(_words(message))
        self._unsent.extend(self._venue.handle(message))
        self._send(runner)

    def on_disconnect(self, runner: SessionRunner, why: str) -> None:
        """The client is gone."""
        self._show(f"{runner.settings.target} has gone: {why}")

    def _send(self, runner: SessionRunner) -> None:
        while self._unsent and runner.is_logged_on:
            if isinstance(runner.send(*self._unsent[0]), NotSent):
                return
            kind, body = self._unsent.popleft()
            if kind in ("8", "9"):
                self._show(_report_words(dict(body)))

    def _make_again(self, journal: MessageJournal) -> None:
        sent = deque(journal.sent_since(0, 1))
        interruptions = deque(self._interruptions())
        prices = _OwnPrices(self._venue, self._own_clock, self._lines(self._places))
        for frame in journal.received_since(0, 1):
            self._interrupt_again(interruptions, prices)
            self._num_received += 1
            self._unsent.extend(prices.before_message(self._num_received))
            self._unsent.extend(self._venue.handle(self._decoded(frame)))
        self._interrupt_again(interruptions, prices)
        self._unsent.extend(prices.rest())
        while sent:
            earlier = self._decoded(sent.popleft())
            if not self._unsent or _essence(earlier.msg_type, earlier.by_tag) != _essence(
                self._unsent[0][0], dict(self._unsent[0][1])
            ):
                raise IntegrityError(
                    f"{journal.path}: the venue would answer otherwise than it did: the settings, the prices or the "
                    "code changed since; use a new journal, and a new folder for the client's run"
                )
            self._unsent.popleft()

    def _interrupt_again(
        self, interruptions: "deque[tuple[int, PricePlace | None]]", prices: "_OwnPrices"
    ) -> None:
        while interruptions and interruptions[0][0] == self._num_received:
            _, place = interruptions.popleft()
            if place is not None:
                self._unsent.extend(prices.up_to(place))
            self._unsent.extend(self._venue.interrupt())

    def _interruptions(self) -> list[tuple[int, PricePlace | None]]:
        """After how many received messages, and on which prices by then, where they are the venue's own."""
        try:
            lines = [line.split(" ") for line in self._lines(self._path)]
            return [(int(line[0]), PricePlace(line[2], int(line[1])) if line[2:] else None) for line in lines]
        except ValueError as error:
            raise IntegrityError(f"{self._path} was altered: restore it from a copy") from error

    def _lines(self, path: Path) -> list[str]:
        try:
            return path.read_text().split("\n")[:-1] if path.exists() else []
        except OSError as error:
            raise DependencyUnavailable(f"{path}: cannot be read: {error.strerror}") from error

    def _note_interruption(self) -> None:
        place = None if self._own_clock is None else self._own_clock[1].place
        at = "" if place is None else f" {place.number} {place.run}"
        self._note(self._path, f"{self._num_received}{at}")

    def _note(self, path: Path, line: str) -> None:
        try:
            file = open_private(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, f"{line}\n".encode())
                os.fdatasync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise DependencyUnavailable(f"{path}: cannot be written: {error.strerror}") from error

    def _decoded(self, frame: bytes) -> FixMessage:
        message = decode(frame, self._dictionary)
        assert isinstance(message, FixMessage), "the journal holds what was sent or checked"
        return message


class _OwnPrices:
    """Trades again on the prices that an earlier process had published before each message that it received."""

    def __init__(
        self, venue: FixVenue, own_clock: tuple[PriceFiles, PricePublisher] | None, lines: Sequence[str]
    ) -> None:
        self._venue, self._own_clock = venue, own_clock
        self._places: dict[int, PricePlace] = {}
        for line in lines:
            received, number, *run = line.split(" ")
            self._places[int(received)] = PricePlace("".join(run), int(number))
        self._at = PricePlace()
        self._prices: Iterator[tuple[int, Price]] = iter(())

    def before_message(self, num_received: int) -> list[Composed]:
        """What followed from the prices before a message."""
        return self.up_to(self._places.get(num_received, self._at))

    def rest(self) -> list[Composed]:
        """What followed from the others."""
        return self.up_to(self._own_clock[1].place) if self._own_clock is not None else []

    def up_to(self, place: PricePlace) -> list[Composed]:
        """What followed from the prices up to one."""
        sent: list[Composed] = []
        if self._own_clock is None:
            return sent
        if place.run != self._at.run:
            self._at = PricePlace(place.run)
            self._venue.begin_again()
            self._prices = self._own_clock[0].prices("again")
        while self._at.number < place.number and (following := next(self._prices, None)) is not None:
            self._at.number, price = following
            sent += self._venue.publish(price)
        return sent


def _essence(kind: str, fields: dict[int, str]) -> tuple[str, ...]:
    """What makes two of the venue's messages the same."""
    return kind, *(fields.get(tag, "") for tag in (11, 17, 150, 262, 55, 32, 31, 14))


def _words(message: FixMessage) -> str:
    kinds = {"D": "new order", "F": "cancel", "G": "replace", "q": "mass cancel"}
    side = {"1": "buy", "2": "sell", "5": "sell short"}.get(message.get(54), "")
    what = " ".join(part for part in (side, message.get(38), message.get(55)) if part)
    return f"{kinds[message.msg_type]} {message.get(11)}: {what}" + (
        f" at {message.get(44)}" if message.get(44) else ""
    )


def _report_words(fields: dict[int, str]) -> str:
    kinds = {
        "0": "acknowledged",
        "4": "canceled",
        "5": "replaced",
        "8": "rejected",
        "C": "expired",
        "H": "busted",
    }
    name = fields.get(11, "")
    if 434 in fields:
        return f"refused {name}: {fields.get(58, '')}"
    if fields.get(150) == "F":
        return f"filled {name}: {fields.get(32)} {fields.get(55)} at {fields.get(31)}"
    return f"{kinds.get(fields.get(150, ''), 'reported')} {name}" + (
        f": {fields[58]}" if 58 in fields else ""
    )
