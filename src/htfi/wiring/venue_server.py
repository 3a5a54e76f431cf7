"""`htfi venue serve`: the simulated venue as FIX acceptor of one client, with prices of its own where it has files.

A killed process takes it up again.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from htfi.adapters.fix.connections import Acceptor
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.fix.settings import FixEndpoint, market_data_endpoint, read_endpoint
from htfi.domain.counts import counted
from htfi.domain.errors import InvalidInput
from htfi.execution.fix.dictionary import Dictionary, load_dictionary
from htfi.execution.instruments import Instrument, instrument_of
from htfi.simulation.venue.fix_venue import FixVenue
from htfi.wiring.served_venue import ServedVenue
from htfi.wiring.settings import Settings
from htfi.wiring.venue_prices import PriceFiles, PricePublisher


class VenueServer:
    """A simulated venue that listens. `close` ends `serve`."""

    def __init__(
        self,
        endpoint: FixEndpoint,
        settings: Settings,
        show: Callable[[str], None],
        files: PriceFiles | None = None,
        pace: float | None = None,
    ) -> None:
        """`files` are the venue's own prices, published at the `pace`.

        Raises: DependencyUnavailable where another process has the journal; IntegrityError.
        """
        self._endpoint = endpoint
        self._show = show
        dictionary = load_dictionary(endpoint.session.dictionary_name)
        self._journal = MessageJournal(Path(endpoint.journal), sync=False)  # nobody's money depends on it

        def terms(symbol: str) -> Instrument:
            return instrument_of(settings.trading.terms(symbol, 0))

        self.name = settings.trading.venue
        shares_clock = endpoint.orders.shares_clock
        venue = FixVenue(
            self.name,
            settings.venue,
            terms,
            dictionary,
            None if files is None else partial(files.prices, "trade"),
            shares_clock=shares_clock,
        )
        self.prices_words = ""
        self._publisher, self._price_runner = self._open_prices(files, dictionary, pace)
        own_clock = None
        if files is not None and self._publisher is not None and not shares_clock:
            own_clock = files, self._publisher
        served = ServedVenue(
            venue,
            self._journal,
            dictionary,
            show,
            cancel_on_disconnect=endpoint.orders.cancel_on_disconnect,
            own_clock=own_clock,
        )
        self._runner = SessionRunner(endpoint.session, self._journal, served)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed: asyncio.Event = asyncio.Event()

    def _open_prices(
        self, files: PriceFiles | None, dictionary: Dictionary, pace: float | None
    ) -> tuple[PricePublisher | None, SessionRunner | None]:
        """The session for prices, where the venue has some."""
        if files is None:
            return None, None
        endpoint = market_data_endpoint(self._endpoint)
        journal = MessageJournal(Path(endpoint.journal), sync=False)
        publisher = PricePublisher(files, journal, dictionary, self._show, pace)
        return publisher, SessionRunner(endpoint.session, journal, publisher)

    def serve(self) -> None:
        """Listen until `close`. Raises: DependencyUnavailable."""
        asyncio.run(self._serve())
        self._journal.close()
        if self._price_runner is not None:
            self._price_runner.journal.close()

    def close(self) -> None:
        """Log out and end."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._is_closed.set)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        runners = [one for one in (self._runner, self._price_runner) if one is not None]
        acceptor = Acceptor(runners, self._endpoint.tls)
        port = await acceptor.listen(self._endpoint.host, self._endpoint.port)
        session = self._endpoint.session
        self._show(
            f"venue {self.name} is ready at {self._endpoint.host}:{port} for {session.target} by {session.version}, "
            f"as {session.sender}{self.prices_words}"
        )
        tasks: set[asyncio.Task[object]] = {asyncio.create_task(self._is_closed.wait())}
        if self._publisher is not None:
            tasks.add(asyncio.create_task(self._publisher.run()))
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await acceptor.close()
        for task in done:
            task.result()


def open_venue_server(
    path: Path,
    settings: Settings,
    show: Callable[[str], None],
    files: Sequence[str] = (),
    mapping: Path | None = None,
    pace: float | None = None,
) -> VenueServer:
    """The venue of a TOML file, not listening yet, with the prices of files where they are named.

    Raises: InvalidInput, DependencyUnavailable, IntegrityError.
    """
    endpoint = read_endpoint(path)
    if endpoint.session.initiator:
        raise InvalidInput(f"{path}: session.initiator is true: a venue accepts, so say initiator = false")
    if not files and mapping is None:
        if endpoint.market_data is not None or endpoint.orders.shares_clock:
            raise InvalidInput(
                f"{path}: market_data and orders.shares_clock are for a venue with prices of its own: name their files"
            )
        return VenueServer(endpoint, settings, show)
    if endpoint.market_data is None or market_data_endpoint(endpoint).journal == endpoint.journal:
        raise InvalidInput(
            f"{path}: market_data.target is missing: prices go over a session of their own, to another client's name"
        )
    if endpoint.orders.send_prices:
        raise InvalidInput(f"{path}: orders.send_prices is for a venue without prices: leave it out")
    prices = PriceFiles(files, mapping, Path(market_data_endpoint(endpoint).journal) / "prices")
    server = VenueServer(endpoint, settings, show, prices, pace)
    symbols = ", ".join(list(prices.symbols)[:5]) + (" …" if len(prices.symbols) > 5 else "")
    server.prices_words = f"; it publishes {counted(sum(prices.symbols.values()), 'price')} of {symbols}"
    return server
