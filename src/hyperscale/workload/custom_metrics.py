"""Numbers of the author's own, merged over virtual users and cores by their kind.

A step annotated `-> Metric[COUNT]` (or RATE, DISTRIBUTION, SAMPLE) reports one value each time it
runs; it returns a number or `Metric(value)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

MetricKind = Literal["count", "rate", "distribution", "sample"]


class COUNT:
    """Values are added up."""


class RATE:
    """Share of values that are not zero, and how many came per second."""


class DISTRIBUTION:
    """Mean, percentiles, smallest and largest value."""


class SAMPLE:
    """The latest value."""


_KINDS: dict[object, MetricKind] = {
    COUNT: "count",
    RATE: "rate",
    DISTRIBUTION: "distribution",
    SAMPLE: "sample",
}

K = TypeVar("K", COUNT, RATE, DISTRIBUTION, SAMPLE)


class Metric(Generic[K]):
    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Metric({self.value!r})"


# Each kind as the author's code calls it.
WORDS = {"count": "counter", "rate": "rate", "distribution": "trend", "sample": "gauge"}
Measure = Callable[[str, MetricKind, float, Mapping[str, str] | None], None]


class Metrics:
    """Numbers that the author's code records wherever it runs; one name has one kind."""

    __slots__ = ("_measure",)

    def __init__(self, measure: Measure | None) -> None:
        self._measure = measure

    def trend(self, name: str) -> Meter:
        """Mean, percentiles, smallest and largest value."""
        return Meter(name, "distribution", self._measure)

    def counter(self, name: str) -> Meter:
        """Values are added up."""
        return Meter(name, "count", self._measure)

    def gauge(self, name: str) -> Meter:
        """The latest value."""
        return Meter(name, "sample", self._measure)

    def rate(self, name: str) -> Meter:
        """Share of values that are not zero."""
        return Meter(name, "rate", self._measure)


class Meter:
    __slots__ = ("_kind", "_measure", "_name")

    def __init__(self, name: str, kind: MetricKind, measure: Measure | None) -> None:
        self._name = name
        self._kind = kind
        self._measure = measure

    def add(self, value: float = 1, tags: Mapping[str, str] | None = None) -> None:
        if self._measure is not None:
            self._measure(self._name, self._kind, value, tags)


def is_metric(annotation: Any) -> bool:
    return annotation is Metric or get_origin(annotation) is Metric


def kind_of(annotation: Any) -> MetricKind:
    """The kind a return annotation asks for; without one, the kind that tells most."""
    asked = get_args(annotation)[0] if get_origin(annotation) is Metric else DISTRIBUTION
    return _KINDS.get(asked, "distribution")
