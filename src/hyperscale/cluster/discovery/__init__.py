"""Finding a cluster to belong to, without I/O. Start reading at `discovery`."""

from hyperscale.cluster.discovery.cache import HealthCache
from hyperscale.cluster.discovery.discovery import Discovery, DiscoveryState
from hyperscale.cluster.discovery.effects import (
    Ask,
    Effect,
    FormCluster,
    Found,
    GaveUp,
    Resolve,
    SaveCache,
    SetTimer,
    StopAsking,
    StopResolving,
    Unusable,
)
from hyperscale.cluster.discovery.messages import Probe, ProbeAnswer, mismatch
from hyperscale.cluster.discovery.settings import (
    PORT_DEFAULT,
    DiscoverySettings,
    DnsName,
    parse_address,
)

__all__ = [
    "PORT_DEFAULT",
    "Ask",
    "Discovery",
    "DiscoverySettings",
    "DiscoveryState",
    "DnsName",
    "Effect",
    "FormCluster",
    "Found",
    "GaveUp",
    "HealthCache",
    "Probe",
    "ProbeAnswer",
    "Resolve",
    "SaveCache",
    "SetTimer",
    "StopAsking",
    "StopResolving",
    "Unusable",
    "mismatch",
    "parse_address",
]
