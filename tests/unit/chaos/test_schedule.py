"""What seeds decide for rounds on real nodes."""

from __future__ import annotations

import pytest

from tests.chaos.loads import Job, Load
from tests.chaos.schedule import (
    CLIENT,
    MANAGERS,
    RESTART_S,
    WAKE_S,
    Fault,
    Round,
    draw,
    outage_s,
)

MANY = range(1, 301)
JOB = Job((Load("Load", "arrivals", 50, 10),))


def round_of(*faults: Fault, workers: int = 2) -> Round:
    return Round(name="a round", workers=workers, cores=1, job=JOB, faults=faults)


def test_a_seed_is_a_round() -> None:
    assert [draw(seed) for seed in MANY] == [draw(seed) for seed in MANY]
    assert len({draw(seed) for seed in MANY}) == len(MANY)


def test_one_to_three_faults_of_every_kind_on_jobs_of_every_shape() -> None:
    rounds = [draw(seed) for seed in MANY]
    assert {len(one.faults) for one in rounds} == {1, 2, 3}
    faults = [fault for one in rounds for fault in one.faults]
    assert {fault.kind for fault in faults} == {"cut", "stop", "kill", "disk", "generators"}
    assert {fault.protocol for fault in faults if fault.kind == "cut"} == {"tcp", "udp", "both"}
    cuts = [set(fault.edges) for fault in faults if fault.kind == "cut"]
    one_way = [edges for edges in cuts if not any((b, a) in edges for a, b in edges)]
    assert one_way
    assert len(one_way) < len(cuts)
    assert {load.model for one in rounds for load in one.job.loads} == {
        "arrivals",
        "users",
        "iterations",
    }
    assert {len(one.job.loads) for one in rounds} == {1, 2}
    assert {one.job.cancel_at_s is None for one in rounds} == {True, False}


def test_faults_strike_while_there_is_load_and_name_who_is_there() -> None:
    for one in (draw(seed) for seed in MANY):
        known = {*MANAGERS, *one.worker_names, CLIENT}
        length_s = one.job.cancel_at_s or one.job.planned_s
        for fault in one.faults:
            assert 0 < fault.at_s < length_s
            assert {fault.node, *(name for edge in fault.edges for name in edge)} - {""} <= known


def test_a_test_file_is_made_of_it() -> None:
    for one in (draw(seed) for seed in range(1, 30)):
        compile(one.job.text("10.77.0.11", 8080, one.grace_s), "load.py", "exec")


@pytest.mark.parametrize(
    "faults",
    [
        (),
        (Fault("kill", 1, 5, "leader"),),
        (Fault("kill", 1, 5, "worker1"), Fault("stop", 30, 2, "worker2")),
        (Fault("cut", 1, 5, edges=(("leader", "follower1"), ("leader", "follower2"))),),
        (Fault("cut", 1, 9, edges=(("worker1", "leader"),)), Fault("disk", 2, 4, "follower1")),
        (Fault("generators", 1, node="worker1"), Fault("generators", 1, node="worker2")),
    ],
)
def test_a_majority_and_a_worker_live(faults: tuple[Fault, ...]) -> None:
    assert outage_s(round_of(*faults)) == 0


@pytest.mark.parametrize(
    ("faults", "seconds"),
    [
        ((Fault("kill", 1, 5, "leader"), Fault("disk", 3, 4, "follower2")), 3 + RESTART_S),
        ((Fault("stop", 1, 9, "worker1"), Fault("stop", 5, 20, "worker2")), 5 + WAKE_S),
        # back, and not up yet
        ((Fault("kill", 1, 2, "leader"), Fault("kill", 4, 2, "follower1")), RESTART_S - 1),
        (
            (
                Fault("kill", 1, 8, "follower2"),
                Fault("cut", 2, 3, edges=(("follower1", "leader"),)),
            ),
            3,
        ),
        (
            (
                Fault("cut", 1, 5, edges=tuple((manager, "worker1") for manager in MANAGERS)),
                Fault("stop", 2, 5, "worker2"),
            ),
            4,
        ),
        # one outage after the other is one
        (
            (
                Fault("kill", 1, 20, "leader"),
                Fault("stop", 3, 4, "follower1"),
                Fault("stop", 5, 6, "follower2"),
            ),
            8 + WAKE_S,
        ),
    ],
)
def test_an_outage(faults: tuple[Fault, ...], seconds: float) -> None:
    assert outage_s(round_of(*faults)) == pytest.approx(seconds)
