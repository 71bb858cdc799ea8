"""Workers die, restart and are cut off; leaders change. Nothing is lost, nothing runs twice."""

from __future__ import annotations

import random

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.effects import (
    Answer,
    CollectReported,
    Command,
    Dispatch,
    MakeResults,
    Start,
)
from hyperscale.cluster.jobs.events import (
    Applied,
    Follow,
    Lead,
    PartReport,
    Tick,
    WorkerAlive,
    WorkerAnswered,
    WorkerDied,
    WorkerListed,
    WorkerReached,
    WorkerRegistered,
    WorkerReported,
    WorkerUnreached,
)
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import Dispatched, GivenUp, PartLost, Placement
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs


def running(*workflows: object, workers: int = 2, cores: int = 4, **settings: object) -> Shell:
    shell = Shell(JobSettings(**settings))  # type: ignore[arg-type]
    for number in range(workers):
        shell.register(f"w{number + 1}", cores)
    shell.submit(*(workflows or (needs(peak_vus=2),)))  # type: ignore[arg-type]
    return shell


def kill(shell: Shell, worker: str, after_s: float = 10.0) -> None:
    shell.die(worker)
    shell.wait(after_s)


def report(place: Placement, state: str = "running", **given: object) -> PartReport:
    return PartReport(place.part, place.fence, state, **given)  # type: ignore[arg-type]


def test_a_dead_worker_keeps_its_part_for_eight_seconds() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(20.0)
    shell.hear(place.worker, report(place, elapsed_s=20.0))
    shell.beating.discard(place.worker)
    shell.wait(4.0)
    shell.die(place.worker)
    shell.wait(3.9)
    assert not shell.take(CollectReported)
    shell.wait(0.2)
    assert len(shell.take(CollectReported)) == 1
    assert len(shell.records(PartLost)) == 1


def test_a_worker_that_probes_find_alive_and_that_says_nothing_loses_its_part() -> None:
    """TCP is cut, or its managers are: others hear it, and nobody can command it."""
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(20.0)
    shell.beating.discard(place.worker)
    shell.wait(7.9)
    shell.receive(WorkerDied(place.worker, 1))
    shell.receive(WorkerAlive(place.worker, 1))
    assert not shell.take(CollectReported)
    shell.wait(0.2)
    [lost] = shell.records(PartLost)
    assert f"worker {place.worker} was cut off" in lost.reason
    [again] = shell.dispatched()
    assert again.worker != place.worker


def test_a_worker_that_we_reach_and_that_does_not_reach_us_loses_its_part() -> None:
    """That it answers what it is asked is no contact for it: it has ended its load."""
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(20.0)
    shell.beating.discard(place.worker)
    for _ in range(8):
        shell.wait(1.0)
        shell.receive(WorkerListed(place.worker, 1, [report(place)]))
    assert len(shell.records(PartLost)) == 1


def test_a_worker_whose_ends_do_not_arrive_loses_its_part() -> None:
    """It hears none of our answers: it registers again and again, and tells no more than that."""
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(20.0)
    shell.beating.discard(place.worker)
    for _ in range(8):
        assert not shell.records(PartLost)
        shell.receive(
            WorkerRegistered(place.worker, 1, 4, 4, [report(place, "ended")], cut_off=True)
        )
        assert shell.jobs.pool.is_lost(shell.now, shell.jobs.pool.workers[place.worker])
        shell.wait(1.0)
    assert "could not tell how it ended" in shell.records(PartLost)[0].reason
    [again] = shell.dispatched()
    assert again.worker != place.worker


def test_reports_without_news_are_contact() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.beating.discard(place.worker)
    for _ in range(30):
        shell.wait(1.0)
        shell.receive(WorkerAnswered(place.worker))
    assert not shell.records(PartLost)


def test_a_silent_worker_takes_no_new_work() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.beating.discard("w1")
    shell.wait(3.9)
    assert shell.jobs.pool.free_cores(shell.now) == 4
    shell.wait(0.2)
    assert shell.jobs.pool.free_cores(shell.now) == 0
    shell.hear("w1", free=4)
    assert shell.jobs.pool.free_cores(shell.now) == 4


