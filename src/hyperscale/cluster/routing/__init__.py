"""Which datacenters run a job: a pure function of a snapshot of what a gate knows.

The same snapshot gives the same decision, on every machine and in every later year: it is written
to the log with each decision, so that the decision can be computed again.
"""

from hyperscale.cluster.routing.choose import NOT_NAMED, choose
from hyperscale.cluster.routing.decision import Decision, Scored
from hyperscale.cluster.routing.snapshot import (
    POLICIES,
    Candidate,
    Held,
    Policy,
    RoutingSettings,
    Snapshot,
    Wish,
)

__all__ = [
    "NOT_NAMED",
    "POLICIES",
    "Candidate",
    "Decision",
    "Held",
    "Policy",
    "RoutingSettings",
    "Scored",
    "Snapshot",
    "Wish",
    "choose",
]
