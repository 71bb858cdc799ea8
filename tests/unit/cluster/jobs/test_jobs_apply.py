"""What each record changes, and what it must not."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.apply import apply
from hyperscale.cluster.jobs.records import (
    Dispatched,
    Failed,
    Finished,
    GivenUp,
    JobRecord,
    PartEnded,
    PartLost,
    Returned,
    Started,
    Steered,
    decode,
    encode,
)
from hyperscale.cluster.jobs.state import ReplicatedState
from tests.unit.cluster.jobs.making import needs, part, placement, submitted


def replicated(*records: JobRecord) -> ReplicatedState:
    made = ReplicatedState()
    for record in records:
        assert apply(made, record)
    return made


def dispatched(
    attempt: int = 1, epoch: int = 1, replaces: bool = False, **given: object
) -> Dispatched:
    place = placement(fence=Fence(1, epoch, attempt), **given)  # type: ignore[arg-type]
    return Dispatched("j1", 1.0, "load", 2, (place,), replaces)


def ended(fence: Fence = Fence(1, 1, 1), outcome: str = "completed") -> PartEnded:
    return PartEnded("j1", 9.0, part(), fence, "w1", outcome, 5.0, b"r")  # type: ignore[arg-type]


STARTED = Started("j1", 2.0, "load", b"ctx")
LOST = PartLost("j1", 5.0, part(), Fence(1, 1, 1), "w1", 3.0, 30, b"kept", "worker w1 died")


def test_a_second_dispatch_of_a_dispatched_workflow_changes_nothing() -> None:
    made = replicated(submitted(), dispatched())
    assert not apply(made, dispatched(epoch=2, worker="w2"))
    assert set(made.by_worker) == {"w1"}


def test_a_doubtful_dispatch_from_before_a_return_changes_nothing() -> None:
    made = replicated(submitted(), dispatched(epoch=2), Returned("j1", 1.0, "load", "no room"))
    assert not apply(made, dispatched(epoch=1))
    assert apply(made, dispatched(epoch=3))


def test_only_the_live_attempt_can_end_and_only_once() -> None:
    made = replicated(submitted(), dispatched(), STARTED)
    assert not apply(made, ended(Fence(1, 9, 9)))
    assert apply(made, ended())
    assert not apply(made, ended())
    assert not apply(made, LOST)
    assert made.jobs["j1"].workflows["load"].results() == [b"r"]
    assert made.by_worker == {}


def test_an_end_before_the_start_was_recorded_still_counts() -> None:
    made = replicated(submitted(), dispatched(), ended())
    life = made.jobs["j1"].workflows["load"].lifecycle
    assert [step.target.value for step in life.history] == ["dispatched", "running", "completed"]


def test_a_loss_is_kept_and_the_part_placed_again_once() -> None:
    made = replicated(submitted(), dispatched(), STARTED, LOST)
    assert not apply(made, LOST)
    assert not apply(made, dispatched(attempt=1, epoch=2, replaces=True))  # the attempt is used up
    assert apply(made, dispatched(attempt=2, epoch=2, replaces=True, resume_at_s=7.0, worker="w2"))
    assert not apply(made, dispatched(attempt=2, epoch=3, replaces=True))
    workflow = made.jobs["j1"].workflows["load"]
    assert workflow.excluded == {"w1"}
    [loss] = workflow.parts[0].losses
    assert (loss.at_s, loss.resumed_at_s, loss.result) == (3.0, 7.0, b"kept")


def test_a_lone_part_given_up_completes_with_what_there_is() -> None:
    made = replicated(
        submitted(), dispatched(), STARTED, LOST, GivenUp("j1", 60.0, part(), "too late")
    )
    assert made.jobs["j1"].workflows["load"].lifecycle.succeeded


def test_part_of_a_running_workflow_can_be_returned() -> None:
    two = (placement(0, "w1"), placement(1, "w2", first_core=2))
    made = replicated(submitted(), Dispatched("j1", 1.0, "load", 4, two), STARTED)
    assert apply(made, Returned("j1", 3.0, "load", "no room", (1,)))
    workflow = made.jobs["j1"].workflows["load"]
    assert workflow.parts[1].is_unplaced
    assert workflow.parts[1].attempts == 0
    assert workflow.lifecycle.state.value == "running"
    assert not apply(made, Returned("j1", 3.0, "load", "no room", (1,)))
    assert not apply(made, Returned("j1", 3.0, "load", "all of it"))


def test_nothing_changes_after_the_end() -> None:
    made = replicated(
        submitted(), dispatched(), STARTED, ended(), Finished("j1", 9.0, "completed", "", b"")
    )
    for late in (ended(), LOST, dispatched(epoch=5), Steered("j1", 9.0, "cancel"), STARTED):
        assert not apply(made, late)
    assert made.jobs["j1"].status == "completed"


def test_strangers_and_second_submissions_change_nothing() -> None:
    made = replicated(submitted(idempotency_key="k"))
    assert not apply(made, submitted())
    assert not apply(made, submitted(job_id="j2", idempotency_key="k"))
    assert not apply(made, Failed("nobody", 0.0, "load", "x"))
    assert not apply(made, Failed("j1", 0.0, "nothing", "x"))
    assert not apply(made, submitted(needs("a", depends=("a",)), job_id="j3"))
    assert list(made.jobs) == ["j1"]


def test_age_never_goes_back() -> None:
    made = replicated(submitted(), dispatched(), STARTED)
    assert apply(made, Steered("j1", 50.0, "pause"))
    assert apply(made, Steered("j1", 40.0, "resume"))
    assert made.jobs["j1"].age_s == 50.0
    assert made.jobs["j1"].paused_s == 0.0


def test_records_survive_the_disk() -> None:
    for record in (
        submitted(),
        dispatched(),
        STARTED,
        LOST,
        ended(),
        GivenUp("j1", 1.0, part(), ""),
    ):
        assert decode(encode(record)) == record


def test_a_dispatch_of_somebody_elses_parts_changes_nothing() -> None:
    made = replicated(submitted())
    stranger = placement(workflow="other")
    assert not apply(made, Dispatched("j1", 1.0, "load", 4, (placement(), stranger)))
    assert made.by_worker == {}
