"""A gate in numbers: the jobs it holds and owns, and what became of them in each datacenter.

Jobs are the same on every gate of their group; what is owned, told and lost is counted by the owner
alone, so a sum over all gates is the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.member.metrics import Metric, labelled, single

# A page for people; the newest jobs are those they ask about.
JOBS_SHOWN_MAX: Final = 100
LOST_WHY: Final = ("silent", "not ready")


def metrics(gate: Gate) -> Iterator[Metric]:
    owner, datacenters = gate.owner, tuple(gate.settings.datacenters)
    known = gate.ledger.jobs.jobs()
    states = Counter("over" if job.is_over else "open" for job in known)
    text = "Jobs that this gate holds."
    jobs = {state: float(states[state]) for state in ("open", "over")}
    yield labelled("gate_jobs", "gauge", text, "state", jobs)
    yield single("gate_jobs_owned", "gauge", "Jobs that this gate leads.", owner.owns)
    text = "Jobs that became this gate's to lead: as new ones, or because another gate had died."
    taken = {how: float(owner.counts.taken[how]) for how in ("new", "taken over")}
    yield labelled("gate_jobs_taken_total", "counter", text, "how", taken)
    answers = {answer: float(gate.api.answers[answer]) for answer in gate.api.answers}
    text = "Submissions answered by this gate as an owner."
    yield labelled("gate_submissions_total", "counter", text, "answer", answers)
    text = "Updates of jobs that datacenters have told."
    told = {name: float(owner.counts.told[name]) for name in datacenters}
    yield labelled("gate_dc_progress_reports_received_total", "counter", text, "datacenter", told)
    yield Metric(
        "gate_dc_ends_total",
        "counter",
        "Ends of jobs that datacenters have told.",
        ("datacenter", "status"),
        {key: float(count) for key, count in owner.counts.ended.items()},
    )
    yield Metric(
        "gate_dc_lost_total",
        "counter",
        "Datacenters that were given up: nothing was heard of them, or they were not ready.",
        ("datacenter", "why"),
        {
            (name, why): float(owner.counts.lost[name, why])
            for name in datacenters
            for why in LOST_WHY
        },
    )
    text = "Datacenters in which load began more than half a second after the first."
    yield single("gate_dc_late_total", "counter", text, owner.counts.late)
    text = "Jobs that were ended because a threshold was crossed."
    yield single("gate_thresholds_aborted_total", "counter", text, owner.counts.aborted)


def pages(gate: Gate) -> dict[str, Callable[[], object]]:
    def jobs() -> object:
        return [
            {
                "job": job.job_id,
                "owner": gate.ledger.owner(job.job_id),
                "datacenters": job.submitted.datacenters,
                "begun": None if job.begun is None else job.begun.datacenters,
                "told": {name: told.requests for name, told in job.told.items()},
                "ends": {name: type(end).__name__.lower() for name, end in job.ends.items()},
                "over": job.is_over,
            }
            for job in gate.ledger.jobs.jobs()[-JOBS_SHOWN_MAX:]
        ]

    return {"/debug/jobs": jobs}
