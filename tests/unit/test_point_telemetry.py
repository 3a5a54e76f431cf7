"""What decision points come to in metrics and spans: by a clock of their own, over a run in memory."""

import random

import pytest
from msgspec.structs import replace

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.point_telemetry import NO_TELEMETRY, MeasuredPoints, PointTelemetry, Stage
from htfi.pipeline.record.entry import decode_entry
from htfi.telemetry import catalogue
from htfi.telemetry.metrics import MetricFamily, MetricsRegistry
from htfi.telemetry.spans import EndedSpan, Tracer, parse_traceparent
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryLedger, MemoryOutlet

NUM_DAYS, STEP_NS = 30, 1_000_000


def bars(num_series: int) -> list[Bar]:
    rng = random.Random(2)
    found: list[Bar] = []
    for day in range(NUM_DAYS):
        for place in range(num_series):
            end_ns = (1_000 + day) * NS_PER_DAY
            close = 100.0 * (1 + rng.gauss(0, 0.01))
            found.append(
                Bar(end_ns, end_ns, "bars", len(found) + 1, f"S{place:03d}", "1d", end_ns - NS_PER_DAY, end_ns,
                    100.0, max(close, 100.0), min(close, 100.0), close)
            )  # fmt: skip
    return found


def ran(telemetry: PointTelemetry, num_series: int = 2, group_ms: float = 0.0) -> MemoryLedger:
    ledger = MemoryLedger([])
    settings = override(load_settings(environment={}), "pipeline", group_ms=group_ms)
    loop = build_loop(settings, ListFeed(bars(num_series)), ledger, MemoryOutlet([]), telemetry=telemetry)
    loop.run(lambda: None)
    return ledger


def families(registry: MetricsRegistry) -> dict[str, MetricFamily]:
    return {family.spec.name: family for family in registry.collect()}


