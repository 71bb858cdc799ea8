"""Placing: quorum before dispatch, batches, layers, the queue."""

from __future__ import annotations

from hyperscale.cluster.fencing import Fence
from hyperscale.cluster.jobs.effects import Answer, Append, Command, Dispatch, Start
from hyperscale.cluster.jobs.events import (
    Accepted,
    AppendFailed,
    DispatchAnswered,
    Follow,
    Lead,
    PartReport,
    Rejected,
    Submit,
    WorkerRegistered,
)
from hyperscale.cluster.jobs.records import Dispatched, Failed, Placement, Started
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs, submitted


def test_nothing_is_dispatched_before_its_record_is_held() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(peak_vus=4))
    shell.hold = True
    shell.submit(needs(), job_id="j2")  # its own record is held back too
    assert [p.part.job_id for p in shell.dispatched()] == ["j1"]
    assert shell.jobs.job("j2") is None
    shell.release()
    assert shell.job("j2").status == "queued"


def test_a_decision_under_way_is_not_made_again() -> None:
    shell = Shell()
    shell.submit(needs())
    shell.hold = True
    shell.register("w1", 4)
    for _ in range(5):
        shell.register("w1", 4)
        shell.wait(1.0)
    assert len(shell.held) == 1
    assert not shell.take(Dispatch)
    shell.release()
    assert len(shell.take(Dispatch)) == 1


def test_a_record_that_was_not_written_is_decided_again() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs())
    shell.dispatched()
    shell.hold = True
    shell.submit(needs(), job_id="j2")
    [record] = shell.held
    shell.held.clear()
    shell.receive(AppendFailed(record, maybe_written=False))
    again = Submit(submitted(needs(), job_id="j2"))
    (answer,) = shell.core.receive(shell.now + 0.1, again)
    assert isinstance(answer, Answer)
    assert isinstance(answer.value, Rejected)
    assert answer.value.retry_after_s > 0
    shell.wait(1.0)
    assert isinstance(shell.submit(needs(), job_id="j2"), Accepted)


def test_a_doubtful_record_is_handed_over_again_as_it_is() -> None:
    shell = Shell()
    shell.submit(needs())
    shell.hold = True
    shell.register("w1", 4)
    [record] = shell.held
    shell.held.clear()
    shell.take(Append)
    shell.receive(AppendFailed(record, maybe_written=True))
    shell.wait(6.0)
    assert [effect.record for effect in shell.take(Append)] == [record]
    shell.hold = False
    shell.commit(record)
    shell.commit(record)  # the first copy shows up as well
    assert len(shell.take(Dispatch)) == 1


def test_cores_come_from_the_whole_pool_by_priority() -> None:
    shell = Shell()
    for name in ("w1", "w2", "w3"):
        shell.register(name, 8)
    shell.submit(
        needs("LoadTest", priority="high", peak_vus=6000),
        needs("DataLoad", is_test=False),
        needs("Metrics", priority="low", peak_vus=1000),
    )
    cores: dict[str, int] = {}
    for place in shell.dispatched():
        cores[place.part.workflow] = cores.get(place.part.workflow, 0) + place.cores
    assert cores == {"LoadTest": 18, "Metrics": 6, "DataLoad": 1}
    assert sum(shell.jobs.pool.booked(w) for w in shell.jobs.pool.workers.values()) == 24


def test_parts_of_a_workflow_share_its_cores() -> None:
    shell = Shell()
    for name in ("w1", "w2", "w3"):
        shell.register(name, 8)
    shell.submit(needs(priority="exclusive"))
    places = sorted(shell.dispatched(), key=lambda place: place.part.number)
    assert [(p.part.number, p.first_core, p.cores) for p in places] == [
        (0, 0, 8), (1, 8, 8), (2, 16, 8),
    ]  # fmt: skip
    assert len({p.worker for p in places}) == 3
    assert len({p.fence for p in places}) == 1


def test_no_more_cores_than_virtual_users_and_one_for_what_is_no_test() -> None:
    shell = Shell()
    shell.register("w1", 8)
    shell.submit(needs("few", peak_vus=2))
    shell.submit(needs("tool", is_test=False, peak_vus=10_000), job_id="j2")
    assert [place.cores for place in shell.dispatched()] == [2, 1]


