"""A run on a cluster, in the shape of a local one: the same view, summary, files and exit code.

The job lives in the cluster. This is its image: it outlives the death of any manager, and when it
ends itself, the job goes on. Stopping is asked of the job, and its end is what the cluster says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Literal

from hyperscale.cluster.jobs.records import Action
from hyperscale.engine.run import RunOptions
from hyperscale.engine.source import ClassSource, FileSource
from hyperscale.errors import BadInput, ExitCode, HyperscaleError, RunFailed
from hyperscale.metrics.results import Results
from hyperscale.nodes.client.client import connect, requester
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.picture import Picture
from hyperscale.nodes.client.scaling import new_rates, new_totals
from hyperscale.nodes.client.settings import ClusterSettings
from hyperscale.nodes.client.submission import Submission, Where, new_job_id, prepare
from hyperscale.nodes.protocol.jobs import JobAck, Policy, WorkerView
from hyperscale.runtime.host import Host, Task
from hyperscale.runtime.real import RealHost
from hyperscale.workload.plan import Overrides, TestPlan

WORKERS_WITHIN_S = 3.0


class ClusterRun:
    """Made by `submit` or `attach`; `execute` does it."""

    def __init__(
        self,
        settings: ClusterSettings,
        submission: Submission | None,
        job_id: str,
        key: str = "",
        where: Where | None = None,
    ) -> None:
        self._settings = settings
        self._submission = submission
        self._key = key
        self._where = where
        self.job_id = job_id
        self._picture = Picture(submission.outline if submission is not None else None)
        self._began = perf_counter()
        self._cluster: Cluster | None = None
        self._host: Host | None = None
        self.ack: JobAck | None = None
        self.joined = False
        """The key was used before: this is the job of then."""
        self.accepted = asyncio.Event()
        """Set when the job has a name, and at the end in any case."""
        self._wanted: list[tuple[Action, int, str]] = []
        self._course: Task | None = None
        self.left = False
        self._stopping = 0
        self._failure: HyperscaleError | None = None
        self._finished: Results | None = None
        self.on_trace: Callable[[str], None] | None = None
        self.on_trouble: Callable[[str], None] | None = None
        self.on_waiting: Callable[[str], None] | None = None
        """Told what the submission waits for; once the job has a name the view tells of it."""

    @classmethod
    def submit(
        cls,
        settings: ClusterSettings,
        source: FileSource | ClassSource,
        overrides: Overrides | None = None,
        options: RunOptions | None = None,
        *,
        key: str = "",
        datacenters: Mapping[str, int] | None = None,
        datacenters_else: Mapping[str, int] | None = None,
        count: int = 0,
        policy: Policy | Literal[""] = "",
    ) -> ClusterRun:
        """`datacenters` is stronger than what the test says of them, `datacenters_else` weaker.
        Raises BadInput for a test that cannot be planned or cannot travel."""
        submission = prepare(source, overrides, options)
        named = datacenters or submission.plan.datacenters or datacenters_else or {}
        return cls(settings, submission, "", key, Where.of(named, count, policy))

    @classmethod
    def attach(cls, settings: ClusterSettings, job_id: str) -> ClusterRun:
        return cls(settings, None, job_id)

    @property
    def plan(self) -> TestPlan:
        if self._submission is None:
            raise RuntimeError("the plan of a job that others submitted is theirs")
        return self._submission.plan

    @property
    def failure(self) -> HyperscaleError | None:
        """What kept the job from being carried out, with a hint for the person."""
        return self._failure

    @property
    def undecided(self) -> str:
        """What to tell who leaves before the cluster has answered the submission."""
        if self._submission is None or self.ack is not None:
            return ""
        if not self.job_id:
            return "left before the job was submitted"
        return (
            "left before the cluster answered; if it took the job, it runs: "
            f"hyperscale cancel {self.job_id}"
        )

    def abandon(self) -> None:
        """Give up a run that was never executed: nothing has been sent."""

    # -- its course --------------------------------------------------------------------------

    async def execute(self) -> Results:
        """Submit, follow to the end. Raises HyperscaleError when the cluster cannot be reached or
        does not take the job."""
        self._began = perf_counter()
        async with RealHost(self._settings.identity.node_id, os.devnull) as host:
            self._host, self._cluster = host, self._connect(host)
            self._course = host.tasks.spawn("the run", self._run(self._cluster, host))
            try:
                await self._course
            except asyncio.CancelledError:
                if not self.left:
                    raise
            finally:
                self._cluster.managers.close()
                self._host = self._cluster = None
                self._finished = self._end()
                self.accepted.set()
        return self._finished

    async def _run(self, cluster: Cluster, host: Host) -> None:
        if self._submission is not None:
            await self._submit(cluster, host, self._submission)
        async with aclosing(cluster.follow(self.job_id)) as updates:
            async for update in updates:
                self._picture.apply(update)
                if update.view is not None:
                    self._began = min(self._began, perf_counter() - update.view.age_s)

    async def detach(self) -> JobAck:
        """Submit, and leave the job to the cluster."""
        async with RealHost(self._settings.identity.node_id, os.devnull) as host:
            cluster = self._connect(host)
            assert self._submission is not None, "only what is submitted here can be left there"
            try:
                return await self._submit(cluster, host, self._submission)
            finally:
                cluster.managers.close()

    def _connect(self, host: Host) -> Cluster:
        cluster = connect(host, self._settings)
        cluster.managers.on_waiting = self._waits
        return cluster

    def _waits(self, reason: str) -> None:
        if self.on_waiting is not None and not self.accepted.is_set():
            self.on_waiting(reason)

    async def _submit(self, cluster: Cluster, host: Host, submission: Submission) -> JobAck:
        message = submission.message(
            new_job_id(host.random),
            key=self._key,
            requested_by=requester(),
            where=self._where,
        )
        self.job_id = message.job_id
        ack = await cluster.submit(message)
        self.job_id = ack.original_job_id if ack.was_duplicate else ack.job_id
        self.joined = self.job_id != message.job_id
        self.ack = ack
        self.accepted.set()
        wanted, self._wanted = self._wanted, []
        for action, amount, workflow in wanted:
            self._steer(action, amount, workflow)
        return ack

    def _end(self) -> Results:
        """The cluster's word, or when it has none, what we have seen."""
        picture = self._picture
        results = picture.results(perf_counter() - self._began)
        if picture.final is None:
            results.state = "finished"
            if self.left:
                results.cut, results.cut_reason = (
                    "signal",
                    self.undecided or "left; the job goes on",
                )
                results.exit_code = int(ExitCode.STOPPED)
            elif picture.over:
                status = picture.ended_as or "failed"
                reason = picture.view.reason if picture.view is not None else ""
                results.cut, results.cut_reason = "error", reason or f"the job ended as {status}"
                results.exit_code = int(ExitCode.FAILED)
        hints = [done.hint for done in picture.done.values() if done.error and done.hint]
        self._failure = failure_of(results, hints[0] if hints else "")
        return results

    def results(self) -> Results:
        if self._finished is not None:
            return self._finished
        results = self._picture.results(perf_counter() - self._began)
        if self._stopping and results.state in ("running", "paused"):
            results.state = "stopping"
        return results

    async def look_at_workers(self) -> Sequence[WorkerView]:
        """Those that work for the job now; none where nobody tells of them, as through a gate."""
        view = self._picture.view
        if self._cluster is None or view is None or view.datacenters:
            return ()
        try:
            return (await self._cluster.workers(self.job_id, WORKERS_WITHIN_S)).workers
        except HyperscaleError:
            return ()

    # -- levers ------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the job gracefully: iterations under way may finish."""
        self._stopping = max(self._stopping, 1)
        self._steer("stop")

    def kill(self) -> None:
        """End the job now. Once more: leave, whatever becomes of it."""
        if self._stopping > 1:
            self.leave()
        self._stopping = 2
        self._steer("cancel")

    def leave(self) -> None:
        """Stop looking; the job goes on."""
        self.left = True
        if self._course is not None:
            self._course.cancel()

    def pause(self) -> None:
        self._steer("pause")

    def resume(self) -> None:
        self._steer("resume")

    def scale(self, delta: int, workflow: str | None = None) -> None:
        try:
            totals = new_totals(self.results(), delta, workflow or "")
        except RunFailed as error:
            self._say(f"scale: {error.message}")
            return
        for name, vus in totals.items():
            self._steer("scale", vus, name)

    def change_rate(self, factor: float, workflow: str | None = None) -> None:
        try:
            rates = new_rates(self._picture, factor, workflow or "")
        except RunFailed as error:
            self._say(f"rate: {error.message}")
            return
        for name, percent in rates.items():
            self._steer("rate", percent, name)

    def _steer(self, action: Action, amount: int = 0, workflow: str = "") -> None:
        if self._submission is not None and self.ack is None:
            self._wanted.append((action, amount, workflow))  # the job has no name yet
        elif self._host is not None and self._cluster is not None:
            asking = self._ask(self._cluster, action, amount, workflow)
            self._host.tasks.spawn(f"{action} the job", asking)

    async def _ask(self, cluster: Cluster, action: Action, amount: int, workflow: str) -> None:
        try:
            ack = await cluster.steer(self.job_id, action, amount, requester(), "by hand", workflow)
            trouble = "" if ack.accepted else ack.error
        except HyperscaleError as error:
            trouble = error.message
        if trouble:
            self._say(f"{action}: {trouble}")

    def _say(self, trouble: str) -> None:
        if self.on_trouble is not None:
            self.on_trouble(trouble)


def failure_of(results: Results, hint: str = "") -> HyperscaleError | None:
    """What kept a run from being carried out, as its results tell it."""
    if results.cut != "error":
        return None
    kind = BadInput if results.exit_code == ExitCode.BAD_INPUT else RunFailed
    return kind(results.cut_reason, hint)
