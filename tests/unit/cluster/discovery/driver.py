"""Several discovery cores in virtual time: who listens where, what DNS says, and how late."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from hyperscale.cluster.discovery import (
    Ask,
    Discovery,
    DiscoverySettings,
    DnsName,
    Effect,
    FormCluster,
    Found,
    GaveUp,
    HealthCache,
    Probe,
    ProbeAnswer,
    Resolve,
    SaveCache,
    SetTimer,
    StopAsking,
    StopResolving,
    Unusable,
    mismatch,
)
from hyperscale.cluster.identity import Endpoint, Node

LATENCY_S = 0.01


def node(name: str, role: str = "manager") -> Node:
    return Node(name, 1, role, "dc1", (name, 7_000), (name, 9_000))


def introduce(name: str, role: str = "manager", cluster: str = "c", env: str = "prod") -> Probe:
    return Probe(cluster, env, node(name, role))


class World:
    def __init__(self, seed: int = 1) -> None:
        self.now = 0.0
        self.dice = Random(seed)
        self.nodes: dict[str, Member] = {}
        self.listening: dict[Endpoint, str] = {}
        self.refusing: set[Endpoint] = set()
        self.dns: dict[str, tuple[float, list[Endpoint] | str]] = {}
        self.lookups: Counter[str] = Counter()
        self._agenda: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, when: float, what: Callable[..., None], *facts: Any) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (when, self._count, what, facts))

    def run(self, until: float) -> None:
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, what, facts = heapq.heappop(self._agenda)
            what(*facts)
        self.now = until

    def add(self, name: str, **settings: Any) -> Member:
        role = settings.pop("role", "manager")
        config = {"peer_roles": ("manager",), "forms_cluster": role == "manager"} | settings
        member = Member(self, introduce(name, role), DiscoverySettings(**config))
        self.nodes[name] = member
        return member

    def start(self, name: str) -> None:
        member = self.nodes[name]
        self.listening[(name, 9_000)] = name
        member.carry(member.core.start(self.now))


class Member:
    def __init__(self, world: World, me: Probe, settings: DiscoverySettings) -> None:
        self.world = world
        self.me = me
        self.cache = HealthCache(settings.cache_lifetime_s, settings.cache_max)
        self.core = Discovery(me, settings, Random(world.dice.random()), self.cache)
        self.found: list[tuple[float, str]] = []
        self.formed_at: float | None = None
        self.gave_up: tuple[float, str] | None = None
        self.asked: list[tuple[float, Endpoint]] = []
        self.unusable: list[tuple[Endpoint, str]] = []
        self.saved = b""
        self.in_flight: set[Endpoint] = set()
        self.in_flight_max = 0
        self._timer = 0

    def carry(self, effects: list[Effect]) -> None:
        world = self.world
        for effect in effects:
            match effect:
                case Ask(address, probe):
                    self.asked.append((world.now, address))
                    assert address not in self.in_flight
                    self.in_flight.add(address)
                    self.in_flight_max = max(self.in_flight_max, len(self.in_flight))
                    world.at(world.now + LATENCY_S, self._arrive, address, probe)
                case StopAsking(address):
                    self.in_flight.discard(address)
                case Resolve(name):
                    world.lookups[name.name] += 1
                    delay, _ = world.dns.get(name.name, (0.005, "no such name"))
                    world.at(world.now + delay, self._resolved, name)
                case Found(peer):
                    self.found.append((world.now, peer.node_id))
                case FormCluster():
                    assert self.formed_at is None
                    self.formed_at = world.now
                case SetTimer(at):
                    self._timer += 1
                    if at is not None:
                        world.at(max(at, world.now), self._tick, self._timer)
                case SaveCache(data):
                    self.saved = data
                case GaveUp(reason):
                    self.gave_up = (world.now, reason)
                case Unusable(address, reason):
                    self.unusable.append((address, reason))
                case StopResolving():
                    pass

    def _tick(self, timer: int) -> None:
        if timer == self._timer:
            self.carry(self.core.tick(self.world.now))

    def _resolved(self, name: DnsName) -> None:
        _, answer = self.world.dns.get(name.name, (0.0, "no such name"))
        if isinstance(answer, str):
            self.carry(self.core.unresolved(self.world.now, name, answer))
        else:
            self.carry(self.core.resolved(self.world.now, name, answer))

    def _arrive(self, address: Endpoint, probe: Probe) -> None:
        """At the other side; nobody there is silence, unless the machine refuses."""
        world = self.world
        other = world.nodes.get(world.listening.get(address, ""))
        if other is None:
            if address in world.refusing:
                world.at(world.now + LATENCY_S, self._refused, address, "refused the connection")
            return
        problem = mismatch(other.me, probe)
        if problem is not None:
            world.at(world.now + LATENCY_S, self._refused, address, problem)
            return
        me = other.me
        answer = ProbeAnswer(me.cluster_id, me.environment_id, me.node)
        world.at(world.now + LATENCY_S, self._answered, address, answer)
        if other is not self:
            other.carry(other.core.probed(world.now, probe))

    def _refused(self, address: Endpoint, reason: str) -> None:
        self.in_flight.discard(address)
        self.carry(self.core.unanswered(self.world.now, address, reason))

    def _answered(self, address: Endpoint, answer: ProbeAnswer) -> None:
        self.in_flight.discard(address)
        self.carry(self.core.answered(self.world.now, address, answer))
