"""One job in one datacenter, as the gate that owns it sees it: sent, followed, commanded.

The gate is a client of the managers there. All of it may be done again by the next owner: managers
know the job and each command by its id, and a stream of updates begins with all there is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import msgspec

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.engine.results import aggregate_of
from hyperscale.errors import HyperscaleError
from hyperscale.metrics.results import decode
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import JobNotAccepted, ReconnectFailed, UnknownJob
from hyperscale.nodes.client.picture import News, Picture
from hyperscale.nodes.gate.events import Ended, Lost
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.shares import body_in, vus_in
from hyperscale.nodes.protocol.jobs import DatacenterView, JobUpdate, SubmitJob
from hyperscale.runtime.host import Host

WITHDRAW_S = 2.0  # how often a datacenter that was lost is asked to end a job
COMMANDS_S = 0.1  # how often it is looked whether there are new ones


class DatacenterRun:
    def __init__(
        self, host: Host, name: str, cluster: Cluster | None, job: GateJob, on_news: OnNews
    ) -> None:
        self.name = name
        self._body = body_in(job.body, job.submitted.datacenters, name)
        self.picture = Picture(self._body.outline())
        self.status = "sending"
        self._clock, self._tasks = host.clock, host.tasks
        self._cluster = cluster
        self._job = job
        self._on_news = on_news

    async def run(self) -> Ended | Lost:
        """Its end there, whatever it is."""
        cluster = self._cluster
        if cluster is None:
            return self._lost(f"its gate was started without --datacenter {self.name}=HOST:PORT")
        try:
            await cluster.submit(self._message())
            self.status = "submitted"
            commanding = self._tasks.spawn(f"command {self._job.job_id}", self._command(cluster))
            try:
                last = await self._follow(cluster)
                self._check(last)
            finally:
                commanding.cancel()
        except JobNotAccepted as error:
            return Ended(self.name, "failed", error.message)
        except HyperscaleError as error:
            return self._lost(error.message)
        except Exception as error:  # noqa: BLE001 - it is data of others, and one datacenter's
            return self._lost(f"what its managers tell cannot be read: {error}")
        view = self.picture.view
        status: JobStatus = view.status if view is not None else "failed"
        reason = view.reason if view is not None else ""
        return Ended(self.name, status, reason, last.results, last.states)

    def view(self) -> DatacenterView:
        view = self.picture.view
        workflows = self.picture.aggregates()
        return DatacenterView(
            name=self.name,
            status=view.status if view is not None else self.status,
            requests=sum(one.requests for one in workflows.values()),
            failed=sum(one.failed for one in workflows.values()),
            coverage=view.coverage if view is not None else 1.0,
            reason=view.reason if view is not None else "",
        )

    def _message(self) -> SubmitJob:
        submitted = self._job.submitted
        body = body_in(self._job.opened_body, submitted.datacenters, self.name)
        return SubmitJob(
            job_id=self._job.job_id,
            body=msgspec.msgpack.encode(body),
            requested_by=submitted.requested_by,
            correlation_id=submitted.correlation_id,
            for_gate=True,
            asked_by=submitted.owner,
            certified=bool(submitted.owner),
            groups=submitted.groups,
        )

    def _check(self, last: JobUpdate) -> None:
        """Raises whatever would keep the job of all datacenters from its end."""
        if last.results:
            decode(last.results)
        for facts in self._body.workflows:
            if state := last.states.get(facts.name):
                aggregate_of(facts).absorb(state)

    async def _follow(self, cluster: Cluster) -> JobUpdate:
        async with aclosing(cluster.follow(self._job.job_id)) as updates:
            async for update in updates:
                news = self.picture.apply(update)
                self._on_news(self, update, news)
                if update.final:
                    return update
        raise ReconnectFailed(f"{self.name} ended the stream of updates")

    async def _command(self, cluster: Cluster) -> None:
        """In the order in which they were committed. A new owner tells all of them again, and what
        a former one sent may arrive late: managers know a command by its id."""
        told = 0
        while True:
            for command in self._job.commands[told:]:
                steer = command.steer
                amount = steer.amount
                if steer.action == "scale":
                    amount = vus_in(amount, self._job.submitted.datacenters, self.name)
                try:
                    await cluster.steer(
                        steer.job_id, steer.action, amount, steer.by, steer.reason,
                        steer.workflow, steer.command_id,
                    )  # fmt: skip
                except HyperscaleError:
                    break  # to be told again, in this order
                told += 1
            await self._clock.sleep(COMMANDS_S)

    def _lost(self, reason: str) -> Lost:
        self.status = "lost"
        states = {name: whole.export() for name, whole in self.picture.aggregates().items()}
        return Lost(self.name, reason, states)


OnNews = Callable[[DatacenterRun, JobUpdate, News], None]


async def withdraw(host: Host, datacenter: Cluster, job_id: str) -> None:
    """Until its managers say that the job ends or is over, or twice that they know none: what was
    sent to them before may wait in their sockets."""
    unknown = 0
    while unknown < 2:
        try:
            reason = "its datacenter was lost to the gates"
            await datacenter.steer(job_id, "cancel", reason=reason, command_id="withdrawn")
            return
        except UnknownJob:
            unknown += 1
        except HyperscaleError:
            pass
        await host.clock.sleep(WITHDRAW_S)
