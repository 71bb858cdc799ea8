"""Machine and job layers: independent doubts, one verdict."""

from __future__ import annotations

from hyperscale.cluster.membership.layers import (
    Full,
    JobLost,
    Layers,
    LayersConfig,
    MachineDied,
    Status,
)


def layers(**settings: float) -> Layers:
    return Layers(LayersConfig(**settings))  # type: ignore[arg-type]


def test_job_loss_touches_only_that_job() -> None:
    two = layers()
    assert two.suspect_job(0.0, "j1", "w1", 1, "m1") == []
    assert two.status("w1", "j1") is Status.SUSPECTED_JOB
    assert two.status("w1", "j2") is Status.ALIVE
    assert two.tick(9.9) == []
    assert two.tick(10.0) == [JobLost("j1", "w1", 1)]
    assert two.status("w1", "j1") is Status.DEAD_JOB
    assert not two.serves("w1", "j1")
    assert two.serves("w1", "j2")
    assert two.alive("w1")


def test_a_message_of_the_job_brings_the_worker_back() -> None:
    two = layers()
    two.suspect_job(0.0, "j1", "w1", 1, "m1")
    two.tick(10.0)
    assert not two.heard_for_job("j1", "w1", 0), "an old life does not count"
    assert two.heard_for_job("j1", "w1", 1)
    assert two.status("w1", "j1") is Status.ALIVE


def test_machine_death_clears_all_jobs_once() -> None:
    two = layers()
    two.suspect_job(0.0, "j1", "w1", 1, "m1")
    two.suspect_job(0.0, "j2", "w1", 1, "m1")
    assert two.suspect_machine(0.0, "w1", 1, "m1")
    assert two.machine_dead(1.0, "w1", 1) == [MachineDied("w1", 1, ("j1", "j2"))]
    assert two.machine_dead(2.0, "w1", 1) == []
    assert two.tick(100.0) == []
    assert two.status("w1", "j1") is Status.DEAD_GLOBAL
    assert two.suspect_job(100.0, "j1", "w1", 1, "m1") == []


def test_machine_suspicion_runs_out_and_only_a_higher_incarnation_returns() -> None:
    two = layers()
    two.suspect_machine(0.0, "w1", 3, "m1")
    assert two.status("w1") is Status.SUSPECTED_GLOBAL
    assert not two.refute_machine("w1", 3)
    assert two.tick(30.0) == [MachineDied("w1", 3, ())]
    assert not two.refute_machine("w1", 3)
    assert two.refute_machine("w1", 4)
    assert two.status("w1") is Status.ALIVE


def test_precedence_of_both_layers() -> None:
    two = layers()
    two.suspect_job(0.0, "j", "w", 1, "m")
    two.tick(10.0)
    two.suspect_machine(10.0, "w", 1, "m")
    assert two.status("w", "j") is Status.SUSPECTED_GLOBAL
    two.machine_dead(11.0, "w", 1)
    assert two.status("w", "j") is Status.DEAD_GLOBAL
    assert list(Status) == sorted(Status)


def test_confirmations_shorten_and_never_postpone() -> None:
    two = layers()
    two.suspect_job(0.0, "j", "w", 1, "m0")
    deadline = two.deadline
    for number in range(100):
        two.suspect_job(0.5, "j", "w", 1, f"m{number % 7}")
        assert two.deadline <= deadline
        deadline = two.deadline
    assert deadline == 1.0


def test_long_timeouts_do_not_wrap() -> None:
    two = layers(machine_min_s=30.0, machine_max_s=120.0)
    two.suspect_machine(0.0, "w", 1, "m")
    assert two.tick(119.9) == []
    assert two.tick(120.0) == [MachineDied("w", 1, ())]


def test_limits_refuse_the_newcomer_and_keep_the_rest() -> None:
    two = layers(job_suspicions_max=2, suspicions_max=3)
    assert two.suspect_job(0.0, "j", "w1", 1, "m") == []
    assert two.suspect_job(0.0, "j", "w2", 1, "m") == []
    assert two.suspect_job(0.0, "j", "w3", 1, "m") == [Full("j", "w3")]
    assert two.suspect_job(0.0, "k", "w3", 1, "m") == []
    assert two.suspect_job(0.0, "k", "w4", 1, "m") == [Full("k", "w4")]
    assert two.counts["job_suspicions_refused"] == 2
    assert two.status("w1", "j") is Status.SUSPECTED_JOB


def test_clearing_a_job_leaves_nothing() -> None:
    two = layers()
    for number in range(5):
        two.suspect_job(0.0, "j", f"w{number}", 1, "m")
    assert two.clear_job("j") == 5
    assert two.clear_job("j") == 0
    assert two.suspicions == 0
    assert two.tick(100.0) == []


def test_reconcile_drops_what_is_left_of_the_dead() -> None:
    two = layers()
    two.suspect_job(0.0, "j", "w1", 1, "m")
    two._machines["w1"] = two._machines.get("w1") or _dead()
    two.tick(5.0)
    assert two.counts["reconciled"] == 1
    assert two.suspicions == 1


def _dead():  # type: ignore[no-untyped-def]
    from hyperscale.cluster.membership.layers import _Doubt

    return _Doubt(None, 1, dead=True)


def test_ten_thousand_machine_suspicions_one_heap() -> None:
    two = layers()
    for number in range(10_001):
        two.suspect_machine(number / 1000, f"w{number}", 1, "m")
    assert two.counts["machine_suspicions_refused"] == 1
    assert len(two.tick(29.999)) == 0
    assert len(two.tick(40.0)) == 10_000