def test_a_worker_to_which_no_connection_can_be_made_takes_no_new_work() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.receive(WorkerUnreached("w1", False))
    shell.wait(2.9)
    assert shell.jobs.pool.free_cores(shell.now) == 4, "it may be a moment's trouble"
    shell.wait(0.2)
    assert shell.jobs.pool.free_cores(shell.now) == 0
    shell.receive(WorkerReached("w1"))
    assert shell.jobs.pool.free_cores(shell.now) == 4


def test_a_worker_whose_port_is_refused_is_cut_off_at_once_and_its_part_moves_in_time() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(20.0)
    shell.beating.discard(place.worker)
    shell.wait(1.0)
    shell.receive(WorkerUnreached(place.worker, True))
    worker = shell.jobs.pool.workers[place.worker]
    assert shell.jobs.pool.is_lost(shell.now, worker)
    assert shell.jobs.routing(place.worker) == "hold"
    shell.wait(6.9)
    assert not shell.records(PartLost), "its load may run until then"
    shell.wait(0.2)
    assert len(shell.records(PartLost)) == 1


def test_a_worker_that_speaks_again_keeps_everything() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.die(place.worker)
    shell.wait(5.0)
    shell.hear(place.worker, report(place))
    shell.beating.add(place.worker)
    shell.wait(50.0)
    assert not shell.records(PartLost)


def test_a_test_by_time_goes_on_elsewhere_from_the_present() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(30.0)
    shell.lost_at_s = 30.0
    kill(shell, place.worker, 8.0)
    [again] = shell.dispatched()
    assert again.worker != place.worker
    assert again.resume_at_s == 38.0
    assert again.fence.attempt == 2
    shell.prepare(again)
    [start] = [s for s in shell.take(Start) if s.placement == again]
    assert start.context == shell.workflow().context
    shell.end(again)
    assert shell.workflow().results() == [b"partial", b"result"]
    assert shell.job().status == "completed"
    assert abs(shell.jobs.coverage("j1") - 52 / 60) < 1e-9


def test_the_nine_steps_of_a_recovery() -> None:
    shell = running()
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    [again] = shell.prepare_all()
    shell.end(again)
    life = shell.workflow().lifecycle
    assert [step.target for step in life.history] == [
        LifecycleState.DISPATCHED,
        LifecycleState.RUNNING,
        LifecycleState.FAILED,
        LifecycleState.FAILED_CANCELING_DEPENDENTS,
        LifecycleState.FAILED_READY_FOR_RETRY,
        LifecycleState.PENDING,
        LifecycleState.DISPATCHED,
        LifecycleState.RUNNING,
        LifecycleState.COMPLETED,
    ]
    times = [step.at_s for step in life.history]
    assert times == sorted(times)
    assert f"worker {place.worker} died" in life.lines()[2]


def test_with_others_running_the_workflow_goes_on() -> None:
    shell = running(needs(priority="normal", peak_vus=100), workers=3, cores=2)
    places = shell.prepare_all()
    assert len(places) == 3
    lost = places[2]
    kill(shell, lost.worker, 30.0)
    assert shell.workflow().lifecycle.state is LifecycleState.RUNNING
    shell.register("w9", 2)
    [again] = shell.prepare_all()
    assert (again.part, again.first_core, again.cores) == (lost.part, lost.first_core, lost.cores)
    assert shell.workflow().lifecycle.state is LifecycleState.RUNNING


def test_a_part_that_fits_nowhere_whole_is_split() -> None:
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(priority="exclusive"))
    shell.prepare_all()
    for name in ("w2", "w3"):
        shell.register(name, 2)
    kill(shell, "w1")
    pieces = sorted(shell.prepare_all(), key=lambda piece: piece.first_core)
    assert [(p.part.number, p.first_core, p.cores) for p in pieces] == [(0, 0, 2), (1, 2, 2)]
    for piece in pieces:
        shell.end(piece)
    assert shell.job().status == "completed"


