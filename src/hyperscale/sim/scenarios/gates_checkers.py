"""What must never happen with gates, judged from outside.

Users tell what they were told (`acked`, `steered`, `told`), runners what they did, and at the end
gates what their groups have committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from hyperscale.metrics.results import DatacenterResult, decode
from hyperscale.nodes.gate.jobs import GateJob
from hyperscale.sim.checkers import Checker
from hyperscale.sim.scenarios.cluster_checkers import NeverBackwards
from hyperscale.sim.scenarios.cluster_truth import ObservedPart, Truth

ENDS_WITHIN_S = 15.0  # a worker that does not confirm is given up after ten

Jobs = Callable[[], dict[str, list[GateJob]]]
"""Every job as each gate knows it."""


def digest(results: bytes) -> str:
    return hashlib.blake2b(results, digest_size=8).hexdigest()


class GatesChecker(Checker):
    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        self.truth = truth
        self.jobs = jobs

    def of(self, job_id: str, datacenter: str) -> list[ObservedPart]:
        """Parts that were given to workers of that datacenter."""
        return [
            one
            for one in self.truth.of_job(job_id)
            if one.host.name.partition("-")[0] == datacenter
        ]


class HeldBeforeAck(GatesChecker):
    """A job that was acknowledged is on the disks of a majority of gates, and never unknown."""

    def on_acked(self, _at: float, node: str, key: str, job: str, duplicate: bool) -> None:
        gates = [name for name in self.world.machines if name.startswith("g")]
        holding = [name for name in gates if self._holds(name, key.encode())]
        if len(holding) <= len(gates) // 2:
            self.fail(f"{node} was told that {job} is accepted, which only {holding} hold")

    def _holds(self, gate: str, mark: bytes) -> bool:
        disk = self.world.machines[gate].disk
        return any(
            mark in (disk.durable(path) or b"")
            for path, _ in disk.files()
            if path.startswith("ledger/")
        )

    def on_unknown(self, _at: float, node: str, job: str) -> None:
        self.fail(f"{node} was told that {job} is unknown, which was accepted")


class OneJobPerKey(GatesChecker):
    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        super().__init__(truth, jobs)
        self._jobs: dict[str, str] = {}

    def on_acked(self, _at: float, node: str, key: str, job: str, duplicate: bool) -> None:
        known = self._jobs.setdefault(key, job)
        if known != job:
            self.fail(f"{node} was told that {key} is job {job}, somebody else that it is {known}")


class OneEnd(GatesChecker):
    """Everybody is told the same end, and every gate knows that one."""

    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        super().__init__(truth, jobs)
        self._ends: dict[str, tuple[str, str]] = {}

    def on_told(self, _at: float, node: str, job: str, status: str, results: str) -> None:
        self.world.coverage[f"ended {status}"] += 1
        known = self._ends.setdefault(job, (status, results))
        if known != (status, results):
            self.fail(f"{node} was told that {job} ended as {status, results}, before: {known}")

    def at_end(self) -> None:
        for job_id, known in self.jobs().items():
            ends = {one.completed for one in known if one.completed is not None}
            if len(ends) > 1:
                self.fail(f"gates know {len(ends)} ends of {job_id}")
            held = {(one.status, digest(one.results)) for one in ends}
            if job_id in self._ends and self._ends[job_id] not in held:
                self.fail(f"somebody was told that {job_id} ended as {self._ends[job_id]}, not so")


class NothingAfterTheEnd(GatesChecker):
    """Once somebody was told the end of a job, nothing of it runs but where that was said to be
    unknown."""

    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        super().__init__(truth, jobs)
        self._over: set[str] = set()

    def on_told(self, _at: float, node: str, job: str, status: str, results: str) -> None:
        self._over.add(job)
        for one in self.truth.of_job(job):
            if one.loading and not self._is_lost(job, one.host.name):
                self.fail(f"{node} was told that {job} is over while {one.where} makes load")

    def on_began(self, _at: float, node: str, part: object, **_: object) -> None:
        job = getattr(part, "job_id", "")
        if job in self._over and not self._is_lost(job, node):
            self.fail(f"{node} begins {part} of a job that is over")

    def _is_lost(self, job: str, worker: str) -> bool:
        datacenter = worker.partition("-")[0]
        ends = [one.completed for one in self.jobs().get(job, ()) if one.completed is not None]
        results = decode(ends[0].results)
        return any(
            one.name == datacenter and (one.status == "lost" or one.lost)
            for one in results.datacenters
        )


class BeginsTogether(GatesChecker):
    """Load begins once, and nowhere before every datacenter is prepared or given up."""

    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        super().__init__(truth, jobs)
        self._begun: set[tuple[str, object, object]] = set()
        self._over: dict[str, set[str]] = {}

    def on_looked(self, _at: float) -> None:
        for job_id, known in self.jobs().items():
            self._note(job_id, known)

    def _note(self, job_id: str, known: list[GateJob]) -> set[str]:
        """Datacenters of which nobody waits for anything more."""
        over = self._over.setdefault(job_id, set())
        for job in known:
            over.update(job.ends)
            if job.begun is not None:
                over.update(set(job.submitted.datacenters) - set(job.begun.datacenters))
        return over

    def on_began(self, _at: float, node: str, part: object, fence: object, **_: object) -> None:
        if (node, part, fence) in self._begun:
            self.fail(f"{node} begins {part} twice")
        self._begun.add((node, part, fence))
        job_id = getattr(part, "job_id", "")
        known = self.jobs().get(job_id, [])
        over = self._note(job_id, known)
        for name in known[0].submitted.datacenters if known else ():
            if name not in over and not any(one.prepared for one in self.of(job_id, name)):
                self.fail(f"{node} begins {part} before {name} is prepared")


class TrueNumbers(GatesChecker):
    """What is reported of a datacenter was made there: all of it where nothing was lost, no more
    where something was. The whole is the sum."""

    def at_end(self) -> None:
        for job_id, known in self.jobs().items():
            for job in known[:1]:
                if job.completed is not None and job.completed.results:
                    self._judge(job_id, job.completed.results)

    def _judge(self, job_id: str, encoded: bytes) -> None:
        results = decode(encoded)
        for one in results.datacenters:
            made = sum(part.requests for part in self.of(job_id, one.name))
            exact = self._is_whole(one)
            if one.requests > made or (exact and one.requests != made):
                self.fail(
                    f"{one.name} made {made} requests of {job_id}, told are {one.requests} "
                    f"({one.status}, lost: {one.lost})"
                )
            self.world.coverage["exact numbers" if exact else "numbers of a loss"] += 1
        total = sum(one.requests for one in results.datacenters)
        if results.requests != total:
            self.fail(f"{job_id} has {results.requests} requests in all, {total} by datacenter")

    @staticmethod
    def _is_whole(one: DatacenterResult) -> bool:
        return one.status == "completed" and not one.lost and one.coverage >= 1.0


class KeepsWhatWasTold(GatesChecker):
    """Of a datacenter that is lost nothing is missing that gates had written down before."""

    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        super().__init__(truth, jobs)
        self._told: dict[tuple[str, str], int] = {}

    def on_noted(self, _at: float) -> None:
        for job_id, known in self.jobs().items():
            for told in (one for job in known for one in job.told.values()):
                key = (job_id, told.datacenter)
                self._told[key] = max(told.requests, self._told.get(key, 0))

    def at_end(self) -> None:
        for job_id, known in self.jobs().items():
            completed = next((one.completed for one in known if one.completed is not None), None)
            if completed is None or not completed.results:
                continue
            for one in decode(completed.results).datacenters:
                told = self._told.get((job_id, one.name), 0)
                if told and one.status == "lost":
                    self.world.coverage["told before a loss"] += 1
                if one.requests < told:
                    self.fail(
                        f"{one.name} had told {told} requests of {job_id}, {one.requests} count"
                    )


class WithdrawnIsOver(GatesChecker):
    """Where a job was lost and withdrawn, nothing of it runs once its managers had the time to
    end it."""

    def __init__(self, truth: Truth, jobs: Jobs) -> None:
        super().__init__(truth, jobs)
        self._withdrawn_at: dict[tuple[str, str], float] = {}

    def on_looked(self, at: float) -> None:
        for job_id, known in self.jobs().items():
            for name in {name for one in known for name in one.withdrawn}:
                if at >= self._withdrawn_at.setdefault((job_id, name), at) + ENDS_WITHIN_S:
                    self._judge(job_id, name)

    def _judge(self, job_id: str, name: str) -> None:
        for one in self.of(job_id, name):
            waits = one.prepared and not one.over and not one.host.process.dead
            if one.loading or waits:
                self.fail(f"{one.where} tends {job_id}, which was withdrawn from {name}")

    def at_end(self) -> None:
        self.world.coverage["withdrawn"] += len(self._withdrawn_at)


def all_checkers(truth: Truth, jobs: Jobs) -> list[Checker]:
    kinds = (
        HeldBeforeAck,
        OneJobPerKey,
        OneEnd,
        NothingAfterTheEnd,
        BeginsTogether,
        KeepsWhatWasTold,
        TrueNumbers,
        WithdrawnIsOver,
    )
    return [NeverBackwards(), *(kind(truth, jobs) for kind in kinds)]
