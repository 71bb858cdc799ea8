"""Where a gate lets jobs run: snapshots taken, decisions remembered and logged.

What is decided, and how, is `cluster.routing`. Each decision is one line of the log that has the
whole snapshot: `choose(snapshot)` gives the decision again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import msgspec

from hyperscale.cluster.datacenters import Datacenter, Reach
from hyperscale.cluster.placement.provision import core_range
from hyperscale.cluster.routing import (
    Candidate,
    Decision,
    Held,
    Policy,
    RoutingSettings,
    Snapshot,
    Wish,
    choose,
)
from hyperscale.nodes.gate.datacenters import Datacenters
from hyperscale.nodes.protocol.jobs import Body
from hyperscale.runtime.host import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

KINDS_MAX = 1_000  # of wishes whose last choice is remembered
PENDING_S = 10.0  # a leader that has not told of cores by then has no use for them
REASKED_S = 1.0  # who was asked later than that is not asked again before a decision
SHOWN = 50  # decisions on the page for debugging


class _Memory(msgspec.Struct):
    """Times are those of this gate's clock."""

    held: tuple[Held, ...]
    since: dict[str, float]
    worse_since: dict[str, float]


class Router:
    def __init__(
        self,
        clock: Clock,
        datacenters: Datacenters,
        log: FilteringBoundLogger,
        settings: RoutingSettings | None = None,
    ) -> None:
        self._clock = clock
        self._datacenters = datacenters
        self._log = log
        self._settings = settings or RoutingSettings()
        self._memories: OrderedDict[str, _Memory] = OrderedDict()
        self._by_distance = False
        self._pending: dict[str, deque[tuple[float, int]]] = {}
        self.decisions: Counter[tuple[str, str]] = Counter()
        """By the worst health that was accepted, and what came of it."""
        self.switches = 0
        self.holds = 0
        self.last: deque[tuple[float, str, Snapshot, Decision]] = deque(maxlen=SHOWN)

    async def choose(
        self,
        job_id: str,
        *,
        count: int = 0,
        named: tuple[str, ...] = (),
        policy: Policy = "any",
        excluded: tuple[str, ...] = (),
        body: Body | None = None,
    ) -> Decision:
        """Remembered and logged. Who would be left out is asked once more before: what is known
        of it may be two seconds old."""
        wish = Wish(job_id=job_id, count=count, named=named, policy=policy, excluded=excluded)
        _, decision = self.explain(wish)
        doubtful = [one for one in self._datacenters.names if self._is_doubtful(one, decision)]
        if doubtful:
            await self._datacenters.refresh(doubtful)
        snapshot, decision = self.explain(wish)
        self._remember(snapshot, decision)
        self._note_cores(decision, body)
        self._say(snapshot, decision)
        return decision

    def explain(self, wish: Wish) -> tuple[Snapshot, Decision]:
        """What would be decided now. Nothing is remembered."""
        snapshot = self._snapshot(wish)
        return snapshot, choose(snapshot)

    def is_hopeless(self, named: Collection[str]) -> bool:
        """No probe of the next seconds will change that one of these is out of reach; of all that
        are known, when none is named."""
        watch = self._datacenters.watch
        gone = {
            one.name
            for one in watch.datacenters.values()
            if one.heard_at is not None and one.reach is Reach.UNREACHABLE
        }
        return not gone.isdisjoint(named) if named else len(gone) == len(watch.datacenters)

    # -- what is known -------------------------------------------------------------------------

    def _snapshot(self, wish: Wish) -> Snapshot:
        watch = self._datacenters.watch
        return Snapshot(
            wish=wish,
            candidates=tuple(self._candidate(one) for one in watch.datacenters.values()),
            held=self._held(wish),
            by_distance=self._by_distance,
            settings=self._settings,
        )

    def _candidate(self, one: Datacenter) -> Candidate:
        now, watch = self._clock.now(), self._datacenters.watch
        health, why = watch.health(now, one.name)
        facts = one.facts
        full_s = 0.0 if one.full_since is None else now - one.full_since
        return Candidate(
            name=one.name,
            health=int(health),
            why=why,
            reachable=one.heard_at is None or one.reach is not Reach.UNREACHABLE,
            rtt_s=one.rtt_s,
            rtt_error_s=one.rtt_error_s,
            samples=one.samples,
            age_s=0.0 if one.heard_at is None else now - one.heard_at,
            cores=0 if facts is None else facts.cores,
            cores_free=0 if facts is None else facts.cores_free,
            pending=self._pending_cores(one, now),
            queued=0 if facts is None else facts.queued,
            load=0 if facts is None else facts.load,
            managers=len(one.managers),
            managers_open=self._datacenters.circuits_open(one),
            full_s=full_s,
            failed_s=self._datacenters.failed_s(one.name),
        )

    def _is_doubtful(self, name: str, decision: Decision) -> bool:
        """It was left out, or nearly, for what it told a while ago, or because it told nothing."""
        one = self._datacenters.watch.datacenters[name]
        now = self._clock.now()
        if one.heard_at is not None and (
            one.reach is Reach.UNREACHABLE or now - one.heard_at < REASKED_S
        ):
            return False
        shown = next(row for row in decision.scored if row.name == name)
        return shown.health in ("degraded", "unhealthy")

    def _pending_cores(self, one: Datacenter, now: float) -> int:
        """Given away here since its leader told what is free."""
        known = self._pending.get(one.name)
        while known and (known[0][0] <= now - PENDING_S or known[0][0] < one.facts_at - REASKED_S):
            known.popleft()
        return sum(cores for _, cores in known or ())

    def _note_cores(self, decision: Decision, body: Body | None) -> None:
        now = self._clock.now()
        for name in decision.chosen:
            facts = self._datacenters.watch.datacenters[name].facts
            if facts is not None and body is not None:
                pending = self._pending.setdefault(name, deque(maxlen=KINDS_MAX))
                pending.append((now, cores_taken(body, facts.cores)))

    # -- what was decided ----------------------------------------------------------------------

    def _held(self, wish: Wish) -> tuple[Held, ...]:
        memory, now = self._memories.get(wish.kind), self._clock.now()
        if memory is None or not (wish.count or wish.named):
            return ()
        return tuple(
            msgspec.structs.replace(
                one,
                held_s=now - memory.since[one.name],
                worse_s=now - memory.worse_since[one.name]
                if one.name in memory.worse_since
                else None,
            )
            for one in memory.held
        )

    def _remember(self, snapshot: Snapshot, decision: Decision) -> None:
        now = self._clock.now()
        self._by_distance = decision.by_distance
        if decision.error:
            return
        kept = {one.name for one in decision.held}
        before = {one.name for one in snapshot.held}
        self.switches += bool(before - kept)
        self.holds += "is held, though" in decision.reason
        self._memories[snapshot.wish.kind] = _Memory(
            decision.held,
            {one.name: now - one.held_s for one in decision.held},
            {one.name: now - one.worse_s for one in decision.held if one.worse_s is not None},
        )
        self._memories.move_to_end(snapshot.wish.kind)
        if len(self._memories) > KINDS_MAX:
            self._memories.popitem(last=False)

    def _say(self, snapshot: Snapshot, decision: Decision) -> None:
        outcome = "none" if decision.error else "chosen"
        self.decisions[decision.worst_health, outcome] += 1
        self.last.append((self._clock.wall(), snapshot.wish.job_id, snapshot, decision))
        self._log.info(
            "routing decision",
            job=snapshot.wish.job_id,
            chosen=decision.chosen,
            fallback=decision.fallback,
            reason=decision.reason,
            error=decision.error,
            scores={one.name: round(one.score, 6) for one in decision.scored if one.rank},
            left_out={one.name: one.reason for one in decision.scored if not one.rank},
            snapshot=msgspec.to_builtins(snapshot),
        )


def decided_again(line: dict[str, Any]) -> Decision:
    """From a log line, the decision that it tells of."""
    return choose(msgspec.convert(line["snapshot"], Snapshot))


def cores_taken(body: Body, cores: int) -> int:
    """As many as the tests of a job can use, of those there are."""
    if not cores:
        return 0
    tests = [facts for facts in body.workflows if facts.is_test]
    most = sum(min(core_range(facts.priority, cores)[1], facts.users) for facts in tests)
    return min(cores, max(1, most))
