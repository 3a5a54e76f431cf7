"""A WebSocket's messages into their inbox: a thread that connects, and again. `LiveReader` starts it."""

import re
import threading
import time

from websockets.exceptions import ConnectionClosed, InvalidURI, WebSocketException
from websockets.frames import CloseCode
from websockets.sync.client import connect
from websockets.uri import parse_uri

from htfi.adapters.feeds.live import FeedContext, Inbox, message_rows, reconnect_delay_s
from htfi.adapters.feeds.records import JsonRows
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput
from htfi.pipeline.intake.spec import SourceSpec

FIRST_CONNECT_S = 10.0
_MAX_MESSAGE_BYTES = 16_000_000
_RECEIVE_S = 0.25


ROWS = JsonRows


def check(spec: SourceSpec) -> None:
    """Raises: InvalidInput."""
    try:
        parse_uri(spec.url)
    except (InvalidURI, ValueError) as error:
        raise InvalidInput(f"'{spec.url}' is not a WebSocket address: write ws://HOST:PORT/PATH") from error


def open_receiver(spec: SourceSpec, inbox: Inbox, _context: FeedContext) -> "WebSocketReceiver":
    return WebSocketReceiver(inbox, spec.url, spec.subscribe)


class WebSocketReceiver:
    """Gives up only when the very first connection does not come about within 10 s."""

    def __init__(self, inbox: Inbox, url: str, subscribe: str) -> None:
        self._inbox = inbox
        self._url = url
        self._subscribe = subscribe
        self._first_connect_s = FIRST_CONNECT_S
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="websocket", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        give_up_s = time.monotonic() + self._first_connect_s
        connected = self._inbox.num_bytes > 0
        num_failures = 0
        while not self._stopped.is_set():
            try:
                with connect(
                    self._url,
                    open_timeout=self._first_connect_s,
                    close_timeout=1,
                    max_size=_MAX_MESSAGE_BYTES,
                ) as socket:
                    connected = True
                    if self._subscribe:
                        socket.send(self._subscribe)
                    while not self._stopped.is_set():
                        try:
                            message = socket.recv(timeout=_RECEIVE_S)
                        except TimeoutError:
                            continue
                        self._inbox.append(
                            message_rows(message.encode() if isinstance(message, str) else message)
                        )
                        num_failures = 0
            except HtfiError as error:
                self._inbox.finish(error)
                return
            except (OSError, WebSocketException) as error:
                if too_big := _oversized_bytes(error):
                    self._inbox.append([(b"", too_big)])
                if not connected and time.monotonic() >= give_up_s:
                    why = str(error) or type(error).__name__
                    self._inbox.finish(
                        DependencyUnavailable(
                            f"{self._url}: no connection ({why}): check the address and the server"
                        )
                    )
                    return
            self._stopped.wait(reconnect_delay_s(num_failures))
            num_failures += 1


def _oversized_bytes(error: Exception) -> int:
    """Bytes of the message for whose size we left the connection; 0 where it broke for another reason."""
    sent = error.sent if isinstance(error, ConnectionClosed) else None
    if sent is None or sent.code != CloseCode.MESSAGE_TOO_BIG:
        return 0
    sizes = [int(size) for size in re.findall(r"\d{1,15}", sent.reason)]
    return max(*sizes, _MAX_MESSAGE_BYTES + 1, 0)
