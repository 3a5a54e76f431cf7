"""The link's transport over gRPC: I/O in a thread of its own, for one caller's thread.

A node that listens and dials holds both kinds of streams; between two nodes that dial each other there are two streams.
All transports of a process share one event loop, since gRPC wakes every loop of a process for each event of any: 32
edges in one benchmark would wake 32 loops for each message.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import Empty

import numpy as np

from htfi.adapters.grpc.dialler import ReportTrouble, keep_dialled
from htfi.adapters.grpc.library import TransportLimits
from htfi.adapters.grpc.multiplexer import NullStreamObserver, StreamMultiplexer, StreamObserver
from htfi.adapters.grpc.server import PortListener, require_loopback
from htfi.adapters.grpc.stream import StreamTraffic
from htfi.adapters.grpc.tls import ReloadingCredentials, TlsFiles
from htfi.decoding.link.frames import MAX_FRAME_BYTES
from htfi.decoding.link.ports import StreamArrival, StreamEvent
from htfi.domain.errors import DependencyUnavailable, InvalidInput

_THREAD_STOP_S = 5.0
_THREAD_SWITCH_S = 0.0005
_shared_lock = threading.Lock()
_shared: "_IoThread | None" = None


class _IoThread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_log_exception)
        self.num_borrowers = 0
        self.thread = threading.Thread(target=self._work, name="link", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        self.loop.run_forever()
        # A look-up of a host's name may be under way in a thread.
        with suppress(TimeoutError):
            self.loop.run_until_complete(asyncio.wait_for(self.loop.shutdown_default_executor(), 1.0))
        self.loop.close()


def acquire_loop() -> asyncio.AbstractEventLoop:
    """The running loop. Give it back when nothing of yours runs in it."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = _IoThread()
        _shared.num_borrowers += 1
        return _shared.loop


def return_loop() -> None:
    """The last one ends the thread."""
    global _shared
    with _shared_lock:
        if _shared is None:
            return
        _shared.num_borrowers -= 1
        if _shared.num_borrowers > 0:
            return
        ended, _shared = _shared, None
    ended.loop.call_soon_threadsafe(ended.loop.stop)
    ended.thread.join(_THREAD_STOP_S)