def test_setup_runs_once_and_its_context_opens_the_barrier() -> None:
    shell = Shell()
    for name in ("w1", "w2"):
        shell.register(name, 4)
    shell.submit(needs(priority="exclusive", sets_up=True))
    first, second = shell.take(Dispatch)
    assert [first.run_setup, second.run_setup] == [True, False]
    shell.prepare(second.placement, b"nothing")
    assert not shell.take(Start)
    shell.prepare(first.placement, b"token=1")
    started = shell.take(Start)
    assert [start.context for start in started] == [b"token=1", b"token=1"]
    assert shell.records(Started)[0].context == b"token=1"
    assert shell.workflow().lifecycle.state.value == "running"


def test_layers_wait_for_every_end_before() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(
        needs("a", peak_vus=1), needs("b", peak_vus=1), needs("c", depends=("a",), peak_vus=1)
    )
    a, b = shell.prepare_all()
    shell.end(a)
    assert not shell.dispatched()
    shell.end(b)
    assert [place.part.workflow for place in shell.dispatched()] == ["c"]


def test_a_failed_workflow_fails_its_dependents_only() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(
        needs("a", peak_vus=1),
        needs("b", peak_vus=1),
        needs("after a", depends=("a",), peak_vus=1),
        needs("after that", depends=("after a",), peak_vus=1),
        needs("after b", depends=("b",), peak_vus=1),
    )
    a, b = shell.prepare_all()
    shell.end(a, "failed", "KeyError: 'token'")
    shell.end(b)
    [after_b] = shell.prepare_all()
    assert after_b.part.workflow == "after b"
    shell.end(after_b)
    assert {r.workflow: r.reason for r in shell.records(Failed)} == {
        "after a": "not run, because a failed",
        "after that": "not run, because after a failed",
    }
    job = shell.job()
    assert job.status == "partial"
    assert "KeyError: 'token'" in job.reason
    assert shell.workflow("a").lifecycle.moves.total() == 3  # dispatched, running, failed: no retry


def test_a_job_waits_until_its_batch_fits() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(priority="exclusive"))
    [first] = shell.prepare_all()
    shell.submit(needs(priority="exclusive"), job_id="j2")
    shell.submit(needs(priority="exclusive"), job_id="j3")
    assert [shell.jobs.position(job) for job in ("j1", "j2", "j3")] == [0, 1, 2]
    assert shell.jobs.waiting_for("j2") == "a workflow of job j1 runs alone"
    assert shell.job("j2").status == "queued"
    shell.end(first)
    assert [place.part.job_id for place in shell.dispatched()] == ["j2"]
    assert shell.jobs.position("j3") == 1


def test_the_small_may_overtake_for_a_while_only() -> None:
    shell = Shell(JobSettings(reserve_after_s=30.0))
    shell.register("w1", 4)
    shell.submit(needs(peak_vus=1))
    [running] = shell.prepare_all()
    shell.submit(needs(priority="exclusive"), job_id="big")
    shell.submit(needs(peak_vus=1), job_id="small")
    assert [place.part.job_id for place in shell.prepare_all()] == ["small"]
    shell.wait(31.0)
    shell.submit(needs(peak_vus=1), job_id="late")
    assert not shell.dispatched()
    shell.end(running)
    assert not shell.dispatched()  # still one core short, and kept for it


def test_without_workers_a_job_waits_and_then_fails() -> None:
    shell = Shell()
    shell.submit(needs())
    assert shell.jobs.waiting_for("j1") == "no workers yet"
    shell.wait(299.0)
    assert shell.job().status == "queued"
    shell.wait(2.0)
    assert shell.job().status == "failed"
    assert "no workers yet" in shell.job().reason


def test_waiting_behind_others_has_no_such_limit() -> None:
    shell = Shell(JobSettings(stuck_s=9_000.0))
    shell.register("w1", 4)
    shell.submit(needs(priority="exclusive", planned_s=900.0, limit_s=900.0), timeout_s=2_000.0)
    [running] = shell.prepare_all()
    shell.submit(needs(priority="exclusive"), job_id="j2")
    for _ in range(80):
        shell.wait(10.0)
    assert shell.job("j2").status == "queued"
    shell.end(running)
    assert [place.part.job_id for place in shell.dispatched()] == ["j2"]


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    shell = Shell(JobSettings(queue_jobs_max=2))
    for number in range(2):
        assert isinstance(shell.submit(job_id=f"j{number}"), Accepted)
    refused = shell.submit(job_id="j9")
    assert isinstance(refused, Rejected)
    assert refused.reason == "the queue is full"
    assert refused.retry_after_s > 0


