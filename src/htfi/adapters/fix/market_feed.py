"""Prices over a FIX session into the inbox of a run's feed: it subscribes after each logon, and says what is missing.

Each row carries how many messages of the session it follows from since the run began (`n`). So a run that was killed
takes from the session's journal what it had received and not written into its inbox.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from htfi.adapters.fix.session_thread import JournalPlace, SessionThread
from htfi.adapters.fix.settings import FixMarketData
from htfi.domain.counts import counted
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput
from htfi.domain.orders import SessionPhase
from htfi.execution.fix.market_messages import market_data_request, read_session_status
from htfi.execution.fix.market_rows import MarketRows, Row, asked_symbol
from htfi.execution.fix.messages import FixMessage, frame_text

FIRST_LOGON_S = 10.0
_WAIT_S = 0.25
_MAX_BATCH = 512


class InboxRowLike(Protocol):
    """A row as the inbox holds it."""

    @property
    def content(self) -> bytes: ...


class RowInbox(Protocol):
    """Where rows are written before they are used."""

    def append(self, rows: Sequence[tuple[bytes, int]]) -> None: ...

    def finish(self, error: HtfiError | None = None) -> None: ...

    def rows(self) -> Iterator[InboxRowLike]: ...


class MarketDataReceiver:
    """A thread that fills the inbox. It gives up where no logon comes about at first, or nothing may be subscribed."""

    def __init__(
        self,
        session: SessionThread,
        settings: FixMarketData,
        run: tuple[str, JournalPlace],
        inbox: RowInbox,
        notify: Callable[[str], None],
        *,
        with_ids: bool,
    ) -> None:
        """`run` is what the MDReqIDs (262) of the run begin with, and where it began in the session's journal."""
        self._session, self._settings, self._inbox, self._notify = session, settings, inbox, notify
        self._prefix, self._since = run
        self._rows = MarketRows(session.dictionary, settings.symbols, with_ids=with_ids)
        self._encode = msgspec.json.Encoder().encode
        self._num_handled = 0
        self._num_subscribed = 0  # the logon that was subscribed after
        self._refused: set[str] = set()
        self._set_aside: list[Row] = []  # by the session, on its thread
        self._lock = threading.Lock()
        self._is_down = False
        self._has_refused = False  # whether the session has refused a message, which is said once
        self._newest_s = 0.0
        self._is_silent = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fix-prices", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)
        self._session.close()

    def _run(self) -> None:
        try:
            self._remember()
            self._session.watch_refused(self._note_refused)
            self._session.start(self._since, self._num_handled)
            self._wait_for_first_logon()
            while not self._stopped.is_set():
                self._watch_connection()
                if not self._take(self._session.take_messages(_MAX_BATCH, _WAIT_S)):
                    self._inbox.finish()
                    return
        except HtfiError as error:
            self._inbox.finish(error)

    def _remember(self) -> None:
        """What earlier processes have written."""
        decode = msgspec.json.Decoder(dict[str, object]).decode
        for one in self._inbox.rows():
            row = decode(one.content)
            self._rows.remember(row)
            if isinstance(number := row.get("n"), int):
                self._num_handled = max(self._num_handled, number)

    def _wait_for_first_logon(self) -> None:
        deadline_s = time.monotonic() + FIRST_LOGON_S
        while not self._session.wait_for_logon(_WAIT_S) and not self._stopped.is_set():
            if self._num_handled == 0 and time.monotonic() >= deadline_s:
                raise DependencyUnavailable(
                    f"{self._session.name}: no logon within {FIRST_LOGON_S:g} s ({self._session.why_down}): "
                    "correct that, and see that the venue runs"
                )
            if self._num_handled:  # it was there before: a run that goes on waits for it
                self._watch_connection()

    def _watch_connection(self) -> None:
        """Say when the session breaks, and subscribe when it is back."""
        why = self._session.why_down
        is_new = not why and self._session.num_logons != self._num_subscribed
        was_down = self._is_down or bool(is_new and self._num_subscribed)  # it may have been short
        if not self._is_down and (why or was_down):
            self._is_down = True
            self._notify(
                f"{self._session.name}: no prices ({why or self._session.last_end}): what is known of "
                f"{counted(len(self._settings.symbols), 'instrument')} grows stale until it is back"
            )
        if not is_new:
            self._watch_silence(is_up=not why)
            return
        if was_down:
            self._notify(f"{self._session.name}: prices are back")
        self._is_down, self._num_subscribed = False, self._session.num_logons
        self._refused.clear()
        self._newest_s = time.monotonic()
        for symbol in self._settings.symbols:
            asked = f"{self._prefix}{self._num_subscribed}{time.time_ns() % 10**9:09d}-{symbol}"
            self._session.post([market_data_request(asked, [symbol])])

    def _watch_silence(self, *, is_up: bool) -> None:
        silent_s = time.monotonic() - self._newest_s
        if is_up and not self._is_silent and self._newest_s and silent_s > self._settings.max_silence_s:
            self._is_silent = True
            self._notify(
                f"{self._session.name}: no price has come for {self._settings.max_silence_s:g} s, though it is "
                "connected: what is known grows stale"
            )

    def _take(self, messages: Sequence[FixMessage]) -> bool:
        """Write the rows of messages; whether more will come. Raises: DependencyUnavailable, InvalidInput."""
        with self._lock:
            refused, self._set_aside = self._set_aside, []
        rows: list[Row] = [row | {"n": self._num_handled} for row in refused]
        is_open = True
        for message in messages:
            self._num_handled += 1
            rows += [row | {"n": self._num_handled} for row in self._rows.read(message)]
            if message.msg_type in ("Y", "3", "j"):
                self._take_refusal(message)
            elif message.msg_type == "h" and self._settings.end_at_close:
                is_open = read_session_status(message) is not SessionPhase.CLOSED
            if not is_open:
                break
        if rows:
            lines = [self._encode(row) for row in rows]
            self._inbox.append([(line, len(line)) for line in lines])
        if messages:
            self._newest_s = time.monotonic()
            if self._is_silent:
                self._is_silent = False
                self._notify(f"{self._session.name}: prices come again")
        return is_open

    def _take_refusal(self, message: FixMessage) -> None:
        """What the counterparty does not do: of one instrument (35=Y), or of market data at all."""
        said = message.get(58) or f"reason {message.get(281) or message.get(373) or message.get(380)}"
        if message.msg_type != "Y":
            raise InvalidInput(f"{self._session.name}: the venue refuses a request for prices: {said[:200]}")
        symbol = asked_symbol(message.get(262))
        if not message.get(262).startswith(self._prefix) or symbol in self._refused:
            return
        self._refused.add(symbol)
        if len(self._refused) == len(set(self._settings.symbols)):
            raise InvalidInput(
                f"{self._session.name}: the venue refuses prices of {', '.join(sorted(self._refused))}: {said[:200]}: "
                "check market_data.symbols"
            )
        self._notify(f"{self._session.name}: the venue refuses prices of {symbol}: {said[:200]}")

    def _note_refused(self, why: str, frame: bytes) -> None:
        """On the session's thread."""
        with self._lock:
            is_first, self._has_refused = not self._has_refused, True
            if len(self._set_aside) < _MAX_BATCH:
                self._set_aside.append(
                    {"refused": "malformed", "detail": why[:200], "raw": frame_text(frame)}
                )
        if is_first:
            self._notify(f"{self._session.name}: {why}: such messages are in the quarantine")
