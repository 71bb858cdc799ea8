"""The jobs core in a toy datacenter: thousands of histories, and bugs that must be found.

`HYPERSCALE_JOBS_SEEDS=5000` runs that many seeds.
"""

from __future__ import annotations

import os

import pytest

from hyperscale.cluster.jobs import (
    apply,
    apply_ending,
    ending,
    placing,
    pool,
    reconcile,
    squeezing,
    steering,
)
from hyperscale.cluster.jobs.effects import Acknowledge, Dispatch
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.lifecycle import LifecycleState
from hyperscale.cluster.jobs.records import PartEnded
from hyperscale.cluster.jobs.settings import JobSettings
from tests.property.jobs_checks import Broken
from tests.property.jobs_world import World

SEEDS = int(os.environ.get("HYPERSCALE_JOBS_SEEDS", "120"))
GROUPS = 8


@pytest.mark.parametrize("group", range(GROUPS))
def test_histories_with_faults(group: int) -> None:
    for seed in range(group, SEEDS, GROUPS):
        run(seed)


def test_lost_parts_go_on_beside_others() -> None:
    worlds = [run(seed, full=True) for seed in range(30)]
    assert sum(world.checks.squeezed > 0 for world in worlds) >= 2


def test_histories_without_faults_complete_what_was_not_steered() -> None:
    for seed in range(20):
        world = run(seed, faults=False)
        for job in world.checks.replicated.jobs.values():
            if not job.ending:
                assert job.status == "completed", (seed, job.job_id, job.reason)


def test_a_seed_is_a_history() -> None:
    assert run(3).log == run(3).log


def run(
    seed: int, *, faults: bool = True, settings: JobSettings | None = None, full: bool = False
) -> World:
    world = World(seed, faults=faults, settings=settings, full=full)
    try:
        world.run()
    except Broken as broken:
        raise Broken(f"seed {seed}: {broken}") from broken
    return world


def must_break(
    rule: str, settings: JobSettings | None = None, first: int = 0, full: bool = False
) -> None:
    with pytest.raises(Broken, match=rule):
        _search(first, settings, full)


def _search(first: int, settings: JobSettings | None, full: bool) -> None:
    for seed in range(first, first + 150):
        World(seed, settings=settings, full=full).run(horizon_s=2_500.0)


class TestPlantedBugs:
    def test_cores_under_way_are_not_reserved(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool.Pool, "reserve", lambda self, placements: None)
        must_break("no worker is over-booked")

    def test_a_squeezed_core_counts_as_another(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = squeezing.Squeeze.take

        def careless(self, workflow, cores):  # type: ignore[no-untyped-def]
            allocation = real(self, workflow, cores)
            return allocation and [
                (worker, tuple(s + 100 for s in slots)) for worker, slots in allocation
            ]

        monkeypatch.setattr(squeezing.Squeeze, "take", careless)
        must_break("no worker is over-booked", full=True)

    def test_a_squeezed_core_is_that_of_another_worker(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = squeezing.Squeeze._pieces

        def confused(self, host, workflow, cores):  # type: ignore[no-untyped-def]
            found = real(self, host, workflow, cores)
            others = [s for one in self._hosts.values() if one is not host for s in one.slots]
            return [tuple(others[: len(piece)]) or piece for piece in found]

        monkeypatch.setattr(squeezing.Squeeze, "_pieces", confused)
        must_break("a slot is a core of one worker|every core has one part", full=True)

    def test_a_layer_does_not_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def first_pending(job: object) -> int | None:
            return next(
                (
                    w.layer
                    for w in reversed(job.workflows.values())  # type: ignore[attr-defined]
                    if w.lifecycle.state is LifecycleState.PENDING
                    and all(job.workflows[d].lifecycle.succeeded for d in w.needs.depends)  # type: ignore[attr-defined]
                ),
                None,
            )

        monkeypatch.setattr("hyperscale.cluster.jobs.state.JobState.current_layer", first_pending)
        must_break("a layer starts after the one before it")

    def test_dispatch_goes_out_with_the_decision(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = placing._dispatch

        def hasty(leader, now, job, workflow, chosen):  # type: ignore[no-untyped-def]
            real(leader, now, job, workflow, chosen)
            record = leader.under_way.get(("workflow", job.job_id, workflow.needs.name))
            for place in record.placements if record else ():
                leader.emit(Dispatch(place, 1, False))

        monkeypatch.setattr(placing, "_dispatch", hasty)
        must_break("no dispatch before its record")

    def test_no_grace_for_silent_workers(self) -> None:
        settings = JobSettings(reschedule_s=3.0, evict_population_min=99)  # the fence is 6 s
        must_break("no load runs twice", settings)

    def test_one_retry_too_many(self) -> None:
        must_break("three retries at most", JobSettings(retries_max=9), first=20)

    def test_an_end_is_acknowledged_when_it_arrives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = ending.ended

        def hasty(leader, now, end):  # type: ignore[no-untyped-def]
            settled = real(leader, now, end)
            leader.emit(Acknowledge(end.worker, end.part, end.fence))
            return settled

        monkeypatch.setattr(ending, "ended", hasty)
        must_break("no end is settled before its record")

    def test_an_old_end_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = apply_ending.ended

        def forgiving(replicated, job, record):  # type: ignore[no-untyped-def]
            _, part = apply_ending.find(job, record.part)
            if part is not None and part.ended is not None and part.ended.fence == record.fence:
                return True
            return real(replicated, job, record)

        busy = LeaderState.is_under_way
        monkeypatch.setitem(apply._HANDLERS, PartEnded, forgiving)
        monkeypatch.setattr(
            LeaderState,
            "is_under_way",
            lambda self, now, about: about[0] != "part" and busy(self, now, about),
        )
        must_break("one committed end per attempt of a part")

    def test_cancelled_parts_are_never_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(steering, "wind_down", lambda *given: None)
        must_break("every accepted job ends", first=9)

    def test_no_results_after_a_failed_append(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reconcile, "failed", lambda *given: None)
        must_break("every accepted job ends|the pool is free in the end")
