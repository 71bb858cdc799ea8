"""What must never happen in a cluster, judged from outside.

Stages tell what was really done (`accepted`, `began`), managers what they hold (`committed`),
users what they were told (`acked`, `shown`, `told`).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Failed,
    Finished,
    GivenUp,
    JobRecord,
    Needs,
    Part,
    PartEnded,
    PartLost,
    Returned,
    Started,
    Steered,
    TimedOut,
    ToldLate,
)
from hyperscale.cluster.jobs.state import ReplicatedState
from hyperscale.metrics.exported import decode as decode_state
from hyperscale.metrics.results import Results, WorkflowResult, decode
from hyperscale.nodes.manager.part_end import decode_end
from hyperscale.sim.checkers import Checker
from hyperscale.sim.scenarios.cluster_truth import ObservedPart, Truth


class ClusterChecker(Checker):
    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def holding(self, mark: bytes) -> list[str]:
        """Managers on whose stable storage these bytes are."""
        machines = self.world.machines
        return [
            name
            for name in machines
            if name.startswith("m")
            and any(
                mark in (machines[name].disk.durable(path) or b"")
                for path, _ in machines[name].disk.files()
                if path.startswith("records/")
            )
        ]

    def is_held(self, mark: bytes) -> bool:
        managers = [name for name in self.world.machines if name.startswith("m")]
        return len(self.holding(mark)) > len(managers) // 2


class HeldBeforeAck(ClusterChecker):
    """A job that was acknowledged is on the disks of a majority, and never unknown; a command that
    was accepted is held."""

    def on_steered(self, _at: float, node: str, job: str, action: str, taken: bool) -> None:
        if taken and not self._obeyed(job, action):
            self.fail(f"{node} was told that {job} will {action}, which nobody holds")

    def _obeyed(self, job: str, action: str) -> bool:
        known = list(records_of(self.truth, job))
        words = [one.action for one in known if isinstance(one, Steered)]
        if action in ("cancel", "stop"):
            ended = any(isinstance(one, TimedOut | Finished) for one in known)
            return ended or "cancel" in words or "stop" in words
        if action == "resume":
            turns = [one for one in words if one in ("pause", "resume")]
            return not turns or turns[-1] == "resume"
        return action in words

    def on_acked(self, _at: float, node: str, key: str, job: str, duplicate: bool) -> None:
        if job not in self.truth.forgotten and not self.is_held(job.encode()):
            self.fail(f"{node} was told that {job} is accepted, which no majority holds")

    def on_unknown(self, _at: float, node: str, job: str) -> None:
        if job not in self.truth.forgotten:
            self.fail(f"{node} was told that {job} is unknown, which was accepted")


class OneJobPerKey(ClusterChecker):
    """Whatever is submitted again with the same key is the same job."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._keys: dict[str, str] = {}
        self._jobs: dict[str, str] = {}

    def on_submitting(self, _at: float, node: str, key: str, job: str) -> None:
        self._keys[job] = key

    def on_acked(self, _at: float, node: str, key: str, job: str, duplicate: bool) -> None:
        self._see(key, job)

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        if what == "Submitted" and job in self.truth.jobs:
            self._see(self._keys.get(job, job), job)

    def _see(self, key: str, job: str) -> None:
        known = self._jobs.setdefault(key, job)
        if known in self.truth.forgotten:
            self._jobs[key] = job
        elif known != job:
            self.fail(f"the submissions of {key} became two jobs, {known} and {job}")


