"""One job in one datacenter, as the gate that owns it sees it: sent, followed, commanded.

The gate is a client of the managers there. All of it may be done again by the next owner: managers
know the job and each command by its id, and a stream of updates begins with all there is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import msgspec

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.errors import HyperscaleError
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import (
    JobNotAccepted,
    NoManagersAvailable,
    ReconnectFailed,
    UnknownJob,
)
from hyperscale.nodes.client.picture import News, Picture
from hyperscale.nodes.gate.events import Ended, Lost
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.shares import body_in, vus_in
from hyperscale.nodes.protocol.jobs import DatacenterView, JobUpdate, SubmitJob
from hyperscale.runtime.host import Host

WITHDRAW_S = 2.0  # how often a datacenter that was lost is asked to end a job
AGAIN_S = 1.0  # after a silence that was not the datacenter's
COMMANDS_S = 0.1  # how often it is looked whether there are new ones


class DatacenterRun:
    def __init__(
        self,
        host: Host,
        name: str,
        cluster: Cluster,
        job: GateJob,
        on_news: OnNews,
        is_lost: IsLost,
    ) -> None:
        self.name = name
        self._body = body_in(job.body, job.submitted.datacenters, name)
        self.picture = Picture(self._body.outline())
        self.status = "sending"
        self._clock, self._tasks = host.clock, host.tasks
        self._cluster = cluster
        self._job = job
        self._on_news = on_news
        self._is_lost = is_lost

    async def run(self) -> Ended | Lost:
        """Its end there, whatever it is."""
        while True:
            try:
                last = await self._run_once()
                break
            except JobNotAccepted as error:
                return Ended(self.name, "failed", error.message)
            except HyperscaleError as error:
                if self._is_lost(self.name, _is_asked_later(error)):
                    return self._lost(error.message)
            await self._clock.sleep(AGAIN_S)
        view = self.picture.view
        status: JobStatus = view.status if view is not None else "failed"
        reason = view.reason if view is not None else ""
        return Ended(self.name, status, reason, last.results, last.states)

    async def _run_once(self) -> JobUpdate:
        await self._cluster.submit(self._message())
        self.status = "submitted"
        commanding = self._tasks.spawn(f"command {self._job.job_id}", self._command())
        try:
            return await self._follow()
        finally:
            commanding.cancel()

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
        return SubmitJob(
            job_id=self._job.job_id,
            body=msgspec.msgpack.encode(self._body),
            requested_by=submitted.requested_by,
            correlation_id=submitted.correlation_id,
            for_gate=True,
            asked_by=submitted.owner,
            certified=bool(submitted.owner),
            groups=submitted.groups,
        )

    async def _follow(self) -> JobUpdate:
        async with aclosing(self._cluster.follow(self._job.job_id)) as updates:
            async for update in updates:
                news = self.picture.apply(update)
                self._on_news(self, update, news)
                if update.final:
                    return update
        raise ReconnectFailed(f"{self.name} ended the stream of updates")

    async def _command(self) -> None:
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
                    await self._cluster.steer(
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
IsLost = Callable[[str, bool], bool]
"""Whether a datacenter that was silent for too long is given up, or one that was not silent but
asked to be asked later."""


def _is_asked_later(error: HyperscaleError) -> bool:
    return isinstance(error, NoManagersAvailable | ReconnectFailed) and error.busy


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