def test_what_waits_is_bounded_by_its_size_too() -> None:
    shell = Shell(JobSettings(queue_mb_max=1))
    bodies = {"j1": 700_000, "j2": 200_000, "j3": 200_000}
    answers = [shell.submit(job_id=name, body=bytes(size)) for name, size in bodies.items()]
    refused = answers.pop()
    assert all(isinstance(answer, Accepted) for answer in answers)
    assert isinstance(refused, Rejected)
    assert "the jobs that wait would take more than 1 MB" in refused.reason
    assert refused.retry_after_s > 0
    shell.register("w1", 100)
    shell.prepare_all()  # the first one waits no longer
    assert isinstance(shell.submit(job_id="j3", body=bytes(200_000)), Accepted)


def test_a_job_alone_may_be_as_large_as_any() -> None:
    shell = Shell(JobSettings(queue_mb_max=1))
    assert isinstance(shell.submit(body=bytes(5_000_000)), Accepted)


def test_no_room_after_all_costs_no_retry() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(priority="exclusive"))
    [place] = shell.dispatched()
    shell.receive(DispatchAnswered(place, False, no_room=True, free=0))
    assert shell.workflow().lifecycle.state.value == "pending"
    assert not shell.dispatched()  # the worker is left alone for a moment
    shell.wait(1.0)
    [again] = shell.dispatched()
    assert again.fence.attempt == 1
    assert again.fence > place.fence


def test_the_others_of_a_returned_workflow_are_told_to_let_go() -> None:
    shell = Shell()
    for name in ("w1", "w2"):
        shell.register(name, 4)
    shell.submit(needs(priority="exclusive"))
    first, second = shell.dispatched()
    shell.prepare(first)
    shell.receive(DispatchAnswered(second, False, no_room=True))
    cancelled = {command.placement.worker for command in shell.take(Command)}
    assert cancelled == {"w1", "w2"}


def test_a_refusal_is_a_lost_attempt_on_another_worker() -> None:
    shell = Shell()
    for name in ("w1", "w2"):
        shell.register(name, 4)
    shell.submit(needs(peak_vus=2))
    [place] = shell.dispatched()
    shell.receive(DispatchAnswered(place, False, reason="unreachable"))
    [again] = shell.dispatched()
    assert again.worker != place.worker
    assert again.fence.attempt == 2
    assert "unreachable" in "".join(shell.workflow().lifecycle.lines())
    assert shell.jobs.losses("j1") == []  # no load was under way


def test_what_cannot_be_sent_to_anybody_fails_at_once_with_the_reason() -> None:
    shell = Shell()
    for name in ("w1", "w2"):
        shell.register(name, 4)
    shell.submit(
        needs("Big", peak_vus=8), needs("Other", peak_vus=2), needs("Next", depends=("Big",))
    )
    big = [place for place in shell.dispatched() if place.part.workflow == "Big"]
    for place in big:
        shell.receive(DispatchAnswered(place, False, reason="it takes 40 MB", for_good=True))
    workflow = shell.workflow("Big")
    assert (workflow.lifecycle.state.value, workflow.error) == (
        "failed",
        "not run, because it takes 40 MB",
    )
    assert not workflow.live()
    assert not [one for one in shell.dispatched() if one.part.workflow == "Big"]
    assert shell.workflow("Next").error == "not run, because Big failed"
    assert shell.jobs.job("j1").unconfirmed == []  # type: ignore[union-attr]


def test_a_lost_answer_does_not_move_a_part_that_is_there() -> None:
    shell = Shell()
    for name in ("w1", "w2"):
        shell.register(name, 4)
    shell.submit(needs(peak_vus=2))
    [place] = shell.prepare_all()
    shell.receive(DispatchAnswered(place, False, reason="unreachable"))
    assert not shell.dispatched()
    assert shell.workflow().lifecycle.state.value == "running"


def test_a_refused_part_is_not_started_when_it_turns_up() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(peak_vus=2))
    [place] = shell.dispatched()
    shell.hold = True
    shell.receive(DispatchAnswered(place, False, reason="unreachable"))
    shell.prepare(place)
    shell.release()
    shell.wait(1.0)
    assert not shell.take(Start)
    assert len(shell.records(Dispatched)) == 2


