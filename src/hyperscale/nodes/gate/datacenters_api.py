"""What a gate tells people of datacenters, and of where it would let a job run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hyperscale.cluster.routing import Wish
from hyperscale.nodes.gate.datacenters import Datacenters
from hyperscale.nodes.gate.routing import Router
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.datacenters import (
    AskDatacenters,
    AskRoute,
    DatacenterStates,
    RouteView,
)
from hyperscale.wire.errors import Refused
from hyperscale.wire.serving import Call


class DatacentersApi:
    def __init__(self, node: Node, datacenters: Datacenters, router: Router) -> None:
        self._node = node
        self._datacenters = datacenters
        self._router = router

    def handlers(self) -> dict[type[msgspec.Struct], Callable[[Call, Any], Any]]:
        return {AskDatacenters: self.states, AskRoute: self.route}

    async def states(self, call: Call, ask: AskDatacenters) -> DatacenterStates:
        self._node.check_started(call)
        return self._datacenters.states()

    async def route(self, call: Call, ask: AskRoute) -> RouteView:
        self._node.check_started(call)
        known = self._datacenters.names
        for name in (*ask.named, *ask.excluded):
            if name not in known:
                why = f"there is no datacenter {name!r}, only {', '.join(known)}"
                raise Refused(call.kind.name, why)
        wish = Wish(
            job_id=ask.job_id,
            count=ask.count,
            named=ask.named,
            policy=ask.policy,
            excluded=ask.excluded,
            cores=ask.cores,
        )
        snapshot, decision = self._router.explain(wish)
        return RouteView(
            gate=self._node.settings.id,
            decision=decision,
            snapshot=msgspec.json.encode(snapshot),
        )
