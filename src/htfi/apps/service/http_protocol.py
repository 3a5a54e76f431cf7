"""How a connection speaks HTTP/1.1: httptools' strict parser, with bounds on what a client may leave unfinished.

uvicorn bounds neither the bytes of a request's head nor the time that a client takes for a request.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from htfi.apps.service.early_refusal import RefusedRequest

MAX_HEAD_BYTES = 64 << 10  # request line and header fields
MAX_UNREAD_BYTES = 1 << 20  # of a body after its answer, so that a client may yet read why it was refused
MAX_WAIT_S = 30.0  # for a whole head, and for the next part of a body
_SLICE = 4_096  # bytes that are parsed before it is looked whether the connection is to be closed
_DETAIL = (
    b'{"type":"about:blank","title":"Request Header Fields Too Large","status":431,'
    b'"detail":"the head of the request is larger than 64 KiB"}'
)
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(_DETAIL), _DETAIL)
)


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose head is too large, whose client goes on sending a body that was answered, or falls
    silent before its request is whole.

    A request that comes whole costs no timer. One that `refusing` answers costs no task. The connection is then not
    read for as long as that says, so that a client which asks on at once waits; behind a proxy, where a connection
    serves many, it is read at once. A client that had sent its next request before the answer came is refused that
    too, and the connection is closed: else it would be refused without end in one turn of the loop.
    """

    def __init__(
        self, refusing: Callable[[Scope], RefusedRequest | None] | None, *args: Any, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._refusing = refusing
        self._pause: asyncio.TimerHandle | None = None  # while the connection is not read after a refusal
        self._num_head_bytes = self._num_unread_bytes = 0
        self._is_in_head, self._is_in_body = True, False  # nothing has come yet: the first head is owed
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._pause is not None:
            self._pause.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_body:
            self._stop_timer()
        if self._refusing is None or self._is_in_body or len(data) <= _SLICE:
            super().data_received(data)
        else:
            for begin in range(0, len(data), _SLICE):
                if not self.transport.is_closing():
                    super().data_received(data[begin : begin + _SLICE])
        if self._is_in_head:
            self._num_head_bytes += len(data)
            if self._num_head_bytes > MAX_HEAD_BYTES:
                self.transport.write(_TOO_LARGE)
                self._close()
                return
        if not (self._is_in_head or self._is_in_body) or self.transport.is_closing():
            self._stop_timer()
        elif self._timer is None:
            self._start_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._num_head_bytes, self._is_in_head = 0, True

    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/"):
            self._check_target()
        self._is_in_head, self._is_in_body = False, True
        self._num_unread_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.transport.is_closing():  # after a refusal: what else the client had sent is not answered
            cycle.response_complete = True
            return
        refused = None if self._refusing is None else self._refusing(cast(Scope, cycle.scope))
        if refused is None:
            super()._start_asgi_task(cycle, app)
        else:
            self._refuse(cycle, refused)

    def _refuse(self, cycle: RequestResponseCycle, refused: RefusedRequest) -> None:
        response, is_kept = refused.response, cycle.keep_alive and self._pause is None
        fields = [*cycle.default_headers, *response.raw_headers]
        if not is_kept:
            fields.append((b"connection", b"close"))
        body = b"" if cycle.scope["method"] == "HEAD" else response.body
        head = b"".join(b"%s: %s\r\n" % field for field in fields)
        self.transport.write(b"%s%s\r\n%s" % (STATUS_LINE[response.status_code], head, body))
        cycle.response_started = cycle.response_complete = True
        if not is_kept:
            self.transport.close()
        pauses = is_kept and not self.config.proxy_headers
        if pauses:  # before the next request, which may wait in the pipeline, is refused in its turn
            self._pause = self.loop.call_later(refused.pause_s, self._end_pause)
        self.on_response_complete()
        if pauses and not self.transport.is_closing():
            self.flow.pause_reading()

    def _end_pause(self) -> None:
        self._pause = None
        self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle.response_complete:
            self._num_unread_bytes += len(body)
            if self._num_unread_bytes > MAX_UNREAD_BYTES:
                self._close()

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._is_in_head = self._is_in_body = False
        super().handle_websocket_upgrade()

    def _check_target(self) -> None:
        """That a target with a host of its own names that of the Host field: a proxy may go by the one, and checks of
        names by the other. Raises: ValueError, which the parser answers with 400.
        """
        _, _, rest = self.url.partition(b"://")
        authority = rest.partition(b"/")[0].partition(b"?")[0]
        hosts = [value for name, value in self.headers if name == b"host"]
        if self.url != b"*" and hosts != [authority]:
            raise ValueError("the target names another host")

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(MAX_WAIT_S, self._end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        if self._is_in_body and self.flow.read_paused:  # it is the service that does not read on
            self._start_timer()
        else:
            self._close()

    def _close(self) -> None:
        self._stop_timer()
        self.transport.close()
