"""What is kept of a load test: its results, small enough for the store, a few figures for the
history of its schedule, and whether it got worse since the last good one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import zstandard

from hyperscale.metrics.compare import TOLERANCE, compare
from hyperscale.metrics.histogram import Histogram
from hyperscale.metrics.results import Results, decode
from hyperscale.scheduler.errors import InvalidJob
from hyperscale.scheduler.queue.reports import REPORT_BYTES_MAX

LAST_GOOD: Final = "last-good"
UNPACKED_BYTES_MAX: Final = 64 * 1024 * 1024


class Kept(NamedTuple):
    results: Results
    packed: bytes
    """Empty: it is too big to be kept."""


def kept(file: Path) -> Kept | None:
    try:
        data = file.read_bytes()
        results = decode(data)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    packed = zstandard.compress(data, 9)
    return Kept(results, packed if len(packed) <= REPORT_BYTES_MAX else b"")


def unpacked(packed: bytes) -> bytes:
    return zstandard.decompress(packed, max_output_size=UNPACKED_BYTES_MAX)


def figures(results: Results) -> dict[str, float]:
    """Over all steps of all workflows."""
    service = Histogram()
    for workflow in results.workflows:
        for step in workflow.steps:
            service.merge(Histogram.from_distribution(step.service))
    told = {
        "requests": float(results.requests),
        "rate": results.requests / max(results.elapsed_s, 1e-9),
        "failed_share": results.failed_share,
        "passed": float(results.passed),
    }
    if service.count:
        told |= {f"p{percent}_s": service.percentile(percent) for percent in (50, 95, 99)}
    return told


def tolerance_of(payload_value: str | None) -> float:
    """`5%` or `0.05`. Raises InvalidJob."""
    if payload_value is None:
        return TOLERANCE
    text = payload_value.strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise InvalidJob(f"'tolerance' in the payload takes 5% or 0.05, not {payload_value!r}")
    return share


def worse(before: bytes, results: Results, tolerance: float) -> str:
    """What got worse since then, in a sentence; empty: nothing did, or they cannot be compared."""
    comparison = compare(decode(unpacked(before)), results, tolerance=tolerance)
    return comparison.reason if comparison.verdict == "worse" else ""
