"""Which workers are suspect, which are dead. Pure.

    silent for           verdict
    < suspect_after_s    fine
    < dead_after_s       suspect: told, nothing taken away
    >= dead_after_s      dead, and what it holds is recovered

Silence counts from the leader's takeover at the earliest, so a newborn leader declares nobody dead.
When most workers fall silent at once the leader doubts itself for one threshold more: its own
network or the store is the likelier culprit (S-72).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hyperscale.scheduler.coordinator.settings import CoordinatorSettings
from hyperscale.scheduler.model.instants import SECOND, Instant
from hyperscale.scheduler.model.worker import Worker, WorkerState


class Verdict(NamedTuple):
    suspects: tuple[str, ...]
    dead: tuple[str, ...]
    doubted: bool
    """The dead were spared: too many at once."""


def judge_workers(
    workers: Iterable[Worker], now: Instant, listening_since: Instant, settings: CoordinatorSettings
) -> Verdict:
    alive = [worker for worker in workers if worker.state is not WorkerState.UNAVAILABLE]
    silent_s = {
        worker.id: (now - max(worker.seen_at, listening_since)) / SECOND
        for worker in sorted(alive, key=lambda worker: worker.id)
    }
    dead = tuple(name for name, s in silent_s.items() if s >= settings.dead_after_s)
    suspects = tuple(
        name
        for name, s in silent_s.items()
        if settings.suspect_after_s <= s < settings.dead_after_s
    )
    many = len(dead) > 1 and len(dead) > settings.mass_share * len(alive)
    doubt_until_s = 2 * settings.dead_after_s
    if many and any(silent_s[name] < doubt_until_s for name in dead):
        spared = tuple(name for name in dead if silent_s[name] < doubt_until_s)
        certain = tuple(name for name in dead if silent_s[name] >= doubt_until_s)
        return Verdict(tuple(sorted((*suspects, *spared))), certain, doubted=True)
    return Verdict(suspects, dead, doubted=False)
