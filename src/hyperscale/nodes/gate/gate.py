"""A gate: the log of jobs joined to the other gates, to datacenters and to clients."""

from __future__ import annotations

import copy

from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.managers import LIMITS, Managers
from hyperscale.nodes.gate.client_api import GateApi
from hyperscale.nodes.gate.ledger import LEDGER, Ledger
from hyperscale.nodes.gate.owner import Owner
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.jobs import JOBS
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.messages import Registry

RESIGN_S = 0.3  # for the others to hear of it


class Gate:
    ledger_class = Ledger
    owner_class = Owner
    api_class = GateApi

    def __init__(self, host: Host, settings: GateSettings) -> None:
        kinds = Registry()
        for more in (JOBS, LEDGER):
            kinds.include(more)
        self._host = host
        self.settings = settings
        self.log = logs.logger("gate", node_id=settings.node.id)
        self.node = Node(host, settings.node, kinds)
        self.over = self.node.over
        self.ledger = self.ledger_class(
            host, self.node, settings.gates, settings.ledger, settings.commit_s
        )
        self._datacenters: dict[str, Cluster] = {}
        self.owner = self.owner_class(
            host,
            self.ledger,
            self._datacenters,
            settings,
            self.log,
        )
        self.api = self.api_class(host, settings, self.node, self.ledger, self.owner)
        self.node.answer(self.api.handlers())

    @property
    def failure(self) -> Exception | None:
        return self.node.failure

    async def start(self) -> None:
        await self.ledger.open()
        await self.node.start()
        for name, addresses in self.settings.datacenters.items():
            self._datacenters[name] = self._cluster(addresses)
        self.node.spawn_vital("own jobs", self.owner.run())

    def _cluster(self, addresses: tuple[Address, ...]) -> Cluster:
        endpoint = copy.copy(self.node.endpoint)
        endpoint.limits = LIMITS
        lost_s = self.settings.datacenter_lost_s
        secured = self.settings.node.credentials is not None
        managers = Managers(endpoint, addresses, secured=secured, patience_s=lost_s)
        return Cluster(self._host, managers)

    def reload(self) -> None:
        self.node.reload()

    async def stop(self) -> None:
        self.ledger.resign()
        await self._host.clock.sleep(RESIGN_S)
        await self.node.stop()
        for cluster in self._datacenters.values():
            cluster.managers.close()
        await self.ledger.close()
