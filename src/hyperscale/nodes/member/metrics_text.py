"""The text that Prometheus reads, written by its own library.

Importing that library takes longer than all the rest of a command, so only a node with a metrics
page imports this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from hyperscale.nodes.member.metrics import Metric
from hyperscale.runtime.latency import Latency

PREFIX: Final = "hyperscale_"


def render(metrics: Iterable[Metric]) -> bytes:
    return generate_latest(_Families(metrics))


class _Families(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Family]:
        return map(_family, self._metrics)


def _family(metric: Metric) -> Family:
    name = PREFIX + metric.name
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(name, metric.help, labels=metric.labels)
        for values, latency in sorted(metric.latencies.items()):
            histogram.add_metric(values, _buckets(latency), latency.sum_s)
        return histogram
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(name, metric.help, labels=metric.labels)
    for values, number in sorted(metric.samples.items()):
        family.add_metric(values, number)
    return family


def _buckets(latency: Latency) -> list[tuple[str, float]]:
    return [*((str(bound), count) for bound, count in latency.up_to()), ("+Inf", latency.count)]
