"""The verdict over a round: what the cluster said beside what the target served. Nothing runs.

The target is the only witness. What workers, managers and the client say is what is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Literal

from hyperscale.errors import ExitCode
from tests.chaos.loads import PACING_S, Job, Load
from tests.chaos.target import Hit

COVERAGE_ERROR_MAX = 0.01
# A user that was not heard for this long was not there; one at work is heard ten times a second.
GAP_S = 1.0
# Arrivals may come this much before their time: the first of all came late.
EARLY_S = 0.5
# What was under way when the end was told arrives within this.
IN_FLIGHT_S = 1.0
# A worker that was cut off or asleep, and is well for this long before the end, has told all.
TOLD_AFTER_S = 6.0
# After this, load that a worker lost is made elsewhere, if there is time left to see it: it is
# moved 5 s after the worker was last heard, and a generator process must start.
TAKEN_OVER_S = 11.0
LEVEL_MIN = 0.85
# Workers without CPU to spare take nothing over, and all of them share this machine.
CPU_USED_MAX = 0.6
# Numbers may be on their way when a worker is hurt; it tells them ten times a second.
UNTOLD_S = 1.5

HarmKind = Literal["killed", "generators", "stopped", "cut", "disk"]
Counts = dict[tuple[str, str], int]  # by workflow and worker


@dataclass(frozen=True)
class Harm:
    """What was really done to a node, and when."""

    node: str
    kind: HarmKind
    from_s: float
    until_s: float


@dataclass(frozen=True)
class Report:
    """What the client was told. Times count from the first request."""

    exit_code: int | None  # None: it was told no end
    told_s: float = 0.0
    coverage: float = 1.0
    counts: Counts = field(default_factory=dict)
    failed: int = 0
    interrupted: Mapping[str, int] = field(default_factory=dict)  # iterations, by workflow
    lost: tuple[str, ...] = ()
    said: str = ""
    has_results: bool = True


@dataclass(frozen=True)
class Evidence:
    job: Job
    hits: Sequence[Hit]  # `worker` is its name, times count from the first
    report: Report
    harms: Sequence[Harm] = ()
    majority_and_worker_live: bool = True
    left_over: Sequence[str] = ()  # what should have ended and had not
    cpu_used: float = 0.0  # share of this machine's, by everybody, during the job
    names: Mapping[str, str] = field(default_factory=dict)  # who had which role of the schedule


@dataclass(frozen=True)
class Finding:
    rule: str
    text: str


def judge(evidence: Evidence) -> list[Finding]:
    report = evidence.report
    if report.exit_code is None:
        return [Finding("no end", "the client was told no end")]
    found = [*_exit(evidence), *_after_the_end(evidence)]
    for load in evidence.job.loads:
        hits = [hit for hit in evidence.hits if hit.workflow == load.name]
        found += [*_too_much(evidence, load, hits), *_doubled(load, hits)]
    found += _taken_over(evidence)
    if report.has_results:
        found += [*_counts(evidence), *_coverage(evidence)]
        if report.exit_code == ExitCode.PASSED:
            found += _all_of_it(evidence)
    found += [Finding("left over", text) for text in evidence.left_over]
    return found


# -- what was served -------------------------------------------------------------------------


def by_worker(hits: Iterable[Hit]) -> Counts:
    found: Counts = defaultdict(int)
    for hit in hits:
        found[hit.workflow, hit.worker] += 1
    return dict(found)


def share_served(load: Load, hits: Sequence[Hit]) -> float:
    """Of the planned arrivals, iterations or user-seconds."""
    if load.model == "users":
        return min(
            1.0, sum(end + PACING_S - start for _, _, start, end in _at_work(hits)) / load.planned
        )
    return min(1.0, len(hits) / load.planned)


def _at_work(hits: Sequence[Hit]) -> list[tuple[str, int, float, float]]:
    """Worker, user, first and last request of every stretch without a gap."""
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.at_s):
        times[hit.worker, hit.user].append(hit.at_s)
    found = []
    for (worker, user), moments in times.items():
        start = last = moments[0]
        for moment in moments[1:]:
            if moment - last > GAP_S:
                found.append((worker, user, start, last))
                start = moment
            last = moment
        found.append((worker, user, start, last))
    return found


# -- rules -----------------------------------------------------------------------------------


def _exit(evidence: Evidence) -> Iterable[Finding]:
    report = evidence.report
    wanted = {ExitCode.PASSED, ExitCode.LOAD_LOST}
    if evidence.job.cancel_at_s is not None:
        wanted = {ExitCode.STOPPED}
    if not evidence.majority_and_worker_live:
        wanted |= {ExitCode.FAILED}
    if report.exit_code not in wanted:
        said = report.said.strip().splitlines() or ["nothing"]
        yield Finding("exit code", f"exit {report.exit_code}, it said: {said[-1]}")
    elif not report.has_results and report.exit_code != ExitCode.FAILED:
        yield Finding("exit code", f"exit {report.exit_code} without results")


def _after_the_end(evidence: Evidence) -> Iterable[Finding]:
    late = [hit for hit in evidence.hits if hit.at_s > evidence.report.told_s]
    if evidence.job.cancel_at_s is not None:
        users = max(load.users_max or 0 for load in evidence.job.loads)
        in_flight = [h for h in late if h.at_s <= evidence.report.told_s + IN_FLIGHT_S]
        if len(in_flight) == len(late) <= users:
            return
    if late:
        workers = ", ".join(sorted({hit.worker for hit in late}))
        yield Finding(
            "after the end",
            f"{len(late)} requests were served after the end was told at "
            f"{evidence.report.told_s:.1f} s, the last at {late[-1].at_s:.1f} s, from {workers}",
        )


def _too_much(evidence: Evidence, load: Load, hits: Sequence[Hit]) -> Iterable[Finding]:
    """Only iterations that were begun and not finished are done again."""
    if load.model == "arrivals":
        if len(hits) > load.planned:
            yield Finding("too much", f"{load.name}: {len(hits)} of {load.planned:g} arrivals")
        for number, hit in enumerate(sorted(hits, key=lambda hit: hit.at_s)):
            due_s = hits[0].at_s + number / load.amount
            if hit.at_s < due_s - EARLY_S:
                yield Finding(
                    "too much",
                    f"{load.name}: arrival {number} came at {hit.at_s:.2f} s, not {due_s:.2f} s",
                )
                break
    elif load.model == "iterations":
        begun = evidence.report.interrupted.get(load.name, 0)
        if len(hits) > load.planned + begun:
            yield Finding(
                "too much",
                f"{load.name}: {len(hits)} of {load.planned:g} iterations, {begun} interrupted",
            )
    if load.users_max is not None:
        most, at_s = _most_at_once(_at_work(hits))
        if most > load.users_max:
            yield Finding(
                "too much", f"{load.name}: {most} users of {load.users_max} at {at_s:.1f} s"
            )


def _most_at_once(stretches: Iterable[tuple[str, int, float, float]]) -> tuple[int, float]:
    changes = [(start, 1) for *_, start, _ in stretches] + [(end, -1) for *_, end in stretches]
    most, now, at_s = 0, 0, 0.0
    for moment, change in sorted(changes):
        now += change
        if now > most:
            most, at_s = now, moment
    return most, at_s


def _doubled(load: Load, hits: Sequence[Hit]) -> Iterable[Finding]:
    """One user on two workers at a time: the same part runs twice."""
    users: dict[int, list[tuple[float, float, str]]] = defaultdict(list)
    for worker, user, start, end in _at_work(hits):
        users[user].append((start, end, worker))
    for user, stretches in sorted(users.items()):
        stretches.sort()
        for (_, end, worker), (start, _, other) in pairwise(stretches):
            if other != worker and start < end:
                yield Finding(
                    "doubled",
                    f"{load.name}: user {user} was on {worker} until {end:.1f} s "
                    f"and on {other} from {start:.1f} s",
                )
                return


def _taken_over(evidence: Evidence) -> Iterable[Finding]:
    """While its managers are well and a worker was never hurt, load comes back to its level."""
    (load, *others), harms = evidence.job.loads, evidence.harms
    workers = {hit.worker for hit in evidence.hits}.union(
        name for role, name in evidence.names.items() if role.startswith("worker")
    )
    hurt = {harm.node for harm in harms}
    if others or load.model == "iterations" or hurt - workers or not workers - hurt:
        return
    if any(harm.kind == "generators" for harm in harms):
        return  # what a generator had left to do ends with it
    if evidence.cpu_used > CPU_USED_MAX:
        return
    from_s = max((harm.from_s for harm in harms), default=0.0) + TAKEN_OVER_S
    until_s = min(evidence.job.cancel_at_s or load.duration_s, load.duration_s)
    if until_s - from_s < 1:
        return
    rate = load.amount if load.model == "arrivals" else load.amount / PACING_S
    made = sum(from_s <= hit.at_s < until_s for hit in evidence.hits)
    if made < LEVEL_MIN * rate * (until_s - from_s):
        yield Finding(
            "not taken over",
            f"{made / (until_s - from_s):.0f} of {rate:g} requests a second "
            f"from {from_s:.1f} to {until_s:.1f} s",
        )


def _counts(evidence: Evidence) -> Iterable[Finding]:
    report = evidence.report
    served = by_worker(evidence.hits)
    if report.failed:
        yield Finding("counts", f"{report.failed} requests failed, and the target is well")
    for key in sorted({*served, *report.counts}):
        workflow, worker = key
        done, told = served.get(key, 0), report.counts.get(key, 0)
        if told > done:
            yield Finding("counts", f"{workflow} on {worker}: {told} reported, {done} served")
            continue
        least = _must_be_told(evidence, workflow, worker, done)
        if told < least:
            yield Finding(
                "counts",
                f"{workflow} on {worker}: {told} reported, {done} served, {least} of them "
                "by a worker that lived or well before it was hurt",
            )


def _must_be_told(evidence: Evidence, workflow: str, worker: str, done: int) -> int:
    harms = _hurt(evidence, worker)
    load = next(load for load in evidence.job.loads if load.name == workflow)
    in_flight = 0 if evidence.job.cancel_at_s is None and not harms else load.users_max or 10
    for_good = [harm for harm in harms if harm.kind in ("killed", "generators")]
    last_s = max((harm.until_s for harm in harms), default=0.0)
    if not for_good and (not harms or last_s < evidence.report.told_s - TOLD_AFTER_S):
        return done - in_flight
    if any(harm.node not in _workers(evidence) for harm in evidence.harms):
        return 0  # who had heard its numbers was hurt, too
    first_s = min(harm.from_s for harm in harms) - UNTOLD_S
    before = [h for h in evidence.hits if h.at_s < first_s]
    return by_worker(before).get((workflow, worker), 0) - in_flight


def _hurt(evidence: Evidence, worker: str) -> list[Harm]:
    return [harm for harm in evidence.harms if harm.node == worker]


def _workers(evidence: Evidence) -> set[str]:
    return {hit.worker for hit in evidence.hits} | {w for _, w in evidence.report.counts}


def _shares(evidence: Evidence) -> tuple[float, float]:
    """What was served and told, and what was served, of what was planned."""
    told, served = [], []
    for load in evidence.job.loads:
        hits = [hit for hit in evidence.hits if hit.workflow == load.name]
        count = sum(n for (name, _), n in evidence.report.counts.items() if name == load.name)
        share = share_served(load, hits)
        served.append(share)
        # A user that was away for less than `GAP_S` looks present; its requests tell otherwise.
        made = count * PACING_S if load.model == "users" else count
        told.append(min(share, made / load.planned))
    return fmean(told), fmean(served)


def _coverage(evidence: Evidence) -> Iterable[Finding]:
    """A worker that was lost may have done more than it told: both are true."""
    report = evidence.report
    if report.exit_code == ExitCode.PASSED and (report.coverage < 1 or report.lost):
        yield Finding("coverage", f"exit 0 with coverage {report.coverage:.1%}, {report.lost}")
    if report.exit_code != ExitCode.LOAD_LOST:
        return
    told, served = _shares(evidence)
    if not told - COVERAGE_ERROR_MAX <= report.coverage <= served + COVERAGE_ERROR_MAX:
        yield Finding(
            "coverage",
            f"coverage {report.coverage:.1%}, and {served:.1%} of the planned load was served, "
            f"{told:.1%} served and reported",
        )


def _all_of_it(evidence: Evidence) -> Iterable[Finding]:
    for load in evidence.job.loads:
        hits = [hit for hit in evidence.hits if hit.workflow == load.name]
        told = sum(n for (name, _), n in evidence.report.counts.items() if name == load.name)
        if load.model == "users":
            share = share_served(load, hits)
            if share < 1 - COVERAGE_ERROR_MAX:
                yield Finding("passed", f"{load.name}: exit 0, {share:.1%} of the user-seconds")
        elif told < load.planned:
            yield Finding(
                "passed", f"{load.name}: exit 0, {told} reported of {load.planned:g} planned"
            )
