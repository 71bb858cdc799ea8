"""Numbers of the author's own, merged over virtual users and cores by their kind.

A step annotated `-> Metric[COUNT]` (or RATE, DISTRIBUTION, SAMPLE) reports one value each time it
runs; it returns a number or `Metric(value)`.
"""

from __future__ import annotations

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


def is_metric(annotation: Any) -> bool:
    return annotation is Metric or get_origin(annotation) is Metric


def kind_of(annotation: Any) -> MetricKind:
    """The kind a return annotation asks for; without one, the kind that tells most."""
    asked = get_args(annotation)[0] if get_origin(annotation) is Metric else DISTRIBUTION
    return _KINDS.get(asked, "distribution")
