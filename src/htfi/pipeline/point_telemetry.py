"""What the main path tells telemetry, once for each decision point and each group of entries; by default nobody.

`MeasuredPoints` times the steps by an injected clock and adds up outcomes. It changes no decision and no recorded byte:
ids of traces stand in spans, in frames of the link and in the log, never in an entry.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import log
from typing import TYPE_CHECKING, NamedTuple

from htfi.domain.decision import Decision, PolicyOutcome
from htfi.domain.news import ScreenedItem, Screening
from htfi.domain.plan import Rung
from htfi.pipeline.view_cache import ReadingTelemetry
from htfi.telemetry import catalogue
from htfi.telemetry.logs import NO_LOG, EventLog, LogEvent, LogLevel
from htfi.telemetry.metrics import OTHER, BoundedLabel, MetricsRegistry
from htfi.telemetry.spans import AttributeValue, EndedSpan, SpanContext, StepSpans, Tracer

if TYPE_CHECKING:  # the recorder imports this module
    from htfi.pipeline.decided import DecidedSeries
    from htfi.pipeline.point import PointColumns
    from htfi.pipeline.series import SeriesContext

MAX_NAMED_SERIES = 100  # with a count of their own
MAX_COVERED_SERIES = 32  # of a point, whose next close is compared with the band
MAX_NAMED_DECISIONS = 8  # in a span or a line of the log
MAX_STEP_SPANS = 500  # of a point, within its steps
MAX_AWAITED = 1_000  # decisions of sampled points, whose amendments are traced
_NS = 1e-9


class Stage(StrEnum):
    """The steps of a decision point, in their order."""

    FORECAST = "forecast"
    PLAN = "plan"
    READ = "read"
    WEIGH = "weigh"
    JUDGE = "judge"
    ENCODE = "encode"  # into entries; the wait for the group where there is one
    RECORD = "record"
    RELEASE = "release"


class PointTelemetry(ReadingTelemetry, StepSpans):
    """Is told what happens and does nothing."""

    def begin(self) -> None:
        """A point's bars have closed."""

    def mark(self, stage: Stage) -> None:
        """A step of the point in hand has ended."""

    def leave(self) -> None:
        """No series of the point has history enough: nothing is decided."""

    def end(
        self,
        columns: "PointColumns",
        contexts: Sequence["SeriesContext"],
        decided: Sequence["DecidedSeries"],
    ) -> None:
        """The point is recorded, and released unless its group waits."""

    def appending(self) -> None:
        """A group of entries goes to the ledger."""

    def appended(self) -> None:
        """It is durable."""

    def released(self, group: Sequence[tuple[bytes, "DecidedSeries"]]) -> None:
        """Each entry of a group with its decision: they have been released, or withheld."""

    def awaits(self, decision: Decision) -> None:
        """A decision of the point that ended last has been released, and a better view of it may come."""

    def amending(self) -> None:
        """A view has come late, or a decision is read again in depth."""

    def amended(self, amendment: Decision) -> None:
        """It has made an amendment, which goes to the ledger with its group."""

    def screened(self, item: ScreenedItem) -> None:
        """A news item has been screened."""


NO_TELEMETRY = PointTelemetry()


class _EndedStage(NamedTuple):
    stage: Stage
    span_id: int
    start_ns: int
    end_ns: int


class _Amendment(NamedTuple):
    trace: SpanContext  # of the point that it amends
    start_ns: int


