"""Calm under load: who is let in, what waits, what is refused, and when to try again.

Pure policies; the time is passed in and nothing here waits. `priority` first, then one file per
question a busy node has to answer.
"""

from hyperscale.cluster.calm.admission import (
    SETTINGS_BY_ROLE,
    Admission,
    AdmissionSettings,
    Pressure,
    Verdict,
)
from hyperscale.cluster.calm.circuit import (
    Category,
    Circuit,
    Circuits,
    CircuitSettings,
    CircuitStatus,
)
from hyperscale.cluster.calm.overload import OverloadDetector, OverloadSettings, Resources
from hyperscale.cluster.calm.priority import Priority
from hyperscale.cluster.calm.ratelimit import (
    RateLimited,
    RateLimiter,
    RateLimitSettings,
    SlidingWindow,
)
from hyperscale.cluster.calm.retry import REGISTRATION, RetryPolicy
from hyperscale.cluster.calm.shedding import RETRY_AFTER_S, SHED, Load, sheds

__all__ = [
    "REGISTRATION",
    "RETRY_AFTER_S",
    "SETTINGS_BY_ROLE",
    "SHED",
    "Admission",
    "AdmissionSettings",
    "Category",
    "Circuit",
    "CircuitSettings",
    "CircuitStatus",
    "Circuits",
    "Load",
    "OverloadDetector",
    "OverloadSettings",
    "Pressure",
    "Priority",
    "RateLimitSettings",
    "RateLimited",
    "RateLimiter",
    "Resources",
    "RetryPolicy",
    "SlidingWindow",
    "Verdict",
    "sheds",
]
