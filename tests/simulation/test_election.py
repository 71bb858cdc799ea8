"""Elections in the simulator: the shell on simulated hosts, under faults, watched by checkers.

`make soak` runs thousands of seeds; here a few of every story, every planted bug, and the
seeds that once found something.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest

from hyperscale.cluster.election import Durable
from hyperscale.nodes.member.term_file import TermFile, TermFileDamaged
from hyperscale.sim import prove, run
from hyperscale.sim.disk import CrashDisk
from hyperscale.sim.host import SimHost
from hyperscale.sim.scenarios.election import ElectionScenario
from hyperscale.sim.world import World

# Where each planted bug is known to show; a little room for changes of timing.
BUG_FROM = {
    "votes-twice": 16,
    "lease-from-answer": 9,
    "no-drift-margin": 125,
    "no-abstention": 15,
    "no-stickiness": 15,
    "no-pre-vote": 6,
    "no-check-quorum": 10,
    "gives-up": 17,
    "read-is-not-durable": 167,
}
BUG_SEEDS = 220


@pytest.mark.parametrize("seed", range(1, 31))
def test_elections_survive_everything(seed: int) -> None:
    report = run(ElectionScenario(), seed)
    assert report.ok, report.failures


@pytest.mark.parametrize("nodes", [1, 2, 4, 7])
def test_any_number_of_voters(nodes: int) -> None:
    for seed in range(1001, 1004):
        report = run(ElectionScenario(nodes), seed)
        assert report.ok, (seed, report.failures)


@pytest.mark.parametrize("planted_bug", sorted(ElectionScenario.planted_bugs))
def test_every_checker_catches_its_planted_bug(planted_bug: str) -> None:
    first = BUG_FROM.get(planted_bug, 1)
    assert prove(ElectionScenario, planted_bug, range(first, first + BUG_SEEDS)) is not None


def test_the_same_seed_gives_the_same_trace() -> None:
    first, second = (run(ElectionScenario(), 9).trace_hash for _ in range(2))
    assert first == second
    assert run(ElectionScenario(), 10).trace_hash != first


def test_seed_57_stays_green() -> None:
    """It found that what a restarted voter reads need not be durable, see below."""
    assert run(ElectionScenario(), 57).ok


Life = Callable[[TermFile, SimHost], Awaitable[object]]


def on_disk(*lives: Life | CrashDisk, life_s: float = 1.0) -> list[object]:
    """Lives and the crashes between them, on one simulated disk; what each life returned."""
    world = World(1)
    results: list[object] = []

    async def main(host: SimHost) -> None:
        life = lives[2 * len(results)]
        assert not isinstance(life, str)
        results.append(None)
        try:
            results[-1] = await life(TermFile(host.disk, "data/election"), host)
        except (OSError, TermFileDamaged) as error:
            results[-1] = error

    async def story() -> None:
        world.add("n1", main)
        await asyncio.sleep(life_s)
        for crash in lives[1::2]:
            assert isinstance(crash, str)
            world.crash("n1", crash)
            world.restart("n1")
            await asyncio.sleep(1)

    try:
        world.loop.run_until_complete(story())
        assert not world.failures
        return results
    finally:
        world.close()


async def load(file: TermFile, _host: SimHost) -> Durable:
    return await file.load()


@pytest.mark.parametrize("crash", ["kept", "lost-unsynced", "torn"])
def test_what_was_saved_survives_every_kind_of_crash(crash: CrashDisk) -> None:
    async def save(file: TermFile, _host: SimHost) -> Durable:
        durable = await file.load()
        for _ in range(3):
            durable = Durable(durable.term + 1, "m1")
            await file.save(durable)
        return durable

    assert on_disk(load, crash, save, crash, load, crash, save, crash, load) == [
        Durable(),
        Durable(3, "m1"),
        Durable(3, "m1"),
        Durable(6, "m1"),
        Durable(6, "m1"),
    ]


@pytest.mark.parametrize("crash", ["lost-unsynced", "torn"])
def test_a_power_cut_while_saving_leaves_the_old_or_the_new(crash: CrashDisk) -> None:
    spoken = 0

    async def save_many(file: TermFile, _host: SimHost) -> None:
        nonlocal spoken
        await file.load()
        for term in range(1, 1000):
            await file.save(Durable(term, "m1"))
            spoken = term

    for step in range(100):
        spoken = 0
        _, found = on_disk(save_many, crash, load, life_s=0.002 + step * 0.00021)
        assert isinstance(found, Durable)
        assert found.term in (spoken, spoken + 1)


def test_what_a_restarted_voter_reads_is_made_durable_before_it_counts() -> None:
    """A directory sync fails after the rename, and the voter gives up. The next life reads the
    new term from the page cache and speaks of it; then the power goes."""

    async def fail_after_rename(file: TermFile, host: SimHost) -> None:
        await file.load()
        await file.save(Durable(1, "m1"))

        async def fail(_path: str) -> None:
            raise OSError(errno.EIO, "Input/output error")

        host.disk.sync_directory = fail  # type: ignore[method-assign]
        await file.save(Durable(2, "m2"))

    failed, spoken, kept = on_disk(fail_after_rename, "kept", load, "lost-unsynced", load)
    assert isinstance(failed, OSError)
    assert spoken == kept == Durable(2, "m2")


def test_a_rotten_term_file_is_refused() -> None:
    async def save(file: TermFile, host: SimHost) -> None:
        await file.load()
        await file.save(Durable(41, "m1"))
        term = await host.disk.read("data/election/term")
        handle = await host.disk.open("data/election/term")
        await handle.truncate(0)
        await handle.append_and_sync(term[:-1] + bytes([term[-1] ^ 1]))
        await handle.close()

    _, found = on_disk(save, "kept", load)
    assert isinstance(found, TermFileDamaged)
    assert "cannot know whether it has voted" in str(found)


def test_seed_36400_voters_that_are_all_barred_come_back() -> None:
    """The two that could reach each other had both been told to stay out."""
    report = run(ElectionScenario(), 36_400)
    assert report.ok, report.failures
