"""A gate in numbers: its datacenters, its decisions, its jobs, and whether it can do its work.

Labels that name a datacenter are bounded by the gate's own settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from hyperscale.cluster.datacenters import Health, Reach
from hyperscale.cluster.overload.circuit import CircuitState
from hyperscale.nodes.gate.gate import Gate
from hyperscale.nodes.member.metrics import Metric, labelled, single
from hyperscale.nodes.member.metrics_page import NodePages
from hyperscale.runtime.page_server import Health as PageHealth

LOST_WHY: Final = ("silent", "not ready")
PROBE_FATES: Final = ("answered", "missed")
# A page for people; the newest jobs are those they ask about.
JOBS_SHOWN_MAX: Final = 100


def measured(gate: Gate) -> Gate:
    """To be said before it starts."""
    gate.node.pages = NodePages(
        metrics=lambda: metrics(gate), ready=lambda: readiness(gate), pages=pages(gate)
    )
    return gate


def metrics(gate: Gate) -> Iterator[Metric]:
    yield from _datacenters(gate)
    yield from _routing(gate)
    jobs = gate.ledger.jobs.jobs()
    states = Counter("over" if job.is_over else "running" for job in jobs)
    counts = {
        "running": float(states["running"]),
        "over": float(states["over"]),
        "owned": float(sum(not job.is_over and gate.ledger.owns(job.job_id) for job in jobs)),
    }
    yield labelled("gate_jobs", "gauge", "Jobs this gate holds; owned: runs.", "state", counts)
    yield from _owned(gate)


def _owned(gate: Gate) -> Iterator[Metric]:
    """Counted by the owner of each job alone, so a sum over all gates is the truth."""
    names, counts = gate.datacenters.names, gate.owner.counts
    text = "Jobs that became this gate's to lead: as new ones, or because another gate had died."
    taken = {how: float(counts.taken[how]) for how in ("new", "taken over")}
    yield labelled("gate_jobs_taken_total", "counter", text, "how", taken)
    text = "Submissions answered by this gate."
    answers = {answer: float(count) for answer, count in gate.api.answers.items()}
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


def _datacenters(gate: Gate) -> Iterator[Metric]:
    watch, now = gate.datacenters.watch, gate.node.now()
    every = list(watch.datacenters.values())
    rows: dict[tuple[str, ...], float]
    rows = {(one.name, state.value): float(one.reach is state) for one in every for state in Reach}
    text = "1 for whether this gate reaches a datacenter."
    yield Metric("datacenter_reach", "gauge", text, ("datacenter", "state"), rows)
    healths = {one.name: watch.health(now, one.name)[0] for one in every}
    rows = {
        (name, health.word): float(known is health)
        for name, known in healths.items()
        for health in Health
    }
    text = "1 for how a datacenter is, as this gate judges it."
    yield Metric("datacenter_health", "gauge", text, ("datacenter", "state"), rows)
    for name, text, values in (
        (
            "datacenter_rtt_seconds",
            "Round trip of probes, the middle of the last half minute.",
            {one.name: one.rtt_s for one in every if one.rtt_s is not None},
        ),
        (
            "datacenter_rtt_error_seconds",
            "How far these round trips are from it, on the average.",
            {one.name: one.rtt_error_s for one in every if one.rtt_s is not None},
        ),
        (
            "datacenter_silent_seconds",
            "Since the last answer of a datacenter that was heard before.",
            {one.name: now - one.heard_at for one in every if one.heard_at is not None},
        ),
        (
            "datacenter_cores_free",
            "As its leader told last.",
            {one.name: float(one.facts.cores_free) for one in every if one.facts is not None},
        ),
        (
            "datacenter_queue",
            "Jobs that wait for cores there, as its leader told last.",
            {one.name: float(one.facts.queued) for one in every if one.facts is not None},
        ),
    ):
        yield labelled(name, "gauge", text, "datacenter", values)
    fates = {fate: float(watch.counts[fate]) for fate in PROBE_FATES}
    yield labelled("datacenter_probes_total", "counter", "Probes of managers.", "fate", fates)
    in_doubt = float(watch.line_in_doubt(now))
    text = "1 while most datacenters fell silent at once, so that none is given up."
    yield single("gate_line_in_doubt", "gauge", text, in_doubt)
    open_to = Counter(one.state.value for one in gate.datacenters.circuits.statuses(now).values())
    circuits = {state.value: float(open_to[state.value]) for state in CircuitState}
    text = "Managers that jobs were sent to, by the state of their circuit."
    yield labelled("datacenter_circuits", "gauge", text, "state", circuits)


def _routing(gate: Gate) -> Iterator[Metric]:
    router = gate.router
    yield Metric(
        "routing_decisions_total",
        "counter",
        "Choices of datacenters, by the worst state that was accepted.",
        ("bucket", "outcome"),
        {labels: float(count) for labels, count in router.decisions.items()},
    )
    text = "Decisions that let go of a datacenter that was chosen before."
    yield single("routing_switches_total", "counter", text, router.switches)
    text = "Decisions that kept one although another was better."
    yield single("routing_hold_down_blocks_total", "counter", text, router.holds)
    scored = router.last[-1][3].scored if router.last else ()
    ranked = [one for one in scored if one.rank]
    text = "Of the last decision; the lower is the better."
    values = {one.name: one.score for one in ranked}
    yield labelled("routing_score", "gauge", text, "datacenter", values)
    parts: dict[tuple[str, ...], float] = {
        (one.name, part): getattr(one, part)
        for one in ranked
        for part in ("rtt_s", "load", "quality_penalty", "cooldown")
    }
    text = "What the scores of the last decision were made of."
    yield Metric("routing_score_component", "gauge", text, ("datacenter", "component"), parts)


def readiness(gate: Gate) -> PageHealth:
    """It can take a job, or pass it on to who owns it. A datacenter less is no reason why not."""
    if not gate.node.started:
        return PageHealth(ok=False, reason="it is starting")
    if gate.over.is_set():
        return PageHealth(ok=False, reason="it is ending")
    reached = gate.datacenters.watch.reached()
    if not reached:
        return PageHealth(ok=False, reason="it reaches no datacenter")
    missing = [name for name in gate.datacenters.names if name not in reached]
    return PageHealth(ok=True, reason=f"not reached: {', '.join(missing)}" if missing else "")


def pages(gate: Gate) -> dict[str, Callable[[], object]]:
    def routing() -> object:
        return [
            {"at": at, "job": job, "decision": decision, "snapshot": snapshot}
            for at, job, snapshot, decision in reversed(gate.router.last)
        ]

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

    return {
        "/debug/datacenters": lambda: gate.datacenters.states(),
        "/debug/routing": routing,
        "/debug/jobs": jobs,
    }
