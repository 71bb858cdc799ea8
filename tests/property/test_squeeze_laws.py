"""Cores when lost parts share them: counted once, free when the last part ends, and the same on a
leader, on a leader that takes over, and on the workers themselves."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from hyperscale.cluster.jobs.core import Jobs
from hyperscale.cluster.jobs.events import Applied, CpuUse
from hyperscale.cluster.jobs.records import Needs, Placement
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.nodes.worker.cores import Cores
from tests.unit.cluster.jobs.making import Shell, needs

LIMIT_PERCENT = JobSettings().squeeze_cpu_percent


@dataclass
class Story:
    workers: dict[str, int]
    workflows: list[Needs]
    core_percent: float
    deaths: list[str]
    seed: int


@st.composite
def stories(draw: st.DrawFn) -> Story:
    cores = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    workers = {f"w{number}": count for number, count in enumerate(cores, 1)}
    workflows = [
        needs(
            f"wf{number}",
            peak_vus=draw(st.sampled_from((1, 3, 100))),
            priority=draw(st.sampled_from(("auto", "high", "low"))),
            planned_s=draw(st.sampled_from((None, 900.0))),
            limit_s=2_000.0,
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    if draw(st.integers(0, 4)) == 0:
        workflows = [needs("wf0", priority="exclusive", planned_s=900.0, limit_s=2_000.0)]
    deaths = draw(st.lists(st.sampled_from(sorted(workers)), min_size=1, max_size=3, unique=True))
    return Story(
        workers,
        workflows,
        draw(st.sampled_from((1.0, 15.0, 45.0, 90.0))),
        deaths[: len(workers) - 1],
        draw(st.integers(0, 2**16)),
    )


def live(shell: Shell) -> list[Placement]:
    return [place for one in shell.job().workflows.values() for place in one.live()]


def bears(places: list[Placement], worker: str) -> dict[int, int]:
    """How many parts share each process of a worker."""
    found: dict[int, int] = {}
    for place in places:
        if place.worker == worker:
            for slot in place.slots:
                found[slot] = found.get(slot, 0) + 1
    return found


def tell_cpu(shell: Shell, story: Story) -> None:
    for name, cores in story.workers.items():
        shared = bears(live(shell), name)
        shell.cpu[name] = CpuUse(
            min(100.0, story.core_percent * sum(shared.values()) / cores),
            min(100.0, story.core_percent * max(shared.values(), default=0)),
        )


def check(shell: Shell, story: Story) -> None:
    places = live(shell)
    rebuilt = Jobs(shell.jobs.settings, random.Random(1))
    for record in shell.log:
        rebuilt.receive(shell.now, Applied(record))
    assert rebuilt.queries.job("j1") == shell.job()
    for name, worker in shell.jobs.pool.workers.items():
        used = len(bears(places, name))
        assert used <= worker.total
        assert shell.jobs.pool.booked(worker) == used
        assert shell.jobs.pool.free(worker) == worker.total - used
        its_own: Cores[int] = Cores(worker.total)
        for number, place in enumerate(p for p in places if p.worker == name):
            assert its_own.take(number, "j1", place.slots), "the worker has room, too"
        assert its_own.free == worker.total - used
    for workflow in shell.job().workflows.values():
        parts = [part for part in workflow.parts.values() if not part.is_final]
        cores = [c for p in parts for c in range(p.first_core, p.first_core + p.cores)]
        assert len(set(cores)) == len(cores), "no core of a workflow is placed twice"


@settings(max_examples=150)
@given(stories())
def test_cores_are_counted_once_whatever_shares_them(story: Story) -> None:
    shell = Shell(JobSettings(evict_population_min=99), seed=story.seed)
    for name, cores in story.workers.items():
        shell.register(name, cores)
    shell.submit(*story.workflows, timeout_s=9_000.0)
    shell.prepare_all()
    for name in story.deaths:
        tell_cpu(shell, story)
        shell.wait(8.0)
        before = live(shell)
        shell.die(name)
        shell.wait(9.5)
        moved = shell.prepare_all()
        check(shell, story)
        for place in moved:
            assert place.worker not in story.deaths[: story.deaths.index(name) + 1]
            if set(place.slots) & bears(before, place.worker).keys():
                most = max(bears(live(shell), place.worker).values())
                assert story.core_percent * most <= LIMIT_PERCENT
    dice = random.Random(story.seed)
    while places := live(shell):
        shell.end(dice.choice(places))
        check(shell, story)
