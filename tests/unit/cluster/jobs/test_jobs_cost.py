"""What a leader looks at again: all of a job when something of it changed, not for every part."""

from __future__ import annotations

import pytest

from hyperscale.cluster.jobs import reconcile
from hyperscale.cluster.jobs.effects import Start
from tests.unit.cluster.jobs.making import Shell, needs

PARTS = 40
CORES = 4


def test_a_job_is_not_gone_through_for_each_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = reconcile.reconcile_job

    def counted(*given: object) -> None:
        nonlocal looks
        looks += 1
        real(*given)  # type: ignore[arg-type]

    shell = Shell()
    for number in range(PARTS):
        shell.register(f"w{number}", CORES)
    shell.submit(needs(peak_vus=PARTS * CORES))
    monkeypatch.setattr(reconcile, "reconcile_job", counted)
    places = shell.prepare_all()
    assert len(places) == len(shell.take(Start)) == PARTS
    starting, looks = looks, 0
    shell.now += 60.0
    for place in places:
        shell.end(place)
    assert shell.job().status == "completed"
    assert (starting, looks) == (2, 1)  # all are ready, it has started; all have ended


def test_a_part_that_fails_at_the_last_is_noticed() -> None:
    """A workflow that has failed is over; its last end still settles the job."""
    shell = Shell()
    for number in range(3):
        shell.register(f"w{number}", CORES)
    shell.submit(needs(peak_vus=3 * CORES))
    first, second, third = shell.prepare_all()
    shell.end(first)
    shell.end(second, "failed", "it broke")
    assert shell.job().status == "running"
    shell.end(third, "cancelled")
    assert shell.job().status == "failed"
