"""A gate: the log of jobs joined to the other gates, to datacenters and to clients."""

from __future__ import annotations

import copy
import functools

from hyperscale.cluster.overload.ratelimit import RateLimitSettings
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.managers import LIMITS, Managers
from hyperscale.nodes.gate.client_api import GateApi
from hyperscale.nodes.gate.datacenters import Datacenters
from hyperscale.nodes.gate.datacenters_api import DatacentersApi
from hyperscale.nodes.gate.job_ledger import JobLedger
from hyperscale.nodes.gate.ledger import LEDGER, Ledger
from hyperscale.nodes.gate.owner import Owner
from hyperscale.nodes.gate.retention import Retention
from hyperscale.nodes.gate.routing import Router
from hyperscale.nodes.gate.settings import GateSettings
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.datacenters import DATACENTERS
from hyperscale.nodes.protocol.jobs import JOBS
from hyperscale.runtime import logs
from hyperscale.runtime.host import Address, Host
from hyperscale.wire.messages import Registry

# As at managers: a job is watched by who submits it, so one is as often asked for as the other.
LIMITS_OF_CLIENTS = RateLimitSettings(
    limits={"submit.job": 50, "watch.job": 50}, stressed_budget=10_000
)
RESIGN_S = 0.3  # for the others to hear of it


class Gate:
    ledger_class = Ledger
    owner_class = Owner
    api_class = GateApi
    datacenters_class = Datacenters

    def __init__(self, host: Host, settings: GateSettings) -> None:
        kinds = Registry()
        for more in (JOBS, LEDGER, DATACENTERS):
            kinds.include(more)
        self._host = host
        self._settings = settings
        self.log = logs.logger("gate", node_id=settings.node.id)
        self.node = Node(host, settings.node, kinds, limits=LIMITS_OF_CLIENTS)
        self.over = self.node.over
        self.ledger: JobLedger
        if settings.ledger.store == "etcd":
            from hyperscale.nodes.gate.etcd_ledger import EtcdLedger  # its clients are not for all

            self.ledger = EtcdLedger(
                host, self.node, settings.gates, settings.ledger, settings.commit_s, self.log
            )
        else:
            self.ledger = self.ledger_class(
                host, self.node, settings.gates, settings.ledger, settings.commit_s
            )
        self._clusters: dict[str, Cluster] = {}
        self.datacenters = self.datacenters_class(host, self.node, settings, self.log)
        self.router = Router(host.clock, self.datacenters, self.log)
        self.owner = self.owner_class(
            host,
            self.ledger,
            self._clusters,
            settings,
            self.log,
            self.datacenters,
        )
        self.retention = Retention(host, settings, self.ledger)
        self.api = self.api_class(host, settings, self.node, self.ledger, self.owner, self.router)
        self.node.answer(self.api.handlers())
        self.node.answer(DatacentersApi(self.node, self.datacenters, self.router).handlers())

    @property
    def failure(self) -> Exception | None:
        return self.node.failure

    async def start(self) -> None:
        await self.ledger.open()
        await self.node.start()
        for name, addresses in self._settings.datacenters.items():
            self._clusters[name] = self._cluster(name, addresses)
        self.node.spawn_vital("probe datacenters", self.datacenters.run())
        self.node.spawn_vital("own jobs", self.owner.run())
        self.node.spawn_vital("forget jobs", self.retention.run())

    def _cluster(self, name: str, addresses: tuple[Address, ...]) -> Cluster:
        endpoint = copy.copy(self.node.endpoint)
        endpoint.limits = LIMITS
        lost_s = self._settings.datacenter_lost_s
        secured = self._settings.node.credentials is not None
        managers = Managers(
            endpoint, addresses, secured=secured, patience_s=lost_s, of_datacenter=name
        )
        managers.on_outcome = functools.partial(self.datacenters.outcome, name)
        return Cluster(self._host, managers)

    def reload(self) -> None:
        self.node.reload()

    async def stop(self) -> None:
        self.ledger.resign()
        await self._host.clock.sleep(RESIGN_S)
        await self.node.stop()
        self.datacenters.close()
        for cluster in self._clusters.values():
            cluster.managers.close()
        await self.ledger.close()
