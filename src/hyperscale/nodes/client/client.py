"""`HyperscaleClient`: a cluster for Python programs.

async with HyperscaleClient(["10.0.0.1:7000"], certs="certs") as client:
    job_id = await client.submit_job([Checkout], vus=50, duration="1m")
    outcome = await client.wait_for_completion(job_id)
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from hyperscale.cluster.jobs.records import Action, LostLoad
from hyperscale.engine.run import RunOptions
from hyperscale.engine.source import ClassSource
from hyperscale.errors import BadInput, RunFailed
from hyperscale.nodes.client.cluster import Cluster
from hyperscale.nodes.client.errors import NoManagersAvailable, ReconnectFailed
from hyperscale.nodes.client.managers import Managers, endpoint_of
from hyperscale.nodes.client.pushes import JobOutcome, WorkflowResultPush
from hyperscale.nodes.client.settings import ClusterSettings, addresses_of, read_cluster
from hyperscale.nodes.client.submission import Where, new_job_id, prepare
from hyperscale.nodes.client.watch import (
    Callbacks,
    JobWatch,
    ProgressCallback,
    ResultCallback,
    StatusCallback,
)
from hyperscale.nodes.protocol.jobs import JobView, Policy, WorkerView
from hyperscale.runtime.host import Host
from hyperscale.runtime.real import RealHost
from hyperscale.workload.datacenters import read_datacenters
from hyperscale.workload.durations import parse_duration
from hyperscale.workload.given import AnyWorkflow
from hyperscale.workload.plan import Overrides

Addresses = Sequence[str | tuple[str, int]]

RECONNECT_RETRIES = 3
# Ended jobs whose results are kept at hand; those of others are asked for again.
WATCHES_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmission:
    """A job in one piece, for programs that pass it around. `workflows` are classes, instances, or
    either with dependencies."""

    workflows: Sequence[AnyWorkflow]
    target_datacenters: Sequence[str] | Mapping[str, int] = ()
    datacenter_count: int = 0
    datacenter_policy: Policy | Literal[""] = ""
    vus: int | None = None
    timeout_seconds: float | None = None
    idempotency_key: str = ""


class HyperscaleClient:
    """`managers` are addresses, "host:port" or ("host", port); one is enough, the others are
    learned. `gate_addrs` and `gate_tcp_addrs` are other names for them. Without any, the
    `hyperscale dev` cluster of this machine is meant."""

    def __init__(
        self,
        managers: Addresses = (),
        *,
        gate_addrs: Addresses = (),
        gate_tcp_addrs: Addresses = (),
        certs: str | os.PathLike[str] | None = None,
        name: str = "",
        cluster: str = "",
        env: str = "",
    ) -> None:
        flags = {
            "manager": addresses_of([*managers, *gate_addrs, *gate_tcp_addrs]),
            "certs": "" if certs is None else os.fspath(certs),
            "name": name,
            "id": cluster,
            "environment": env,
        }
        self._settings = read_cluster(flags, os.environ, {})
        self._session: _Session | None = None

    async def start(self) -> None:
        """Connect to any of the managers. Raises NoManagersAvailable, or what is wrong."""
        if self._session is not None:
            return
        session = _Session.open(self._settings)
        try:
            await session.cluster.managers.connect()
        except BaseException:
            await session.close()
            raise
        self._session = session

    async def stop(self) -> None:
        """Leave the cluster. Jobs go on."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> HyperscaleClient:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # -- jobs --------------------------------------------------------------------------------

    async def submit_job(
        self,
        workflows: Sequence[AnyWorkflow] | JobSubmission,
        *,
        name: str = "",
        timeout: str | float | None = None,
        lost_load: LostLoad = "squeeze",
        seed: int | None = None,
        environ: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        on_status_update: StatusCallback | None = None,
        on_progress_update: ProgressCallback | None = None,
        on_workflow_result: ResultCallback | None = None,
        **overrides: Any,
    ) -> str:
        """The job's id, once the cluster holds the job.

        Other keywords are those of `Overrides` (vus, duration, rate, ...) and win over the
        classes; `environ` are variables for the test. `lost_load` is what becomes of the load of a
        worker that dies while no core is free: "squeeze", "move" or "drop". A program that must be
        able to submit again after its own crash gives the same `idempotency_key` both times, and
        gets the same job.
        """
        session = self._open()
        given = _as_submission(workflows, timeout, idempotency_key)
        if given.vus is not None:
            overrides.setdefault("vus", given.vus)
        try:
            flags = Overrides(**overrides)
        except TypeError as error:
            known = ", ".join(Overrides.__struct_fields__)
            raise BadInput(f"submit_job(): {error}", f"it takes {known}") from None
        options = RunOptions(
            name=name,
            timeout_s=given.timeout_seconds,
            lost_load=lost_load,
            seed=seed,
            env=environ or {},
        )
        submission = await asyncio.to_thread(prepare, ClassSource(*given.workflows), flags, options)
        message = submission.message(
            new_job_id(session.host.random),
            key=given.idempotency_key,
            requested_by=requester(),
            where=Where.of(
                read_datacenters(given.target_datacenters or None) or submission.plan.datacenters,
                given.datacenter_count,
                given.datacenter_policy,
            ),
        )
        callbacks = Callbacks(on_status_update, on_progress_update, on_workflow_result)
        ack = await session.cluster.submit(message)
        job_id = ack.original_job_id if ack.was_duplicate else ack.job_id
        if callbacks.any:
            session.watch(job_id, callbacks).start()
        return job_id

    async def stream_workflow_results(self, job_id: str) -> AsyncIterator[WorkflowResultPush]:
        """Every workflow's result as it ends, those that ended before included. Raises JobFailed
        or JobCancelled after the last one when the job did not end well; UnknownJob at once."""
        async for push in self._open().watch(job_id).results():
            yield push

    async def wait_for_completion(
        self, job_id: str, timeout: str | float | None = None
    ) -> JobOutcome:
        """The end of the job: `.status` is completed, partial, failed, cancelled or timeout."""
        limit_s = None if timeout is None else parse_duration(timeout)
        try:
            async with asyncio.timeout(limit_s):
                return await self._open().watch(job_id).outcome()
        except TimeoutError:
            raise RunFailed(
                f"job {job_id} has not ended within {limit_s:g} s", "it goes on all the same"
            ) from None

    async def reconnect_to_job(
        self,
        job_id: str,
        max_retries: int = RECONNECT_RETRIES,
        *,
        on_status_update: StatusCallback | None = None,
        on_progress_update: ProgressCallback | None = None,
        on_workflow_result: ResultCallback | None = None,
    ) -> JobView:
        """Follow a job of an earlier program, or after a long break; nothing of it is missed.

        Each try asks every manager, again and again, for longer than an election takes.
        """
        session = self._open()
        callbacks = Callbacks(on_status_update, on_progress_update, on_workflow_result)
        for tries_left in reversed(range(max(1, max_retries))):
            try:
                view = await session.cluster.job(job_id)
            except NoManagersAvailable as error:
                if not tries_left:
                    raise ReconnectFailed(error.message, error.hint) from error
            else:
                if callbacks.any:
                    session.watch(job_id, callbacks).start()
                return view
        raise AssertionError("the last try returns or raises")

    async def get_job_status(self, job_id: str = "", *, idempotency_key: str = "") -> JobView:
        """By the job's id, or by the key it was submitted with. Raises UnknownJob."""
        if bool(job_id) == bool(idempotency_key):
            raise BadInput("get_job_status() takes a job's id, or an idempotency_key")
        return await self._open().cluster.job(job_id, idempotency_key)

    async def jobs(self) -> list[JobView]:
        return list((await self._open().cluster.jobs()).jobs)

    async def workers(self, job_id: str = "") -> list[WorkerView]:
        return list((await self._open().cluster.workers(job_id)).workers)

    async def get_datacenters(self) -> list[str]:
        session = self._open()
        if session.cluster.managers.datacenter is None:
            await session.cluster.managers.connect()
        return [session.cluster.managers.datacenter or ""]

    async def cancel_job(self, job_id: str, reason: str = "") -> int:
        """End all load of a job now. Returns how many workflows that concerns; wait for the
        completion to know that they have stopped. Again is no error."""
        return await self._steer(job_id, "cancel", reason=reason)

    async def stop_job(self, job_id: str, reason: str = "") -> int:
        """As `cancel_job`, but iterations under way may finish, and are judged."""
        return await self._steer(job_id, "stop", reason=reason)

    async def pause_job(self, job_id: str) -> int:
        return await self._steer(job_id, "pause")

    async def resume_job(self, job_id: str) -> int:
        return await self._steer(job_id, "resume")

    async def scale_job(self, job_id: str, vus: int, workflow: str = "") -> int:
        """Give the workflow, or every one under way, this many virtual users."""
        return await self._steer(job_id, "scale", vus, workflow=workflow)

    async def change_rate(self, job_id: str, percent: int, workflow: str = "") -> int:
        """Give the workflow, or every one under way, this share of its planned rate."""
        return await self._steer(job_id, "rate", percent, workflow=workflow)

    # -- parts -------------------------------------------------------------------------------

    async def _steer(
        self, job_id: str, action: Action, amount: int = 0, reason: str = "", workflow: str = ""
    ) -> int:
        cluster = self._open().cluster
        ack = await cluster.steer(job_id, action, amount, requester(), reason, workflow)
        if not ack.accepted:
            raise RunFailed(f"job {job_id} cannot be {_PAST[action]}: {ack.error}")
        return ack.workflows

    def _open(self) -> _Session:
        if self._session is None:
            raise RunFailed(
                "the client is not started", "await client.start(), or: async with client"
            )
        return self._session


