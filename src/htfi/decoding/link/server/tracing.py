"""Spans of a cloud's work on requests whose edges trace them: one for the answer, one for each pass of it."""

from collections.abc import Callable, Sequence

from htfi.decoding.link.server.scheduler import RequestProgress
from htfi.telemetry.spans import AttributeValue, EndedSpan, SpanContext, Tracer, parse_traceparent

_NS_PER_S = 1_000_000_000


class RequestTracing:
    """`clock` gives seconds, as the server's. Only requests whose edge sampled the trace have spans."""

    def __init__(self, tracer: Tracer, clock: Callable[[], float]) -> None:
        self._tracer, self._clock = tracer, clock

    def passed(self, progress: Sequence[RequestProgress], began_s: float) -> None:
        """A pass that began then has ended."""
        for one in progress:
            parent = parse_traceparent(one.request.traceparent) if one.request.traceparent else None
            if parent is not None and parent.is_sampled:
                self._record(one, parent, began_s, self._clock())

    def _record(self, one: RequestProgress, parent: SpanContext, began_s: float, now_s: float) -> None:
        entry = one.request
        is_first = entry.span_id == 0
        if is_first:
            entry.span_id = self._tracer.new_span_id()
        own = parent._replace(span_id=entry.span_id)
        figures: dict[str, AttributeValue] = {"htfi.num_tokens": len(entry.sequence.tokens)}
        if not is_first:
            figures |= {"htfi.num_drafted": entry.num_drafted, "htfi.num_accepted": max(one.num_accepted, 0)}
        name = "prefill" if is_first else "verify"
        self._end(name, self._tracer.child(own), own.span_id, began_s, now_s, figures)
        if one.is_done or one.refused:
            figures = {
                "htfi.num_tokens": len(entry.sequence.tokens),
                "htfi.is_refused": bool(one.refused),
                "htfi.draft_mode": entry.lead.name.lower(),
            }
            self._end("answer", own, parent.span_id, entry.since_s, now_s, figures, is_remote_parent=True)

    def _end(
        self,
        name: str,
        context: SpanContext,
        parent_id: int,
        start_s: float,
        end_s: float,
        figures: dict[str, AttributeValue],
        *,
        is_remote_parent: bool = False,
    ) -> None:
        start_ns, end_ns = round(start_s * _NS_PER_S), round(end_s * _NS_PER_S)
        self._tracer.end(EndedSpan(name, context, parent_id, start_ns, end_ns, figures, is_remote_parent))
