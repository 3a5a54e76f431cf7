"""The telemetry of one process, from its options: nothing at all where none is asked for."""

import random
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from htfi import __version__
from htfi.domain.errors import InvalidInput, is_installed, require_extra
from htfi.pipeline.point_telemetry import NO_TELEMETRY, MeasuredPoints, PointTelemetry
from htfi.telemetry import catalogue
from htfi.telemetry.logs import NO_LOG, EventLog, LogEvent
from htfi.telemetry.metrics import MetricsRegistry
from htfi.telemetry.spans import Tracer

if TYPE_CHECKING:  # a process without telemetry loads no server
    from htfi.adapters.probes.server import Page

METRICS_PATH = "/metrics"
DEFAULT_RATIO = 0.01


class ProcessKind(StrEnum):
    RUN = "run"
    EDGE = "edge"
    CLOUD = "cloud"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class TelemetryOptions:
    """What is asked for: `metrics` is HOST:PORT, `traces` a collector's address, `log` a file or '-'."""

    metrics: str = ""
    traces: str = ""
    ratio: float = DEFAULT_RATIO
    log: str = ""


@dataclass(frozen=True, slots=True)
class ProcessTelemetry:
    """The telemetry of a process while it lives. `pages` go beside the probes of a node."""

    registry: MetricsRegistry = field(default_factory=MetricsRegistry)
    points: PointTelemetry = NO_TELEMETRY
    tracer: Tracer | None = None
    log: EventLog = NO_LOG
    pages: Mapping[str, "Page"] = field(default_factory=dict[str, "Page"])
    port: int = 0  # of the page of metrics, where it has an address of its own

    def traceparent(self) -> str:
        """The context of the step in hand; '' outside a sampled decision point."""
        return self.points.traceparent if isinstance(self.points, MeasuredPoints) else ""


NO_PROCESS_TELEMETRY = ProcessTelemetry()


@contextmanager
def open_telemetry(
    options: TelemetryOptions, kind: ProcessKind, *, is_probed: bool = False
) -> Generator[ProcessTelemetry]:
    """The telemetry that the options ask for; metrics also where probes can show them (`is_probed`).

    Raises: InvalidInput, MissingExtra, DependencyUnavailable.
    """
    if not 0.0 <= options.ratio <= 1.0:
        raise InvalidInput(f"--trace-ratio {options.ratio:g}: write a share of the traces, 0 to 1")
    shows = bool(options.metrics) or (is_probed and is_installed("prometheus_client"))
    if not (shows or options.traces or options.log):
        yield NO_PROCESS_TELEMETRY
        return
    registry = MetricsRegistry()
    registry.read_from(lambda: [(catalogue.BUILD, (__version__, kind.value), 1.0)])
    with ExitStack() as closing:
        log: EventLog = NO_LOG
        if options.log:
            from htfi.adapters.log_lines.writer import LogWriter

            log = writer = LogWriter(options.log)
            closing.callback(writer.close)
            registry.read_from(writer.readings)
        tracer = None
        if options.traces:
            require_extra(
                "--traces", "telemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"
            )
            from htfi.adapters.otel.exporter import open_span_export

            export = open_span_export(options.traces, f"htfi-{kind.value}", __version__)
            closing.callback(export.close)
            registry.read_from(export.readings)
            tracer = Tracer(export, random.Random().getrandbits, options.ratio)
        pages: dict[str, Page] = {}
        port = 0
        if shows:
            require_extra("--metrics", "telemetry", "prometheus_client")
            from htfi.adapters.prometheus.exposition import MetricsPage

            pages[METRICS_PATH] = MetricsPage(registry).page
        if options.metrics:
            from htfi.adapters.probes.server import ProbeResult, ProbeServer

            server = closing.enter_context(
                ProbeServer(
                    options.metrics, lambda: ProbeResult(True), lambda: ProbeResult(True), pages=pages
                )
            )
            port = server.port
        points: PointTelemetry = NO_TELEMETRY
        if kind in (ProcessKind.RUN, ProcessKind.EDGE):
            points = MeasuredPoints(registry, time.monotonic_ns, tracer, log)
        log.write(LogEvent.STARTED, process=kind.value, version=__version__)
        closing.callback(log.write, LogEvent.ENDED, process=kind.value)
        yield ProcessTelemetry(registry, points, tracer, log, pages, port)
