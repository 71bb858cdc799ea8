"""The jobs of a gate in numbers: those it holds and owns, and what became of them where.

Jobs are the same on every gate of their group. What was taken, told and lost is counted by the
owner of each job alone, so a sum over all gates is the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.member.metrics import Metric, labelled, single

LOST_WHY: Final = ("silent", "not ready")
# A page for people; the newest jobs are those they ask about.
JOBS_SHOWN_MAX: Final = 100


def metrics(gate: Gate) -> Iterator[Metric]:
    names, counts = gate.datacenters.names, gate.owner.counts
    jobs = gate.ledger.jobs.jobs()
    states = Counter("over" if job.is_over else "running" for job in jobs)
    held = {"running": states["running"], "over": states["over"], "owned": gate.owner.owns}
    text = "Jobs that this gate holds; owned: that it leads."
    yield labelled("gate_jobs", "gauge", text, "state", _floats(held))
    text = "Jobs that became this gate's to lead: as new ones, or because another gate had died."
    taken = {how: counts.taken[how] for how in ("new", "taken over")}
    yield labelled("gate_jobs_taken_total", "counter", text, "how", _floats(taken))
    text = "Submissions answered by this gate."
    answers = _floats(gate.api.answers)
    yield labelled("gate_submissions_total", "counter", text, "answer", answers)
    text = "Updates of jobs that datacenters have told."
    told = {name: float(counts.told[name]) for name in names}
    yield labelled("gate_dc_progress_reports_received_total", "counter", text, "datacenter", told)
    text = "Ends of jobs that datacenters have told."
    ends: dict[tuple[str, ...], float]
    ends = {key: float(count) for key, count in counts.ended.items()}
    yield Metric("gate_dc_ends_total", "counter", text, ("datacenter", "status"), ends)
    text = "Datacenters that were given up: nothing was heard of them, or they were not ready."
    lost: dict[tuple[str, ...], float]
    lost = {(name, why): float(counts.lost[name, why]) for name in names for why in LOST_WHY}
    yield Metric("gate_dc_lost_total", "counter", text, ("datacenter", "why"), lost)
    text = "Datacenters in which load began more than half a second after the first."
    yield single("gate_dc_late_total", "counter", text, counts.late)
    text = "Jobs that were ended because a threshold was crossed."
    yield single("gate_thresholds_aborted_total", "counter", text, counts.aborted)


def _floats(counts: dict[str, int] | Counter[str]) -> dict[str, float]:
    return {name: float(count) for name, count in counts.items()}


def pages(gate: Gate) -> dict[str, Callable[[], object]]:
    def jobs() -> object:
        return [
            {
                "job": job.job_id,
                "owner": gate.ledger.owner(job.job_id),
                "over": job.is_over,
                "datacenters": job.submitted.datacenters,
                "running_in": job.running_in,
                "begun": None if job.begun is None else job.begun.datacenters,
                "told": {name: told.requests for name, told in job.told.items()},
            }
            for job in gate.ledger.jobs.jobs()[-JOBS_SHOWN_MAX:]
        ]

    return {"/debug/jobs": jobs}