class OnlyTheNewest(ClusterChecker):
    """A worker carries out what a majority decided, once, and under the newest token only."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._accepted: set[tuple[str, Part, Fence]] = set()

    def on_accepted(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        placed = self.truth.placed.get((part, fence))
        if placed != node:
            self.fail(f"{node} was given {part} {tuple(fence)}, which is placed on {placed}")
        key = (f"{node}/{life}", part, fence)
        if key in self._accepted:
            self.fail(f"{node} carries out {part} {tuple(fence)} twice")
        self._accepted.add(key)

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        newest = self.truth.newest.get(part)
        if newest != fence:
            self.fail(f"{node} began {part} {tuple(fence)}, but {newest} is the newest")


class Barrier(ClusterChecker):
    """No part begins before a majority holds that all parts are ready."""

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth)
        self._open: set[tuple[str, str]] = set()

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if isinstance(record, Started):
            self._open.add((job, record.workflow))

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        if (part.job_id, part.workflow) not in self._open:
            self.fail(f"{node} began {part} before its barrier was opened")


class OneLoad(ClusterChecker):
    """When a part begins somewhere, its load has ended everywhere else."""

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        for other in self.truth.observed[part]:
            if other.order.fence != fence and other.loading:
                old = tuple(other.order.fence)
                self.fail(f"{node} began {part} while {other.where} still loads as {old}")


class ContextHeld(ClusterChecker):
    """A layer is given out when a majority holds what the layers before it hand on."""

    def on_accepted(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        order = self.truth.observed[part][-1].order
        needs = {one.name: one for one in self.truth.jobs[part.job_id].workflows}
        for provider, values in sorted(order.used.items()):
            for key, stamped in sorted(values.items()):
                if not self.is_held(stamped.value):
                    where = ", ".join(self.holding(stamped.value)) or "nobody"
                    self.fail(f"{part} uses {provider}.{key}, which only {where} holds")
        for name in needs[part.workflow].depends:
            if missing := self._missing(part.job_id, name):
                self.fail(f"{part} was given out before {missing[0]} was over")

    def _missing(self, job_id: str, workflow: str) -> list[Part]:
        """Parts of its last dispatch without an end."""
        parts: set[Part] = set()
        done: set[Part] = set()
        for record in records_of(self.truth, job_id):
            if isinstance(record, Dispatched) and record.workflow == workflow:
                placed = {one.part for one in record.placements}
                parts = parts | placed if record.replaces else placed
            elif isinstance(record, PartEnded | GivenUp):
                done.add(record.part)
        return sorted(parts - done) if parts else [Part(job_id, workflow, 0)]


class NothingRunsAfterTheEnd(ClusterChecker):
    """Once a job's end is held, cancelled or not, it loads nothing; those who did not confirm
    their end are named."""

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if not isinstance(record, Finished) or self.truth.finished.get(job) is not record:
            return
        warnings = " ".join(decode(record.results).warnings)
        for one in self.truth.of_job(job):
            if one.loading and f"worker {one.host.name} did not confirm" not in warnings:
                self.fail(f"{job} is {record.status}, and {one.where} still loads {_name(one)}")

    def on_began(self, _at: float, node: str, life: int, part: Part, fence: Fence) -> None:
        if part.job_id in self.truth.finished:
            self.fail(f"{node} began {part}, whose job is over")


class OneEnd(ClusterChecker):
    """Whoever asks for the end of a job is told the same, and it is the one that is held."""

    def on_told(self, _at: float, node: str, job: str, status: str, results: str) -> None:
        held = self.truth.finished.get(job)
        if held is None:
            self.fail(f"{node} was told the end of {job}, which has none")
            return
        digest = hashlib.blake2b(held.results, digest_size=8).hexdigest()
        if (held.status, digest) != (status, results):
            self.fail(f"{node} was told that {job} is {status}, and {held.status} is held")


class Totals(ClusterChecker):
    """What a job reports is what its stages did, each part once."""

    def on_committed(self, _at: float, node: str, index: int, what: str, job: str) -> None:
        record = self.truth.log[index]
        if isinstance(record, PartEnded | PartLost):
            self._part(record)
        elif isinstance(record, Finished) and self.truth.finished.get(job) is record:
            self._job(job, decode(record.results))

    def _part(self, record: PartEnded | PartLost) -> None:
        """The worker's own end is exact; what was reported before a loss is part of the truth."""
        if not record.result:
            return
        done = self._performed(record.part, record.fence)
        told = _requests(record.result)
        exact = isinstance(record, PartEnded)
        if told > done or (exact and told != done):
            what = f"{record.part} {tuple(record.fence)}"
            self.fail(f"{what} is held with {told} requests, {done} were made")

    def _performed(self, part: Part, fence: Fence) -> int:
        return sum(p.requests for p in self.truth.observed[part] if p.order.fence == fence)

    def _job(self, job: str, results: Results) -> None:
        counted = _Counted(self.truth, job)
        for workflow in results.workflows:
            right = counted.requests(workflow.name)
            if workflow.requests != right:
                self.fail(f"{job} {workflow.name}: {workflow.requests} requests, not {right}")
            if workflow.is_test and workflow.planned_iterations is not None:
                self._iterations(job, workflow, counted)

    def _iterations(self, job: str, workflow: WorkflowResult, counted: _Counted) -> None:
        """None is made twice, and no more are missing than a lost part may have made unheard."""
        name, planned = workflow.name, workflow.planned_iterations or 0
        performed = sum(
            one.requests
            for one in self.truth.of_job(job)
            if one.order.part.workflow == name
            and (one.order.part, one.order.fence) not in counted.unseen
        )
        made = performed / max(1, len(workflow.steps))
        if made > planned and not counted.steered:
            self.fail(f"{job} {name}: {made:g} iterations were made, of {planned}")
        left_out = counted.left_out[name]
        if counted.in_full(name) and not planned - left_out <= workflow.iterations <= planned:
            self.fail(
                f"{job} {name}: {workflow.iterations} iterations, not {planned} less {left_out}"
            )