class _Session:
    """What exists between start and stop."""

    def __init__(self, host: RealHost, cluster: Cluster) -> None:
        self.host = host
        self.cluster = cluster
        self._watches: dict[str, JobWatch] = {}

    @classmethod
    def open(cls, settings: ClusterSettings) -> _Session:
        host = RealHost(settings.identity.node_id, os.devnull)
        return cls(host, connect(host, settings))

    def watch(self, job_id: str, callbacks: Callbacks | None = None) -> JobWatch:
        known = self._watches.pop(job_id, None)
        if known is None or known.failed or callbacks is not None:
            known = JobWatch(self.host, self.cluster, job_id, callbacks or Callbacks())
        self._watches[job_id] = known
        known.start()
        ended = [old for old, watch in self._watches.items() if watch.over]
        for old in ended[: max(0, len(self._watches) - WATCHES_KEPT)]:
            del self._watches[old]
        return known

    async def close(self) -> None:
        self.cluster.managers.close()
        await self.host.stop()


_PAST: dict[Action, str] = {
    "cancel": "cancelled",
    "stop": "stopped",
    "pause": "paused",
    "resume": "resumed",
    "scale": "scaled",
    "rate": "given another rate",
    "begin": "begun",
}


def connect(host: Host, settings: ClusterSettings) -> Cluster:
    """Nothing is sent yet."""
    endpoint = endpoint_of(host, settings.identity, settings.credentials)
    secured = settings.credentials is not None
    return Cluster(host, Managers(endpoint, settings.managers, secured=secured))


def requester() -> str:
    """Who asks, for the audit: a label, not a proof."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return socket.gethostname()


def _as_submission(
    given: Sequence[AnyWorkflow] | JobSubmission,
    timeout: str | float | None,
    idempotency_key: str | None,
) -> JobSubmission:
    """One shape out of the two that are understood; keywords win."""
    if not isinstance(given, JobSubmission):
        given = JobSubmission(workflows=tuple(given))
    return JobSubmission(
        workflows=given.workflows,
        target_datacenters=given.target_datacenters,
        datacenter_count=given.datacenter_count,
        datacenter_policy=given.datacenter_policy,
        vus=given.vus,
        timeout_seconds=given.timeout_seconds if timeout is None else parse_duration(timeout),
        idempotency_key=given.idempotency_key if idempotency_key is None else idempotency_key,
    )
