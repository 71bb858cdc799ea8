"""A cluster of membership cores in memory: instant delivery, time by hand."""

from __future__ import annotations

import random
from collections.abc import Callable

from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import (
    Changed,
    Effect,
    Exchange,
    Membership,
    MembershipConfig,
    Persist,
    Send,
)

Address = tuple[str, int]


class Cluster:
    """`cut(a, b)` decides which datagrams and exchanges get lost; `down` nodes hear nothing."""

    def __init__(
        self, count: int, config: MembershipConfig | None = None, role: str = "manager"
    ) -> None:
        self.now = 0.0
        self.config = config or MembershipConfig()
        self.cores: dict[str, Membership] = {}
        self.disks: dict[str, int] = {}
        self.events: list[tuple[str, Changed]] = []
        self.effects: list[tuple[str, Effect]] = []
        self.down: set[str] = set()
        self.asleep: set[str] = set()
        self.cut: Callable[[str, str], bool] = lambda a, b: False
        self.role = role
        for number in range(count):
            self.start(f"n{number}")
        seed = ("n0", 1)
        for name in list(self.cores):
            self.carry(name, self.cores[name].join(self.now, [seed]))

    def start(self, name: str, join: bool = False) -> Membership:
        node = Node(name, 0, self.role, "dc1", (name, 1), (name, 1))
        rng = random.Random(f"{name} {self.now}")
        core = Membership(node, self.config, rng, self.disks.get(name, 0))
        self.cores[name] = core
        self.down.discard(name)
        self.carry(name, core.start(self.now))
        if join:
            self.carry(name, core.join(self.now, [("n0", 1)]))
        return core

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            awake = [n for n in self.cores if n not in self.down and n not in self.asleep]
            due, name = min((self.cores[n].deadline, n) for n in awake)
            if due > end:
                break
            self.now = max(self.now, due)
            self.carry(name, self.cores[name].tick(self.now))
        self.now = end

    def run_until(self, condition: Callable[[], bool], limit_s: float) -> float:
        """Virtual seconds it took."""
        began = self.now
        while not condition():
            assert self.now - began < limit_s, f"not reached within {limit_s} s"
            self.run(0.1)
        return self.now - began

    def carry(self, name: str, effects: list[Effect]) -> None:
        for effect in effects:
            self.effects.append((name, effect))
            if isinstance(effect, Send):
                self.deliver(name, effect.to[0], effect.data)
            elif isinstance(effect, Exchange):
                self.exchange(name, effect.to)
            elif isinstance(effect, Persist):
                self.disks[name] = effect.incarnation
                self.carry(name, self.cores[name].persisted(self.now, effect.incarnation))
            elif isinstance(effect, Changed):
                self.events.append((name, effect))

    def reachable(self, source: str, target: str) -> bool:
        return (
            target in self.cores
            and target not in self.down
            and target not in self.asleep
            and not self.cut(source, target)
        )

    def deliver(self, source: str, target: str, data: bytes) -> None:
        assert len(data) <= 1_200
        if self.reachable(source, target):
            self.carry(target, self.cores[target].receive(self.now, data))

    def exchange(self, source: str, to: Address) -> None:
        target = to[0]
        caller = self.cores[source]
        if not (self.reachable(source, target) and self.reachable(target, source)):
            self.carry(source, caller.exchange_failed(self.now, to))
            return
        callee = self.cores[target]
        answer, effects = callee.exchanged(self.now, caller.summary(self.now))
        assert answer is not None
        self.carry(target, effects)
        reply, effects = caller.reply(self.now, to, answer)
        self.carry(source, effects)
        nothing, effects = callee.exchanged(self.now, reply)
        assert nothing is None
        self.carry(target, effects)

    def changes(self, observer: str, subject: str) -> list[str]:
        return [
            event.change.value
            for name, event in self.events
            if name == observer and event.node.node_id == subject
        ]