def test_iterations_go_on_with_what_is_left() -> None:
    shell = running(needs(planned_s=None, peak_vus=2))
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    [again] = shell.dispatched()
    assert again.iterations_done == 7 + 2  # at 7 in 41 s it may have made two more in 8 s
    assert again.resume_at_s == 0.0
    assert shell.workflow().parts[0].losses[0].iterations == 7


def test_what_a_part_may_have_done_is_told_by_the_pace_of_others() -> None:
    shell = running(needs(planned_s=None, peak_vus=2))
    [place] = shell.prepare_all()
    shell.lost_at_s, shell.lost_pace = 0.0, 10.0  # nothing was heard of it
    kill(shell, place.worker)
    [lost] = shell.records(PartLost)
    assert lost.unheard == 104  # 8.25 s at 10 a second, and a quarter more


def test_a_worker_that_is_back_at_once_can_have_done_little() -> None:
    shell = running(needs(planned_s=None, peak_vus=2), workers=1)
    [place] = shell.prepare_all()
    shell.lost_pace = 10.0
    shell.wait(5.0)
    shell.hear(place.worker, report(place, elapsed_s=5.0))
    shell.jobs.pool.workers[place.worker].heard_at = shell.now - 1.0
    shell.register(place.worker, 4, incarnation=2, life=2)
    [lost] = shell.records(PartLost)
    assert lost.unheard == 16


def test_what_is_no_test_begins_anew_and_drops_its_numbers() -> None:
    shell = running(needs(is_test=False))
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    [again] = shell.prepare_all()
    assert (again.resume_at_s, again.iterations_done) == (0.0, 0)
    shell.end(again)
    assert shell.workflow().results() == [b"result"]
    assert shell.jobs.lost_sentences("j1") == []


def test_four_attempts_and_no_more() -> None:
    shell = running(
        needs(planned_s=None, peak_vus=1, limit_s=900.0), workers=6, evict_population_min=9
    )
    for attempt in range(1, 5):
        [place] = shell.prepare_all()
        assert place.fence.attempt == attempt
        kill(shell, place.worker)
    assert not shell.dispatched()
    [given_up] = shell.records(GivenUp)
    assert given_up.reason == "no retry is left"
    assert len(shell.records(Dispatched)) == 4
    assert shell.job().status == "completed"  # with what it had measured
    assert shell.jobs.coverage("j1") == 0.0


def test_nothing_measured_and_nobody_left_is_a_failure() -> None:
    shell = running(needs(is_test=False), workers=6, evict_population_min=9)
    for _ in range(4):
        [place] = shell.prepare_all()
        kill(shell, place.worker)
    assert shell.job().status == "failed"


def test_declared_coverage_when_nobody_could_take_over() -> None:
    shell = running(needs(priority="exclusive", planned_s=60.0, limit_s=90.0), workers=2)
    first, second = shell.prepare_all()
    shell.wait(41.0)
    shell.hear(first.worker, report(first, counter=1))
    kill(shell, second.worker, 12.0)
    shell.hear(first.worker, report(first, counter=2))
    shell.wait(10.0)
    shell.end(first)
    assert shell.job().status == "completed"
    assert abs(shell.jobs.coverage("j1") - (1 - 19 / 60 / 2)) < 1e-9
    [loss] = shell.jobs.losses("j1")
    assert (loss.worker, loss.at_s, loss.resumed_at_s) == (second.worker, 41.0, None)
    assert shell.jobs.lost_sentences("j1") == [
        f"load: worker {second.worker} lost at 41 s (4 of 8 cores), "
        "its time was over before a worker was free"
    ]


def test_a_worker_that_was_cut_off_tells_its_true_numbers() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(25.0)
    shell.end(place, "cut off", measured_s=20.0, iterations=200)
    [again] = shell.dispatched()
    assert again.worker != place.worker
    assert shell.workflow().parts[0].losses[0].at_s == 20.0
    assert shell.workflow().results() == [b"result"]
    lost = shell.job().marks[0].text
    assert lost == f"part on worker {place.worker} lost, 2 of 2 cores", "the worker itself lives"


