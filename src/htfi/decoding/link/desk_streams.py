"""The streams of a desk: who is at their other ends, what is to be said to them, which of them are to end."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from htfi.decoding.link.desk_cases import Listener
from htfi.decoding.link.desk_config import DeskConfig
from htfi.decoding.link.desk_tally import Tally
from htfi.decoding.link.frames import Frame, Open, Refused, Why, Window, encode
from htfi.decoding.link.ports import Arrival

_RECENT = 1024  # handles that are done and may still be spoken of
_MAX_WORDS = 500
_OFFENCES = frozenset({Why.MALFORMED, Why.STALE, Why.BUDGET})


@dataclass(slots=True, eq=False)
class Stream:
    """`node` is its tenant. `unsent` are sealed frames that it did not take; they go first, then `frames`, then what
    the listeners in `dirty` have not been told."""

    name: str
    node: str
    since_s: float
    is_greeted: bool = False
    listeners: dict[int, Listener] = field(default_factory=dict[int, Listener])
    gathering: dict[int, Listener] = field(default_factory=dict[int, Listener])
    recent: OrderedDict[int, None] = field(default_factory=OrderedDict[int, None])
    frames: deque[bytes] = field(default_factory=deque[bytes])
    unsent: deque[bytes] = field(default_factory=deque[bytes])
    dirty: dict[int, Listener] = field(default_factory=dict[int, Listener])
    strikes: float = 0.0
    struck_s: float = 0.0
    slow_since_s: float | None = None
    slow_until_s: float = 0.0

    def forget(self, handle: int) -> None:
        """A handle is done with: frames that are still on their way to it are no offence."""
        self.listeners.pop(handle, None)
        self.gathering.pop(handle, None)
        self.dirty.pop(handle, None)
        self.recent[handle] = None
        if len(self.recent) > _RECENT:
            self.recent.popitem(last=False)


class Streams:
    """Owns all of them. Whoever is dropped is not heard any more, and hears why first."""

    def __init__(self, config: DeskConfig, clock: Callable[[], float]) -> None:
        self.tally = Tally()
        self._config = config
        self._clock = clock
        self._all: dict[str, Stream] = {}
        self._loud: dict[str, Stream] = {}  # those to which something is to be said
        self._drops: dict[str, str] = {}
        self._deaf: set[str] = set()  # dropped, and not yet down

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self._all.values()))

    def heard(self, arrival: Arrival) -> Stream | None:
        """The stream that something came of; None where it is not listened to."""
        name = arrival.stream
        found = self._all.get(name)
        if found is not None or name in self._deaf:
            return None if name in self._drops else found
        found = self._all[name] = Stream(name, arrival.node, self._clock())
        staying = [stream for stream in self._all.values() if stream.name not in self._drops]
        if len(staying) <= self._config.max_streams:
            return found
        silent = next((stream for stream in staying if not stream.is_greeted), found)
        self.refuse(silent, Why.BUSY, "too many edges are connected", retry_ms=1_000)
        self.drop(silent, "too many edges are connected")
        return None if silent is found else found

    def greeted(self, stream: Stream, node: str) -> None:
        """A stream is an edge's; of too many that this edge has, the oldest ends."""
        stream.is_greeted, stream.node = True, node
        own = [other for other in self._all.values() if other.node == node and other.name not in self._drops]
        if len(own) > self._config.max_streams_each:
            self.drop(own[0], "its edge has opened newer ones")

    def ended(self, name: str) -> Stream | None:
        self._deaf.discard(name)
        return self._remove(name)

    def of(self, listener: Listener) -> Stream:
        return self._all[listener.stream]

    def say(self, stream: Stream, frame: Frame) -> None:
        stream.frames.append(encode(frame))
        self._loud[stream.name] = stream

    def tell(self, stream: Stream, listener: Listener, due_s: float = 0.0) -> None:
        """A listener is to hear what is settled, from `due_s` on and when the stream takes it."""
        waits = listener.handle in stream.dirty
        listener.due_s = min(listener.due_s, due_s) if waits else due_s
        stream.dirty[listener.handle] = listener
        self._loud[stream.name] = stream

    def refuse(
        self,
        stream: Stream,
        why: Why,
        words: str,
        of: Listener | Open | Window | None = None,
        retry_ms: int = -1,
        epoch: int | None = None,
    ) -> None:
        """Say no to a request, or a frame of no request; too many of what should never come end the stream."""
        self.tally.refuses(stream.node, why)
        handle, own_epoch = (-1, 0) if of is None else (of.handle, of.epoch)
        own_epoch = own_epoch if epoch is None else epoch
        self.say(stream, Refused(handle, own_epoch, why, retry_ms, words[:_MAX_WORDS]))
        if why in _OFFENCES and retry_ms < 0:
            self._strike(stream)

    def drop(self, stream: Stream, words: str) -> None:
        self._drops.setdefault(stream.name, words)

    def taking(self) -> list[tuple[Stream, list[bytes], list[Listener]]]:
        """What each stream that takes something now is to hear: frames, then what listeners have not been told.

        One that was full is tried with what it refused first, so that all that settles meanwhile makes one frame.
        """
        now_s = self._clock()
        taking: list[tuple[Stream, list[bytes], list[Listener]]] = []
        for stream in [stream for stream in self._loud.values() if stream.slow_until_s <= now_s]:
            if stream.unsent:
                taking.append((stream, list(stream.unsent), []))
                stream.unsent.clear()
                if stream.frames or stream.dirty:
                    continue
            else:
                stream.slow_since_s = None
                due = [listener for listener in stream.dirty.values() if listener.due_s <= now_s]
                taking.append((stream, list(stream.frames), due))
                stream.frames.clear()
                for listener in due:
                    del stream.dirty[listener.handle]
                if stream.dirty:
                    continue
            del self._loud[stream.name]
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
        self._loud[name] = stream
        is_stuck = now_s - stream.slow_since_s > self._config.slow_ms / 1e3
        if is_stuck or len(stream.unsent) + len(stream.frames) > self._config.max_unsent:
            self.drop(stream, "it takes no frames")

    def dropped(self) -> list[tuple[str, str, Stream]]:
        """Those to be ended now, with why; they are gone."""
        drops = list(self._drops.items())
        gone = [(name, words, self._remove(name)) for name, words in drops]
        self._deaf.update(name for name, _ in drops)
        return [(name, words, stream) for name, words, stream in gone if stream is not None]

    @property
    def is_quiet(self) -> bool:
        """Nothing is left to be said."""
        return not self._loud

    def next_s(self) -> float | None:
        """How long until a slow stream is tried again, or somebody is to hear more."""
        if not self._loud:
            return None
        return max(min(map(_next_s, self._loud.values())) - self._clock(), 0.0)

    def _strike(self, stream: Stream) -> None:
        now_s = self._clock()
        forgiven = 1e3 * (now_s - stream.struck_s) / self._config.forgiving_ms
        stream.strikes, stream.struck_s = max(stream.strikes - forgiven, 0.0) + 1.0, now_s
        if stream.strikes > self._config.max_strikes - 1:
            self.drop(stream, "too many malformed frames")

    def _remove(self, name: str) -> Stream | None:
        self._loud.pop(name, None)
        self._drops.pop(name, None)
        return self._all.pop(name, None)


def _next_s(stream: Stream) -> float:
    due_s = min((listener.due_s for listener in stream.dirty.values()), default=0.0)
    return stream.slow_until_s if stream.unsent or stream.frames else max(stream.slow_until_s, due_s)
