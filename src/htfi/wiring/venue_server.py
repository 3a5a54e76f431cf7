"""`htfi venue serve`: the simulated venue as FIX acceptor of one client, which a killed process takes up again.

What the client has sent is in the journal and gives the same answers again; those that were sent already are compared,
the rest are sent at the next logon. When the connection broke is noted beside it, since what is open is cancelled then.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from htfi.adapters.fix.connections import Acceptor
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint, read_endpoint
from htfi.domain.errors import DependencyUnavailable, IntegrityError, InvalidInput
from htfi.domain.files import open_private
from htfi.execution.fix.dictionary import Dictionary, load_dictionary
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.order_codes import Composed
from htfi.execution.instruments import Instrument, instrument_of
from htfi.simulation.venue.fix_venue import FixVenue
from htfi.wiring.settings import Settings
from htfi.wiring.venue_link import served_venue

INTERRUPTIONS = "interruptions.txt"  # after how many received messages the connection broke, a line each


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
    ) -> None:
        """Raises: IntegrityError where the journal holds other answers than follow from what it received."""
        self._venue, self._dictionary, self._show = venue, dictionary, show
        self._cancel_on_disconnect = cancel_on_disconnect
        self._path = journal.folder / INTERRUPTIONS
        self._unsent: deque[Composed] = deque()
        self._num_received = 0
        self._is_first_logon = True
        self._make_again(journal)

    def on_logon(self, runner: SessionRunner) -> None:
        """Send what is left; cancel first what was open when the connection broke."""
        self._show(f"{runner.settings.target} has logged on")
        if self._cancel_on_disconnect and self._venue.has_open_orders:
            self._note_interruption()
            self._unsent.extend(self._venue.interrupt())
        self._send(runner)

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        """Answer a message of the client."""
        self._num_received += 1
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
        for frame in journal.received_since(0, 1):
            self._interrupt_again(interruptions)
            self._num_received += 1
            self._unsent.extend(self._venue.handle(self._decoded(frame)))
        self._interrupt_again(interruptions)
        while sent:
            earlier = self._decoded(sent.popleft())
            if not self._unsent or _essence(earlier.msg_type, earlier.by_tag) != _essence(
                self._unsent[0][0], dict(self._unsent[0][1])
            ):
                raise IntegrityError(
                    f"{journal.path}: the venue would answer otherwise than it did: the settings or the code changed "
                    "since; use a new journal, and a new folder for the client's run"
                )
            self._unsent.popleft()

    def _interrupt_again(self, interruptions: deque[int]) -> None:
        while interruptions and interruptions[0] == self._num_received:
            interruptions.popleft()
            self._unsent.extend(self._venue.interrupt())

    def _interruptions(self) -> list[int]:
        try:
            lines = self._path.read_text().split("\n")[:-1] if self._path.exists() else []
            return [int(line) for line in lines]
        except OSError as error:
            raise DependencyUnavailable(f"{self._path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise IntegrityError(f"{self._path} was altered: restore it from a copy") from error

    def _note_interruption(self) -> None:
        try:
            file = open_private(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, f"{self._num_received}\n".encode())
                os.fdatasync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise DependencyUnavailable(f"{self._path}: cannot be written: {error.strerror}") from error

    def _decoded(self, frame: bytes) -> FixMessage:
        message = decode(frame, self._dictionary)
        assert isinstance(message, FixMessage), "the journal holds what was sent or checked"
        return message


class VenueServer:
    """A simulated venue that listens. `close` ends `serve`."""

    def __init__(self, endpoint: FixEndpoint, settings: Settings, show: Callable[[str], None]) -> None:
        """Raises: DependencyUnavailable where another process has the journal; IntegrityError."""
        self._endpoint = endpoint
        self._show = show
        dictionary = load_dictionary(endpoint.session.dictionary_name)
        self._journal = MessageJournal(Path(endpoint.journal), sync=False)  # nobody's money depends on it

        def terms(symbol: str) -> Instrument:
            return instrument_of(settings.trading.terms(symbol, 0))

        self.name, config = served_venue(settings, endpoint.orders.venue)
        venue = FixVenue(self.name, config, terms, dictionary)
        served = ServedVenue(
            venue,
            self._journal,
            dictionary,
            show,
            cancel_on_disconnect=endpoint.orders.cancel_on_disconnect,
        )
        self._runner = SessionRunner(endpoint.session, self._journal, served)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed: asyncio.Event = asyncio.Event()

    def serve(self) -> None:
        """Listen until `close`. Raises: DependencyUnavailable."""
        asyncio.run(self._serve())
        self._journal.close()

    def close(self) -> None:
        """Log out and end."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._is_closed.set)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        acceptor = Acceptor([self._runner], self._endpoint.tls)
        port = await acceptor.listen(self._endpoint.host, self._endpoint.port)
        session = self._endpoint.session
        self._show(
            f"venue {self.name} is ready at {self._endpoint.host}:{port} for {session.target} by {session.version}, "
            f"as {session.sender}"
        )
        await self._is_closed.wait()
        await acceptor.close()


def open_venue_server(path: Path, settings: Settings, show: Callable[[str], None]) -> VenueServer:
    """The venue of a TOML file, not listening yet. Raises: InvalidInput, DependencyUnavailable, IntegrityError."""
    endpoint = read_endpoint(path)
    if endpoint.session.initiator:
        raise InvalidInput(f"{path}: session.initiator is true: a venue accepts, so say initiator = false")
    return VenueServer(endpoint, settings, show)


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
