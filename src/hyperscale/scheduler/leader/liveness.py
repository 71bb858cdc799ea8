"""Which workers are suspect, which are dead, and how long a leader takes nothing away. Pure.

    silent for           verdict
    < suspect_after_s    fine
    < dead_after_s       suspect: it gets no new jobs, nothing is taken away
    < 2 x dead_after_s   dead, and what it holds is recovered; still suspect when it answers at its
                         own address, or when most workers are that silent
    >= 2 x dead_after_s  dead

Silence is counted on the leader's own steady clock, from when it saw a heartbeat that it had not
seen before. So neither a clock that steps nor one of another machine makes anybody dead, and a
newborn leader gives everybody a whole threshold. When most workers fall silent at once the leader
doubts itself for one threshold more: its own network or the store is the likelier culprit. So it
does for a worker that answers when asked directly: something between it and the store is slow. Jobs
are not held by that: each comes back when its own lease ends. After its takeover, after the store
was away and after its clock was set a leader takes nothing away for a while (`Grace`), for leases
are judged by that clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hyperscale.scheduler.instants import SECOND, Instant
from hyperscale.scheduler.leader.settings import CoordinatorSettings
from hyperscale.scheduler.worker.registration import Worker, WorkerState


class Liveness(NamedTuple):
    suspects: tuple[str, ...]
    dead: tuple[str, ...]
    doubted: bool
    """The dead were spared: too many at once."""


class _News(NamedTuple):
    session: int
    sequence: int
    at_s: float


class Hearing:
    """When one leader last had news of each worker."""

    def __init__(self, since_s: float) -> None:
        self._news: dict[str, _News] = {}
        self._looked_s = since_s

    def forget(self, since_s: float) -> None:
        """The store was away, for the workers too: everybody begins anew."""
        self._news.clear()
        self._looked_s = since_s

    def silences_s(
        self, workers: Iterable[Worker], now: Instant, steady_s: float
    ) -> dict[str, float]:
        """Of those who have not left, by id."""
        news: dict[str, _News] = {}
        for worker in sorted(workers, key=lambda worker: worker.id):
            if worker.state is WorkerState.UNAVAILABLE:
                continue
            known = self._news.get(worker.id)
            if known is None or known[:2] != (worker.session, worker.sequence):
                at_s = steady_s - self._age_s(worker, now, steady_s)
                known = _News(worker.session, worker.sequence, at_s)
            news[worker.id] = known
        self._news = news
        self._looked_s = steady_s
        return {worker_id: steady_s - each.at_s for worker_id, each in news.items()}

    def _age_s(self, worker: Worker, now: Instant, steady_s: float) -> float:
        """Of a heartbeat seen for the first time: it came since the last look, and clocks may tell
        when in between."""
        return min(max(0.0, (now - worker.seen_at) / SECOND), steady_s - self._looked_s)


def judge_workers(
    silences_s: Mapping[str, float],
    settings: CoordinatorSettings,
    answered: frozenset[str] = frozenset(),
) -> Liveness:
    dead = tuple(name for name, s in silences_s.items() if s >= settings.dead_after_s)
    suspects = tuple(
        name
        for name, s in silences_s.items()
        if settings.suspect_after_s <= s < settings.dead_after_s
    )
    many = len(dead) > 1 and len(dead) > settings.mass_share * len(silences_s)
    doubt_until_s = 2 * settings.dead_after_s
    spared = tuple(
        name for name in dead if silences_s[name] < doubt_until_s and (many or name in answered)
    )
    certain = tuple(name for name in dead if name not in spared)
    return Liveness(tuple(sorted((*suspects, *spared))), certain, doubted=many and bool(spared))


STEP_S: Final = 2.0
"""A difference between the two clocks that no drift explains between two looks."""


class Grace:
    def __init__(self, grace_s: float, now: Instant, steady_s: float) -> None:
        self._grace_s = grace_s
        self._since_s = steady_s
        self._seen = (now, steady_s)

    def begin(self, steady_s: float) -> None:
        self._since_s = steady_s

    def over(self, steady_s: float) -> bool:
        return steady_s - self._since_s >= self._grace_s

    def look(self, now: Instant, steady_s: float) -> float:
        """By how many seconds the clock was set since the last look; 0: it was not."""
        wall, steady = self._seen
        self._seen = (now, steady_s)
        step_s = (now - wall) / SECOND - (steady_s - steady)
        if abs(step_s) < STEP_S:
            return 0.0
        self.begin(steady_s)
        return step_s
