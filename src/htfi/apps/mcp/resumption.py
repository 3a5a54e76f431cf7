"""Streams that a client goes on with after its connection broke: the newest events of each session, in memory.

The SDK asks one store for all sessions, by streams that every session numbers anew, and so would hand one session's
answers to another. Here each session has a store of its own, which its requests and its tasks find by their context;
a request without one keeps nothing and resumes nothing.
"""

from collections import OrderedDict, deque
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_hex

from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.types import JSONRPCMessage
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

RETRY_MS = 1_000  # after which a client is to come back
MAX_EVENTS = 1_000  # of a session
MAX_SESSION_BYTES = 4 << 20
MAX_BYTES = 64 << 20  # of all sessions
_SESSION = "mcp-session-id"


@dataclass(frozen=True, slots=True)
class _KeptEvent:
    number: int
    stream: StreamId
    message: JSONRPCMessage | None  # None of one that only begins a stream
    num_bytes: int


class SessionEvents:
    """The newest events of one session, in order; `num_bytes` are those of its messages as JSON."""

    def __init__(self) -> None:
        self._name = token_hex(8)  # an id of another session means nothing here
        self._events: deque[_KeptEvent] = deque()
        self._next = 1
        self._has_ended = False
        self.num_bytes = 0

    def add(self, stream: StreamId, message: JSONRPCMessage | None) -> EventId:
        num_bytes = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_unset=True))
        event = _KeptEvent(self._next, stream, message, num_bytes)
        self._next += 1
        if not self._has_ended:
            self._events.append(event)
            self.num_bytes += num_bytes
        while len(self._events) > MAX_EVENTS or self.num_bytes > MAX_SESSION_BYTES:
            self._drop()
        return f"{self._name}-{event.number}"

    def after(self, event_id: EventId) -> tuple[StreamId, list[EventMessage]] | None:
        """The stream of an event, and the messages of it that came later; None where the event is not kept."""
        name, _, number = event_id.rpartition("-")
        if name != self._name:
            return None
        seen = next((one for one in self._events if str(one.number) == number), None)
        if seen is None:
            return None
        later = [
            EventMessage(one.message, f"{self._name}-{one.number}")
            for one in self._events
            if one.stream == seen.stream and one.number > seen.number and one.message is not None
        ]
        return seen.stream, later

    def end(self) -> None:
        """Keep nothing any more."""
        self._has_ended = True
        while self._events:
            self._drop()

    def _drop(self) -> None:
        self.num_bytes -= self._events.popleft().num_bytes


_current: ContextVar[SessionEvents | None] = ContextVar("session_events", default=None)


class EventsOfSessions(EventStore):
    """What the SDK keeps events in: those of the session whose request, or task, asks."""

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        events = _current.get()
        return token_hex(16) if events is None else events.add(stream_id, message)

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        events = _current.get()
        found = None if events is None else events.after(last_event_id)
        if found is None:
            return None
        stream, later = found
        for one in later:
            await send_callback(one)
        return stream


class ResumableSessions:
    """An application whose requests find the events of their session. Belongs to one event loop.

    A session begins with the answer that names it, in whose context the SDK starts what the session runs; it ends with
    DELETE. Beyond `max_sessions`, or `MAX_BYTES`, those that asked longest ago lose their events: they go on, and
    cannot resume what they have missed.
    """

    def __init__(self, app: ASGIApp, max_sessions: int) -> None:
        self._app, self._max_sessions = app, max_sessions
        self._sessions: OrderedDict[str, SessionEvents] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = Headers(scope=scope).get(_SESSION)
        known = None if named is None else self._sessions.get(named)
        events = SessionEvents() if named is None else known

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start" and events is not None:
                name = MutableHeaders(raw=message["headers"]).get(_SESSION)
                if name is not None and (name == named or named is None) and message["status"] < 400:
                    self._keep(name, events)
                if scope["method"] == "DELETE" and named is not None and message["status"] < 300:
                    self._forget(named)
            await send(message)

        before = _current.set(events)
        try:
            await self._app(scope, receive, note)
        finally:
            _current.reset(before)

    def _keep(self, name: str, events: SessionEvents) -> None:
        self._sessions[name] = events
        self._sessions.move_to_end(name)
        total = sum(one.num_bytes for one in self._sessions.values())
        while len(self._sessions) > self._max_sessions or total > MAX_BYTES:
            _, oldest = self._sessions.popitem(last=False)
            total -= oldest.num_bytes
            oldest.end()

    def _forget(self, name: str) -> None:
        gone = self._sessions.pop(name, None)
        if gone is not None:
            gone.end()
