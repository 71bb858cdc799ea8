"""How safe an operation must be, how safe it is, and who makes it so.

`LOCAL` survives the crash of a process, `REGIONAL` that of a node, `GLOBAL` the loss of a region.
The log gives LOCAL. Replication plugs in as a `Stage` for each higher level; until then, and when
a stage does not answer in time, the answer says plainly which level was reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from hyperscale.ledger.wal.log import WriteAheadLog
from hyperscale.ledger.wal.record import KIND_PLAIN


class Level(IntEnum):
    """The numbers are on disk, in every record: never change them."""

    NONE = 0
    LOCAL = 1
    REGIONAL = 2
    GLOBAL = 3


class Operation(Enum):
    """What a cluster does that may have to last, with the level it needs."""

    JOB_CREATE = "job create", Level.GLOBAL
    JOB_CANCEL = "job cancel", Level.GLOBAL
    JOB_COMPLETE = "job complete", Level.GLOBAL
    JOB_TIMEOUT = "job timeout", Level.GLOBAL
    WORKFLOW_DISPATCH = "workflow dispatch", Level.REGIONAL
    WORKFLOW_COMPLETE = "workflow complete", Level.REGIONAL
    WORKFLOW_CANCEL = "workflow cancel", Level.REGIONAL
    PROGRESS_SUMMARY = "progress summary", Level.LOCAL
    PROGRESS_UPDATE = "progress update", Level.NONE
    STATS_REPORT = "stats report", Level.NONE
    METRICS_STREAM = "metrics stream", Level.NONE

    @property
    def level(self) -> Level:
        return self.value[1]


class Stage(Protocol):
    """A replication that makes records safer than the level below it."""

    @property
    def level(self) -> Level: ...

    @property
    def timeout_s(self) -> float:
        """How long a caller waits; in a region 5 s, between regions 30 s."""
        ...

    async def confirm(self, lsn: int, payload: bytes) -> None:
        """Return when the record has reached the level. Being cancelled ends the waiting, not the
        replicating: the outcome is then unknown and the record stays pending. Raises
        `NotConfirmed` when it is sure that the level cannot be reached."""
        ...


class NotConfirmed(Exception):
    """A stage cannot reach its level; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Commit:
    lsn: int
    """0 when nothing was written, because nothing was asked for."""
    asked: Level
    reached: Level
    error: str = ""

    @property
    def satisfied(self) -> bool:
        return self.reached >= self.asked


class CommitPipeline:
    def __init__(self, log: WriteAheadLog, stages: Sequence[Stage] = ()) -> None:
        self._log = log
        self._stages = {stage.level: stage for stage in stages}
        assert Level.LOCAL not in self._stages
        assert Level.NONE not in self._stages
        assert len(self._stages) == len(stages), "one stage for each level"

    async def commit(self, payload: bytes, asked: Level, kind: int = KIND_PLAIN) -> Commit:
        """Make a record as safe as asked for, or say how far it came. Raises what `append`
        raises: then not even LOCAL is sure."""
        if asked is Level.NONE:
            return Commit(0, asked, asked)
        lsn = await self._log.append(payload, kind, asked)
        reached = Level.LOCAL
        for level in (Level.REGIONAL, Level.GLOBAL):
            if level > asked:
                break
            error = await self._confirm(level, lsn, payload)
            if error:
                return Commit(lsn, asked, reached, error)
            reached = level
        return Commit(lsn, asked, reached)

    async def _confirm(self, level: Level, lsn: int, payload: bytes) -> str:
        stage, name = self._stages.get(level), level.name.lower()
        if stage is None:
            return f"no {name} replication is configured"
        try:
            async with asyncio.timeout(stage.timeout_s):
                await stage.confirm(lsn, payload)
        except TimeoutError:
            return f"{name} replication did not confirm within {stage.timeout_s:g} s"
        except NotConfirmed as refused:
            return str(refused) or f"{name} replication refused"
        return ""
