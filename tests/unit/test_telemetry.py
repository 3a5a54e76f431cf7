"""Counters, histograms, spans and log lines as plain values."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htfi.telemetry import catalogue
from htfi.telemetry.catalogue import METRICS, MetricKind
from htfi.telemetry.logs import BLANK, MAX_FIELD_CHARS, EventRate, LogEvent, redact, safe_fields
from htfi.telemetry.metrics import BoundedLabel, MetricsRegistry
from htfi.telemetry.spans import EndedSpan, SpanContext, Tracer, parse_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_a_context_comes_back_from_its_traceparent(trace_id: int, span_id: int, is_sampled: bool) -> None:
    context = SpanContext(trace_id, span_id, is_sampled)
    assert parse_traceparent(context.traceparent) == context


@pytest.mark.parametrize(
    "text",
    [
        "", f"00-{TRACE}-{PARENT}", f"ff-{TRACE}-{PARENT}-01", f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-1", f" 00-{TRACE}-{PARENT}-01", f"01-{TRACE}-{PARENT}-01-" + "x" * 200,
        f"00-{TRACE}-{PARENT}-01\n", f"00-{TRACE}-{PARENT}-٠١",
    ],
)  # fmt: skip
def test_what_is_no_traceparent_begins_a_new_trace(text: str) -> None:
    assert parse_traceparent(text) is None


def test_a_later_version_of_the_header_is_read_as_far_as_it_is_known() -> None:
    found = parse_traceparent(f"cc-{TRACE}-{PARENT}-09-what-follows")
    assert found == SpanContext(int(TRACE, 16), int(PARENT, 16), True)


@pytest.mark.parametrize(("ratio", "low", "high"), [(0.0, 0, 0), (0.25, 430, 570), (1.0, 2000, 2000)])
def test_the_ratio_of_traces_is_sampled(ratio: float, low: int, high: int) -> None:
    """A binomial share of 2,000 at 0.25 lies in these bounds but for 3 in 10,000; the seed is fixed."""
    tracer = Tracer(lambda _: None, random.Random(1).getrandbits, ratio)
    contexts = [tracer.new_trace() for _ in range(2000)]
    assert low <= sum(each.is_sampled for each in contexts) <= high
    assert len({each.trace_id for each in contexts}) == 2000


def test_a_child_is_in_its_parents_trace_and_shares_its_sampling() -> None:
    ended: list[EndedSpan] = []
    tracer = Tracer(ended.append, random.Random(1).getrandbits, 0.0)
    parent = SpanContext(5, 6, True)
    child = tracer.child(parent)
    assert (child.trace_id, child.is_sampled) == (5, True)
    assert child.span_id != 6


@given(st.lists(st.floats(0.0, 10.0), min_size=1))
def test_a_histogram_counts_each_value_in_the_bucket_whose_bound_is_not_below_it(values: list[float]) -> None:
    registry = MetricsRegistry()
    cells = registry.histogram(catalogue.DECISION_SECONDS).cells()
    for value in values:
        cells.observe(value)
    sample = cells.sample()
    bounds = catalogue.DECISION_SECONDS.buckets
    assert sum(sample.counts) == len(values)
    assert sample.total == pytest.approx(sum(values))
    reached = 0
    for bound, num in zip(bounds, sample.counts, strict=False):
        reached += num
        assert reached == sum(value <= bound for value in values)


def test_a_bucket_keeps_the_trace_of_its_newest_sampled_value() -> None:
    cells = MetricsRegistry().histogram(catalogue.DECISION_SECONDS).cells()
    cells.observe(0.3, "aa")
    cells.observe(0.4, "bb")
    cells.observe(0.45)
    (exemplar,) = cells.sample().exemplars.values()
    assert exemplar == ("bb", 0.4)


def test_values_of_a_label_beyond_the_bound_are_other() -> None:
    label = BoundedLabel(2)
    assert [label.of(name) for name in ("a", "b", "c", "a", "d", "b")] == [
        "a",
        "b",
        "other",
        "a",
        "other",
        "b",
    ]


def test_a_reader_whose_dictionary_changes_costs_its_own_values_alone() -> None:
    registry = MetricsRegistry()
    registry.counter(catalogue.NEWS).add(2, "pass")

    num_tries = 0

    def changing():
        nonlocal num_tries
        num_tries += 1
        yield catalogue.EVENTS, (), 1.0
        raise RuntimeError("dictionary changed size during iteration")

    def changing_once():
        yield catalogue.FILLS, (), float(num_tries)
        if num_tries % 2:
            yield from changing()

    registry.read_from(changing)
    registry.read_from(changing_once)
    registry.read_from(lambda: [(catalogue.STOPS, (), 3.0)])
    assert [family.spec.name for family in registry.collect()] == [
        "htfi_fills",
        "htfi_news_items_total",
        "htfi_stops",
    ]


def test_metrics_are_named_by_convention() -> None:
    names = [spec.name for spec in METRICS]
    assert len(names) == len(set(names)) > 40
    for spec in METRICS:
        assert spec.name.startswith("htfi_")
        assert spec.name.endswith("_total") == (spec.kind is MetricKind.COUNTER), spec.name
        assert bool(spec.buckets) == (spec.kind is MetricKind.HISTOGRAM), spec.name
        assert list(spec.buckets) == sorted(set(spec.buckets))
        assert not {"_ms", "_milliseconds", "_percent", "_kb"} & {
            spec.name[-len(end) :] for end in ("_ms", "_kb")
        }


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("nats://desk:s3cr3tpw@bus:4222/x", "s3cr3tpw"),
        ("cannot open postgresql://s3cr3tpw@db/htfi now", "s3cr3tpw"),
        ("password=s3cr3tpw, host=a", "s3cr3tpw"),
        ('{"api_key": "s3cr3tpw"}', "s3cr3tpw"),
        ("Authorization: Bearer s3cr3tpwAAAA", "s3cr3tpwAAAA"),
        ("sent bearer s3cr3tpw.AAAA-11", "s3cr3tpw"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.s3cr3tpw", "s3cr3tpw"),
        ("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----", "MC4CAQAwBQYDK2Vw"),
        ("-----BEGIN EC PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw", "MC4CAQAwBQYDK2Vw"),
    ],
)
def test_what_looks_like_a_secret_is_blanked(text: str, secret: str) -> None:
    found = redact(text)
    assert secret not in found
    assert BLANK in found


def test_a_field_by_a_secrets_name_is_blanked_whatever_it_holds() -> None:
    found = safe_fields({"db_password": "x", "apiKey": "y", "num_tokens": 3, "names": ["a", "token=zzz"]})
    assert found == {"db_password": BLANK, "apiKey": BLANK, "num_tokens": 3, "names": ["a", f"token={BLANK}"]}


@given(st.text())
def test_a_field_is_one_line_of_bounded_length(text: str) -> None:
    found = redact(text)
    assert len(found) <= MAX_FIELD_CHARS
    assert len(found.splitlines()) <= 1


def test_no_more_lines_of_an_event_than_its_rate() -> None:
    now_ns = 0
    rate = EventRate(lambda: now_ns, max_lines=3)
    assert [rate.admits(LogEvent.WITHHELD) for _ in range(5)] == [True, True, True, False, False]
    assert rate.admits(LogEvent.PEER)
    now_ns = 10**9
    assert rate.admits(LogEvent.WITHHELD)
