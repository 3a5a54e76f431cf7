"""What each frame of an edge means to the cloud: greeting, parts, requests, windows."""

from collections.abc import Callable

from htfi.decoding.config import (
    BUDGET_ABUSE,
    HELLO_MS,
    MAX_BEGUN_PARTS,
    MAX_GATHERING_EACH,
    PARTS_BYTES,
    VerificationServerConfig,
)
from htfi.decoding.link.frames import (
    CancelFrame,
    DraftWindowFrame,
    Frame,
    HelloFrame,
    NeedFrame,
    OpenFrame,
    PartFrame,
    RefusalReason,
    RefusedFrame,
    WelcomeFrame,
    decode,
)
from htfi.decoding.link.parts import PartStore
from htfi.decoding.link.server.request_table import Denial, RequestTable
from htfi.decoding.link.server.requests import RequestSubscriber, check_hello, check_open, is_plausible
from htfi.decoding.link.server.streams import EdgeStream, EdgeStreams
from htfi.domain.errors import InvalidInput

_MAX_EARLY_WINDOWS = 64  # windows kept for a request whose parts are missing


class FrameHandler:
    """Handles frames. `welcome` identifies this cloud."""

    def __init__(
        self,
        welcome: WelcomeFrame,
        streams: EdgeStreams,
        table: RequestTable,
        config: VerificationServerConfig,
        clock: Callable[[], float],
    ) -> None:
        self.num_stale = 0
        self.num_notices = 0  # of edges, about damaged frames of this cloud
        self.is_draining = False
        self._welcome = welcome
        self._streams = streams
        self._table = table
        self._config = config
        self._clock = clock
        self._parts = PartStore(PARTS_BYTES, MAX_BEGUN_PARTS)

    def handle(self, stream: EdgeStream, body: bytes) -> None:
        """Handle an unsealed frame. Never raises for what a peer sent."""
        try:
            frame = decode(body)
        except InvalidInput as error:
            self._streams.refuse(stream, RefusalReason.MALFORMED, str(error))
            if not stream.is_greeted:
                self._streams.drop(stream, "its first frame was not a greeting")
            return
        if (
            isinstance(frame, RefusedFrame) and frame.handle == -1
        ):  # from its transport: our frame arrived damaged
            self.num_notices += 1
            return
        if not stream.is_greeted:
            self._greet(stream, frame)
            return
        match frame:
            case PartFrame():
                self._part(stream, frame)
            case OpenFrame():
                self._open(stream, frame, len(body))
            case DraftWindowFrame():
                self._window(stream, frame, len(body))
            case CancelFrame():
                self._cancel(stream, frame)
            case _:
                words = f"a {type(frame).__name__}, which only a cloud sends"
                self._streams.refuse(stream, RefusalReason.MALFORMED, words)

    def expire(self) -> None:
        """Drop streams that did not greet, and requests whose parts did not arrive, in time."""
        now_s = self._clock()
        for stream in self._streams:
            if not stream.is_greeted and now_s - stream.since_s > HELLO_MS / 1e3:
                self._streams.drop(stream, "it did not greet in time")
            for subscriber in list(stream.awaiting_parts.values()):
                if now_s - subscriber.since_s > self._config.parts_ms / 1e3:
                    self._deny(
                        stream, subscriber, Denial(RefusalReason.STALE, "its parts did not arrive in time", 0)
                    )

    def _greet(self, stream: EdgeStream, frame: Frame) -> None:
        if not isinstance(frame, HelloFrame):
            self._streams.refuse(stream, RefusalReason.MALFORMED, "the first frame must be a greeting")
            self._streams.drop(stream, "its first frame was not a greeting")
            return
        refusal = check_hello(frame, self._welcome, stream.node)
        if refusal is not None:
            why, words = refusal
            self._streams.refuse(stream, why, words)
            self._streams.drop(stream, words)
            return
        self._streams.greet(stream, frame.node)
        self._streams.send(stream, self._welcome)

    def _part(self, stream: EdgeStream, part: PartFrame) -> None:
        try:
            taken = self._parts.take(stream.node, part)
        except InvalidInput as error:
            self._streams.refuse(stream, RefusalReason.MALFORMED, str(error))
            return
        if taken.whole is None:
            if part.offset > taken.missing_from:
                self._streams.send(stream, NeedFrame(part.name, taken.missing_from))
            return
        for subscriber in list(stream.awaiting_parts.values()):
            subscriber.awaited.discard(part.name)
            if not subscriber.awaited:
                self._await_parts(stream, subscriber)

    def _open(self, stream: EdgeStream, asked: OpenFrame, num_bytes: int) -> None:
        known = stream.subscribers.get(asked.handle)
        if known is not None and asked.epoch <= known.epoch:
            self._stale(stream, known, is_again=asked.epoch == known.epoch)
            return
        if known is not None and asked.request != known.opened.request:
            words = "a handle that already names another request"
            self._streams.refuse(stream, RefusalReason.MALFORMED, words, known)
            return
        subscriber = known or RequestSubscriber(stream.name, stream.node, asked, self._clock())
        if known is not None:
            known.reopen(asked, self._clock())
        subscriber.num_bytes += num_bytes
        if (refusal := check_open(asked, self._config, has_full=self._welcome.in_full)) is not None:
            self._deny(stream, subscriber, Denial(*refusal))
        elif known is not None:
            if known.request is not None:
                self._join(stream, known)
        elif self.is_draining and not self._table.knows(asked.request):
            words = f"{self._config.node} is draining"
            self._deny(stream, subscriber, Denial(RefusalReason.DRAINING, words, self._config.drain_retry_ms))
        elif len(stream.subscribers) >= self._config.max_requests_each:
            words = f"{len(stream.subscribers)} requests are already open on this stream"
            self._deny(stream, subscriber, Denial(RefusalReason.BUSY, words, self._config.drain_retry_ms))
        else:
            stream.subscribers[asked.handle] = subscriber
            self._await_parts(stream, subscriber)

    def _await_parts(self, stream: EdgeStream, subscriber: RequestSubscriber) -> None:
        """Have a request answered once all its parts are there; ask for missing ones."""
        asked = subscriber.opened
        stream.awaiting_parts.pop(asked.handle, None)
        if self._table.knows(asked.request):
            self._join(stream, subscriber)
            return
        parts = {name: self._parts.get(name) for name in (*asked.prompt, asked.grammar)}
        subscriber.awaited = {name for name, data in parts.items() if data is None}
        if not subscriber.awaited:
            refusal = self._table.create(subscriber, {name: data or b"" for name, data in parts.items()})
            if refusal is None:
                self._join(stream, subscriber)
            else:
                self._deny(stream, subscriber, refusal)
        elif len(stream.awaiting_parts) >= MAX_GATHERING_EACH:
            words = f"{len(stream.awaiting_parts)} requests of this stream already wait for parts"
            self._deny(stream, subscriber, Denial(RefusalReason.BUSY, words, self._config.drain_retry_ms))
        else:
            stream.awaiting_parts[asked.handle] = subscriber
            for name in subscriber.awaited:
                self._streams.send(stream, NeedFrame(name, self._parts.missing_from(stream.node, name)))

    def _join(self, stream: EdgeStream, subscriber: RequestSubscriber) -> None:
        """Subscribe to the request under the present epoch."""
        refusal = self._table.subscribe(subscriber)
        if refusal is not None:
            self._deny(stream, subscriber, refusal)
            return
        early, subscriber.early = subscriber.early, []
        for window in early:
            self._guess(stream, subscriber, window)
        self._streams.notify(stream, subscriber)

    def _window(self, stream: EdgeStream, window: DraftWindowFrame, num_bytes: int) -> None:
        subscriber = self._listener(stream, window)
        if subscriber is None:
            return
        subscriber.num_bytes += num_bytes
        budget = subscriber.opened.budget_bytes
        if budget and subscriber.num_bytes > BUDGET_ABUSE * budget:
            words = f"{subscriber.num_bytes} bytes for a request that may take {budget}"
            self._deny(stream, subscriber, Denial(RefusalReason.BUDGET, words))
        elif subscriber.request is not None:
            self._guess(stream, subscriber, window)
        elif is_plausible(window) and len(subscriber.early) < _MAX_EARLY_WINDOWS:
            subscriber.early.append(window)

    def _guess(self, stream: EdgeStream, subscriber: RequestSubscriber, window: DraftWindowFrame) -> None:
        try:
            self._table.add_guesses(subscriber, window)
        except InvalidInput as error:
            self._streams.refuse(stream, RefusalReason.MALFORMED, str(error), subscriber)

    def _cancel(self, stream: EdgeStream, cancel: CancelFrame) -> None:
        subscriber = stream.subscribers.get(cancel.handle)
        if subscriber is None or cancel.epoch < subscriber.epoch:
            self.num_stale += 1
            return
        stream.forget(cancel.handle)
        self._table.unsubscribe(subscriber, is_kept=False)

    def _listener(self, stream: EdgeStream, window: DraftWindowFrame) -> RequestSubscriber | None:
        """The subscriber of a window, if the window is of its present epoch."""
        subscriber = stream.subscribers.get(window.handle)
        if subscriber is not None and window.epoch == subscriber.epoch:
            return subscriber
        if subscriber is not None and window.epoch < subscriber.epoch:
            self._stale(stream, subscriber)
        elif subscriber is None and window.handle in stream.recent:
            self.num_stale += 1
        else:
            words = "a window for a request, or an epoch of it, that was not opened"
            self._streams.refuse(stream, RefusalReason.STALE, words, window)
        return None

    def _stale(self, stream: EdgeStream, subscriber: RequestSubscriber, is_again: bool = False) -> None:
        """Report a frame of a past epoch once; one of the present epoch is never reported twice."""
        self.num_stale += 1
        if not is_again and not subscriber.is_stale_notified:
            subscriber.is_stale_notified = True
            words = "frames of a past epoch are not read"
            self._streams.refuse(stream, RefusalReason.STALE, words, subscriber, retry_ms=0, epoch=-1)

    def _deny(self, stream: EdgeStream, subscriber: RequestSubscriber, denied: Denial) -> None:
        """End this request on this stream."""
        self._streams.refuse(stream, denied.why, denied.message, subscriber, denied.retry_ms)
        stream.forget(subscriber.handle)
        self._table.unsubscribe(subscriber, is_kept=False)
