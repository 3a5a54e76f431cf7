"""Spans of a trace and the context that names them, as W3C Trace Context writes it.

Source: https://www.w3.org/TR/trace-context/ (version 00). Instants are those of the clock that whoever makes a span is
given, in ns; an exporter knows how that clock stands to UTC.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

AttributeValue = str | int | float | bool | tuple[str, ...]

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
MAX_TRACEPARENT = 128  # characters that are looked at
_SAMPLED = 1
_RATIO_BITS = 63  # of the trace id, that decide


class SpanContext(NamedTuple):
    """A span as other processes name it."""

    trace_id: int  # 128 bits, not 0
    span_id: int  # 64 bits, not 0
    is_sampled: bool

    @property
    def trace_hex(self) -> str:
        return f"{self.trace_id:032x}"

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"


class EndedSpan(NamedTuple):
    """A span that has ended. `parent_id` is 0 for a trace's first."""

    name: str
    context: SpanContext
    parent_id: int
    start_ns: int
    end_ns: int
    attributes: Mapping[str, AttributeValue] = {}
    is_remote_parent: bool = False


SpanSink = Callable[[EndedSpan], None]
"""Takes an ended span and never waits or raises."""


def parse_traceparent(text: str) -> SpanContext | None:
    """The context in a header or a frame; None where it is none, which is no error: a new trace begins."""
    if len(text) > MAX_TRACEPARENT:
        return None
    found = _TRACEPARENT.fullmatch(text)
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = int(found[2], 16), int(found[3], 16)
    if not trace_id or not span_id:
        return None
    return SpanContext(trace_id, span_id, bool(int(found[4], 16) & _SAMPLED))


class StepSpans:
    """Takes spans of what a step in hand is made of, such as drafting within a reading; does nothing."""

    @property
    def is_traced(self) -> bool:
        """Whether the step in hand is in a sampled trace: where it is not, nobody need measure."""
        return False

    def add(
        self,
        name: str,
        lasted_s: float,
        ended_s_ago: float = 0.0,
        attributes: Mapping[str, AttributeValue] = {},
    ) -> None:
        """A part that lasted so long has ended, just now or so long ago."""


NO_SPANS = StepSpans()


class Tracer:
    """Makes contexts and hands ended spans on. `bits(n)` gives n random bits, `ratio` 0–1 of new traces is sampled."""

    def __init__(self, sink: SpanSink, bits: Callable[[int], int], ratio: float) -> None:
        self.end = sink
        self._bits = bits
        self._bound = round(ratio * (1 << _RATIO_BITS))

    def new_trace(self) -> SpanContext:
        """The context of a trace's first span; sampled by its id, so that every process decides alike."""
        trace_id = self._bits(128) or 1
        is_sampled = trace_id & ((1 << _RATIO_BITS) - 1) < self._bound
        return SpanContext(trace_id, self.new_span_id(), is_sampled)

    def new_span_id(self) -> int:
        return self._bits(64) or 1

    def child(self, of: SpanContext) -> SpanContext:
        """A new span in the same trace."""
        return SpanContext(of.trace_id, self.new_span_id(), of.is_sampled)
