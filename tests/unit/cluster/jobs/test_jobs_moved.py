"""A part is moved only when its worker has lost it, and takes along all that was done of it."""

from __future__ import annotations

from hyperscale.cluster.jobs.effects import Start
from hyperscale.cluster.jobs.events import PartReport
from hyperscale.cluster.jobs.records import PartLost
from hyperscale.cluster.jobs.settings import JobSettings
from tests.unit.cluster.jobs.making import Shell, needs


def test_a_dispatch_that_arrives_after_a_refutation_belongs_to_this_life() -> None:
    """The worker names it only after it came back, while it still loads it."""
    shell = Shell()
    shell.register("w1", 4)
    shell.submit(needs(peak_vus=2))
    [place] = shell.dispatched()
    shell.register("w1", 4, incarnation=2)
    shell.now += 1.0
    loading = PartReport(place.part, place.fence, "preparing")
    shell.hear("w1", loading, free=4 - place.cores, incarnation=2)
    shell.wait(shell.jobs.settings.reschedule_s + 1.0)
    assert not shell.records(PartLost)
    assert shell.jobs.pool.free(shell.jobs.pool.workers["w1"]) == 4 - place.cores
    shell.prepare(place)
    assert [start.placement for start in shell.take(Start)] == [place]


def test_a_piece_that_is_lost_again_remembers_what_it_inherited() -> None:
    """What is done is never done again: 9 iterations of the whole, then 9 of each piece."""
    # 7 that were heard, and 2 that may have been made since.
    shell = Shell(JobSettings(evict_population_min=9))
    shell.register("w1", 4)
    shell.submit(needs(priority="exclusive", planned_s=None, limit_s=900.0))
    shell.prepare_all()
    shell.register("w2", 2)
    shell.register("w3", 2)
    shell.die("w1")
    shell.wait(10.0)
    pieces = shell.prepare_all()
    assert {piece.part.number: piece.iterations_done for piece in pieces} == {0: 4, 1: 5}
    shell.register("w4", 4)
    for piece in pieces:
        shell.die(piece.worker)
    shell.wait(10.0)
    moved = shell.dispatched()
    assert {place.part.number: place.iterations_done for place in moved} == {0: 13, 1: 14}
