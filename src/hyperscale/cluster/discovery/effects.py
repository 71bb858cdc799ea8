"""What discovery asks of its shell, as plain frozen data."""

from __future__ import annotations

import msgspec

from hyperscale.cluster.discovery.messages import Probe
from hyperscale.cluster.discovery.settings import DnsName
from hyperscale.cluster.identity import Endpoint, Node


class Resolve(msgspec.Struct, frozen=True):
    """Ask DNS, then call `resolved` or `unresolved`."""

    name: DnsName


class StopResolving(msgspec.Struct, frozen=True):
    name: DnsName


class Ask(msgspec.Struct, frozen=True):
    """Send the probe, then call `answered` or `unanswered`."""

    address: Endpoint
    probe: Probe


class StopAsking(msgspec.Struct, frozen=True):
    address: Endpoint


class Found(msgspec.Struct, frozen=True):
    """A live peer of our cluster: join through it. Harmless when it is a member already."""

    node: Node


class Unusable(msgspec.Struct, frozen=True):
    """Somebody answered whom we may not join, and why. It is asked again; people should know."""

    address: Endpoint
    reason: str


class FormCluster(msgspec.Struct, frozen=True):
    """Nobody is there: be the first. The search goes on, and a later `Found` is a merge."""


class SaveCache(msgspec.Struct, frozen=True):
    """Keep these bytes for the next start. Losing them costs a probe or two."""

    data: bytes


class SetTimer(msgspec.Struct, frozen=True):
    """Call `tick` at this time; replaces the timer before. None: no tick is needed."""

    at: float | None


class GaveUp(msgspec.Struct, frozen=True):
    """The deadline passed."""

    reason: str


Effect = (
    Resolve
    | StopResolving
    | Ask
    | StopAsking
    | Found
    | Unusable
    | FormCluster
    | SaveCache
    | SetTimer
    | GaveUp
)
