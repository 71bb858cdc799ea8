"""Which workers are chosen, and how cores are counted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.health import Routing
from hyperscale.cluster.jobs.pool import Pool
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import ReplicatedState
from tests.unit.cluster.jobs.making import placement


def pool(**cores: int) -> tuple[Pool, ReplicatedState]:
    replicated = ReplicatedState()
    made = Pool(JobSettings(), replicated, random.Random(3))
    for name, total in cores.items():
        made.register(0.0, name, 1, total, total, draining=False)
    return made, replicated


def chosen(made: Pool, cores: int, excluded: set[str] = frozenset()) -> dict[str, int] | None:  # type: ignore[assignment]
    found = made.draft(0.0, excluded).take(cores)
    return None if found is None else {worker.name: n for worker, n in found}


def test_few_workers_rather_than_many() -> None:
    made, _ = pool(w1=2, w2=8, w3=4, w4=2)
    assert chosen(made, 8) == {"w2": 8}
    both = chosen(made, 11)
    assert both is not None
    assert both["w2"] == 8
    assert len(both) == 2
    assert chosen(made, 16) == {"w1": 2, "w2": 8, "w3": 4, "w4": 2}
    assert chosen(made, 17) is None


def test_choices_of_one_draft_do_not_overlap() -> None:
    made, _ = pool(w1=4, w2=4)
    draft = made.draft(0.0, ())
    taken = [draft.take(3), draft.take(3)]
    assert {worker.name for found in taken if found for worker, _ in found} == {"w1", "w2"}
    assert draft.free == 2
    assert draft.take(3) is None


def test_the_healthy_come_before_the_degraded() -> None:
    made, _ = pool(w1=4, w2=4, w3=4)
    for name in ("w1", "w2"):
        made.heard(0.0, made.workers[name], 4, False, degraded=True)
    for _ in range(20):
        assert chosen(made, 4) == {"w3": 4}
    assert chosen(made, 12) is not None


def test_who_lost_a_part_is_the_last_resort() -> None:
    made, _ = pool(w1=4, w2=4)
    for _ in range(20):
        assert chosen(made, 2, {"w1"}) == {"w2": 2}
    assert chosen(made, 2, {"w1", "w2"}) is not None
    assert chosen(made, 8, {"w1"}) == {"w1": 4, "w2": 4}


def test_power_of_two_spreads_by_free_cores() -> None:
    made, replicated = pool(w1=8, w2=8)
    replicated.occupy(placement(worker="w1", cores=6))
    assert {tuple(chosen(made, 1) or {}) for _ in range(30)} == {("w2",)}


def test_records_and_the_worker_itself_both_count() -> None:
    made, replicated = pool(w1=8)
    worker = made.workers["w1"]
    replicated.occupy(placement(cores=3))
    assert made.free(worker) == 5
    made.reserve([placement(1, cores=2)])
    assert made.free(worker) == 3
    made.release([placement(1, cores=2)])
    made.heard(0.0, worker, 3, False, False)  # 5 used, 3 booked: 2 are nobody's
    assert worker.unknown == 2
    assert made.free(worker) == 3
    made.heard(0.0, worker, 8, False, False)  # the dispatch has not arrived yet
    assert made.free(worker) == 5


def test_another_life_has_nothing_booked() -> None:
    made, replicated = pool(w1=4)
    replicated.occupy(placement(cores=4))
    assert made.free(made.workers["w1"]) == 0
    made.register(1.0, "w1", 2, 4, 4, draining=False)
    assert made.free(made.workers["w1"]) == 4
    assert made.register(2.0, "w1", 1, 4, 4, draining=False) is None


def test_who_takes_no_work() -> None:
    made, _ = pool(w1=4, w2=4, w3=4, w4=4)
    made.heard(0.0, made.workers["w1"], 4, draining=True, degraded=False)
    made.workers["w2"].dead_at = 0.0
    made.refused(0.0, made.workers["w3"], 4)
    assert chosen(made, 4) == {"w4": 4}
    assert chosen(made, 5) is None
    assert made.total_cores(0.0) == 12  # the draining one is no part of the pool
    assert made.total_cores(40.0) == 0  # silence


@given(
    now=st.sampled_from([0.0, 5.0, 9.0, 31.0, 125.0, 200.0, 400.0]),
    heard_at=st.sampled_from([0.0, 120.0, 199.0]),
    dead=st.booleans(),
    registered=st.booleans(),
    draining=st.booleans(),
    works=st.booleans(),
    patience=st.booleans(),
)
def test_the_pool_is_all_that_is_neither_drained_nor_evicted(
    now: float,
    heard_at: float,
    dead: bool,
    registered: bool,
    draining: bool,
    works: bool,
    patience: bool,
) -> None:
    made, _ = pool(w1=4)
    worker = made.workers["w1"]
    worker.heard_at, worker.dead_at = heard_at, 0.0 if dead else None
    worker.registered, worker.draining = registered, draining
    worker.pace.work(0.0, works)
    if patience:
        worker.extensions.ask(now, 0.5, suspect=False)
    serving = (Routing.ROUTE, Routing.INVESTIGATE, Routing.HOLD)
    silent = now - heard_at >= JobSettings().silence_s
    assert made.takes_part(now, worker) == (
        registered and not draining and not silent and made.signals(now, worker).routing in serving
    )


def test_workers_that_come_while_nothing_waits_are_not_counted_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a thousand of them are looked at a million times."""
    counted: list[float] = []
    monkeypatch.setattr(Pool, "total_cores", lambda _pool, now: counted.append(now) or 0)
    jobs = Jobs(JobSettings(), random.Random(3))
    jobs.lead(0.0, 1)
    for number in range(20):
        jobs.worker_registered(1.0, f"w{number}", 1, 4, 4, [])
    assert counted == []


def test_refusals_double_the_pause() -> None:
    made, _ = pool(w1=4)
    worker = made.workers["w1"]
    pauses = []
    for _ in range(7):
        made.refused(100.0, worker, None)
        pauses.append(worker.pause_until - 100.0)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
