"""The leader's decisions about jobs: events and time in, effects out.

Every manager applies the same records to the same replicated state; only the leader decides. A
decision is a record, handed out as `Append`; what follows from it happens when the log brings it
back. Lost leadership costs nothing but this leader's own state: the next leader has the replicated
state, hears its workers, and goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from hyperscale.cluster.jobs import (
    ending,
    events,
    losing,
    placing,
    reconcile,
    steering,
    submitting,
    workers,
)
from hyperscale.cluster.jobs.effects import Effect
from hyperscale.cluster.jobs.events import Event
from hyperscale.cluster.jobs.leader_state import LeaderState
from hyperscale.cluster.jobs.queries import JobQueries
from hyperscale.cluster.jobs.settings import JobSettings
from hyperscale.cluster.jobs.state import Condense


class Jobs:
    def __init__(
        self, settings: JobSettings, dice: random.Random, condense: Condense | None = None
    ) -> None:
        self._leader = LeaderState(settings, dice, condense)
        self.queries = JobQueries(self._leader)

    def receive(self, now: float, event: Event) -> list[Effect]:
        """Whoever calls carries out all of the effects, in this order."""
        leader = self._leader
        if HANDLERS[type(event)](leader, now, event):
            leader.decided_at = now
            leader.led.look(now)
            reconcile.reconcile(leader, now)
        return leader.drain()

    def next_deadline(self) -> float | None:
        """When `Tick` is due."""
        return self._leader.deadlines.next()


HANDLERS: Final[dict[type, Callable[[LeaderState, float, Any], bool]]] = {
    events.Lead: reconcile.lead,
    events.Follow: reconcile.follow,
    events.LeaderSeen: reconcile.leader_seen,
    events.Applied: reconcile.applied,
    events.AppendFailed: reconcile.append_failed,
    events.Forgotten: reconcile.forgotten,
    events.Tick: reconcile.tick,
    events.Submit: submitting.submit,
    events.Steer: steering.steer,
    events.ThresholdMoved: steering.threshold_moved,
    events.ResultsMade: ending.results_made,
    events.ReportedCollected: losing.collected,
    events.WorkerRegistered: workers.registered,
    events.WorkerReported: workers.reported,
    events.WorkerAnswered: workers.answered,
    events.WorkerListed: workers.listed,
    events.WorkerDied: workers.died,
    events.WorkerAlive: workers.alive,
    events.WorkerReached: workers.reached,
    events.WorkerUnreached: workers.unreached,
    events.WorkerLeft: workers.left,
    events.ExtensionAsked: workers.extension_asked,
    events.DispatchAnswered: placing.answered,
    events.Prepared: ending.prepared,
    events.Ended: ending.ended,
    events.TeardownEnded: ending.torn_down,
}
"""Each returns whether there may be something to decide."""
