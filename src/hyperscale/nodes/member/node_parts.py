"""The parts of a node, made from its settings: its name on the wire, its seals, its membership."""

from __future__ import annotations

from dataclasses import replace

from hyperscale import __version__
from hyperscale.nodes.member.channels import ChannelHost, MembershipNetwork, named
from hyperscale.nodes.member.exchanges import ExchangeService
from hyperscale.nodes.member.membership_shell import MemberSettings, MembershipShell
from hyperscale.nodes.member.settings import NodeSettings
from hyperscale.nodes.member.shared_port import SharedPort
from hyperscale.runtime.host import Clock, Host
from hyperscale.wire.handshake import Introduction
from hyperscale.wire.identity import Identity
from hyperscale.wire.sealed import Sealer

# Beside the largest seal: a heartbeat of the bare member is a handful of bytes.
HEARTBEAT_BYTES_MAX = 256


def introduction_of(settings: NodeSettings, incarnation: int, only_gates: bool) -> Introduction:
    identity = Identity(
        node_id=settings.id,
        incarnation=incarnation,
        role=settings.role,
        cluster_id=settings.cluster,
        environment_id=settings.env,
        datacenter=settings.dc,
    )
    gateless = settings.role == "manager" and not only_gates
    return Introduction(identity, node_version=__version__, gateless=gateless)


def sealer_of(
    settings: NodeSettings, clock: Clock, secret: str | None, previous: str | None
) -> Sealer | None:
    """Seals datagrams under the secret of all nodes, or under that of the managers alone."""
    if secret is None:
        return None
    return Sealer(settings.id, secret, previous, clock=clock.now)


def membership_of(
    host: Host, settings: NodeSettings, port: SharedPort, exchanges: ExchangeService
) -> MembershipShell:
    config = replace(
        settings.membership,
        cluster=f"{settings.cluster}/{settings.env}",
        seal_bytes_max=port.overhead_bytes,
        heartbeat_bytes_max=min(settings.membership.heartbeat_bytes_max, HEARTBEAT_BYTES_MAX),
    )
    member = MemberSettings(
        settings.id,
        settings.role,
        settings.dc,
        settings.bind,
        settings.bind,
        settings.advertise,
        settings.seeds,
    )
    network = MembershipNetwork(host, port, exchanges)
    return MembershipShell(ChannelHost(host, network), member, config, named=named)
