"""Overload protection: what a busy node admits, what it refuses, and when a caller may try again.

Pure policies; the time is passed in and nothing here waits. `priority` first, then one file per
question a busy node has to answer.
"""

from hyperscale.cluster.overload.admission import (
    SETTINGS_BY_ROLE,
    Admission,
    AdmissionResult,
    AdmissionSettings,
    Pressure,
)
from hyperscale.cluster.overload.circuit import (
    Category,
    Circuit,
    Circuits,
    CircuitSettings,
    CircuitStatus,
)
from hyperscale.cluster.overload.detector import OverloadDetector, OverloadSettings, Resources
from hyperscale.cluster.overload.priority import RETRY_AFTER_S, SHED, LoadLevel, Priority, sheds
from hyperscale.cluster.overload.ratelimit import (
    RateLimited,
    RateLimiter,
    RateLimitSettings,
    SlidingWindow,
)

__all__ = [
    "RETRY_AFTER_S",
    "SETTINGS_BY_ROLE",
    "SHED",
    "Admission",
    "AdmissionResult",
    "AdmissionSettings",
    "Category",
    "Circuit",
    "CircuitSettings",
    "CircuitStatus",
    "Circuits",
    "LoadLevel",
    "OverloadDetector",
    "OverloadSettings",
    "Pressure",
    "Priority",
    "RateLimitSettings",
    "RateLimited",
    "RateLimiter",
    "Resources",
    "SlidingWindow",
    "sheds",
]
