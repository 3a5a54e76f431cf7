"""The cloud's side of the link: receives frames of many edges, has the engine verify, sends accepted tokens.

No sockets, no threads, an injected clock: the shell passes arrivals in, steps, and sends the outgoing frames. Whatever
arrives, an answer is what the engine alone would have written, and one edge cannot disturb another.
"""

from collections.abc import Callable
from typing import NamedTuple

from htfi.decoding.config import REPORT_MS, VerificationServerConfig
from htfi.decoding.engine import DecodingEngine
from htfi.decoding.link.frames import PROTOCOL, AcceptedFrame, RefusalReason, WelcomeFrame, encode, pack
from htfi.decoding.link.ports import EngineSpeed, StreamArrival, StreamEvent, TurnPolicy
from htfi.decoding.link.server.frame_handler import FrameHandler
from htfi.decoding.link.server.remote_drafts import RoutedStrategy
from htfi.decoding.link.server.request_table import RequestTable
from htfi.decoding.link.server.requests import RequestSubscriber
from htfi.decoding.link.server.scheduler import RequestProgress, RequestScheduler
from htfi.decoding.link.server.streams import EdgeStream, EdgeStreams, TenantAccounts
from htfi.decoding.link.server.tracing import RequestTracing
from htfi.telemetry.spans import Tracer

_EXPIRY_S = 0.02  # between checks of what waits for an edge
_BROKEN_RETRY_MS = 1_000
_FULL_EVERY = 8  # passes


class ServerMetrics(NamedTuple):
    """A cloud's figures for heartbeats. `num_passes` only rises while the engine lives.

    `num_notices`: edges that reported a damaged frame of this cloud.
    """

    num_streams: int
    num_waiting: int
    num_rows: int
    queue_ms: float
    step_p50_ms: float
    step_p95_ms: float
    pace: EngineSpeed
    num_passes: int
    num_tokens: int
    num_stale: int
    num_refused: int
    num_notices: int
    is_draining: bool