def test_a_worker_that_comes_back_tells_how_far_it_had_come() -> None:
    shell = running()
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    assert shell.workflow().results() == [b"partial"]
    assert not shell.end(place, "cut off")  # not before it is recorded
    assert shell.workflow().results() == [b"result"]
    assert shell.end(place, "cut off")  # and only once
    [again] = shell.dispatched()
    shell.prepare(again)
    shell.end(again)
    assert shell.workflow().results() == [b"result", b"result"]
    assert shell.end(place, "cut off")


def test_iterations_that_are_told_in_time_are_not_made_again() -> None:
    shell = running(needs(planned_s=None, peak_vus=2), workers=1)
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    assert shell.workflow().parts[0].iterations_done == 7 + 2
    shell.end(place, "cut off", iterations=8)
    shell.register("w9", 4)
    [again] = shell.dispatched()
    assert again.iterations_done - again.left_out == 8


def test_iterations_that_nobody_made_after_all_are_made_in_the_end() -> None:
    shell = running(needs(planned_s=None, peak_vus=2))
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    [second] = shell.prepare_all()
    assert second.iterations_done == 7 + 2
    shell.end(place, "cut off", iterations=8)  # one less than it might have made
    shell.end(second, iterations=5)
    [third] = shell.prepare_all()
    assert (third.iterations_done, third.left_out) == (9 + 5, 1)
    shell.end(third, iterations=1)
    assert shell.workflow().lifecycle.succeeded
    assert shell.jobs.lost_sentences("j1") == []


def test_a_word_that_comes_after_the_end_of_the_successor_is_heard_while_others_run() -> None:
    shell = running(needs(planned_s=None, priority="exclusive"), workers=2)
    first, other = shell.prepare_all()
    kill(shell, first.worker)
    shell.register("w9", 8)
    [second] = shell.prepare_all()
    shell.end(second, iterations=5)
    shell.end(first, "cut off", iterations=8)
    [third] = shell.prepare_all()
    assert (third.part, third.left_out) == (first.part, 1)
    shell.end(third, iterations=1)
    shell.end(other, iterations=20)
    assert shell.workflow().lifecycle.succeeded
    assert len(shell.workflow().results()) == 4


def test_what_nobody_asks_for_any_more_is_forgotten() -> None:
    shell = running()
    [place] = shell.prepare_all()
    kill(shell, place.worker)
    [again] = shell.prepare_all()
    shell.end(again)
    assert shell.end(place, "cut off")
    assert shell.workflow().results() == [b"partial", b"result"]


def test_load_time_never_runs_backwards() -> None:
    shell = running()
    [place] = shell.prepare_all()
    shell.wait(3.0)
    shell.lost_at_s = 20.0
    kill(shell, place.worker)
    [again] = shell.dispatched()
    assert again.resume_at_s == 20.0


def test_a_restarted_worker_has_lost_its_parts_at_that_moment() -> None:
    shell = running(workers=1)
    shell.prepare_all()
    shell.wait(2.0)
    shell.register("w1", 4, incarnation=3, life=2)  # it has refuted something since
    assert "restarted" in shell.records(PartLost)[0].reason
    [again] = shell.dispatched()
    assert (again.worker, again.incarnation) == ("w1", 3)  # avoided, but there is nobody else


def test_the_next_leader_knows_a_restarted_worker_too() -> None:
    shell = running(workers=1)
    shell.prepare_all()
    heir = successor(shell)
    heir.register("w1", 4, incarnation=2, life=2)
    assert "restarted" in heir.records(PartLost)[0].reason


def test_a_worker_that_only_refuted_something_has_lost_nothing() -> None:
    """What was sent to it may be on its way; it says what it holds when it does."""
    shell = running(workers=1)
    [place] = shell.dispatched()
    shell.wait(2.0)
    shell.register("w1", 4, incarnation=2, life=1)
    assert not shell.records(PartLost)
    shell.hear("w1", report(place, "preparing"), incarnation=2)
    shell.wait(30.0)
    assert not shell.records(PartLost)


