"""Every metric that a process of ours exposes: its name, kind, labels and meaning. docs/telemetry.md lists them.

Names follow Prometheus' conventions: base units (seconds, bytes, ratio 0–1), counters end in `_total`. A label's values
come from us (enums, stages, route templates) or are bounded by `BoundedLabel`.
"""

from enum import StrEnum
from typing import NamedTuple


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricSource(StrEnum):
    """Which process exposes a metric."""

    RUN = "run"  # `htfi run`, `htfi edge`
    EDGE = "edge"
    NODE = "node"  # an edge or a cloud: what it knows of its peers
    CLOUD = "cloud"
    SERVICE = "service"
    ALL = "all"


class MetricSpec(NamedTuple):
    """One metric. `buckets` are upper bounds of a histogram, rising, without infinity."""

    name: str
    kind: MetricKind
    source: MetricSource
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(source: MetricSource, name: str, words: str, *labels: str) -> MetricSpec:
    return MetricSpec(name, MetricKind.COUNTER, source, words, labels)


def _gauge(source: MetricSource, name: str, words: str, *labels: str) -> MetricSpec:
    return MetricSpec(name, MetricKind.GAUGE, source, words, labels)


def _histogram(
    source: MetricSource, name: str, words: str, buckets: tuple[float, ...], *labels: str
) -> MetricSpec:
    return MetricSpec(name, MetricKind.HISTOGRAM, source, words, labels, buckets)