class VerificationServer:
    """`routed` is the strategy of `rounds`; `clock` gives seconds. `incarnation` differs at each start of the process.

    The shell loops: `receive` every arrival, `step`, send what is `outgoing`, end the `drops`; if `step` had nothing to
    do, it waits for arrivals, `next_s` at most.
    """

    def __init__(
        self,
        rounds: DecodingEngine,
        routed: RoutedStrategy,
        turns: TurnPolicy,
        clock: Callable[[], float],
        config: VerificationServerConfig | None = None,
        incarnation: int = 0,
        full: Callable[[], tuple[DecodingEngine, RoutedStrategy, TurnPolicy]] | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """`full` loads the target in full precision, with its own turn policy, at the first request for it.

        `tracer` takes spans of requests that edges trace.
        """
        self.config = config or VerificationServerConfig()
        self.scheduler = RequestScheduler(rounds, routed, turns, self.config, clock)
        self._clock = clock
        self._tracing = None if tracer is None else RequestTracing(tracer, clock)
        self._load_full, self._full, self._num_since_full = full, None, 0
        self._requests = RequestTable(self.scheduler, self.config, clock, self._in_full if full else None)
        self._streams = EdgeStreams(self.config, clock)
        welcome = WelcomeFrame(
            PROTOCOL,
            self.config.node,
            rounds.digest,
            rounds.vocabulary.tokenizer.digest,
            incarnation,
            routed.draft is not None,
            self.config.residency,
            self.config.num_in_flight,
            full is not None,
        )
        self._frame_handler = FrameHandler(welcome, self._streams, self._requests, self.config, clock)
        self._expiry_s = clock()

    @property
    def accounts(self) -> TenantAccounts:
        """What was done for each tenant."""
        return self._streams.accounts

    def receive(self, arrival: StreamArrival) -> None:
        """Handle an arrival. Never raises for what a peer sent."""
        if arrival.event is StreamEvent.DOWN:
            self._disconnected(self._streams.end(arrival.stream))
            return
        stream = self._streams.stream_for(arrival)
        if stream is not None and arrival.event is StreamEvent.FRAME:
            self._frame_handler.handle(stream, arrival.body)

    def step(self) -> bool:
        """One pass of the engine, if there is anything to do; False if not."""
        if (now_s := self._clock()) >= self._expiry_s:
            self._expiry_s = now_s + _EXPIRY_S
            self._frame_handler.expire()
        progress = self._pass()
        if self._tracing is not None and progress:
            self._tracing.passed(progress, now_s)
        for done in progress or ():
            for subscriber in self._requests.record_progress(done):
                self._notify(subscriber, done)
        return progress is not None

    def _pass(self) -> list[RequestProgress] | None:
        """Answers in full precision, for which no decision waits, use spare passes, and one pass in `_FULL_EVERY`."""
        if self._full is None:
            return self.scheduler.step()
        self._num_since_full += 1
        is_due = self._num_since_full >= _FULL_EVERY
        first, then = (self._full, self.scheduler) if is_due else (self.scheduler, self._full)
        self._num_since_full = 0 if is_due else self._num_since_full
        progress = first.step()
        return then.step() if progress is None else progress

    def _in_full(self) -> RequestScheduler:
        if self._full is None:
            assert self._load_full is not None
            self._full = RequestScheduler(*self._load_full(), self.config, self._clock)
        return self._full

    def outgoing(self) -> list[tuple[str, bytes]]:
        """Sealed frames to send now, in order, each with its stream.

        Tokens accepted while a stream accepts nothing go out in one frame later.
        """
        out: list[tuple[str, bytes]] = []
        for stream, frames, subscribers in self._streams.taking():
            out += [(stream.name, sealed) for sealed in frames]
            out += [
                (stream.name, sealed) for who in subscribers if (sealed := self._accepted_frame(stream, who))
            ]
        return out

    def unsent(self, stream: str, sealed: bytes) -> None:
        """A frame that its stream did not accept; return all of a stream, in order."""
        self._streams.unsent(stream, sealed)

    def drops(self) -> list[tuple[str, str]]:
        """Streams to end, with the reason; call it after `outgoing`, so that each receives the reason first."""
        drops = self._streams.dropped()
        for _, _, stream in drops:
            self._disconnected(stream)
        return [(name, words) for name, words, _ in drops]

    def drain(self) -> None:
        """Accept nothing new, finish what is there."""
        self._frame_handler.is_draining = True

    @property
    def is_idle(self) -> bool:
        """Nothing is being answered, and nothing is left to send."""
        gathers = any(stream.awaiting_parts for stream in self._streams)
        return not self._requests.num_requests and not gathers and self._streams.is_quiet

    def next_s(self) -> float | None:
        """How long the shell may wait for arrivals before it steps again; None: until one comes."""
        waits = [self._streams.next_s(), self.scheduler.next_s()]
        if any(stream.awaiting_parts or not stream.is_greeted for stream in self._streams):
            waits.append(_EXPIRY_S)
        return min((wait for wait in waits if wait is not None), default=None)

    @property
    def metrics(self) -> ServerMetrics:
        engine, steps = self.scheduler, self.scheduler.measured.steps
        return ServerMetrics(
            len(self._streams),
            len(engine.waiting),
            len(engine.writing),
            engine.queue_ms,
            steps.p50_ms,
            steps.p95_ms,
            engine.measured.pace,
            engine.num_passes,
            engine.num_tokens,
            self._frame_handler.num_stale,
            self.accounts.refused.total(),
            self._frame_handler.num_notices,
            self._frame_handler.is_draining,
        )

    def _notify(self, subscriber: RequestSubscriber, done: RequestProgress) -> None:
        stream = self._streams.of(subscriber)
        if not done.refused:
            # First tokens, outcomes and ends are urgent; tokens that a cloud writes alone may share a frame.
            is_awaited = done.is_done or done.num_accepted >= 0 or not subscriber.num_sent
            due_s = 0.0 if is_awaited else subscriber.last_sent_s + REPORT_MS / 1e3
            self._streams.notify(stream, subscriber, due_s)
            return
        why, retry_ms = (
            (RefusalReason.BUSY, _BROKEN_RETRY_MS) if done.is_passing else (RefusalReason.UNANSWERABLE, -1)
        )
        self._streams.refuse(stream, why, done.refused, subscriber, retry_ms)
        stream.forget(subscriber.handle)

    def _accepted_frame(self, stream: EdgeStream, subscriber: RequestSubscriber) -> bytes:
        """Tokens that a subscriber has not received; nothing before the end if its budget is used up."""
        known = self._requests.progress_for(subscriber)
        if known is None or (subscriber.is_spent and not known.is_done):
            return b""
        at, num_stood = subscriber.num_sent, subscriber.num_accepted
        if len(known.tokens) == at and num_stood < 0 and not known.is_done:
            return b""
        ids = pack(known.tokens[at:])
        sealed = encode(
            AcceptedFrame(
                subscriber.handle, subscriber.epoch, at, known.prefix, num_stood, known.is_done, ids
            )
        )
        subscriber.num_sent, subscriber.num_accepted, subscriber.last_sent_s = (
            len(known.tokens),
            -1,
            self._clock(),
        )
        subscriber.num_bytes += len(sealed)
        if known.is_done:
            took_ms = 1e3 * (self._clock() - subscriber.since_s)
            self.accounts.record_answer(subscriber.tenant, len(known.tokens), took_ms)
            stream.forget(subscriber.handle)
        else:
            self._requests.budget_changed(subscriber)
        return sealed

    def _disconnected(self, stream: EdgeStream | None) -> None:
        """A stream has ended. Its requests are completed for its return."""
        for subscriber in list(stream.subscribers.values()) if stream is not None else ():
            self._requests.unsubscribe(subscriber, is_kept=True)
