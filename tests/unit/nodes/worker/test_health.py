"""One word for how a worker feels: busy makes it degraded, only a person makes it drain."""

from __future__ import annotations

from hyperscale.nodes.protocol.parts import WorkerState
from hyperscale.nodes.worker.health import WorkerHealth


def judge(
    condition: WorkerHealth,
    *,
    cpu: float = 10.0,
    memory: float = 10.0,
    score: int = 0,
    registered: bool = True,
    draining: bool = False,
) -> WorkerState:
    return condition.judge(
        registered=registered,
        draining=draining,
        cpu_percent=cpu,
        memory_percent=memory,
        health_score=score,
    )


def test_a_saturated_machine_degrades_and_never_drains() -> None:
    assert judge(WorkerHealth(), cpu=100.0) == "degraded"
    assert judge(WorkerHealth(), memory=99.0) == "degraded"
    assert judge(WorkerHealth(), score=8) == "degraded"


def test_it_takes_less_to_be_ill_than_to_be_well_again() -> None:
    condition = WorkerHealth()
    words = [judge(condition, cpu=cpu) for cpu in (90.0, 96.0, 90.0, 81.0, 79.0, 90.0)]

    assert words == ["healthy", "degraded", "degraded", "degraded", "healthy", "healthy"]


def test_draining_and_registering_come_first() -> None:
    assert judge(WorkerHealth(), cpu=100.0, draining=True) == "draining"
    assert judge(WorkerHealth(), registered=False) == "registering"