_STAGE_S = (5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5)
_READING_S = (1e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REQUEST_S = (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_RUN, _EDGE, _NODE, _CLOUD = MetricSource.RUN, MetricSource.EDGE, MetricSource.NODE, MetricSource.CLOUD
_SERVICE, _ALL = MetricSource.SERVICE, MetricSource.ALL

BUILD = _gauge(_ALL, "htfi_build_info", "1, with the version and the kind of process", "version", "process")

EVENTS = _counter(_RUN, "htfi_events_total", "Events taken from the feeds")
FEED_TIME = _gauge(_RUN, "htfi_feed_time_seconds", "available_at of the newest item, Unix time; 0 before it")
DECISIONS = _counter(
    _RUN, "htfi_decisions_total",
    "Decisions and amendments recorded in the ledger, by the policy's outcome", "outcome",
)  # fmt: skip
PLANNED = _counter(
    _RUN, "htfi_planned_decisions_total", "Decisions by the rung of the fidelity ladder that was planned",
    "rung",
)  # fmt: skip
SERIES_DECISIONS = _counter(
    _RUN, "htfi_series_decisions_total",
    "Decisions by series; those beyond the first hundred series count as 'other'", "series",
)  # fmt: skip
AMENDMENTS = _counter(_RUN, "htfi_amendments_total", "Amendments of decisions by views that came late")
WAITING_DECISIONS = _gauge(_RUN, "htfi_waiting_decisions", "Decisions that wait for people")
DECISION_SECONDS = _histogram(
    _RUN, "htfi_decision_seconds", "From the close of a point's bars in the loop to the release", _STAGE_S
)
STAGE_SECONDS = _histogram(
    _RUN, "htfi_stage_seconds", "Time of each step of a decision point", _STAGE_S, "stage"
)
NEWS = _counter(_RUN, "htfi_news_items_total", "News items by outcome: pass, discount, quarantine", "outcome")
QUARANTINED_ROWS = _counter(
    _RUN, "htfi_quarantined_rows_total", "Rows of the feeds that were set aside, by reason", "reason"
)
READINGS = _counter(_RUN, "htfi_readings_total", "News read for a series, by rung", "rung")
READING_SECONDS = _histogram(
    _RUN, "htfi_reading_seconds", "Time of a batch of readings, by rung", _READING_S, "rung"
)
ANSWERS = _counter(_RUN, "htfi_speculation_answers_total", "Answers that the language models wrote", "rung")
TOKENS = _counter(_RUN, "htfi_speculation_tokens_total", "Tokens of those answers", "rung")
PASSES = _counter(_RUN, "htfi_speculation_passes_total", "Passes of the target for those answers", "rung")
DRAFTED = _counter(
    _RUN, "htfi_drafted_tokens_total", "Tokens that drafts guessed where the grammar left a choice", "rung"
)
ACCEPTED = _counter(_RUN, "htfi_accepted_tokens_total", "Of these, those that the target accepted", "rung")
LEDGER_ENTRIES = _gauge(_RUN, "htfi_ledger_entries", "Entries in the ledger")
LEDGER_BYTES = _gauge(_RUN, "htfi_ledger_bytes", "Size of the ledger's files")
APPEND_SECONDS = _histogram(
    _RUN, "htfi_ledger_append_seconds", "Time until a group of entries is durable", _STAGE_S
)
BREAKERS = _gauge(_RUN, "htfi_breakers", "Circuit breakers that are not closed, by state", "state")
STOPS = _gauge(_RUN, "htfi_stops", "Emergency stops in force")
COVERAGE = _gauge(
    _RUN, "htfi_calibration_coverage_ratio",
    "Share of next closes inside the 90% band, since the process started; at most 32 series a point count",
)  # fmt: skip
COVERED = _counter(_RUN, "htfi_calibration_outcomes_total", "Closes that this share is of")
ORDERS = _counter(_RUN, "htfi_orders_total", "Orders that the execution gate let through")
ORDER_REJECTIONS = _counter(_RUN, "htfi_order_rejections_total", "Orders that a venue refused")
FILLS = _gauge(_RUN, "htfi_fills", "Fills of orders, less those that a venue took back")
GATE_REFUSALS = _counter(_RUN, "htfi_gate_refusals_total", "Intents that the execution gate refused")

PEER_STATE = _gauge(_NODE, "htfi_peer_state", "1 for the state that a peer is in, else 0", "peer", "state")
ROUND_TRIP = _gauge(
    _NODE, "htfi_link_round_trip_seconds", "Round trip to a peer, by quantile of the recent ones", "peer",
    "quantile",
)  # fmt: skip
PLACED = _counter(
    _EDGE, "htfi_placed_requests_total", "Requests by the place that was planned for them ('' is the edge)",
    "peer",
)  # fmt: skip

CLOUD_STREAMS = _gauge(_CLOUD, "htfi_cloud_streams", "Streams of edges that are open")
CLOUD_QUEUE = _gauge(_CLOUD, "htfi_cloud_queue_requests", "Requests that wait for the engine")
CLOUD_ROWS = _gauge(_CLOUD, "htfi_cloud_rows", "Requests that the engine is writing")
CLOUD_QUEUE_SECONDS = _gauge(_CLOUD, "htfi_cloud_queue_seconds", "Expected time of all requests there")
CLOUD_PASSES = _counter(_CLOUD, "htfi_cloud_passes_total", "Passes of the engine")
CLOUD_TOKENS = _counter(_CLOUD, "htfi_cloud_tokens_total", "Tokens written")
CLOUD_REFUSED = _counter(_CLOUD, "htfi_cloud_refusals_total", "Requests and frames refused")
CLOUD_DRAINING = _gauge(
    _CLOUD, "htfi_cloud_draining", "1 while it finishes what it has and takes nothing new"
)

SPANS = _counter(
    _ALL, "htfi_telemetry_spans_total",
    "Spans by what became of them: exported, or dropped as their receiver is slow or down", "outcome",
)  # fmt: skip
LOG_LINES = _counter(
    _ALL, "htfi_telemetry_log_lines_total",
    "Lines of the log by what became of them: written, or dropped beyond the rate", "outcome",
)  # fmt: skip

HTTP_REQUESTS = _counter(
    _SERVICE, "htfi_http_requests_total", "Requests by route template, method and status", "route", "method",
    "status",
)  # fmt: skip
HTTP_SECONDS = _histogram(
    _SERVICE, "htfi_http_request_seconds", "From a request's first byte to its answer's last, streams aside",
    _REQUEST_S, "route", "method",
)  # fmt: skip
STREAMS = _gauge(_SERVICE, "htfi_http_streams", "Streams that are open, by kind: sse, websocket", "kind")
SERVED_DECISIONS = _gauge(
    _SERVICE, "htfi_served_decisions", "Decisions that the service has read, all tenants"
)
SERVED_LAG = _gauge(
    _SERVICE, "htfi_served_lag_entries", "Entries of ledgers that the service has not read yet, all tenants"
)
WORKER_QUEUE = _gauge(_SERVICE, "htfi_worker_queue_requests", "Questions that wait for the workers")
WORKER_STARTS = _counter(
    _SERVICE, "htfi_worker_starts_total", "Starts of workers; beyond one a tenant: restarts"
)

METRICS: tuple[MetricSpec, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, MetricSpec)
)