def test_a_restarted_worker_that_does_not_tell_its_life_lost_its_parts_later() -> None:
    shell = running(workers=1)
    shell.prepare_all()
    shell.wait(2.0)
    shell.register("w1", 4, incarnation=2)
    assert not shell.dispatched()
    shell.wait(9.0)
    assert "restarted" in shell.records(PartLost)[0].reason
    [again] = shell.dispatched()
    assert (again.worker, again.incarnation) == ("w1", 2)  # avoided, but there is nobody else


def test_a_worker_that_refuted_its_death_keeps_its_parts() -> None:
    """A refutation is a new incarnation of the same life (found by the cluster's seed 105)."""
    shell = running(workers=1)
    [place] = shell.prepare_all()
    shell.wait(2.0)
    held = [PartReport(place.part, place.fence, "running", 2.0, 20)]
    unwanted = shell.receive(WorkerRegistered("w1", 2, 4, 4 - place.cores, held))
    assert not unwanted
    for _ in range(10):
        shell.now += 1.0
        shell.hear("w1", *held, free=4 - place.cores, incarnation=2)
        shell.receive(Tick())
    assert not shell.records(PartLost)
    assert shell.jobs.pool.free(shell.jobs.pool.workers["w1"]) == 4 - place.cores


def test_orphans_need_two_full_lists() -> None:
    shell = running(workers=1)
    shell.prepare_all()
    shell.wait(11.0)
    shell.register("w1", 4)
    assert not shell.records(PartLost)
    shell.wait(1.0)
    shell.register("w1", 4)
    assert "orphaned" in shell.records(PartLost)[0].reason


def test_parts_nobody_waits_for_are_unwanted() -> None:
    shell = running()
    [place] = shell.prepare_all()
    stranger = PartReport(place.part, place.fence._replace(epoch=9), "running")
    unwanted = shell.receive(WorkerRegistered(place.worker, 1, 4, 2, [report(place), stranger]))
    assert unwanted == ((stranger.part, stranger.fence),)


def test_many_deaths_at_once_are_held_for_a_while() -> None:
    shell = running(needs(peak_vus=1), workers=4)
    [place] = shell.prepare_all()
    others = [f"w{n}" for n in range(1, 5) if f"w{n}" != place.worker]
    shell.die(place.worker)
    shell.die(others[0])
    shell.wait(20.0)
    assert not shell.records(PartLost)
    shell.wait(11.0)
    assert len(shell.records(PartLost)) == 1


def test_a_stuck_worker_is_drained_then_its_parts_are_moved() -> None:
    shell = running(needs(priority="exclusive", planned_s=900.0, limit_s=990.0), workers=2)
    first, second = shell.prepare_all()
    for beat in range(1, 200):
        shell.wait(1.0)
        shell.hear(first.worker, report(first, counter=beat))
        shell.hear(second.worker, report(second, counter=1, idle_s=float(beat)))
        if beat == 130:
            assert shell.jobs.routing(second.worker) == "drain"
            assert not shell.records(PartLost)
    [lost] = shell.records(PartLost)
    assert lost.worker == second.worker
    assert "no progress" in lost.reason
    assert any(c.placement == second for c in shell.take(Command))


def test_a_part_that_stands_still_beside_one_that_moves_is_moved_alone() -> None:
    loads = [needs(name, peak_vus=3, planned_s=900.0, limit_s=990.0) for name in ("a", "b")]
    shell = running(*loads, workers=3, cores=2)
    _, moving, _, frozen = shell.prepare_all()
    assert moving.worker == frozen.worker
    shell.register("w4", 2)
    for beat in range(1, 200):
        shell.wait(1.0)
        for name in ("a", "b"):
            for place in shell.workflow(name).live():
                idle_s = float(beat) if place == frozen else 0.0
                shell.hear(place.worker, report(place, counter=beat, idle_s=idle_s))
        if beat == 20:
            assert shell.jobs.routing(frozen.worker) in ("investigate", "hold")
    [lost] = shell.records(PartLost)
    assert (lost.part, lost.worker) == (frozen.part, frozen.worker)
    assert "no progress on worker" in lost.reason
    assert moving in shell.workflow("a").live()


