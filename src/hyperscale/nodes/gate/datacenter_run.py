"""One job in one datacenter, as the gate that owns it sees it: sent, followed, commanded.

The gate is a client of the managers there. All of it may be done again by the next owner: managers
know the job and each command by its id, and a stream of updates begins with all there is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from hyperscale.cluster.jobs.records import JobStatus
from hyperscale.engine.results import aggregate_of
from hyperscale.errors import HyperscaleError
from hyperscale.metrics import exported
from hyperscale.metrics.exported import DamagedState
from hyperscale.metrics.results import decode
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import (
    JobNotAccepted,
    NoManagersAvailable,
    ReconnectFailed,
    UnknownJob,
)
from hyperscale.nodes.client.picture import News, Picture
from hyperscale.nodes.gate.events import Ended, Lost, Told
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.nodes.gate.numbers import LiveNumbers
from hyperscale.nodes.gate.shares import body_in, vus_in
from hyperscale.nodes.protocol.jobs import DatacenterView, JobUpdate, JobView, Snapshot, SubmitJob
from hyperscale.runtime.host import Host, Task

WITHDRAW_S = 2.0  # how often a datacenter that was lost is asked to end a job
AGAIN_S = 1.0  # after a silence that was not the datacenter's
COMMANDS_S = 0.1  # how often it is looked whether there are new ones
LOOK_S = 0.05
# How far a datacenter is, is measured while it prepares: these many times at once, then every
# second. A word that is not answered is said again with another duration, so it is not patient.
ROUND_TRIPS = 5
MEASURE_S = 1.0
TELL_WITHIN_S = 2.0


class DatacenterRun:
    def __init__(
        self,
        host: Host,
        name: str,
        cluster: Cluster | None,
        job: GateJob,
        on_news: OnNews,
        is_lost: IsLost,
    ) -> None:
        self.name = name
        self._body = body_in(job.body, job.submitted.datacenters, name)
        self.picture = Picture(self._body.outline())
        self.status = "sending"
        self._numbers = LiveNumbers(host.clock)
        self._clock, self._tasks = host.clock, host.tasks
        self._cluster = cluster
        self._job = job
        self._on_news = on_news
        if (told := job.told.get(name)) is not None:
            self.picture.apply(_as_told(told))
        self._following: Task | None = None
        self.gave_up = ""
        self.began_at: float | None = None
        """When its load began, by the clock of this gate."""
        self._round_trips: deque[float] = deque(maxlen=ROUND_TRIPS)
        self._is_lost = is_lost

    async def run(self) -> Ended | Lost:
        """Its end there, whatever it is."""
        cluster = self._cluster
        if cluster is None:
            return self._lost(f"its gate was started without --datacenter {self.name}=HOST:PORT")
        while True:
            try:
                last = await self._course(cluster)
                self._check(last)
                break
            except JobNotAccepted as error:
                return Ended(self.name, "failed", error.message)
            except asyncio.CancelledError:
                if not self.gave_up:
                    raise
                return self._lost(self.gave_up)
            except Exception as error:  # noqa: BLE001 - it is data of others, and one datacenter's
                if not isinstance(error, HyperscaleError) or isinstance(error, DamagedState):
                    return self._lost(f"what its managers tell cannot be read: {error}")
                if self._is_lost(self.name, _is_asked_later(error)):
                    return self._lost(error.message)
            await self._clock.sleep(AGAIN_S)
        view = self.picture.view
        status: JobStatus = view.status if view is not None else "failed"
        reason = view.reason if view is not None else ""
        return Ended(self.name, status, reason, last.results, self._final(last))

    def _final(self, last: JobUpdate) -> dict[str, bytes]:
        """A datacenter whose managers and workers died has forgotten what it told us before."""
        states = dict(last.states)
        for facts in self._body.workflows:
            known, ended = self.picture.aggregates()[facts.name], aggregate_of(facts)
            if state := states.get(facts.name):
                ended.absorb(state)
            if known.requests > ended.requests:
                states[facts.name] = exported.spread(known.brief())
        return states

    async def _course(self, cluster: Cluster) -> JobUpdate:
        about = f"{self._job.job_id} in {self.name}"
        self._following = self._tasks.spawn(f"follow {about}", self._follow(cluster))
        if self.gave_up:
            self._following.cancel()
        beside = [self._tasks.spawn(f"command {about}", self._command(cluster))]
        if self._job.is_held and self._job.begun is None:
            beside.append(self._tasks.spawn(f"measure {about}", self._measure(cluster)))
        try:
            last: JobUpdate = await self._following
            return last
        finally:
            for task in (self._following, *beside):
                task.cancel()

    def give_up(self, why: str) -> None:
        """It is told as lost, and withdrawn."""
        self.gave_up = why
        if self._following is not None:
            self._following.cancel()

    # -- the beginning -------------------------------------------------------------------------

    @property
    def is_prepared(self) -> bool:
        """Its load waits for the word to begin, or has begun."""
        view = self.picture.view
        return self.began_at is not None or (view is not None and view.status == "prepared")

    @property
    def round_trip_s(self) -> float:
        """To its leading manager and back, the fastest of the last ones; 0: not known."""
        return min(self._round_trips, default=0.0)

    async def _measure(self, cluster: Cluster) -> None:
        while self._job.begun is None:
            if self.status == "submitted":
                sent_at = self._clock.now()
                try:
                    await cluster.job(self._job.job_id, within_s=TELL_WITHIN_S)
                    self._round_trips.append(self._clock.now() - sent_at)
                except HyperscaleError:
                    pass
            is_first = len(self._round_trips) < ROUND_TRIPS
            await self._clock.sleep(LOOK_S if is_first else MEASURE_S)

    async def begin(self, moment: float) -> None:
        """By the clock of this gate. Until it is told, with what is left until then each time."""
        cluster = self._cluster
        while cluster and self.name in self._job.running_in and not self._job.ending:
            left_s = moment - self._clock.now() - self.round_trip_s / 2
            try:
                await cluster.steer(
                    self._job.job_id,
                    "begin",
                    max(0, round(left_s * 1_000)),
                    command_id="begin",
                    within_s=TELL_WITHIN_S,
                )
                return
            except HyperscaleError:
                await self._clock.sleep(LOOK_S)

    def _note_beginning(self, view: JobView) -> None:
        """What is told late is told too late, so the earliest time that was ever told is it."""
        if view.began_ago_s is None:
            return
        began_at = self._clock.now() - self.round_trip_s / 2 - view.began_ago_s
        self.began_at = began_at if self.began_at is None else min(self.began_at, began_at)

    def view(self) -> DatacenterView:
        view = self.picture.view
        known = DatacenterView(
            name=self.name,
            status=view.status if view is not None else self.status,
            coverage=view.coverage if view is not None else 1.0,
            reason=view.reason if view is not None else "",
            share=self._job.submitted.datacenters[self.name],
        )
        return self._numbers.put_into(known, list(self.picture.aggregates().values()))

    def _message(self) -> SubmitJob:
        submitted = self._job.submitted
        body = body_in(self._job.opened_body, submitted.datacenters, self.name)
        return SubmitJob(
            job_id=self._job.job_id,
            body=msgspec.msgpack.encode(body),
            requested_by=submitted.requested_by,
            correlation_id=submitted.correlation_id,
            for_gate=True,
            held=self._job.is_held,
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
        await cluster.submit(self._message())
        self.status = "submitted"
        async with aclosing(cluster.follow(self._job.job_id)) as updates:
            async for update in updates:
                news = self.picture.apply(update)
                if update.view is not None:
                    self._note_beginning(update.view)
                self._on_news(self, update, news)
                if update.final:
                    return update
        raise ReconnectFailed(f"{self.name} ended the stream of updates")

    async def _command(self, cluster: Cluster) -> None:
        """In the order in which they were committed. A new owner tells all of them again, and what
        a former one sent may arrive late: managers know a command by its id."""
        told = 0
        while True:
            if self.status == "sending":
                await self._clock.sleep(COMMANDS_S)
                continue
            for command in self._job.commands[told:]:
                steer = command.steer
                amount = steer.amount
                if steer.action == "scale":
                    amount = vus_in(amount, self._job.submitted.datacenters)[self.name]
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
        at_s = max((one.elapsed_s for one in self.picture.aggregates().values()), default=0.0)
        return Lost(self.name, reason, states, round(at_s, 3))

    def totals(self) -> Told:
        """All that was told so far, without how it went over time."""
        wholes = self.picture.aggregates()
        return Told(
            self.name,
            sum(one.requests for one in wholes.values()),
            max((one.elapsed_s for one in wholes.values()), default=0.0),
            {name: whole.brief() for name, whole in wholes.items()},
        )


def _as_told(told: Told) -> JobUpdate:
    """What an earlier owner wrote down: shown until the datacenter has told as much."""
    return JobUpdate(
        snapshots=tuple(
            Snapshot(workflow=name, index=0, elapsed_s=told.elapsed_s, state=exported.spread(state))
            for name, state in told.states.items()
        )
    )


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
