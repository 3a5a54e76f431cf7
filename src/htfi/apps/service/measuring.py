"""What the service counts and traces of requests, and GET /metrics."""

import time
from collections.abc import Iterator, Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from htfi.apps.service.callers import Scope as CallerScope
from htfi.apps.service.callers import needs
from htfi.apps.service.schema import gives
from htfi.apps.service.served_run import ServedRun
from htfi.domain.errors import AccessDenied, HtfiError, MissingExtra
from htfi.telemetry import catalogue
from htfi.telemetry.logs import LogEvent, LogLevel
from htfi.telemetry.metrics import OTHER, Reading
from htfi.telemetry.spans import EndedSpan, SpanContext, parse_traceparent
from htfi.wiring.service.record import ledger_size
from htfi.wiring.telemetry import METRICS_PATH, ProcessTelemetry

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_PAGE, _UNMATCHED = "page", "unmatched"
_SERVER_ERROR = 500

router = APIRouter()


@router.get(
    METRICS_PATH,
    summary="Prometheus metrics of a service without tenants",
    responses=gives(None, media_type="text/plain"),
    dependencies=[Depends(needs(CallerScope.ADMIN))],
)
def metrics(request: Request, accept: Annotated[str, Header()] = "") -> Response:
    """As Prometheus' text, or OpenMetrics where `Accept` asks for it. Raises: AccessDenied, MissingExtra."""
    if request.app.state.tenants is not None:  # even their sums say how busy another tenant is
        raise AccessDenied("metrics of all tenants are at the address of `htfi serve --metrics`")
    telemetry: ProcessTelemetry = request.app.state.telemetry
    page = telemetry.pages.get(METRICS_PATH)
    if page is None:
        raise MissingExtra("/metrics needs prometheus_client: pip install 'htfi[telemetry]'")
    content_type, content = page(accept)
    return Response(content, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def measure(app: FastAPI, runs: Mapping[str, ServedRun], telemetry: ProcessTelemetry) -> None:
    """Count and trace the requests of an app; call it once all its other middleware is added."""
    app.state.telemetry, app.state.measured = telemetry, None
    app.include_router(router)
    if telemetry.pages or telemetry.tracer is not None:
        measured = app.state.measured = RequestMeasures(telemetry)
        telemetry.registry.read_from(lambda: _readings(runs, measured))
        app.add_middleware(MeasuredRequests, measured=measured)


class RequestMeasures:
    """What requests came to. All of it belongs to the event loop's thread."""

    def __init__(self, telemetry: ProcessTelemetry) -> None:
        self.telemetry = telemetry
        self.num_streams = {"sse": 0, "websocket": 0}
        self._templates: dict[int, str] = {}  # by route
        self._requests = telemetry.registry.counter(catalogue.HTTP_REQUESTS)
        self._seconds = telemetry.registry.histogram(catalogue.HTTP_SECONDS)

    def begin(self, header: str) -> tuple[SpanContext, SpanContext | None] | None:
        """The span of a request and the one that its client named; None where it is not traced."""
        tracer = self.telemetry.tracer
        if tracer is None:
            return None
        parent = parse_traceparent(header)
        own = tracer.new_trace() if parent is None else tracer.child(parent)
        return (own, parent) if own.is_sampled else None

    def end(
        self,
        scope: Scope,
        status: int,
        began_ns: int,
        trace: tuple[SpanContext, SpanContext | None] | None,
        *,
        is_stream: bool,
    ) -> None:
        """A request has its whole answer."""
        route, method = self._route_of(scope), str(scope.get("method", "GET"))
        method = method if method in _METHODS else OTHER
        ended_ns = time.monotonic_ns()
        self._requests.add(1.0, route, method, str(status))
        trace_id = "" if trace is None else trace[0].trace_hex
        if not is_stream:
            self._seconds.cells(route, method).observe((ended_ns - began_ns) * 1e-9, trace_id)
        if status >= _SERVER_ERROR:
            self.telemetry.log.write(
                LogEvent.REQUEST_FAILED, LogLevel.ERROR, trace_id=trace_id,
                route=route, method=method, status=status,
            )  # fmt: skip
        if trace is not None and self.telemetry.tracer is not None:
            own, parent = trace
            self.telemetry.tracer.end(
                EndedSpan(
                    f"{method} {route}", own, 0 if parent is None else parent.span_id, began_ns, ended_ns,
                    {"http.route": route, "http.request.method": method, "http.response.status_code": status},
                    is_remote_parent=parent is not None,
                )
            )  # fmt: skip

    def _route_of(self, scope: Scope) -> str:
        """The route's template: what a client wrote in a path is no label."""
        route = scope.get("route")
        if route is None:
            return _PAGE if "endpoint" in scope else _UNMATCHED
        known = self._templates.get(id(route))  # routes have no hash, and live as long as the application
        if known is None:
            known = self._templates[id(route)] = _template(route, scope["path"])
        return known


class MeasuredRequests:
    """Measures each request and stream from the first byte to the last."""

    def __init__(self, app: ASGIApp, measured: RequestMeasures) -> None:
        self._app, self._measured = app, measured

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        measured, began_ns = self._measured, time.monotonic_ns()
        trace = measured.begin(_header(scope, b"traceparent"))
        status, kind = _SERVER_ERROR, ""  # where the application fails before it answers

        async def send_measured(message: Message) -> None:
            nonlocal status, kind
            if message["type"] == "http.response.start":
                status = message["status"]
                if (
                    dict(message.get("headers", ()))
                    .get(b"content-type", b"")
                    .startswith(b"text/event-stream")
                ):
                    kind = "sse"
            elif message["type"] == "websocket.accept":
                status, kind = 101, "websocket"
            elif message["type"] == "websocket.close" and not kind:
                status = 403
            else:
                await send(message)
                return
            if kind:
                measured.num_streams[kind] += 1
            await send(message)

        try:
            await self._app(scope, receive, send_measured)
        finally:
            if kind:
                measured.num_streams[kind] -= 1
            measured.end(scope, status, began_ns, trace, is_stream=bool(kind) or scope["type"] == "websocket")


def _readings(runs: Mapping[str, ServedRun], measured: RequestMeasures) -> Iterator[Reading]:
    for kind, num in measured.num_streams.items():
        yield catalogue.STREAMS, (kind,), float(num)
    served = list(runs.values())
    yield catalogue.SERVED_DECISIONS, (), float(sum(run.record.size for run in served))
    yield catalogue.SERVED_LAG, (), float(sum(map(_lag, served)))
    yield catalogue.WORKER_QUEUE, (), float(sum(run.worker.num_waiting for run in served))
    yield catalogue.WORKER_STARTS, (), float(sum(run.worker.num_starts for run in served))


def _lag(run: ServedRun) -> int:
    """Entries that the service has not read; 0 while the ledger cannot be read."""
    try:
        return max(ledger_size(run.folder) - run.record.size, 0)
    except HtfiError:
        return 0


def _template(route: object, path: str) -> str:
    """A route's template with the prefix of its router, which the path of a request begins with."""
    if not isinstance(route, Route):
        return _UNMATCHED
    place = 0
    while place >= 0:
        if route.path_regex.match(path[place:]):
            return path[:place] + route.path
        place = path.find("/", place + 1)
    return route.path


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope.get("headers", ()):
        if key == name:
            return bytes(value).decode("latin-1")
    return ""
