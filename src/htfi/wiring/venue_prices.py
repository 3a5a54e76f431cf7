"""Prices of the simulated venue's own, from files: published to its client over a session for market data (35=V, W, X).

They begin where a new run subscribes, wait while nobody does, and go on after a kill where the session's journal ends.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable, InvalidInput
from htfi.domain.events import Bar, Quote, Trade
from htfi.domain.files import make_private
from htfi.domain.orders import SessionPhase
from htfi.domain.time import NS_PER_S, SystemClock
from htfi.execution.fix.dictionary import Dictionary
from htfi.execution.fix.events import NotSent
from htfi.execution.fix.execution_reports import business_reject
from htfi.execution.fix.market_messages import (
    market_data_reject,
    read_market_data_request,
    session_status_message,
)
from htfi.execution.fix.messages import FixMessage, decode
from htfi.execution.fix.price_messages import Price
from htfi.execution.fix.published_prices import PublishedPrices, number_of
from htfi.wiring.feeds import open_feed, resolve

SETTLE_S = 0.2  # after a subscription: others of the same client follow it
_MAX_BURST = 64  # prices, between two looks at the rest of the process
_MAX_UNSENT_BYTES = 1 << 20
_POLL_S = 0.005
_SUBSCRIBE, _UNSUBSCRIBE, _FULL_REFRESH = "1", "2", "0"  # SubscriptionRequestType (263), MDUpdateType (265)
_UNKNOWN_SYMBOL, _DUPLICATE_ID, _NO_FULL_REFRESH = "0", "1", "6"  # MDReqRejReason (281)


class PriceFiles:
    """The prices of files, in order, numbered from 1 on, as often as they are wanted."""

    def __init__(self, files: Sequence[str], mapping: Path | None, folder: Path) -> None:
        """Reads them once. Raises: InvalidInput, DependencyUnavailable."""
        self._specs, self._folder = resolve(files, mapping), folder
        if any(spec.live for spec in self._specs):
            raise InvalidInput("the prices of a venue come from files: leave addresses and '-' out")
        self.symbols: dict[str, int] = {}  # with how many prices
        for _, price in self.prices("survey"):
            self.symbols[price.symbol] = self.symbols.get(price.symbol, 0) + 1
        if not self.symbols:
            raise InvalidInput(f"{', '.join(files) or mapping}: no quote, trade or bar: check the files")

    def prices(self, reader: str, after: int = 0) -> Iterator[tuple[int, Price]]:
        """The prices after a number. Each reader has a folder of its own."""
        folder = self._folder / reader
        try:
            make_private(folder)
        except OSError as error:
            raise DependencyUnavailable(f"{folder}: cannot be made: {error.strerror}") from error
        quarantine = QuarantineFile(folder / "quarantine.jsonl", None)
        feed = open_feed(self._specs, inbox=folder / "inbox", quarantine=quarantine, clock=SystemClock())
        try:
            number = 0
            for item in feed:
                if isinstance(item, Quote | Trade | Bar):
                    number += 1
                    if number > after:
                        yield number, item
        finally:
            feed.close()
            quarantine.close()


@dataclass(slots=True)
class PricePlace:
    """What was published last: the run that it was for, and its number."""

    run: str = ""
    number: int = 0


class PricePublisher:
    """The application of the session for market data. `run` publishes until it is cancelled."""

    def __init__(
        self,
        files: PriceFiles,
        journal: MessageJournal,
        dictionary: Dictionary,
        show: Callable[[str], None],
        pace: float | None,
    ) -> None:
        """`pace` is how many seconds of the prices pass in one of ours; None: as fast as the client takes them."""
        self._files, self._dictionary, self._show, self._pace = files, dictionary, show, pace
        self._published = PublishedPrices(dictionary)
        self._subscribed: dict[str, str] = {}  # MDReqID (262) by symbol
        self._runner: SessionRunner | None = None
        self._changed = asyncio.Event()
        self._begin_at_s = 0.0
        self._generation = 0
        self._began_at_s: float | None = None  # when the pace began, at a price's time
        self._began_at_ns = self._num_sent = 0
        self.place = _place_in(journal, dictionary)
        for number, price in files.prices("publish"):
            if number > self.place.number:
                break
            self._published.take(price)
        self.on_price: Callable[[Price], None] = lambda _: None
        """Learns of each price that was published."""
        self.on_new_run: Callable[[], None] = lambda: None

    def on_logon(self, runner: SessionRunner) -> None:
        self._runner = runner
        self._show(f"{runner.settings.target} has logged on for prices")

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        """A request for market data."""
        if message.msg_type in ("3", "j"):
            return
        if message.msg_type != "V":
            runner.send(*business_reject(message, 3, "this session is for market data"))
            return
        request_id, symbols = read_market_data_request(message, self._dictionary)
        kind = message.get(263)
        if kind == _UNSUBSCRIBE:
            for symbol in [one for one, known_as in self._subscribed.items() if known_as == request_id]:
                del self._subscribed[symbol]
            return
        unknown = [symbol for symbol in symbols if symbol not in self._files.symbols]
        if unknown:
            why = f"{unknown[0][:40]} is not known"
            runner.send(*market_data_reject(request_id, why, _UNKNOWN_SYMBOL))
        elif request_id in self._subscribed.values():
            runner.send(*market_data_reject(request_id, "MDReqID was used before", _DUPLICATE_ID))
        elif kind == _SUBSCRIBE and message.get(265) == _FULL_REFRESH:
            why = "MDUpdateType 1: updates are increments"
            runner.send(*market_data_reject(request_id, why, _NO_FULL_REFRESH))
        else:
            self._subscribe(runner, request_id, symbols, stays=kind == _SUBSCRIBE)

    def on_disconnect(self, runner: SessionRunner, why: str) -> None:
        self._subscribed.clear()
        self._show(f"{runner.settings.target} has gone: {why}")

    async def run(self) -> None:
        """Publish while somebody subscribes."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            generation = self._generation
            for number, price in self._files.prices("publish", self.place.number):
                if not await self._publish(number, price, generation):
                    break
            else:
                self._changed.clear()
                if self._runner is not None and self._subscribed:
                    self._show(f"all {counted(self.place.number, 'price')} are published")
                    self._runner.send(*session_status_message(SessionPhase.CLOSED, "1"))

    def _subscribe(
        self, runner: SessionRunner, request_id: str, symbols: Sequence[str], *, stays: bool
    ) -> None:
        run = request_id.partition("-")[0]
        if stays and not self._subscribed and run != self.place.run:
            self.place = PricePlace(run)
            self._published = PublishedPrices(self._dictionary)
            self._generation += 1
            self.on_new_run()
        for symbol in symbols:
            runner.send(*self._published.snapshot(symbol, request_id))
            if stays:
                self._subscribed[symbol] = request_id
        self._begin_at_s = asyncio.get_running_loop().time() + SETTLE_S
        self._changed.set()

    async def _publish(self, number: int, price: Price, generation: int) -> bool:
        """Send a price as soon as it is its time and somebody is there; whether it is still wanted."""
        while not await self._is_due(price):
            if generation != self._generation:
                return False
        if generation != self._generation:
            return False
        request_id = self._subscribed.get(price.symbol)
        if request_id is not None:
            assert self._runner is not None, "a session has subscribed"
            composed = self._published.message(price, number, request_id)
            if isinstance(self._runner.send(*composed), NotSent):
                self._subscribed.clear()
                return await self._publish(number, price, generation)
        self._published.take(price)
        self.place.number = number
        self.on_price(price)
        return True

    async def _is_due(self, price: Price) -> bool:
        """Whether a price may be sent now; waits a little where it may not."""
        loop = asyncio.get_running_loop()
        if not self._subscribed or self._runner is None:
            self._began_at_s = None
            await asyncio.sleep(_POLL_S)
            return False
        if (left_s := self._begin_at_s - loop.time()) > 0:
            await asyncio.sleep(left_s)
            return False
        if self._pace is not None:
            if self._began_at_s is None:
                self._began_at_s, self._began_at_ns = loop.time(), price.available_at_ns
            due_s = (price.available_at_ns - self._began_at_ns) / NS_PER_S / self._pace
            left_s = self._began_at_s + due_s - loop.time()
            if left_s > 0:
                await asyncio.sleep(min(left_s, 1.0))
                return False
        self._num_sent += 1
        if self._num_sent % _MAX_BURST == 0:
            await asyncio.sleep(0)
            while self._runner.num_unsent_bytes > _MAX_UNSENT_BYTES:
                await asyncio.sleep(_POLL_S)
        return True


def _place_in(journal: MessageJournal, dictionary: Dictionary) -> PricePlace:
    """Where an earlier process stopped."""
    place = PricePlace()
    for frame in deque(journal.sent_since(0, 1), maxlen=1_000):
        message = decode(frame, dictionary)
        if isinstance(message, FixMessage) and message.msg_type in ("W", "X"):
            run, number = message.get(262).partition("-")[0], number_of(message)
            place = PricePlace(run, number or (place.number if run == place.run else 0))
    return place