# -- leaders -------------------------------------------------------------------------------------


def successor(shell: Shell, term: int = 2) -> Shell:
    """Another manager with the same log takes over."""
    heir = Shell(shell.jobs.settings)
    heir.core = Jobs(shell.jobs.settings, random.Random(9))
    heir.now = shell.now
    heir.log = list(shell.log)
    for record in shell.log:
        assert heir.core.receive(heir.now, Applied(record)) == [Answer(True)]
    heir.receive(Lead(term))
    return heir


def test_a_new_leader_dispatches_nothing_that_runs() -> None:
    shell = running(needs(priority="exclusive"))
    places = shell.prepare_all()
    heir = successor(shell)
    for place in places:
        unwanted = heir.receive(
            WorkerRegistered(place.worker, 1, 4, 0, [report(place, elapsed_s=3.0)])
        )
        assert unwanted == ()
    assert not heir.take(Dispatch)
    assert not heir.take(Start)
    for place in places:
        heir.end(place)
    assert heir.job().status == "completed"


def test_it_sends_what_was_decided_but_never_sent() -> None:
    shell = running()
    [place] = shell.dispatched()
    heir = successor(shell)
    heir.register(place.worker, 4)
    assert heir.dispatched() == [place]


def test_it_starts_what_was_prepared() -> None:
    shell = running()
    [place] = shell.dispatched()
    heir = successor(shell)
    heir.receive(
        WorkerRegistered(place.worker, 1, 4, 2, [report(place, "prepared", context=b"setup")])
    )
    assert [(s.placement, s.context) for s in heir.take(Start)] == [(place, b"setup")]


def test_it_gives_everybody_time_to_report() -> None:
    shell = running()
    [place] = shell.prepare_all()
    heir = successor(shell)
    heir.die(place.worker)
    heir.wait(7.9)
    assert not heir.take(CollectReported)
    heir.wait(0.2)
    assert len(heir.take(CollectReported)) == 1


def test_a_worker_nobody_hears_of_is_given_up_later() -> None:
    shell = running()
    shell.prepare_all()
    heir = successor(shell)
    heir.wait(9.9)
    assert not heir.records(PartLost)
    heir.wait(0.2)
    assert "did not come back" in heir.records(PartLost)[0].reason


def test_it_asks_again_for_what_the_last_one_left_open() -> None:
    shell = running(workers=1)
    [place] = shell.prepare_all()
    shell.hold = True
    shell.end(place)
    shell.commit(shell.held.pop())
    heir = successor(shell)
    assert len(heir.take(MakeResults)) == 1
    assert heir.job().status == "completed"


def test_the_job_grows_older_under_every_leader() -> None:
    shell = running(needs(peak_vus=1, planned_s=500.0, limit_s=600.0))
    [place] = shell.prepare_all()
    shell.wait(100.0)
    shell.steer("scale", 5)  # a record that carries the age
    heir = successor(shell)
    assert abs(heir.jobs.age_s(heir.now, "j1") - 100.0) < 1e-6
    for beat in range(201):
        heir.wait(1.0)
        if beat == 0:
            heir.register(place.worker, 4)
        heir.hear(place.worker, report(place, counter=beat))
    assert heir.job().ending == "timeout"
    assert heir.job().reason.startswith("timed out: 300.")


def test_a_leader_that_follows_decides_nothing() -> None:
    shell = running()
    shell.receive(Follow())
    shell.seen.clear()
    shell.wait(1000.0)
    assert shell.seen == []
    assert shell.receive(WorkerReported("w1", 1, 4, [])) is None


def test_nobody_is_looked_for_during_a_pause_and_that_is_not_held_against_a_part() -> None:
    shell = running(needs(planned_s=600.0, limit_s=630.0, peak_vus=4), workers=3, cores=2)
    lost, *_ = shell.prepare_all()
    shell.steer("pause")
    kill(shell, lost.worker, after_s=400.0)
    assert not shell.dispatched()
    shell.steer("resume")
    assert not shell.records(GivenUp)
    (again,) = shell.dispatched()
    assert again.part == lost.part
    assert again.worker != lost.worker
