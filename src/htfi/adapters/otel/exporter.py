"""Sends ended spans to a collector by OTLP over HTTP, from a thread of the OpenTelemetry SDK.

The loop hands a span to a bounded queue and goes on: where the collector is down or slow, spans are dropped and
counted. Instants become UTC by how the clock of spans stood to UTC when the exporter was made.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import cast
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext as OtelContext
from opentelemetry.trace import SpanKind, TraceFlags

from htfi.domain.errors import InvalidInput
from htfi.telemetry import catalogue
from htfi.telemetry.metrics import Reading
from htfi.telemetry.spans import EndedSpan, SpanContext

MAX_QUEUED_SPANS = 8_192
_BATCH_SPANS = 512
_SEND_EVERY_MS = 1_000.0
_TIMEOUT_S = 5.0  # for one request, its repetitions included
_CLOSE_S = 2.0  # for what is queued when the process ends


class SpanExport:
    """A sink of spans: call it with each. `endpoint` is the collector's base address; /v1/traces is added.

    `clock_ns` is the clock of the spans. Raises: InvalidInput for an address that is none.
    """

    def __init__(self, endpoint: str, service: str, version: str, clock_ns: int, utc_ns: int) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput("the address for traces is not one: write http://HOST:PORT")
        path = "" if parts.path.endswith("/v1/traces") else "/v1/traces"
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # a receiver that is down is counted
        resource = Resource(
            {
                "service.name": service,
                "service.version": version,
                "host.name": socket.gethostname(),
                "process.pid": os.getpid(),
            }
        )
        self._sent = _CountedExporter(
            OTLPSpanExporter(endpoint=endpoint.rstrip("/") + path, timeout=_TIMEOUT_S),
            resource,
            InstrumentationScope("htfi", version),
            utc_ns - clock_ns,
        )
        self._queue = BatchSpanProcessor(
            self._sent,
            max_queue_size=MAX_QUEUED_SPANS,
            schedule_delay_millis=_SEND_EVERY_MS,
            max_export_batch_size=_BATCH_SPANS,
        )
        self._num_queued = self._num_dropped = 0

    def __call__(self, span: EndedSpan) -> None:
        if self._num_queued - self._sent.num_taken >= MAX_QUEUED_SPANS:
            self._num_dropped += 1
            return
        self._num_queued += 1
        self._queue.on_end(cast(ReadableSpan, _QueuedSpan(span)))

    def readings(self) -> Iterator[Reading]:
        """What became of the spans so far; those that wait are neither."""
        yield catalogue.SPANS, ("exported",), float(self._sent.num_sent)
        yield catalogue.SPANS, ("dropped",), float(self._sent.num_failed + self._num_dropped)

    def close(self) -> None:
        """Send what waits, for at most 2 s: a receiver that hangs holds up no process."""
        ending = threading.Thread(target=self._queue.shutdown, daemon=True)
        ending.start()
        ending.join(_CLOSE_S)


def open_span_export(endpoint: str, service: str, version: str) -> SpanExport:
    """An export of spans whose instants are those of `time.monotonic_ns`."""
    return SpanExport(endpoint, service, version, time.monotonic_ns(), time.time_ns())


class _QueuedSpan:
    """A span in the SDK's queue, which asks whether it is sampled; the sender's thread makes of it what is sent."""

    __slots__ = ("span",)

    context = OtelContext(1, 1, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def __init__(self, span: EndedSpan) -> None:
        self.span = span


class _CountedExporter(SpanExporter):
    """Sends queued spans, in the SDK's thread, and counts what became of them."""

    def __init__(
        self, inner: SpanExporter, resource: Resource, scope: InstrumentationScope, offset_ns: int
    ) -> None:
        self._inner, self._resource, self._scope, self._offset_ns = inner, resource, scope, offset_ns
        self.num_taken = self.num_sent = self.num_failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.num_taken += len(spans)
        try:
            queued = cast(Sequence[_QueuedSpan], spans)
            result = self._inner.export([self._readable(each.span) for each in queued])
        except Exception:  # noqa: BLE001 - whatever the receiver does, it is counted and the run goes on
            result = SpanExportResult.FAILURE
        if result is SpanExportResult.SUCCESS:
            self.num_sent += len(spans)
        else:
            self.num_failed += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def _readable(self, span: EndedSpan) -> ReadableSpan:
        parent = None
        if span.parent_id:
            parent = _context(span.context._replace(span_id=span.parent_id), span.is_remote_parent)
        return ReadableSpan(
            span.name,
            context=_context(span.context),
            parent=parent,
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=SpanKind.SERVER if span.is_remote_parent else SpanKind.INTERNAL,
            start_time=span.start_ns + self._offset_ns,
            end_time=span.end_ns + self._offset_ns,
            instrumentation_scope=self._scope,
        )


def _context(of: SpanContext, is_remote: bool = False) -> OtelContext:
    return OtelContext(of.trace_id, of.span_id, is_remote, TraceFlags(int(of.is_sampled)))
