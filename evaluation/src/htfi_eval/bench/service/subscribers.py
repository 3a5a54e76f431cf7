"""Subscribers of a stream for `htfi bench service`: what comes is read and its time noted at once, and parsed later.

They stand for clients on machines of their own, but a thousand in one process have one reader: whatever it does for one
before it notes the time is counted against all others. So a read copies into memory that was touched before, and ids
are looked for once a burst is over.
"""

import selectors
import socket
import sys
import time
from collections import Counter
from typing import TextIO, cast

_ROOM = 384 << 10  # bytes of a subscriber that may wait to be parsed; a burst of 20 decisions has 130 kB
_PAGE = 4_096
_QUIET_S = 0.02  # without anything to read, until what came is parsed
_REQUEST = b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Arrivals:
    """When the subscriber that counts, the so-manyeth, had each event whole."""

    def __init__(self, num_subscribers: int, which: int) -> None:
        self._num_subscribers, self._which = num_subscribers, which
        self._num_by_id: Counter[int] = Counter()
        self._times_ns: dict[int, list[int]] = {}
        self.at_ns: dict[int, int] = {}
        self.num_whole = 0  # events that all had

    def add(self, index: int, at_ns: int) -> None:
        """One subscriber had an event."""
        self._num_by_id[index] += 1
        self._times_ns.setdefault(index, []).append(at_ns)
        if self._num_by_id[index] == self._num_subscribers:
            self.at_ns[index] = sorted(self._times_ns.pop(index))[self._which - 1]
            self.num_whole += 1


class ReceivedEvents:
    """What one subscriber received: bytes, how many of them each read brought, and when."""

    def __init__(self, room: int = _ROOM) -> None:
        self._bytes = bytearray(room)
        self._bytes[::_PAGE] = b"\1" * len(range(0, room, _PAGE))  # so that no read waits for a page
        self._view, self._num = memoryview(self._bytes), 0
        self.has_begun = False
        self._reads: list[tuple[int, int]] = []  # bytes that were there after each, and its time

    @property
    def is_half_full(self) -> bool:
        return self._num > len(self._bytes) // 2

    def read(self, connection: socket.socket) -> bool:
        """Read once; whether more may come."""
        num = connection.recv_into(self._view[self._num :])
        self._num += num
        self.has_begun = True  # the service has settled with which decision the stream begins
        self._reads.append((self._num, time.monotonic_ns()))
        return num > 0

    def take(self) -> list[tuple[int, int]]:
        """The id of each event that is whole and when its last byte was read; what follows them stays."""
        found: list[tuple[int, int]] = []
        reads, upto, at_ns, begin = iter(self._reads), 0, 0, 0
        while (end := self._bytes.find(b"\n\n", begin, self._num)) >= 0:
            end += 2
            while upto < end:
                upto, at_ns = next(reads)
            place = self._bytes.find(b"id: ", begin, end)
            if place >= 0:
                found.append((int(self._bytes[place + 4 : self._bytes.find(b"\n", place)]), at_ns))
            begin = end
        rest = self._num - begin
        self._view[:rest] = bytes(self._view[begin : self._num])
        self._reads = [(one - begin, at) for one, at in self._reads if one > begin]
        self._num = rest
        return found


class Subscribers:
    """So many connections to the stream at a port, each with what it received."""

    def __init__(self, port: int, num: int, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._selector = selectors.DefaultSelector()
        self._all: list[ReceivedEvents] = []
        for _ in range(num):
            connection, received = socket.create_connection(("127.0.0.1", port)), ReceivedEvents()
            connection.sendall(_REQUEST)
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, received)
            self._all.append(received)

    def wait_until_begun(self, end_s: float) -> None:
        """Until each has the head of its answer. Raises: TimeoutError."""
        while not all(one.has_begun for one in self._all):
            if time.monotonic() > end_s:
                raise TimeoutError("not every subscriber was answered")
            self._turn(0.05)

    def read_to_the_end(self, source: TextIO) -> int:
        """Read until a line with a number comes, and give it."""
        self._selector.register(source, selectors.EVENT_READ, None)
        while not self._turn(None):
            pass
        self._selector.unregister(source)
        return int(source.readline())

    def read_until_whole(self, num: int, end_s: float) -> None:
        """Read until so many events came to all, or until a time."""
        while self._arrivals.num_whole < num and time.monotonic() < end_s:
            self._turn(0.05)

    def _turn(self, timeout_s: float | None) -> bool:
        """Read until nothing comes for a while, then parse it; whether the line is there."""
        is_told, touched = False, dict[int, ReceivedEvents]()
        ready = self._selector.select(timeout_s)
        while ready:
            for key, _ in ready:
                if key.data is None:
                    is_told = True
                    continue
                received, connection = cast(ReceivedEvents, key.data), cast(socket.socket, key.fileobj)
                touched[key.fd] = received
                if not received.read(connection):
                    self._selector.unregister(connection)
                elif received.is_half_full:
                    self._take(received)
            ready = [] if is_told else self._selector.select(_QUIET_S)
        for received in touched.values():
            self._take(received)
        return is_told

    def _take(self, received: ReceivedEvents) -> None:
        for index, at_ns in received.take():
            self._arrivals.add(index, at_ns)


def subscribe(port: int, num: int, which: int, patience_s: float) -> dict[str, object]:
    """Subscribe so many; `ready` on standard output once all are; then when the `which`-th had each event whole.

    Standard input says, after the last, how many there were. `cpu_s` is what the subscribers took of the processor.
    """
    arrivals = Arrivals(num, which)
    subscribers = Subscribers(port, num, arrivals)
    subscribers.wait_until_begun(time.monotonic() + patience_s)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    began_s = time.process_time()
    expected = subscribers.read_to_the_end(sys.stdin)
    subscribers.read_until_whole(expected, time.monotonic() + patience_s)
    return {
        "at_ns": {str(index): at for index, at in arrivals.at_ns.items()},
        "whole": arrivals.num_whole,
        "cpu_s": time.process_time() - began_s,
    }
