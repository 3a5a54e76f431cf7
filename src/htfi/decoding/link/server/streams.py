"""The streams of a cloud: their edges, what is to be sent to them, which are to end; and accounts by tenant."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from htfi.decoding.config import MAX_UNSENT, STRIKE_MS, VerificationServerConfig
from htfi.decoding.link.frames import DraftWindowFrame, Frame, OpenFrame, RefusalReason, RefusedFrame, encode
from htfi.decoding.link.ports import StreamArrival
from htfi.decoding.link.server.requests import RequestSubscriber

_MAX_TENANTS = 1024  # tenants
_MAX_RECENT_ANSWERS = 256  # answers of each whose times are kept


@dataclass(slots=True)
class TenantAccount:
    """Totals since the start; `recent_ms` from a request's opening to its complete answer."""

    num_answers: int = 0
    num_tokens: int = 0
    num_refused: int = 0
    recent_ms: deque[float] = field(default_factory=lambda: deque[float](maxlen=_MAX_RECENT_ANSWERS))

    @property
    def p95_ms(self) -> float | None:
        if not self.recent_ms:
            return None
        ranked = sorted(self.recent_ms)
        return ranked[min(len(ranked) * 95 // 100, len(ranked) - 1)]


class TenantAccounts:
    """Accounts by tenant, those not served for longest dropped first; refusals by reason."""

    def __init__(self) -> None:
        self.accounts: OrderedDict[str, TenantAccount] = OrderedDict()
        self.refused: Counter[str] = Counter()

    def record_answer(self, tenant: str, num_tokens: int, took_ms: float) -> None:
        account = self._of(tenant)
        account.num_answers += 1
        account.num_tokens += num_tokens
        account.recent_ms.append(took_ms)

    def record_refusal(self, tenant: str, why: RefusalReason) -> None:
        self._of(tenant).num_refused += 1
        self.refused[why.name.lower()] += 1

    def _of(self, tenant: str) -> TenantAccount:
        account = self.accounts.get(tenant)
        if account is None:
            account = self.accounts[tenant] = TenantAccount()
            if len(self.accounts) > _MAX_TENANTS:
                self.accounts.popitem(last=False)
        self.accounts.move_to_end(tenant)
        return account


_MAX_RECENT_HANDLES = 1024  # finished handles that late frames may still name
_MAX_WORDS = 500
_OFFENCES = frozenset({RefusalReason.MALFORMED, RefusalReason.STALE, RefusalReason.BUDGET})


@dataclass(slots=True, eq=False)
class EdgeStream:
    """`node` is its tenant. `unsent` are sealed frames that it did not accept; they go first, then `frames`, then what
    the subscribers in `dirty` have not received.
    """

    name: str
    node: str
    since_s: float
    is_greeted: bool = False
    subscribers: dict[int, RequestSubscriber] = field(default_factory=dict[int, RequestSubscriber])
    awaiting_parts: dict[int, RequestSubscriber] = field(default_factory=dict[int, RequestSubscriber])
    recent: OrderedDict[int, None] = field(default_factory=OrderedDict[int, None])
    frames: deque[bytes] = field(default_factory=deque[bytes])
    unsent: deque[bytes] = field(default_factory=deque[bytes])
    dirty: dict[int, RequestSubscriber] = field(default_factory=dict[int, RequestSubscriber])
    strikes: float = 0.0
    struck_s: float = 0.0
    slow_since_s: float | None = None
    slow_until_s: float = 0.0

    def forget(self, handle: int) -> None:
        """A handle is done: frames still on their way to it are no offence."""
        self.subscribers.pop(handle, None)
        self.awaiting_parts.pop(handle, None)
        self.dirty.pop(handle, None)
        self.recent[handle] = None
        if len(self.recent) > _MAX_RECENT_HANDLES:
            self.recent.popitem(last=False)


class EdgeStreams:
    """Owns all of them. A dropped stream receives the reason; its later frames are ignored."""

    def __init__(self, config: VerificationServerConfig, clock: Callable[[], float]) -> None:
        self.accounts = TenantAccounts()
        self._config = config
        self._clock = clock
        self._all: dict[str, EdgeStream] = {}
        self._with_output: dict[str, EdgeStream] = {}  # streams with output
        self._drops: dict[str, str] = {}
        self._dropped: set[str] = set()  # dropped, not yet closed

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[EdgeStream]:
        return iter(list(self._all.values()))

    def stream_for(self, arrival: StreamArrival) -> EdgeStream | None:
        """The stream of an arrival; None if it is ignored."""
        name = arrival.stream
        found = self._all.get(name)
        if found is not None or name in self._dropped:
            return None if name in self._drops else found
        found = self._all[name] = EdgeStream(name, arrival.node, self._clock())
        staying = [stream for stream in self._all.values() if stream.name not in self._drops]
        if len(staying) <= self._config.max_streams:
            return found
        silent = next((stream for stream in staying if not stream.is_greeted), found)
        self.refuse(silent, RefusalReason.BUSY, "too many edges are connected", retry_ms=1_000)
        self.drop(silent, "too many edges are connected")
        return None if silent is found else found

    def greet(self, stream: EdgeStream, node: str) -> None:
        """A stream belongs to an edge; if the edge has too many, its oldest ends."""
        stream.is_greeted, stream.node = True, node
        own = [other for other in self._all.values() if other.node == node and other.name not in self._drops]
        if len(own) > self._config.max_streams_each:
            self.drop(own[0], "its edge has opened newer streams")

    def end(self, name: str) -> EdgeStream | None:
        self._dropped.discard(name)
        return self._remove(name)

    def of(self, subscriber: RequestSubscriber) -> EdgeStream:
        return self._all[subscriber.stream]

    def send(self, stream: EdgeStream, frame: Frame) -> None:
        stream.frames.append(encode(frame))
        self._with_output[stream.name] = stream

    def notify(self, stream: EdgeStream, subscriber: RequestSubscriber, due_s: float = 0.0) -> None:
        """Send a subscriber its accepted tokens, from `due_s` on and when the stream accepts them."""
        waits = subscriber.handle in stream.dirty
        subscriber.due_s = min(subscriber.due_s, due_s) if waits else due_s
        stream.dirty[subscriber.handle] = subscriber
        self._with_output[stream.name] = stream

    def refuse(
        self,
        stream: EdgeStream,
        why: RefusalReason,
        message: str,
        of: RequestSubscriber | OpenFrame | DraftWindowFrame | None = None,
        retry_ms: int = -1,
        epoch: int | None = None,
    ) -> None:
        """Refuse a request, or a frame without one; too many offences end the stream."""
        self.accounts.record_refusal(stream.node, why)
        handle, own_epoch = (-1, 0) if of is None else (of.handle, of.epoch)
        own_epoch = own_epoch if epoch is None else epoch
        self.send(stream, RefusedFrame(handle, own_epoch, why, retry_ms, message[:_MAX_WORDS]))
        if why in _OFFENCES and retry_ms < 0:
            self._strike(stream)

    def drop(self, stream: EdgeStream, message: str) -> None:
        self._drops.setdefault(stream.name, message)

    def taking(self) -> list[tuple[EdgeStream, list[bytes], list[RequestSubscriber]]]:
        """What each stream that accepts frames now is to receive: frames, then subscribers with new tokens.

        A stream that was full first gets what it did not accept, so that all tokens accepted meanwhile make one frame.
        """
        now_s = self._clock()
        taking: list[tuple[EdgeStream, list[bytes], list[RequestSubscriber]]] = []
        for stream in [stream for stream in self._with_output.values() if stream.slow_until_s <= now_s]:
            if stream.unsent:
                taking.append((stream, list(stream.unsent), []))
                stream.unsent.clear()
                if stream.frames or stream.dirty:
                    continue
            else:
                stream.slow_since_s = None
                due = [subscriber for subscriber in stream.dirty.values() if subscriber.due_s <= now_s]
                taking.append((stream, list(stream.frames), due))
                stream.frames.clear()
                for subscriber in due:
                    del stream.dirty[subscriber.handle]
                if stream.dirty:
                    continue
            del self._with_output[stream.name]
        return taking

    def unsent(self, name: str, sealed: bytes) -> None:
        stream = self._all.get(name)
        if stream is None:
            return
        now_s = self._clock()
        stream.unsent.append(sealed)
        stream.slow_until_s = now_s + self._config.resend_ms / 1e3
        if stream.slow_since_s is None:
            stream.slow_since_s = now_s
        self._with_output[name] = stream
        is_stuck = now_s - stream.slow_since_s > self._config.slow_reader_ms / 1e3
        if is_stuck or len(stream.unsent) + len(stream.frames) > MAX_UNSENT:
            self.drop(stream, "it accepts no frames")

    def dropped(self) -> list[tuple[str, str, EdgeStream]]:
        """Streams to end now, with the reason; they are removed."""
        drops = list(self._drops.items())
        gone = [(name, message, self._remove(name)) for name, message in drops]
        self._dropped.update(name for name, _ in drops)
        return [(name, message, stream) for name, message, stream in gone if stream is not None]

    @property
    def is_quiet(self) -> bool:
        """Nothing is left to send."""
        return not self._with_output

    def next_s(self) -> float | None:
        """Seconds until a slow stream is tried again, or a subscriber is due."""
        if not self._with_output:
            return None
        return max(min(map(_next_s, self._with_output.values())) - self._clock(), 0.0)

    def _strike(self, stream: EdgeStream) -> None:
        now_s = self._clock()
        forgiven = 1e3 * (now_s - stream.struck_s) / STRIKE_MS
        stream.strikes, stream.struck_s = max(stream.strikes - forgiven, 0.0) + 1.0, now_s
        if stream.strikes > self._config.max_strikes - 1:
            self.drop(stream, "too many malformed frames")

    def _remove(self, name: str) -> EdgeStream | None:
        self._with_output.pop(name, None)
        self._drops.pop(name, None)
        return self._all.pop(name, None)


def _next_s(stream: EdgeStream) -> float:
    due_s = min((subscriber.due_s for subscriber in stream.dirty.values()), default=0.0)
    return stream.slow_until_s if stream.unsent or stream.frames else max(stream.slow_until_s, due_s)
