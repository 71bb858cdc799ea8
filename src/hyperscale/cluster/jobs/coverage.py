"""What was lost, and how much of the planned load that is.

A core without a worker delivers nothing from the load time its worker was lost to the load time
another one went on, or to the end. Cores carry equal shares here; who knows the shape of the load
can weigh the losses better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hyperscale.cluster.jobs.state import JobState, Loss, PartState, WorkflowState


@dataclass(frozen=True, slots=True)
class LossFact:
    """`resumed_at_s` is None when nobody took the part over."""

    workflow: str
    worker: str
    at_s: float
    resumed_at_s: float | None
    cores: int
    total_cores: int
    sentence: str


def losses(job: JobState) -> list[LossFact]:
    found = [
        LossFact(
            workflow=name,
            worker=loss.worker,
            at_s=loss.at_s,
            resumed_at_s=loss.resumed_at_s,
            cores=loss.cores,
            total_cores=workflow.total_cores,
            sentence=_sentence(name, workflow, loss, given_up),
        )
        for name, workflow in job.workflows.items()
        if workflow.needs.is_test and workflow.started
        for loss, given_up in _whole(workflow)
    ]
    return sorted(found, key=lambda fact: (fact.workflow, fact.at_s, fact.worker))


def _whole(workflow: WorkflowState) -> list[tuple[Loss, str]]:
    """Under load, and why one was given up. What came back in pieces is one loss again, if all
    went the same way."""
    found: dict[tuple[object, ...], tuple[Loss, str]] = {}
    for part in workflow.parts.values():
        for loss in part.losses:
            if _is_made_up(workflow, part, loss):
                continue
            given_up = part.given_up if loss.resumed_at_s is None else ""
            same = (loss.worker, loss.at_s, loss.age_s, loss.resumed_at_s, given_up)
            if not loss.under_load:
                continue
            before = found.get(same)
            cores = loss.cores + (before[0].cores if before is not None else 0)
            found[same] = (replace(loss, cores=cores), given_up)
    return list(found.values())


def _is_made_up(workflow: WorkflowState, part: PartState, loss: Loss) -> bool:
    """It is known how many iterations it had made, and the others were made elsewhere."""
    by_iterations = workflow.needs.planned_s is None and loss.resumed_at_s is not None
    told = not loss.unheard and not loss.generators and loss.fence is None
    return by_iterations and told and part.ended is not None and part.left_out <= part.made_up


def coverage(job: JobState) -> float:
    """Delivered planned load over planned load, of the tests that were started."""
    planned = missing = 0.0
    for workflow in job.workflows.values():
        if workflow.needs.is_test and workflow.started:
            planned += 1.0
            missing += _missing(workflow)
    return 1.0 if planned == 0 else max(0.0, 1.0 - missing / planned)


def _missing(workflow: WorkflowState) -> float:
    total_s = workflow.needs.planned_s
    gap = 0.0
    for part in workflow.parts.values():
        for number, loss in enumerate(part.losses):
            last = number == len(part.losses) - 1
            if not loss.under_load or (loss.resumed_at_s is None and last and not part.is_final):
                continue  # nothing was under way, or it is still to be taken over
            if total_s:
                end = total_s if loss.resumed_at_s is None else loss.resumed_at_s
                gap += loss.cores * max(0.0, min(end, total_s) - loss.at_s) / total_s
            elif loss.resumed_at_s is None:
                gap += loss.cores
    return min(1.0, gap / max(1, workflow.total_cores))


def _sentence(name: str, workflow: WorkflowState, loss: Loss, given_up: str) -> str:
    text = f"{name}: worker {loss.worker} lost at {loss.at_s:.0f} s"
    if loss.generators:
        text = f"worker {loss.worker}: {loss.generators}"
    share = f"{loss.cores} of {workflow.total_cores} cores"
    if loss.resumed_at_s is None:
        return f"{text} ({share}), " + (given_up or "not taken over yet")
    if workflow.needs.planned_s is None:
        return f"{text} ({share}), its iterations went on elsewhere"
    return f"{text} ({share}), its load went on elsewhere at {loss.resumed_at_s:.0f} s"


def sentences(job: JobState) -> list[str]:
    """For people: every loss, and every worker that did not confirm its end."""
    found = [fact.sentence for fact in losses(job)]
    return found + [f"worker {name} did not confirm that it ended" for name in job.unconfirmed]
