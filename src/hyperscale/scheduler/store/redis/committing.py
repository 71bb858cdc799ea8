"""Steps made atomic on Redis: run on a copy, commit if nothing that was read has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from hyperscale.scheduler.errors import SchedulerError, StoreUnavailable
from hyperscale.scheduler.store.group_commit import Fault, GroupCommit
from hyperscale.scheduler.store.redis import keys
from hyperscale.scheduler.store.redis.copy import Copy, Missing, Recent
from hyperscale.scheduler.store.redis.scripts import COMMIT, Scripts, blob
from hyperscale.scheduler.store.redis.step import StepRecords

STEPS_PER_COMMIT_MAX: Final = 256
"""A script keeps all of Redis waiting: some 3,000 commands, a few milliseconds."""
CONFLICTS_MAX: Final = 64
TRIPS_MAX: Final = 16
"""No step needs more than six: epoch, schedule, new instances, line, who is in it, and those."""

Step = Callable[[StepRecords], Any]


class _Ran(NamedTuple):
    outcome: Any
    records: StepRecords


class Committer:
    def __init__(self, scripts: Scripts, recent: Recent, on_news: Callable[[int], None]) -> None:
        self._scripts = scripts
        self._recent = recent
        self._on_news = on_news
        self._group = GroupCommit(self._chunk, STEPS_PER_COMMIT_MAX)

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        return await self._group.run(steps)

    async def _chunk(self, steps: list[Step]) -> list[Any]:
        outcomes: dict[int, Any] = {}
        left = list(range(len(steps)))
        for _ in range(CONFLICTS_MAX):
            copy = Copy(self._recent)
            ran = await self._run(copy, [steps[i] for i in left])
            held = await self._commit(ran, copy)
            outcomes.update(
                (i, r.outcome) for i, r, holds in zip(left, ran, held, strict=True) if holds
            )
            left = [i for i, holds in zip(left, held, strict=True) if not holds]
            if not left:
                return [outcomes[i] for i in range(len(steps))]
        raise StoreUnavailable("too many writers change the same jobs", "try again")

    async def _run(self, copy: Copy, steps: list[Step]) -> list[_Ran]:
        for _ in range(TRIPS_MAX):
            copy.restart()
            ran = [self._step(copy, step) for step in steps]
            lacking = copy.lacks()
            if not lacking:
                return [r for r in ran if r is not None]
            copy.learn(lacking, await self._scripts.fetch(lacking))
        raise StoreUnavailable("a step of the job store reads without end")

    def _step(self, copy: Copy, step: Step) -> _Ran | None:
        records = StepRecords(copy)
        try:
            outcome = step(records)
        except Missing:
            return None
        except SchedulerError as refusal:
            assert not records.writes, "a step refuses before it writes"
            return _Ran(refusal, records)
        except Exception as error:  # noqa: BLE001  (may come of readings from two moments: checked)
            records.writes.clear()
            return _Ran(Fault(error), records)
        records.keep()
        return _Ran(outcome, records)

    async def _commit(self, ran: list[_Ran], copy: Copy) -> list[bool]:
        """Which steps happened. Also a step that wrote nothing must have read the truth."""
        one_moment = copy.trips <= 1 and not copy.trusted
        if one_moment and not any(r.records.writes for r in ran):
            return [True] * len(ran)
        used = self._scripts.keys([keys.COUNTERS])
        packed = []
        for _, records in ran:
            checks = [
                (used.number(table), field, False if value is None else blob(value))
                for (table, field), value in records.checks.items()
            ]
            writes = [used.numbered(write) for write in records.writes]
            packed.append((checks, writes, records.news))
        sign, *held = await self._scripts.call(COMMIT, used, packed)
        if sign:
            self._on_news(sign)
        return [bool(holds) for holds in held]
