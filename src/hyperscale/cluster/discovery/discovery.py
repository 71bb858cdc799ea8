"""Finding one live peer, from whatever there is to go by.

# Theory of operation

A round asks every candidate at once, at most `probes_max` at a time: peers that answered lately,
then seeds, then what DNS says. Seeds never wait for DNS; its answers join the round when they
come. The first answer from a peer of our cluster, environment and a wanted role ends the
search, for gossip does the rest. An answer with our own node id is ourselves and never asked
again.

A round without an answer is followed by a pause. Before it, whoever may form a cluster does so,
once, and keeps looking: all nodes may start in any order, and a later answer is a merge.
Being probed by a peer is as good as finding one.

Having joined, a node still asks, ever more rarely, those candidates that are not members. Nodes
that start together may join in pairs, and the sides of a split may never have met.

While JOINED, such rounds run without a change of state.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from random import Random
from typing import Final

from hyperscale.cluster.discovery.cache import HealthCache
from hyperscale.cluster.discovery.effects import (
    Ask,
    Effect,
    FormCluster,
    Found,
    GaveUp,
    Resolve,
    SaveCache,
    SetTimer,
    StopAsking,
    StopResolving,
    Unusable,
)
from hyperscale.cluster.discovery.messages import Probe, ProbeAnswer, mismatch
from hyperscale.cluster.discovery.names import NameCache
from hyperscale.cluster.discovery.settings import DiscoverySettings, DnsName
from hyperscale.cluster.identity import Endpoint, Node, NodeId


class DiscoveryState(Enum):
    INITIAL = "initial"
    RESOLVING = "resolving"
    PROBING = "probing"
    BACKOFF = "backoff"
    JOINED = "joined"
    FAILED = "failed"


class DiscoveryTrigger(Enum):
    STARTED = "started"
    CANDIDATES = "candidates ready"
    NOBODY = "no candidates, or all failed"
    PEER_FOUND = "a peer answered or asked"
    PAUSE_OVER = "pause over"
    DEADLINE = "deadline passed"


TRANSITIONS: Final[dict[DiscoveryState, dict[DiscoveryTrigger, DiscoveryState]]] = {
    DiscoveryState.INITIAL: {
        DiscoveryTrigger.STARTED: DiscoveryState.RESOLVING,
    },
    DiscoveryState.RESOLVING: {
        DiscoveryTrigger.CANDIDATES: DiscoveryState.PROBING,
        DiscoveryTrigger.NOBODY: DiscoveryState.BACKOFF,
        DiscoveryTrigger.PEER_FOUND: DiscoveryState.JOINED,
        DiscoveryTrigger.DEADLINE: DiscoveryState.FAILED,
    },
    DiscoveryState.PROBING: {
        DiscoveryTrigger.PEER_FOUND: DiscoveryState.JOINED,
        DiscoveryTrigger.NOBODY: DiscoveryState.BACKOFF,
        DiscoveryTrigger.DEADLINE: DiscoveryState.FAILED,
    },
    DiscoveryState.BACKOFF: {
        DiscoveryTrigger.PAUSE_OVER: DiscoveryState.RESOLVING,
        DiscoveryTrigger.PEER_FOUND: DiscoveryState.JOINED,
        DiscoveryTrigger.DEADLINE: DiscoveryState.FAILED,
    },
    DiscoveryState.JOINED: {},
    DiscoveryState.FAILED: {
        DiscoveryTrigger.STARTED: DiscoveryState.RESOLVING,
    },
}

SEARCHING: Final = (DiscoveryState.RESOLVING, DiscoveryState.PROBING, DiscoveryState.BACKOFF)
REASONS_TOLD_MAX: Final = 5


class Discovery:
    def __init__(
        self,
        me: Probe,
        settings: DiscoverySettings,
        dice: Random,
        cache: HealthCache | None = None,
    ) -> None:
        self.state = DiscoveryState.INITIAL
        self.formed = False
        self.rounds = 0
        self.counts: Counter[str] = Counter()
        self._me = me
        self._settings = settings
        self._dice = dice
        if cache is None:
            cache = HealthCache(settings.cache_lifetime_s, settings.cache_max)
        self._cache = cache
        self._names = NameCache(settings)
        self._deadline: float | None = None
        self._next_round_at: float | None = None
        self._timer: float | None = None
        self._failures = 0
        self._refreshes = 0
        self._own: set[Endpoint] = set()
        self._owners: dict[Endpoint, NodeId] = {}
        self._members: frozenset[NodeId] = frozenset()
        self._waiting: deque[Endpoint] = deque()
        self._seen: set[Endpoint] = set()
        self._asking: dict[Endpoint, float] = {}
        self._resolving: dict[DnsName, float] = {}
        self._reasons: dict[str, str] = {}

    # -- events ------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        if self._settings.deadline_s is not None:
            self._deadline = now + self._settings.deadline_s
        self._failures = 0
        self._move(DiscoveryTrigger.STARTED)
        return self._ended(now, self._begin_round(now))

    def resolved(
        self,
        now: float,
        name: DnsName,
        addresses: Sequence[Endpoint],
        lifetime_s: float | None = None,
    ) -> list[Effect]:
        if not addresses:
            return self.unresolved(now, name, "it has no addresses")
        self._names.succeeded(now, name, addresses, lifetime_s)
        if self._resolving.pop(name, None) is None:
            return []
        self.counts["lookups_succeeded"] += 1
        self._add_answers(addresses)
        return self._ended(now, self._go_on(now))

    def unresolved(self, now: float, name: DnsName, reason: str) -> list[Effect]:
        if self._resolving.pop(name, None) is None:
            return []
        self.counts["lookups_failed"] += 1
        self._names.failed(now, name, reason)
        self._reasons[str(name)] = reason
        return self._ended(now, self._go_on(now))

    def answered(self, now: float, address: Endpoint, answer: ProbeAnswer) -> list[Effect]:
        if self._asking.pop(address, None) is None:
            return []
        problem = self._judge(address, answer)
        if problem is not None:
            self._failed(address, problem)
            told: list[Effect] = [] if address in self._own else [Unusable(address, problem)]
            return self._ended(now, told + self._go_on(now))
        self.counts["probes_answered"] += 1
        self._cache.record_success(now, address)
        self._owners[address] = answer.node.node_id
        effects: list[Effect] = [SaveCache(self._cache.save(now))]
        return self._ended(now, effects + self._found(now, answer.node))

    def unanswered(self, now: float, address: Endpoint, reason: str) -> list[Effect]:
        if self._asking.pop(address, None) is None:
            return []
        self._failed(address, reason)
        return self._ended(now, self._go_on(now))

    def probed(self, now: float, probe: Probe) -> list[Effect]:
        """Somebody asks us; `mismatch` has been ruled out. A peer that looks for us is found."""
        if self.state not in SEARCHING or not self._wanted(probe.node):
            return []
        return self._ended(now, self._found(now, probe.node))

    def members_are(self, members: Collection[NodeId]) -> None:
        """Who is in the cluster: their addresses need not be asked again."""
        self._members = frozenset(members)

    def tick(self, now: float) -> list[Effect]:
        self._timer = None  # it has gone off, perhaps a little early: set it anew
        if self._deadline is not None and now >= self._deadline and self.state in SEARCHING:
            return self._ended(now, self._give_up())
        effects: list[Effect] = []
        for address in sorted(each for each, due in self._asking.items() if due <= now):
            del self._asking[address]
            self._failed(address, f"no answer within {self._settings.probe_timeout_s:g} s")
            effects.append(StopAsking(address))
        late = [name for name, due in self._resolving.items() if due <= now]
        for name in sorted(late, key=str):
            del self._resolving[name]
            self.counts["lookups_timed_out"] += 1
            reason = f"DNS did not answer within {self._settings.dns_timeout_s:g} s"
            self._names.failed(now, name, reason)
            self._reasons[str(name)] = reason
            effects.append(StopResolving(name))
        if self._next_round_at is not None and now >= self._next_round_at:
            if self.state is DiscoveryState.BACKOFF:
                self._move(DiscoveryTrigger.PAUSE_OVER)
            effects += self._begin_round(now)
        elif effects:
            effects += self._go_on(now)
        return self._ended(now, effects)

    # -- a round -----------------------------------------------------------------------------

    def _begin_round(self, now: float) -> list[Effect]:
        self.rounds += 1
        self._next_round_at = None
        self._seen.clear()
        self._cache.evict_expired(now)
        for memory in (self._owners, self._reasons):
            if len(memory) > self._settings.candidates_max:
                memory.clear()  # a name whose answers change for ever; asking again is cheap
        self._add(self._cache.healthy(now))
        self._add(self._settings.seeds)
        effects: list[Effect] = []
        for name in self._settings.names:
            known = self._names.get(now, name)
            if known is None:
                self._resolving[name] = now + self._settings.dns_timeout_s
                effects.append(Resolve(name))
            elif known.failure:
                self.counts["lookups_cached_failure"] += 1
                self._reasons[str(name)] = known.failure
            else:
                self.counts["lookups_cached"] += 1
                self._add_answers(known.addresses)
        return effects + self._go_on(now)

    def _go_on(self, now: float) -> list[Effect]:
        """Ask whom there is room to ask; end the round when nothing is left to hope for."""
        effects: list[Effect] = []
        while self._waiting and len(self._asking) < self._settings.probes_max:
            address = self._waiting.popleft()
            self._asking[address] = now + self._settings.probe_timeout_s
            effects.append(Ask(address, self._me))
        if self._asking and self.state is DiscoveryState.RESOLVING:
            self._move(DiscoveryTrigger.CANDIDATES)
        if not self._asking and not self._resolving and self._next_round_at is None:
            effects += self._end_round(now)
        return effects

    def _end_round(self, now: float) -> list[Effect]:
        settings = self._settings
        if self.state is DiscoveryState.JOINED:
            self._plan_refresh(now)
            return []
        self._failures += 1
        pause_s = settings.backoff_s(self._failures)
        self._move(DiscoveryTrigger.NOBODY)
        if settings.seeds or settings.names or len(self._cache):
            self._next_round_at = now + pause_s * (
                1.0 + settings.backoff_jitter * self._dice.random()
            )
        if settings.forms_cluster and not self.formed:
            self.formed = True
            return [FormCluster()]
        return []

    def _found(self, now: float, node: Node) -> list[Effect]:
        if self.state is DiscoveryState.JOINED:
            return [Found(node), *self._go_on(now)]
        self._move(DiscoveryTrigger.PEER_FOUND)
        effects = self._stop()
        self._refreshes = 0
        self._plan_refresh(now)
        return [Found(node), *effects]

    def _plan_refresh(self, now: float) -> None:
        settings = self._settings
        pause_s = settings.refresh_s(self._refreshes)
        self._refreshes += 1
        self._next_round_at = now + pause_s * (1.0 + settings.refresh_jitter * self._dice.random())

    def _give_up(self) -> list[Effect]:
        self._move(DiscoveryTrigger.DEADLINE)
        effects = self._stop()
        self._next_round_at = self._deadline = None
        told = [f"{what}: {why}" for what, why in sorted(self._reasons.items())]
        more = len(told) - REASONS_TOLD_MAX
        if more > 0:
            told[REASONS_TOLD_MAX:] = [f"and {more} more"]
        roles = " or ".join(self._settings.peer_roles)
        within = f"no {roles} answered within {self._settings.deadline_s:g} s"
        return [*effects, GaveUp(f"{within} ({'; '.join(told)})" if told else within)]

    def _stop(self) -> list[Effect]:
        effects: list[Effect] = [StopAsking(address) for address in sorted(self._asking)]
        effects += [StopResolving(name) for name in sorted(self._resolving, key=str)]
        self._asking.clear()
        self._resolving.clear()
        self._waiting.clear()
        return effects

    # -- candidates --------------------------------------------------------------------------

    def _add(self, addresses: Iterable[Endpoint]) -> None:
        for address in addresses:
            if address in self._seen or address in self._own:
                continue
            if self.state is DiscoveryState.JOINED and self._owners.get(address) in self._members:
                continue
            if len(self._seen) >= self._settings.candidates_max:
                return
            self._seen.add(address)
            self._waiting.append(address)

    def _add_answers(self, addresses: Sequence[Endpoint]) -> None:
        """In random order, or every newcomer would ask the same few of a long answer."""
        self._add(self._dice.sample(list(addresses), len(addresses)))

    def _judge(self, address: Endpoint, answer: ProbeAnswer) -> str | None:
        problem = mismatch(self._me, answer)
        if problem is not None:
            self.counts["probes_mismatched"] += 1
            return problem
        if answer.node.node_id == self._me.node.node_id:
            self._own.add(address)
            return "it is this node itself"
        if not self._wanted(answer.node):
            wanted = " or ".join(self._settings.peer_roles)
            return f"it is a {answer.node.role}, not a {wanted}"
        return None

    def _wanted(self, node: Node) -> bool:
        return node.role in self._settings.peer_roles and node.node_id != self._me.node.node_id

    def _failed(self, address: Endpoint, reason: str) -> None:
        self.counts["probes_failed"] += 1
        self._cache.record_failure(address)
        self._owners.pop(address, None)
        self._reasons[f"{address[0]}:{address[1]}"] = reason

    # -- state and timer ---------------------------------------------------------------------

    def _move(self, trigger: DiscoveryTrigger) -> None:
        following = TRANSITIONS[self.state].get(trigger)
        if following is None:
            raise RuntimeError(f"{trigger.value!r} cannot happen when {self.state.value}")
        self.state = following

    def _ended(self, now: float, effects: list[Effect]) -> list[Effect]:
        """Every event ends here: what must hold, and the timer if it moved."""
        if len(self._asking) > self._settings.probes_max:
            raise RuntimeError("more probes than allowed")
        due = [*self._asking.values(), *self._resolving.values()]
        due += [at for at in (self._next_round_at,) if at is not None]
        if self.state in SEARCHING and self._deadline is not None:
            due.append(self._deadline)
        at = min(due, default=None)
        if at != self._timer:
            self._timer = at
            effects.append(SetTimer(at))
        return effects
