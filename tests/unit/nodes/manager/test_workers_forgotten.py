"""What a manager keeps of workers that are gone, and of all of them when it leads no longer."""

from __future__ import annotations

from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.nodes.manager.manager import Manager
from tests.unit.nodes.manager.lone_manager import LoneManager, play


def remembered(manager: Manager) -> tuple[bool, bool]:
    """Whether it knows what w1 last said, and holds a connection to it."""
    return "w1" in manager.worker_api._known, manager.commands.sender.knows("w1")


def test_a_worker_that_died_is_forgotten_altogether() -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        lone.register()
        assert remembered(manager) == (True, True)
        manager.carry_out(manager.jobs.worker_dead(manager.now(), "w1", 1))
        await lone.until(lambda: "w1" not in manager.jobs.pool.workers)
        assert remembered(manager) == (False, False)
        lone.register(incarnation=2)
        assert remembered(manager) == (True, True)

    play(story, jobs=JobSettings(dead_worker_kept_s=9.0))


def test_a_worker_that_left_in_an_earlier_life_is_not_forgotten() -> None:
    async def story(lone: LoneManager) -> None:
        manager = lone.manager
        lone.register(incarnation=5)
        manager.carry_out(manager.jobs.worker_left(manager.now(), "w1", 4))
        assert remembered(manager) == (True, True)
        manager.carry_out(manager.jobs.worker_left(manager.now(), "w1", 5))
        assert remembered(manager) == (False, False)

    play(story)


def test_who_leads_no_longer_has_no_connections_to_workers() -> None:
    async def story(lone: LoneManager) -> None:
        lone.register()
        lone.manager.worker_api.retire()
        assert remembered(lone.manager) == (False, False)

    play(story)
