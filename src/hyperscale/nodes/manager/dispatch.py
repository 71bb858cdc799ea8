"""From a submitted job to what placing it takes to know, and to what a worker gets of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hyperscale.cluster.jobs.events import PartReport
from hyperscale.cluster.jobs.layers import layers
from hyperscale.cluster.jobs.records import Needs, Placement
from hyperscale.cluster.jobs.state import JobState
from hyperscale.engine.messages import Values, received
from hyperscale.engine.results import aggregate_of, judges_of
from hyperscale.nodes.manager.contexts import Contexts
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.nodes.protocol.parts import CODE_BYTES_MAX, DispatchPart, PartStatus
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import longest_s

# Beyond what the load says of itself: the worker's own limit comes first and has better words.
LIMIT_SLACK_S = 30.0
# A job without a timeout of its own may take this long beside its load.
JOB_SLACK_S = 300.0
LARGEST_NAMED = 3
# Between two turns of the loop.
JUDGED_IN_A_STEP = 50

_values = msgspec.msgpack.Decoder(Values)
_encode = msgspec.msgpack.Encoder().encode


def encode_values(values: Values) -> bytes:
    return _encode(values) if values else b""


def decode_values(data: bytes) -> Values:
    return _values.decode(data) if data else {}


def limit_s(facts: WorkflowFacts) -> float:
    """When a part that is not over must be stuck, counted from its start, pauses left out."""
    return longest_s(facts.load) + LIMIT_SLACK_S


def needs_of(facts: WorkflowFacts) -> Needs:
    return Needs(
        name=facts.name,
        is_test=facts.is_test,
        priority=facts.priority,
        depends=facts.depends,
        peak_vus=facts.users,
        planned_s=facts.planned_s,
        limit_s=limit_s(facts),
        sets_up=facts.sets_up,
        tears_down=facts.tears_down,
        start_time_s=facts.load.start_time_s,
        warmup_s=facts.load.warmup_s,
        iterations=facts.load.planned_iterations,
    )


def timeout_s(body: Body, needs: tuple[Needs, ...]) -> float:
    """The job's own timeout, or its layers one after the other with time to spare."""
    if body.timeout_s is not None:
        return body.timeout_s
    by_name = {need.name: need for need in needs}
    return JOB_SLACK_S + sum(
        max(by_name[name].limit_s for name in layer) for layer in layers(needs)
    )


def dispatch_of(
    body: Body,
    job: JobState,
    placement: Placement,
    total_cores: int,
    run_setup: bool,
    term: int,
    contexts: Contexts | None = None,
) -> DispatchPart:
    workflow = job.workflows[placement.part.workflow]
    facts = body.facts(placement.part.workflow)
    contexts = contexts or Contexts()
    context = received(contexts.of(job, name)[0] for name in facts.depends)
    used: dict[str, Values] = {}
    for provider in body.workflows:
        given = contexts.of(job, provider.name)[1] if provider.provides else {}
        values = {k: v for k, v in given.items() if facts.name in provider.provides.get(k, ())}
        if values:
            used[provider.name] = values
    return DispatchPart(
        part=placement.part,
        fence=placement.fence,
        term=term,
        facts=facts,
        source=body.source,
        overrides=body.overrides,
        first_core=placement.first_core,
        cores=placement.cores,
        total_cores=total_cores,
        resume_at_s=placement.resume_at_s,
        iterations_done=placement.iterations_done,
        left_out=placement.left_out,
        run_setup=run_setup,
        context=context,
        used=used,
        context_version=workflow.layer,
        seed=body.seed,
        env=body.env,
        secrets=body.secrets,
        sealed=body.sealed,
        limit_s=workflow.needs.limit_s,
        correlation_id=job.submitted.correlation_id,
        slots=placement.slots,
        among=body.among,
    )


def too_large(order: DispatchPart) -> str:
    """Why a part cannot be sent: how large it is, and what makes it so."""
    sizes = {"the test": len(order.source) + len(order.overrides) + len(order.sealed)}
    given = {"what " + ", ".join(order.facts.depends) + " left": order.context}
    given |= {f"what {name} provides": values for name, values in order.used.items()}
    for what, values in given.items():
        sizes[what] = sum(len(one.value) for one in values.values())
    largest = sorted(sizes, key=lambda name: -sizes[name])[:LARGEST_NAMED]
    parts = ", ".join(f"{name} ({sizes[name] / 1e6:.1f} MB)" for name in largest if sizes[name])
    return (
        f"it takes {sum(sizes.values()) / 1e6:.1f} MB to send it to a worker, and at most "
        f"{CODE_BYTES_MAX / 1e6:.1f} MB can be: {parts}; pass on what is needed to find the data"
    )


def check_judges(body: Body) -> Iterator[None]:
    """In steps. Raises HyperscaleError or ValueError for thresholds that nobody could judge at the
    end."""
    for facts in body.workflows:
        if not facts.thresholds:
            continue
        nothing = aggregate_of(facts).freeze()
        for count, judge in enumerate(judges_of([facts])):
            if count % JUDGED_IN_A_STEP == 0:
                yield
            judge.judge(nothing)


def report_of(status: PartStatus) -> PartReport:
    """A part as its worker says it is, without how far it is."""
    prepared = status.prepared
    return PartReport(
        status.part,
        status.fence,
        status.state,
        status.elapsed_s,
        context=None if prepared is None else encode_values(prepared.context),
        cores_done=status.cores_done,
    )
