"""Datacenters as a gate knows them: whether it reaches them, how they are, what silence means.

Pure: probes are sent and answered elsewhere, and the time is passed in.
"""

from hyperscale.cluster.datacenters.facts import Facts, Health, judge
from hyperscale.cluster.datacenters.reach import Reach
from hyperscale.cluster.datacenters.settings import ProbeSettings
from hyperscale.cluster.datacenters.silence import Verdict
from hyperscale.cluster.datacenters.watch import Change, Datacenter, Probe, Watch

__all__ = [
    "Change",
    "Datacenter",
    "Facts",
    "Health",
    "Probe",
    "ProbeSettings",
    "Reach",
    "Verdict",
    "Watch",
    "judge",
]