class MeasuredPoints(PointTelemetry):
    """Counts, times and traces decision points. `clock` gives ns; it is called at each mark, in the loop's thread."""

    def __init__(
        self,
        registry: MetricsRegistry,
        clock: Callable[[], int],
        tracer: Tracer | None = None,
        log: EventLog = NO_LOG,
    ) -> None:
        self._clock, self._tracer, self._log = clock, tracer, log
        stages = registry.histogram(catalogue.STAGE_SECONDS)
        self._stage_seconds = {stage: stages.cells(stage.value) for stage in Stage}
        self._decision_seconds = registry.histogram(catalogue.DECISION_SECONDS).cells()
        self._append_seconds = registry.histogram(catalogue.APPEND_SECONDS).cells()
        self._outcomes = registry.counter(catalogue.DECISIONS)
        self._planned = registry.counter(catalogue.PLANNED)
        self._series = registry.counter(catalogue.SERIES_DECISIONS)
        self._news = registry.counter(catalogue.NEWS)
        self._readings = registry.counter(catalogue.READINGS)
        self._reading_seconds = registry.histogram(catalogue.READING_SECONDS)
        self._labels = BoundedLabel(MAX_NAMED_SERIES)
        self._bands: dict[str, tuple[float, float, float]] = {}
        self.num_covered, self.num_outcomes = 0, 0
        self._trace: SpanContext | None = None  # of the point in hand, where it is sampled
        self._stages: list[_EndedStage] = []
        self._is_open = False
        self._span_id = 0
        self._num_step_spans = 0
        self._ended: SpanContext | None = None  # the sampled point that ended last
        self._awaited: OrderedDict[str, SpanContext] = OrderedDict()  # by id of the first decision
        self._amended: dict[str, _Amendment] = {}  # recorded, and not released yet
        self._amending_ns = 0
        self._began_ns = self._last_ns = self._append_ns = self._reading_ns = 0

    @property
    def traceparent(self) -> str:
        """The context of the step in hand for other processes; '' outside a sampled point."""
        trace = self._trace
        if trace is None or self._tracer is None:
            return ""
        if not self._span_id:
            self._span_id = self._tracer.new_span_id()
        return trace._replace(span_id=self._span_id).traceparent

    @property
    def is_traced(self) -> bool:
        return self._is_open and self._trace is not None and self._num_step_spans < MAX_STEP_SPANS

    def add(
        self,
        name: str,
        lasted_s: float,
        ended_s_ago: float = 0.0,
        attributes: Mapping[str, AttributeValue] = {},
    ) -> None:
        if not self.is_traced or self._trace is None or self._tracer is None:
            return
        self._num_step_spans += 1
        if not self._span_id:
            self._span_id = self._tracer.new_span_id()
        end_ns = max(self._clock() - round(ended_s_ago / _NS), self._last_ns)
        start_ns = max(end_ns - round(lasted_s / _NS), self._last_ns)
        child = self._tracer.child(self._trace)
        self._tracer.end(EndedSpan(name, child, self._span_id, start_ns, end_ns, attributes))

    def begin(self) -> None:
        self._trace = self._ended = None
        self._span_id = self._num_step_spans = 0
        if self._tracer is not None:
            trace = self._tracer.new_trace()
            if trace.is_sampled:
                self._trace = trace
                self._stages.clear()
        self._is_open = True
        self._began_ns = self._last_ns = self._clock()

    def leave(self) -> None:
        self._is_open, self._trace = False, None

    def mark(self, stage: Stage) -> None:
        if not self._is_open:
            return
        now_ns, last_ns = self._clock(), self._last_ns
        self._last_ns = now_ns
        self._stage_seconds[stage].observe((now_ns - last_ns) * _NS)
        if self._trace is not None and self._tracer is not None:
            span_id = self._span_id or self._tracer.new_span_id()
            self._stages.append(_EndedStage(stage, span_id, last_ns, now_ns))
            self._span_id = 0

    def appending(self) -> None:
        self.mark(Stage.ENCODE)
        self._append_ns = self._last_ns if self._is_open else self._clock()

    def appended(self) -> None:
        self.mark(Stage.RECORD)
        now_ns = self._last_ns if self._is_open else self._clock()
        self._append_seconds.observe((now_ns - self._append_ns) * _NS)

    def awaits(self, decision: Decision) -> None:
        if self._ended is not None:
            self._awaited[decision.id] = self._ended
            if len(self._awaited) > MAX_AWAITED:
                self._awaited.popitem(last=False)

    def amending(self) -> None:
        if self._awaited:
            self._amending_ns = self._clock()

    def amended(self, amendment: Decision) -> None:
        trace = self._awaited.pop(amendment.amends, None)
        if trace is not None:
            self._amended[amendment.id] = _Amendment(trace, self._amending_ns)

    def _end_amendments(self, group: Sequence[tuple[bytes, "DecidedSeries"]]) -> None:
        """Those of a group have been released: each is a span of the trace of the point that it amends."""
        for _, one in group:
            found = self._amended.pop(one.decision.id, None)
            if found is None or self._tracer is None:
                continue
            trace, start_ns = found
            figures: dict[str, AttributeValue] = {
                "htfi.decision_ids": (one.decision.id,),
                "htfi.amends": one.decision.amends,
                "htfi.outcome": one.verdict.outcome.value,
            }
            child = self._tracer.child(trace)
            self._tracer.end(EndedSpan("amend", child, trace.span_id, start_ns, self._clock(), figures))

    def released(self, group: Sequence[tuple[bytes, "DecidedSeries"]]) -> None:
        self.mark(Stage.RELEASE)
        if self._amended:
            self._end_amendments(group)
        outcomes = [one.verdict.outcome for _, one in group]
        for outcome in set(outcomes):
            self._outcomes.add(outcomes.count(outcome), outcome)
        if self._log is not NO_LOG and PolicyOutcome.WITHHOLD in outcomes:
            for _, one in group:
                if one.verdict.outcome is PolicyOutcome.WITHHOLD:
                    rules = [reason.partition(":")[0] for reason in one.verdict.reasons]
                    self._log.write(
                        LogEvent.WITHHELD, LogLevel.WARNING, decision_id=one.decision.id, rules=rules
                    )

    def end(
        self,
        columns: "PointColumns",
        contexts: Sequence["SeriesContext"],
        decided: Sequence["DecidedSeries"],
    ) -> None:
        self._is_open = False
        seconds = (self._last_ns - self._began_ns) * _NS
        trace_id = self._trace.trace_hex if self._trace is not None else ""
        self._decision_seconds.observe(seconds, trace_id)
        self._count_rungs(columns, contexts)
        self._count_series(columns.series)
        if not columns.answered:
            self._compare_bands(decided)
        if self._trace is not None:
            self._end_trace(self._trace, columns, decided)

    def reading(self) -> None:
        self._reading_ns = self._clock()

    def has_read(self, rung: Rung, num: int) -> None:
        self._readings.add(num, rung.value)
        seconds = (self._clock() - self._reading_ns) * _NS
        trace_id = self._trace.trace_hex if self._trace is not None else ""
        self._reading_seconds.cells(rung.value).observe(seconds, trace_id)

    def screened(self, item: ScreenedItem) -> None:
        self._news.add(1.0, item.verdict.value)
        if item.verdict is Screening.QUARANTINE:
            # Its id, publisher and text may say anything: the digest of its text names it.
            rules = sorted({finding.rule for finding in item.findings})
            self._log.write(
                LogEvent.QUARANTINED,
                LogLevel.WARNING,
                source=item.item.source,
                digest=item.digest,
                rules=rules,
            )

    def _count_rungs(self, columns: "PointColumns", contexts: Sequence["SeriesContext"]) -> None:
        levels: list[int] = columns.market.levels.tolist()
        for one in contexts:
            self._planned.add(1, one.request.plan.rung)
        if contexts:
            own = {one.row for one in contexts}
            levels = [level for row, level in enumerate(levels) if row not in own]
        for level in set(levels):
            self._planned.add(levels.count(level), columns.plans[level].rung)

    def _count_series(self, names: Sequence[str]) -> None:
        labels = self._labels
        num_named = 0
        for name in names:
            label = labels.of(name)
            if label is not OTHER:
                self._series.add(1, label)
                num_named += 1
        if num_named < len(names):
            self._series.add(len(names) - num_named, OTHER)

    def _compare_bands(self, decided: Sequence["DecidedSeries"]) -> None:
        """Which closes lie in the band of the bar before; then the bands for the next."""
        known = self._bands
        for one in decided[:MAX_COVERED_SERIES]:
            name, close = one.series, one.last_price
            before = known.get(name)
            if before is not None and close > 0.0 < before[0]:
                self.num_outcomes += 1
                self.num_covered += before[1] <= log(close / before[0]) <= before[2]
            if before is not None or len(known) < MAX_NAMED_SERIES:
                known[name] = close, *one.central_band

    def _end_trace(
        self, trace: SpanContext, columns: "PointColumns", decided: Sequence["DecidedSeries"]
    ) -> None:
        tracer = self._tracer
        assert tracer is not None
        names = tuple(one.decision.id for one in decided[:MAX_NAMED_DECISIONS])
        self._trace, self._ended = None, trace
        for stage, span_id, start_ns, end_ns in self._stages:
            tracer.end(
                EndedSpan(stage.value, trace._replace(span_id=span_id), trace.span_id, start_ns, end_ns)
            )
        tracer.end(
            EndedSpan(
                "decision point", trace, 0, self._began_ns, self._last_ns,
                {
                    "htfi.as_of_ns": columns.as_of_ns,
                    "htfi.num_decisions": len(decided),
                    "htfi.decision_ids": names,
                    "htfi.is_between_bars": bool(columns.answered),
                },
            )
        )  # fmt: skip
        self._log.write(
            LogEvent.DECIDED,
            decision_id=names[0] if names else "",
            trace_id=trace.trace_hex,
            num_decisions=len(decided),
            decision_ids=names,
        )
