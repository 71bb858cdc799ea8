"""Levels of durability: asked for, reached, and told apart."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from hyperscale.ledger.wal import LogFailed, WriteAheadLog
from hyperscale.ledger.wal.durability import Commit, CommitPipeline, Level, NotConfirmed, Operation
from hyperscale.sim.host import SimHost
from hyperscale.sim.world import World
from tests.unit.ledger.wal.logs import DIRECTORY, simulate


@dataclass
class Replication:
    level: Level
    timeout_s: float = 5.0
    takes_s: float = 0.01
    refuses: str = ""
    confirmed: list[int] = field(default_factory=list)

    async def confirm(self, lsn: int, payload: bytes) -> None:
        await asyncio.sleep(self.takes_s)
        if self.refuses:
            raise NotConfirmed(self.refuses)
        self.confirmed.append(lsn)


def committed(asked: Level, *stages: Replication) -> Commit:
    async def story(world: World, host: SimHost) -> Commit:
        log = await WriteAheadLog.open(host, DIRECTORY)
        commit = await CommitPipeline(log, stages).commit(b"x", asked)
        assert [record.level async for record in log.read()] == ([asked] if asked else [])
        await log.close()
        return commit

    return simulate(story)


def test_local_is_what_the_log_gives() -> None:
    commit = committed(Level.LOCAL)
    assert commit == Commit(1, Level.LOCAL, Level.LOCAL)
    assert commit.satisfied


def test_none_writes_nothing() -> None:
    assert committed(Level.NONE) == Commit(0, Level.NONE, Level.NONE)


def test_without_replication_the_answer_is_honest() -> None:
    commit = committed(Level.GLOBAL)
    assert (commit.reached, commit.satisfied) == (Level.LOCAL, False)
    assert commit.error == "no regional replication is configured"


def test_each_stage_raises_the_level() -> None:
    regional, wide = Replication(Level.REGIONAL), Replication(Level.GLOBAL)
    assert committed(Level.REGIONAL, regional, wide).reached is Level.REGIONAL
    assert (regional.confirmed, wide.confirmed) == ([1], [])
    assert committed(Level.GLOBAL, regional, wide) == Commit(1, Level.GLOBAL, Level.GLOBAL)


@pytest.mark.parametrize(
    ("slow", "reached", "error"),
    [
        (Level.REGIONAL, Level.LOCAL, "regional replication did not confirm within 5 s"),
        (Level.GLOBAL, Level.REGIONAL, "global replication did not confirm within 5 s"),
    ],
)
def test_a_slow_stage_leaves_the_level_below(slow: Level, reached: Level, error: str) -> None:
    stages = [
        Replication(level, takes_s=60.0 if level is slow else 0.01)
        for level in (Level.REGIONAL, Level.GLOBAL)
    ]
    commit = committed(Level.GLOBAL, *stages)
    assert (commit.reached, commit.error) == (reached, error)


def test_a_refusal_is_told() -> None:
    commit = committed(Level.REGIONAL, Replication(Level.REGIONAL, refuses="no quorum"))
    assert (commit.reached, commit.error) == (Level.LOCAL, "no quorum")


def test_a_failed_log_is_no_level_at_all() -> None:
    async def story(world: World, host: SimHost) -> None:
        log = await WriteAheadLog.open(host, DIRECTORY)
        world.machines["a"].disk.sync_errors = 1.0
        with pytest.raises(LogFailed):
            await CommitPipeline(log).commit(b"x", Level.LOCAL)

    simulate(story)


def test_the_policy_of_operations() -> None:
    """Job life cycle survives regions, workflow life cycle nodes, figures nothing."""
    levels = {operation.name: operation.level for operation in Operation}
    assert levels["JOB_CREATE"] is levels["JOB_CANCEL"] is levels["JOB_COMPLETE"] is Level.GLOBAL
    assert levels["WORKFLOW_DISPATCH"] is levels["WORKFLOW_CANCEL"] is Level.REGIONAL
    assert levels["STATS_REPORT"] is levels["METRICS_STREAM"] is Level.NONE
    assert [int(level) for level in Level] == [0, 1, 2, 3]
