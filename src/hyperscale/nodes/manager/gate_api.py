"""What a manager answers to the probes of gates: who leads here, and how the datacenter is."""

from __future__ import annotations

from hyperscale.cluster.datacenters.facts import Facts
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.membership import MemberState
from hyperscale.nodes.manager.leadership import Leadership
from hyperscale.nodes.member.node import Node
from hyperscale.nodes.protocol.datacenters import DatacenterReport, ProbeDatacenter
from hyperscale.wire.serving import Call


class GateApi:
    def __init__(self, node: Node, leadership: Leadership, jobs: JobQueries) -> None:
        self._node = node
        self._leadership = leadership
        self._jobs = jobs
        self.probes = 0

    async def probe(self, call: Call, ask: ProbeDatacenter) -> DatacenterReport:
        """Any manager answers, so that the death of one is not the death of a datacenter."""
        self._node.check_started(call)
        self.probes += 1
        leads = self._leadership.leads()
        return DatacenterReport(
            leader=self._node.settings.id if leads else self._leadership.leader,
            leader_at=self._leadership.leader_address(),
            managers=tuple(self._managers_at()),
            facts=self._facts() if leads else None,
        )

    def _managers_at(self) -> list[tuple[str, int]]:
        members = self._node.membership.core.members()
        mine = self._node.membership.me.tcp
        others = [
            member.node.tcp
            for member in members
            if member.node.role == "manager" and member.state is MemberState.ALIVE
        ]
        return [mine, *others]

    def _facts(self) -> Facts:
        node, pool, now = self._node, self._jobs.pool, self._node.now()
        voters = node.settings.voters
        alive = {
            member.node_id
            for member in node.membership.core.members()
            if member.state is MemberState.ALIVE
        }
        well = [w for w in pool.workers.values() if w.registered and not pool.is_lost(now, w)]
        return Facts(
            managers=len(voters),
            managers_alive=sum(one in alive or one == node.settings.id for one in voters),
            workers=len(pool.workers),
            workers_healthy=len(well),
            cores=sum(worker.total for worker in well),
            cores_free=pool.free_cores(now),
            queued=self._jobs.queued(),
            running=sum(not job.is_over for job in self._jobs.jobs()),
            load=int(node.admission.load),
        )