class _Counted:
    """The parts of a job that count, from its records alone."""

    def __init__(self, truth: Truth, job: str) -> None:
        self._needs: dict[str, Needs] = {one.name: one for one in truth.jobs[job].workflows}
        self._kept: dict[tuple[Part, Fence], bytes] = {}
        self._ended: set[str] = set()
        self.left_out: dict[str, int] = defaultdict(int)  # iterations that nobody makes again
        self.unseen: set[tuple[Part, Fence]] = set()  # attempts that began, and told nobody
        self.steered = False
        self._whole: dict[str, bool] = defaultdict(lambda: True)
        live: dict[Part, Fence] = {}
        started: set[str] = set()
        replicated = ReplicatedState()
        for record in records_of(truth, job):
            taken = apply(replicated, record)
            match record:
                case Dispatched():
                    live |= {one.part: one.fence for one in record.placements}
                case Started():
                    started.add(record.workflow)
                case Returned(workflow=workflow, parts=numbers):
                    for part in [p for p in live if p.workflow == workflow]:
                        if not numbers or part.number in numbers:
                            del live[part]
                case PartEnded() | PartLost():
                    if live.get(record.part) != record.fence:
                        continue
                    del live[record.part]
                    self._note(record, record.part.workflow in started)
                case ToldLate(part=part, fence=fence) if taken:
                    self._kept[part, fence] = record.result
                case GivenUp():
                    self._whole[record.part.workflow] = False
                case Failed():
                    self._whole[record.workflow] = False
                case Steered(action=action):
                    self.steered = self.steered or action in ("cancel", "stop", "scale")
                case _:
                    pass

    def _note(self, record: PartEnded | PartLost, started: bool) -> None:
        name = record.part.workflow
        ended = isinstance(record, PartEnded) and record.outcome in ("completed", "failed")
        if isinstance(record, PartEnded) and record.outcome == "failed":
            self._whole[name] = False
        if isinstance(record, PartEnded) and decode_end(record.result).lost:
            self._whole[name] = False
        if isinstance(record, PartLost):
            self.left_out[name] += record.unheard
            if not record.unheard and not record.iterations:
                self.unseen.add((record.part, record.fence))
        if (self._needs[name].is_test and started) or ended:
            self._kept[record.part, record.fence] = record.result

    def requests(self, workflow: str) -> int:
        return sum(
            _requests(result)
            for (part, _), result in self._kept.items()
            if part.workflow == workflow and result
        )

    def in_full(self, workflow: str) -> bool:
        """Whether all that was planned must have been counted."""
        made = any(part.workflow == workflow for part, _ in self._kept)
        return made and self._whole[workflow] and not self.steered


class NeverBackwards(Checker):
    """Who watches a job sees its numbers grow."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], tuple[int, int]] = {}

    def on_shown(
        self, _at: float, node: str, view: str, workflow: str, requests: int, failed: int
    ) -> None:
        before = self._shown.get((view, workflow), (0, 0))
        if requests < before[0] or failed < before[1]:
            self.fail(f"{view} saw {workflow} fall from {before} to {(requests, failed)}")
        self._shown[view, workflow] = (requests, failed)


class AllFree(Checker):
    """When all jobs are over, nothing is left of them: no running part, no core in use."""

    def __init__(self, leftovers: Callable[[], list[str]]) -> None:
        self._leftovers = leftovers

    def at_end(self) -> None:
        left = self._leftovers()
        if left:
            self.fail(f"all jobs are over, and {'; '.join(left)}")


def records_of(truth: Truth, job: str) -> Iterator[JobRecord]:
    for index in sorted(truth.log):
        if truth.log[index].job_id == job:
            yield truth.log[index]


def _requests(result: bytes) -> int:
    state = decode_end(result).state
    return sum(one.count for one in decode_state(state).requests) if state else 0


def _name(one: ObservedPart) -> str:
    return f"{one.order.part} {tuple(one.order.fence)}"


def all_checkers(truth: Truth, leftovers: Callable[[], list[str]]) -> list[Checker]:
    return [
        HeldBeforeAck(truth),
        OneJobPerKey(truth),
        OnlyTheNewest(truth),
        Barrier(truth),
        OneLoad(truth),
        ContextHeld(truth),
        NothingRunsAfterTheEnd(truth),
        OneEnd(truth),
        Totals(truth),
        NeverBackwards(),
        AllFree(leftovers),
    ]
