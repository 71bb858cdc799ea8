"""The datacenters of a gate in numbers, its decisions, and whether it can do its work.

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
from hyperscale.runtime.page_server import Health as PageHealth

PROBE_FATES: Final = ("answered", "missed")


def metrics(gate: Gate) -> Iterator[Metric]:
    yield from _datacenters(gate)
    yield from _routing(gate)


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

    return {
        "/debug/datacenters": lambda: gate.datacenters.states(),
        "/debug/routing": routing,
    }