class StepClock:
    """A millisecond later at each call."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += STEP_NS
        return self.now_ns


def test_steps_take_the_time_between_marks_and_the_point_their_sum() -> None:
    registry = MetricsRegistry()
    ledger = ran(MeasuredPoints(registry, StepClock()))
    found = families(registry)
    num_points = ledger.size // 2
    assert num_points > 5
    stages = found["htfi_stage_seconds"].histograms
    assert set(stages) == {(stage.value,) for stage in Stage}
    for stage in ("plan", "encode", "record", "release"):
        assert sum(stages[stage,].counts) == num_points
        assert stages[stage,].total == pytest.approx(num_points * 1e-3)
    whole = found["htfi_decision_seconds"].histograms[()]
    assert sum(whole.counts) == num_points
    assert whole.total == pytest.approx(num_points * len(Stage) * 1e-3)


def test_every_entry_is_counted_once_by_outcome_rung_and_series() -> None:
    registry = MetricsRegistry()
    ledger = ran(MeasuredPoints(registry, StepClock()), num_series=130)
    found = families(registry)
    for name in ("htfi_decisions_total", "htfi_planned_decisions_total", "htfi_series_decisions_total"):
        assert sum(found[name].values.values()) == ledger.size > 500
    by_series = found["htfi_series_decisions_total"].values
    assert len(by_series) == 101
    assert by_series["other",] == 30 * ledger.size / 130


def test_entries_that_wait_for_their_group_are_counted_when_it_is_released() -> None:
    registry = MetricsRegistry()
    ledger = ran(MeasuredPoints(registry, StepClock()), group_ms=3_600_000.0)
    found = families(registry)
    assert sum(found["htfi_decisions_total"].values.values()) == ledger.size
    appends = sum(found["htfi_ledger_append_seconds"].histograms[()].counts)
    assert 1 <= appends < ledger.size // 2


def test_no_recorded_byte_depends_on_telemetry() -> None:
    tracer = Tracer(lambda _: None, random.Random(1).getrandbits, 1.0)
    with_all = ran(MeasuredPoints(MetricsRegistry(), StepClock(), tracer))
    assert with_all.entries == ran(NO_TELEMETRY).entries
    assert with_all.size > 10


def test_a_sampled_point_is_a_trace_whose_steps_follow_each_other() -> None:
    ended: list[EndedSpan] = []
    registry = MetricsRegistry()
    points = MeasuredPoints(registry, StepClock(), Tracer(ended.append, random.Random(1).getrandbits, 1.0))
    ledger = ran(points)
    roots = [span for span in ended if span.name == "decision point"]
    assert sum(int(str(root.attributes["htfi.num_decisions"])) for root in roots) == ledger.size
    first = [span for span in ended if span.context.trace_id == roots[0].context.trace_id]
    *steps, root = first
    assert [span.name for span in steps] == [stage.value for stage in Stage]
    assert {span.parent_id for span in steps} == {root.context.span_id}
    assert [span.start_ns for span in steps[1:]] == [span.end_ns for span in steps[:-1]]
    assert (steps[0].start_ns, steps[-1].end_ns) == (root.start_ns, root.end_ns)
    exemplars = families(registry)["htfi_decision_seconds"].histograms[()].exemplars
    assert {one.trace_id for one in exemplars.values()} <= {root.context.trace_hex for root in roots}
    assert exemplars


def test_the_context_of_the_step_in_hand_is_that_of_its_span() -> None:
    ended: list[EndedSpan] = []
    points = MeasuredPoints(
        MetricsRegistry(), StepClock(), Tracer(ended.append, random.Random(1).getrandbits, 1.0)
    )
    told: list[str] = [points.traceparent]

    class Asking(MeasuredPoints):
        """Asks for the context while the step `read` goes on, as a request of an edge does."""

        def mark(self, stage: Stage) -> None:
            if stage is Stage.READ:
                told.append(self.traceparent)
            super().mark(stage)

    asking = Asking(MetricsRegistry(), StepClock(), Tracer(ended.append, random.Random(1).getrandbits, 1.0))
    ran(asking)
    told.append(asking.traceparent)
    assert (told[0], told[-1]) == ("", "")
    reads = [span.context for span in ended if span.name == "read"]
    named = [parse_traceparent(text) for text in told[1:-1]]
    assert named == reads
    assert len(reads) > 5


def test_parts_of_a_step_are_its_children_within_its_time() -> None:
    ended: list[EndedSpan] = []
    tracer = Tracer(ended.append, random.Random(1).getrandbits, 1.0)

    class Reading(MeasuredPoints):
        def mark(self, stage: Stage) -> None:
            if stage is Stage.READ:
                assert self.is_traced
                self.add("draft", 1e-3, 1e-3, {"htfi.num_drafted": 4})
                self.add("verify", 3_600.0)  # longer than the step: it begins with it
            super().mark(stage)

    points = Reading(MetricsRegistry(), StepClock(), tracer)
    ran(points)
    assert not points.is_traced
    points.add("draft", 1e-3)
    reads = {span.context.span_id: span for span in ended if span.name == "read"}
    parts = [span for span in ended if span.name in ("draft", "verify")]
    assert len(parts) == 2 * len(reads) > 10
    for part in parts:
        read = reads[part.parent_id]
        assert part.context.trace_id == read.context.trace_id
        assert read.start_ns <= part.start_ns <= part.end_ns <= read.end_ns


def test_what_is_not_sampled_is_not_measured() -> None:
    ended: list[EndedSpan] = []
    seen: list[bool] = []

    class Reading(MeasuredPoints):
        def mark(self, stage: Stage) -> None:
            seen.append(self.is_traced)
            super().mark(stage)

    ran(Reading(MetricsRegistry(), StepClock(), Tracer(ended.append, random.Random(1).getrandbits, 0.0)))
    assert (set(seen), ended, NO_TELEMETRY.is_traced) == ({False}, [], False)


def test_an_amendment_is_in_the_trace_of_the_point_that_it_amends_and_ends_with_its_release() -> None:
    ended: list[EndedSpan] = []
    points = MeasuredPoints(
        MetricsRegistry(), StepClock(), Tracer(ended.append, random.Random(1).getrandbits, 1.0)
    )
    ledger = ran(points)
    root = [span for span in ended if span.name == "decision point"][-1]
    first = decode_entry(ledger.entries[-1])
    other = replace(first, id="other")
    points.awaits(first)
    points.amending()
    amendment = replace(first, id=f"{first.id}/amended", amends=first.id)
    for one in (amendment, replace(amendment, id="unknown", amends="never awaited")):
        points.amended(one)
    points.released([(b"", DecidedSeries.of(other))])
    assert [span for span in ended if span.name == "amend"] == []
    for _ in range(2):  # a second release would be another's
        points.released([(b"", DecidedSeries.of(amendment))])
    (span,) = [span for span in ended if span.name == "amend"]
    assert (span.context.trace_id, span.parent_id) == (root.context.trace_id, root.context.span_id)
    assert span.attributes["htfi.amends"] == first.id
    assert root.end_ns < span.start_ns < span.end_ns


def test_coverage_is_the_share_of_next_closes_inside_the_band() -> None:
    points = MeasuredPoints(MetricsRegistry(), StepClock())
    ledger = ran(points)
    assert points.num_outcomes == ledger.size - 2
    assert 0 <= points.num_covered <= points.num_outcomes


def test_a_point_without_history_leaves_nothing_open() -> None:
    registry = MetricsRegistry()
    points = MeasuredPoints(registry, StepClock())
    points.begin()
    points.mark(Stage.FORECAST)
    points.leave()
    points.appending()
    points.appended()
    found = families(registry)
    assert sum(found["htfi_stage_seconds"].histograms["encode",].counts) == 0
    assert sum(found["htfi_ledger_append_seconds"].histograms[()].counts) == 1
    assert catalogue.DECISION_SECONDS.name in found
