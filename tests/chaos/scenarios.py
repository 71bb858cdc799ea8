"""Rounds with a name: faults that were found by hand once, and one that no seed draws."""

from __future__ import annotations

from tests.chaos.loads import Job, Load
from tests.chaos.schedule import MANAGERS, Fault, Round, draw

ARRIVALS = Load("Load", "arrivals", 60, 8)
BOTH_WAYS = tuple(edge for m in MANAGERS for edge in (("worker1", m), (m, "worker1")))

SCENARIOS = {
    # The worker is well, what makes its load is not.
    "generator-killed": Round(
        "generator-killed", 2, 1, Job((ARRIVALS,)), (Fault("generators", 4, node="worker1"),)
    ),
    # Probes arrive, commands do not.
    "tcp-cut-and-cancel": Round(
        "tcp-cut-and-cancel",
        *(2, 1, Job((Load("Load", "users", 8, 40),), cancel_at_s=4.0)),
        (Fault("cut", 2, 40, edges=BOTH_WAYS, protocol="tcp"),),
    ),
    # The other worker hears it, has a core to spare, and takes over its only user.
    "cut-off-from-managers": Round(
        "cut-off-from-managers",
        *(2, 1, Job((Load("Load", "users", 1, 16),))),
        (Fault("cut", 2, 60, edges=BOTH_WAYS),),
    ),
    # Nobody may decide until long after the job had to be over.
    "no-quorum": Round(
        "no-quorum",
        *(2, 1, Job((Load("Load", "arrivals", 60, 14),))),
        (Fault("kill", 3, 20, "follower1"), Fault("kill", 3, 20, "follower2")),
        grace_s=1.0,
    ),
}


def round_named(name: str) -> Round:
    """A scenario, or the round of a seed."""
    return draw(int(name)) if name.isdecimal() else SCENARIOS[name]
