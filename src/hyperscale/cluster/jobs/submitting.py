"""What is accepted as a job: once per id and key, in order, and only while there is room."""

from __future__ import annotations

from hyperscale.cluster.jobs.inputs import Accepted, Rejected
from hyperscale.cluster.jobs.layers import layers
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.records import Submitted
from hyperscale.cluster.placement.provision import RANK

_TOO_LARGE = "the queue is full: with this one the jobs that wait would take more than {:,} MB"


def submit(leader: LeaderState, now: float, record: Submitted) -> Accepted | Rejected:
    if not leader.leading:
        return Rejected("this manager does not lead", leader.settings.retry_after_min_s)
    original = _original(leader, record)
    if original is not None:
        return _repeated(leader, original, record)
    problem = _problem(record)
    if problem:
        return Rejected(problem)
    on_the_way = [other for other in leader.under_way.values() if isinstance(other, Submitted)]
    coming = len(on_the_way)
    if leader.queue.is_full(coming):
        return Rejected("the queue is full", leader.queue.retry_after_s())
    waiting = [leader.replicated.jobs[job_id].submitted for job_id in leader.queue.fresh()]
    waiting_bytes = sum(len(one.body) for one in (*waiting, *on_the_way, record))
    most = leader.settings.queue_mb_max
    if waiting_bytes > most * 1_000_000 and (waiting or on_the_way):
        return Rejected(_TOO_LARGE.format(most), leader.queue.retry_after_s())
    if len(leader.replicated.jobs) + coming >= leader.settings.jobs_max:
        return Rejected("too many jobs are remembered", leader.settings.retry_after_max_s)
    if not leader.append(now, record):
        return Rejected("the last try could not be recorded", leader.settings.append_unknown_s)
    return Accepted(record.job_id, len(leader.queue) + coming + 1 if len(leader.queue) else 0)


def _original(leader: LeaderState, record: Submitted) -> Submitted | None:
    """The submission this one repeats, recorded or on its way."""
    key = record.idempotency_key
    job = leader.replicated.jobs.get(record.job_id)
    if job is None and key:
        job = leader.replicated.jobs.get(leader.replicated.keys.get(key, ""))
    if job is not None:
        return job.submitted
    for other in leader.under_way.values():
        if isinstance(other, Submitted) and (
            other.job_id == record.job_id or (key and other.idempotency_key == key)
        ):
            return other
    return None


def _repeated(leader: LeaderState, original: Submitted, record: Submitted) -> Accepted | Rejected:
    if original.digest != record.digest:
        if original.job_id == record.job_id:
            return Rejected(
                f"there is a job {record.job_id}, and it is another test", conflict=True
            )
        why = f"its key belongs to job {original.job_id}, which is another test"
        return Rejected(why, conflict=True)
    position = leader.queue.position(original.job_id)
    return Accepted(original.job_id, position, duplicate=True)


def _problem(record: Submitted) -> str:
    if not record.job_id:
        return "a job needs an id"
    if not record.workflows:
        return "a job needs at least one workflow"
    if not record.timeout_s > 0:
        return "the job's timeout must be positive"
    for needs in record.workflows:
        if needs.priority not in RANK:
            return f"{needs.name}: there is no priority {needs.priority}"
    try:
        layers(record.workflows)
    except ValueError as error:
        return str(error)
    return ""
