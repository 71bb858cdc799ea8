"""One result and one verdict from the ends of all parts of a job."""

from __future__ import annotations

import msgspec
import pytest

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.coverage import sentences
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Failed,
    GivenUp,
    Outcome,
    Part,
    PartEnded,
    Placement,
    Started,
)
from hyperscale.cluster.jobs.state import ReplicatedState
from hyperscale.errors import ExitCode
from hyperscale.metrics.results import Environment, Results
from hyperscale.nodes.manager import part_end
from hyperscale.nodes.manager.results import job_results
from hyperscale.nodes.protocol.jobs import Body, SubmitJob
from hyperscale.workload.facts import WorkflowFacts
from hyperscale.workload.load import ClosedVUs
from tests.unit.nodes.manager.cases import FACTS, JOB, end, placement, state, submitted

BODY = Body(workflows=(FACTS,), source=b"code", overrides=b"")
USERS = 5  # of a part: half of the workflow's
DIED = "generator process 7 of Shop was killed by SIGKILL"


def dispatched(*placements: Placement, replaces: bool = False) -> Dispatched:
    return Dispatched(JOB, 0.1, "Shop", 4, placements, replaces=replaces)


def ended(
    where: Placement, measured_s: float, *lost: str, outcome: Outcome = "completed"
) -> PartEnded:
    told = end(
        where, 10, outcome=outcome, measured_s=measured_s, lost=lost, error="; ".join(lost),
        state=state(10, offered=USERS * measured_s),
    )  # fmt: skip
    return PartEnded(
        JOB, 1.0, where.part, where.fence, where.worker, outcome, measured_s,
        part_end.encode_end(told), told.error, lost=told.error,
    )  # fmt: skip


@pytest.fixture
def replicated() -> ReplicatedState:
    made = ReplicatedState()
    apply(made, submitted(SubmitJob(job_id=JOB, body=msgspec.msgpack.encode(BODY))))
    return made


def results_of(replicated: ReplicatedState, body: Body = BODY) -> Results:
    job = replicated.jobs[JOB]
    return job_results(
        body, job, "completed", elapsed_s=60.0, lost=sentences(job), judges=(),
        environment=Environment(),
    )  # fmt: skip


def test_a_generator_that_died_took_its_load_with_it(replicated: ReplicatedState) -> None:
    first, second = placement(0), placement(1)
    apply(replicated, dispatched(first, second))
    apply(replicated, Started(JOB, 0.2, "Shop", b""))
    apply(replicated, ended(first, 15.0, DIED, outcome="cut off"))
    apply(replicated, GivenUp(JOB, 2.0, first.part, "no retry is left"))
    apply(replicated, ended(second, 60.0))
    results = results_of(replicated)
    assert results.exit_code == ExitCode.LOAD_LOST
    assert results.lost == [f"worker w0: {DIED} (2 of 4 cores), no retry is left"]
    assert results.coverage == pytest.approx((15 + 60) / 120)


def test_it_goes_on_elsewhere_and_only_the_time_between_is_missing(
    replicated: ReplicatedState,
) -> None:
    first, second = placement(0), placement(1)
    again = msgspec.structs.replace(first, worker="w9", fence=Fence(1, 2, 2), resume_at_s=17.0)
    apply(replicated, dispatched(first, second))
    apply(replicated, Started(JOB, 0.2, "Shop", b""))
    apply(replicated, ended(first, 15.0, DIED, outcome="cut off"))
    apply(replicated, dispatched(again, replaces=True))
    apply(replicated, ended(again, 43.0))
    apply(replicated, ended(second, 60.0))
    results = results_of(replicated)
    assert results.exit_code == ExitCode.LOAD_LOST
    assert results.coverage == pytest.approx(118 / 120)
    told = f"worker w0: {DIED} (2 of 4 cores), its load went on elsewhere at 17 s"
    assert results.lost == [told]
    assert results.requests == 30


def test_one_that_blocked_until_it_was_killed_ends_its_part(replicated: ReplicatedState) -> None:
    first, second = placement(0), placement(1)
    apply(replicated, dispatched(first, second))
    apply(replicated, Started(JOB, 0.2, "Shop", b""))
    apply(replicated, ended(first, 2.0, DIED))
    apply(replicated, ended(second, 60.0))
    results = results_of(replicated)
    assert (results.exit_code, results.lost) == (ExitCode.LOAD_LOST, [f"worker w0: {DIED}"])
    assert results.coverage == pytest.approx(62 / 120)


def test_what_a_worker_told_of_its_load_is_what_counts(replicated: ReplicatedState) -> None:
    """Nobody died, the plan's clock ran to its end, and seven seconds were not offered."""
    where = placement(0)
    apply(replicated, Dispatched(JOB, 0.1, "Shop", 2, (where,)))
    apply(replicated, Started(JOB, 0.2, "Shop", b""))
    told = end(where, 10, measured_s=60.0, state=state(10, elapsed_s=60.0, offered=530.0))
    result = part_end.encode_end(told)
    apply(
        replicated,
        PartEnded(JOB, 1.0, where.part, where.fence, where.worker, "completed", 60.0, result),
    )
    results = results_of(replicated)
    assert results.exit_code == ExitCode.LOAD_LOST
    assert results.coverage == pytest.approx(530 / 600)


def test_a_preparation_whose_process_died_failed_and_what_needs_it_is_not_run() -> None:
    sending = WorkflowFacts(
        name="Login", is_test=False, priority="auto", load=ClosedVUs(vus=1, duration_s=1.0)
    )
    shop = msgspec.structs.replace(FACTS, depends=("Login",))
    body = Body(workflows=(sending, shop), source=b"", overrides=b"")
    replicated = ReplicatedState()
    apply(replicated, submitted(SubmitJob(job_id=JOB, body=msgspec.msgpack.encode(body))))
    where = msgspec.structs.replace(placement(0), part=Part(JOB, "Login", 0), cores=1)
    apply(replicated, Dispatched(JOB, 0.1, "Login", 1, (where,)))
    apply(replicated, Started(JOB, 0.2, "Login", b""))
    failed = ended(where, 1.0, DIED, outcome="failed")
    told = msgspec.structs.replace(part_end.decode_end(failed.result), state=b"")
    apply(replicated, msgspec.structs.replace(failed, result=part_end.encode_end(told)))
    job = replicated.jobs[JOB]
    assert job.workflows["Login"].lifecycle.state is LifecycleState.FAILED
    apply(replicated, Failed(JOB, 1.1, "Shop", "not run, because Login failed"))

    results = results_of(replicated, body)
    assert results.exit_code == ExitCode.LOAD_LOST
    assert (results.cut, results.cut_reason) == ("worker lost", f"worker w0: {DIED}")
    assert results.coverage == 0.0
    assert [workflow.error for workflow in results.workflows] == [
        DIED, "not run, because Login failed",
    ]  # fmt: skip