def _log_exception(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    # Where the process has another loop that uses gRPC, each wakes both, and one finds nothing to read.
    # A path that is not text ends gRPC's server, in a task that is not awaited: the listener has learned of it.
    if not isinstance(context.get("exception"), BlockingIOError | UnicodeDecodeError):
        loop.default_exception_handler(context)


_START_S = 10.0
_CLOSE_S = 5.0  # beyond the drain


def _ignore_trouble(node: str, reason: str) -> None:
    del node, reason


class GrpcTransport:
    """Implements decoding's Transport. `close` it, or use it as a context.

    `tls` None means plaintext, on loopback only, where nodes are who they say, and where frames come once only as long
    as nothing on the way repeats bytes: TLS numbers its records, HTTP/2 does not number its frames.
    `listen` is host:port (port 0: any, see `port`), None for a node that only dials. `peers` maps names of nodes to
    dial to host:port. The watcher and `trouble(node, words)` are called in the I/O thread; words are why there is no
    stream to a node, at each change, and '' when there is one again; with its own name, why its port is closed.
    Raises: InvalidInput for files or addresses that cannot work, DependencyUnavailable where it cannot listen.
    """

    def __init__(
        self,
        node: str,
        *,
        tls: TlsFiles | None,
        rng: np.random.Generator,
        listen: str | None = None,
        peers: Mapping[str, str] | None = None,
        watcher: StreamObserver | None = None,
        trouble: ReportTrouble = _ignore_trouble,
        clock: Callable[[], float] = time.monotonic,
        bounds: TransportLimits | None = None,
    ) -> None:
        self.node = node
        self.port = 0
        self._peers = dict(peers or {})
        for address in (*self._peers.values(), *([] if listen is None else [listen])):
            check_address(address)
            if tls is None:
                require_loopback(address)
        self._credentials = (
            None if tls is None else ReloadingCredentials(tls, node, listens=listen is not None)
        )
        self._rng = rng
        self._bounds = bounds or TransportLimits()
        self._loop = acquire_loop()
        self._multiplexer = StreamMultiplexer(
            self._loop, self._bounds, watcher or NullStreamObserver(), clock
        )
        self._report_trouble = trouble
        self._listener = (
            None
            if listen is None
            else PortListener(self._multiplexer, node, listen, self._credentials, trouble)
        )
        self._stopping = asyncio.Event()
        self._drain_s = 0.0
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._is_open = True
        self._serving = asyncio.run_coroutine_threadsafe(self._run(), self._loop)
        is_started = self._started.wait(_START_S)
        if self._failure is not None or not is_started:
            self.close(0.0)
            raise self._failure or DependencyUnavailable("the link's thread does not start")

    def __enter__(self) -> "GrpcTransport":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_listening(self) -> bool:
        """Whether its port is open now; never where it only dials."""
        return self._listener is not None and self._listener.is_open

    def receive(self, timeout_s: float) -> StreamArrival | None:
        """See Transport. Raises: what ended the I/O thread, where something did."""
        arrivals = self._multiplexer.received
        try:
            arrival = arrivals.get(timeout=timeout_s) if timeout_s > 0 else arrivals.get_nowait()
        except Empty:
            return None
        if arrival is None:  # the I/O thread has ended; the next call is to see it as well
            arrivals.put(None)
            if self._failure is not None:
                raise self._failure
            return None
        if arrival.event is StreamEvent.FRAME:
            stream = self._multiplexer.streams.get(arrival.stream)
            if stream is not None:
                stream.received(len(arrival.body))
        return arrival

    def send(self, stream: str, sealed: bytes) -> bool:
        """See Transport; from any thread. Raises: InvalidInput for more than a frame may have."""
        if len(sealed) > MAX_FRAME_BYTES:
            raise InvalidInput(f"a frame of {len(sealed)} bytes: at most {MAX_FRAME_BYTES}")
        known = self._multiplexer.streams.get(stream)
        return known is not None and known.outbox.put(sealed)

    def drop(self, stream: str, reason: str) -> None:
        """See Transport; from any thread. Its end arrives as any other's."""
        known = self._multiplexer.streams.get(stream)
        if known is not None:
            self._call_in_loop(lambda: known.drop(reason))

    def traffic(self) -> dict[str, StreamTraffic]:
        """What each open stream has carried so far."""
        return {name: replace(stream.traffic) for name, stream in list(self._multiplexer.streams.items())}

    def total(self) -> StreamTraffic:
        """What all streams have carried so far, those that ended included."""
        total = self._multiplexer.ended_traffic
        for stream in list(self._multiplexer.streams.values()):
            total = total.plus(stream.traffic)
        return total

    def close(self, drain_s: float = 0.5) -> None:
        """Take no more streams, send what waits, let the streams end, then end them. Bounded; twice is once."""
        if not self._is_open:
            return
        self._is_open = False
        self._drain_s = max(drain_s, 0.0)
        self._call_in_loop(self._stopping.set)
        wait((self._serving,), self._drain_s + _CLOSE_S)
        return_loop()

    def _call_in_loop(self, act: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(act)
        except RuntimeError:  # the loop is closed, and all streams with it
            return

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception as error:  # noqa: BLE001 - it is raised again where the caller receives
            self._failure = error
        finally:
            self._multiplexer.received.put(None)
            self._started.set()

    async def _serve(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        try:
            if self._listener is not None:
                self.port = await self._listener.open()
                tasks.append(asyncio.create_task(self._listener.run()))
            for node, address in self._peers.items():
                dialling = keep_dialled(
                    self._multiplexer,
                    self.node,
                    node,
                    address,
                    self._credentials,
                    self._rng,
                    self._report_trouble,
                )
                tasks.append(asyncio.create_task(dialling))
            ticking = asyncio.create_task(self._tick())
            tasks.append(ticking)
            stopping = asyncio.create_task(self._stopping.wait())
            self._started.set()
            done, _ = await asyncio.wait(
                (*tasks, self._multiplexer.failure, stopping), return_when=asyncio.FIRST_COMPLETED
            )
            stopping.cancel()
            for task in done:
                task.result()
        finally:
            await self._cancel_tasks(tasks)

    async def _tick(self) -> None:
        while True:
            self._multiplexer.tick()
            await asyncio.sleep(self._bounds.tick_ms / 1000)

    async def _cancel_tasks(self, tasks: list[asyncio.Task[None]]) -> None:
        self._multiplexer.is_closing = True
        until_s = self._loop.time() + self._drain_s
        for stream in list(self._multiplexer.streams.values()):
            stream.outbox.close()
        while self._multiplexer.streams and self._loop.time() < until_s:
            await asyncio.sleep(0.01)
        for stream in list(self._multiplexer.streams.values()):
            stream.drop(f"{self.node} is closing")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            await self._listener.close()


def check_address(address: str) -> None:
    """Raises: InvalidInput."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"'{address}' is not an address: write HOST:PORT")


@contextmanager
def fast_thread_switching() -> Generator[None]:
    """The interpreter changes threads ten times as often inside: a frame then waits 1 ms for a busy caller, not 6."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_THREAD_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
