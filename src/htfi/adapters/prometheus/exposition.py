"""The registry's metrics as Prometheus' text or as OpenMetrics, whichever a scraper's `Accept` header asks for.

Exemplars are part of OpenMetrics alone. CPU time, memory and open files of the process come from prometheus_client.
"""

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Exemplar

from htfi.telemetry.catalogue import MetricKind
from htfi.telemetry.metrics import HistogramSample, MetricFamily, MetricsRegistry


class MetricsPage:
    """`page(accept)` is the content type and the bytes of all metrics as they are now."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._shown = CollectorRegistry(auto_describe=False)
        self._shown.register(_Families(registry))
        ProcessCollector(registry=self._shown)

    def page(self, accept: str) -> tuple[str, bytes]:
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self._shown)


class _Families(Collector):
    """What prometheus_client collects: our families in its form."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            if family.values or family.histograms:
                yield _converted(family)


def _converted(family: MetricFamily) -> Metric:
    spec = family.spec
    match spec.kind:
        case MetricKind.HISTOGRAM:
            shown = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
            for labels, sample in family.histograms.items():
                shown.add_metric(labels, _buckets(spec.buckets, sample), sample.total)
            return shown
        case MetricKind.COUNTER:
            counted = CounterMetricFamily(spec.name.removesuffix("_total"), spec.help, labels=spec.labels)
            for labels, value in family.values.items():
                counted.add_metric(labels, value)
            return counted
        case MetricKind.GAUGE:
            gauged = GaugeMetricFamily(spec.name, spec.help, labels=spec.labels)
            for labels, value in family.values.items():
                gauged.add_metric(labels, value)
            return gauged


def _buckets(
    bounds: tuple[float, ...], sample: HistogramSample
) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """Cumulative counts by upper bound, with the exemplars that there are."""
    names = [*map(repr, bounds), "+Inf"]
    found: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    for place, (name, num) in enumerate(zip(names, accumulate(sample.counts), strict=True)):
        exemplar = sample.exemplars.get(place)
        if exemplar is None:
            found.append((name, float(num)))
        else:
            found.append((name, float(num), Exemplar({"trace_id": exemplar.trace_id}, exemplar.value)))
    return found