class TestSubmission:
    def test_the_same_key_is_the_same_job(self) -> None:
        shell = Shell()
        shell.submit(job_id="j1", idempotency_key="k")
        again = shell.submit(job_id="j2", idempotency_key="k")
        assert again == Accepted(shell.job().submitted, duplicate=True)
        assert shell.jobs.job("j2") is None

    def test_also_while_the_first_is_on_its_way(self) -> None:
        shell = Shell()
        shell.hold = True
        shell.submit(job_id="j1", idempotency_key="k")
        again = shell.submit(job_id="j2", idempotency_key="k")
        assert [again] == [Accepted(record, duplicate=True) for record in shell.held]

    def test_the_same_id_or_key_with_another_body_is_a_conflict(self) -> None:
        shell = Shell()
        shell.submit(job_id="j1", idempotency_key="k")
        for job_id, key in (("j2", "k"), ("j1", "other")):
            answer = shell.submit(job_id=job_id, idempotency_key=key, digest="another")
            assert isinstance(answer, Rejected)
            assert answer.conflict
            assert answer.retry_after_s == 0

    def test_what_can_never_run_is_refused(self) -> None:
        shell = Shell()
        for record, sentence in (
            (submitted(needs("a", depends=("a",))), "a wait for each other"),
            (submitted(needs("a", priority="urgent")), "a: there is no priority urgent"),
            (submitted(needs(), timeout_s=0.0), "the job's timeout must be positive"),
        ):
            assert shell.core.receive(0.0, Submit(record)) == [Answer(Rejected(sentence))]

    def test_only_the_leader_accepts(self) -> None:
        shell = Shell()
        shell.core.receive(0.0, Follow())
        answer = shell.submit()
        assert isinstance(answer, Rejected)
        assert answer.retry_after_s > 0


# -- cores that are done before their part -------------------------------------------------------


def running(shell: Shell, cores: int) -> Placement:
    shell.register("w1", cores)
    shell.submit(needs(peak_vus=cores))
    (place,) = shell.prepare_all()
    shell.take(Start)
    return place


def done(place: Placement, cores: int, state: str = "running") -> PartReport:
    return PartReport(place.part, place.fence, state, cores_done=cores)


def test_cores_that_are_done_are_given_out_before_their_part_ends() -> None:
    shell = Shell()
    place = running(shell, 8)
    shell.submit(needs(peak_vus=4), job_id="j2")
    shell.hear("w1", done(place, 3), free=3)
    assert not shell.dispatched()
    shell.hear("w1", done(place, 4), free=4)
    (second,) = shell.dispatched()
    assert (second.part.job_id, second.worker, second.cores) == ("j2", "w1", 4)


def test_cores_that_are_done_are_counted_once() -> None:
    """Told again, out of order, too many, or of an attempt that is over."""
    shell = Shell()
    place = running(shell, 8)
    pool = shell.jobs.pool
    worker = pool.workers["w1"]
    for cores, free in ((2, 2), (2, 2), (4, 4), (3, 4), (4, 4)):
        shell.hear("w1", done(place, cores), free=free)
    assert pool.free(worker) == 4
    stale = PartReport(place.part, Fence(0, 9, 1), "running", cores_done=8)
    shell.hear("w1", stale, free=4)
    assert pool.free(worker) == 4
    shell.hear("w1", done(place, 99), free=8)
    assert pool.free(worker) == 8
    shell.end(place)
    assert pool.free(worker) == 8


def test_a_part_kept_for_its_teardown_keeps_no_core() -> None:
    shell = Shell()
    shell.register("w1", 2)
    shell.register("w2", 2)
    shell.submit(needs(peak_vus=4, tears_down=True))
    first, _ = shell.prepare_all()
    shell.end(first)
    assert shell.workflow().holder() == first
    shell.submit(needs(peak_vus=2), job_id="j2")
    assert not shell.dispatched()
    shell.hear(first.worker, done(first, 2, "ended"), free=2)
    (second,) = shell.dispatched()
    assert second.worker == first.worker


def test_the_next_leader_hears_of_cores_that_are_done() -> None:
    shell = Shell()
    place = running(shell, 4)
    shell.hear("w1", done(place, 2), free=2)
    shell.receive(Follow())
    shell.receive(Lead(2))
    shell.receive(WorkerRegistered("w1", 1, 4, 2, [done(place, 2)]))
    assert shell.jobs.pool.free(shell.jobs.pool.workers["w1"]) == 2


def test_who_waits_behind_another_job_is_not_hopeless_once_there_are_workers() -> None:
    shell = Shell()
    for number in range(4):
        job_needs = needs(planned_s=600.0, limit_s=630.0)
        shell.submit(job_needs, job_id=f"j{number}", timeout_s=900.0)
    shell.wait(60.0)
    shell.register("w1")
    (place,) = shell.prepare_all()
    for _ in range(400):
        shell.wait(1.0)
        shell.hear("w1", PartReport(place.part, place.fence, "running", 1.0, int(shell.now)))
    assert [shell.job(f"j{n}").status for n in range(4)] == ["running", *["queued"] * 3]
