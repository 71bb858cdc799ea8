"""Metrics of a node as plain data; `metrics_text` writes them for Prometheus.

Labels are bounded by their owners: states, priorities, reasons and counter names, never ids or
addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hyperscale.runtime.latency import Latency


@dataclass(frozen=True, slots=True)
class Metric:
    """One family. Samples by the values of `labels`, in their order."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    samples: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    latencies: Mapping[tuple[str, ...], Latency] = field(default_factory=dict)
    """Instead of samples, of a histogram."""


def single(name: str, kind: Literal["counter", "gauge"], help: str, value: float) -> Metric:
    return Metric(name, kind, help, (), {(): value})


def labelled(
    name: str,
    kind: Literal["counter", "gauge"],
    help: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    return Metric(name, kind, help, (label,), {(key,): value for key, value in values.items()})


def histogram(name: str, help: str, label: str, values: Mapping[str, Latency]) -> Metric:
    return Metric(
        name, "histogram", help, (label,), latencies={(key,): one for key, one in values.items()}
    )
