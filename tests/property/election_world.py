"""A tiny world for the election core alone: messages in a bag, disks that finish when told, clocks
of different speed, and a judge who sees everybody's lease in true time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hyperscale.cluster.election import (
    BecameLeader,
    Durable,
    Effect,
    Election,
    ElectionSettings,
    Message,
    Persist,
    Send,
    SetTimer,
)

SETTINGS = ElectionSettings()


@dataclass
class Node:
    name: str
    rate: float
    origin: float
    make: type[Election]
    core: Election | None = None
    disk: Durable = field(default_factory=Durable)
    writing: list[Persist] = field(default_factory=list)
    timer_at: float | None = None
    life: int = 0

    def clock(self, true_now: float) -> float:
        return self.origin + true_now * self.rate


class ElectionWorld:
    def __init__(
        self,
        voters: int,
        seed: int = 0,
        make: type[Election] = Election,
        settings: ElectionSettings = SETTINGS,
        forgetful: bool = False,
    ) -> None:
        self.dice = random.Random(seed)
        self.settings = settings
        self.now = 0.0
        self.bag: list[tuple[str, str, Message]] = []
        self.leaders: dict[int, str] = {}
        self.terms: dict[str, int] = {}
        self.forgetful = forgetful
        self.cut_off: set[str] = set()
        names = [f"m{i}" for i in range(voters)]
        drift = settings.clock_drift_max
        self.nodes = {
            name: Node(name, 1 + self.dice.uniform(-drift, drift), self.dice.uniform(0, 9), make)
            for name in names
        }
        for name in names:
            self.start(name)

    # -- what can happen ------------------------------------------------------------------

    def start(self, name: str) -> None:
        node = self.nodes[name]
        if node.core is not None:
            return
        node.life += 1
        dice = random.Random(f"{name}{node.life}{self.dice.random()}")
        voters = tuple(self.nodes)
        node.core = node.make(name, voters, self.settings, dice, node.disk)
        assert self.forgetful or node.disk.term >= self.terms.get(name, 0), "a term was forgotten"
        self._apply(node, node.core.start(node.clock(self.now)))

    def crash(self, name: str) -> None:
        node = self.nodes[name]
        node.core, node.timer_at, node.writing = None, None, []
        if self.forgetful:
            node.disk = Durable()

    def advance(self, seconds: float) -> None:
        """Time passes, and every timer due is late by nothing."""
        end = self.now + seconds
        while True:
            due = [
                ((node.timer_at - node.origin) / node.rate, name)
                for name, node in self.nodes.items()
                if node.timer_at is not None and node.core is not None
            ]
            at, name = min(due, default=(end + 1, ""))
            if at > end:
                break
            self.now = max(self.now, at)
            self.tick(name)
        self.now = end
        self.judge()

    def stall(self, seconds: float) -> None:
        """Time passes and nobody notices."""
        self.now += seconds
        self.judge()

    def tick(self, name: str) -> None:
        node = self.nodes[name]
        if node.core is not None:
            node.timer_at = None
            clock = max(node.clock(self.now), node.core._now) + 1e-9
            self._apply(node, node.core.tick(clock))
            if node.timer_at is None:
                node.timer_at = node.core._timer_at

    def deliver(self, index: int, keep: bool = False) -> None:
        if not self.bag:
            return
        index %= len(self.bag)
        sender, to, message = self.bag[index] if keep else self.bag.pop(index)
        node = self.nodes[to]
        if node.core is not None and (sender in self.cut_off) == (to in self.cut_off):
            self._apply(node, node.core.receive(node.clock(self.now), sender, message))

    def drop(self, index: int) -> None:
        if self.bag:
            self.bag.pop(index % len(self.bag))

    def finish_write(self, name: str) -> None:
        node = self.nodes[name]
        if node.writing and node.core is not None:
            persist = node.writing.pop(0)
            node.disk = persist.durable
            self._apply(node, node.core.persisted(node.clock(self.now), persist.token))

    def hand_over(self, name: str) -> None:
        node = self.nodes[name]
        if node.core is not None:
            self._apply(node, node.core.hand_over(node.clock(self.now), urgent=True))

    def settle(self, seconds: float, step: float = 0.01) -> None:
        """A healthy network and disk for a while: everything arrives within a step."""
        end = self.now + seconds
        while self.now < end:
            for name in self.nodes:
                while self.nodes[name].writing:
                    self.finish_write(name)
            for _ in range(len(self.bag)):
                self.deliver(0)
            self.advance(step)

    # -- what must hold -------------------------------------------------------------------

    def leading(self) -> list[str]:
        return [
            name
            for name, node in self.nodes.items()
            if node.core is not None and node.core.may_lead(node.clock(self.now))
        ]

    def judge(self) -> None:
        leading = self.leading()
        assert len(leading) <= 1, f"two valid leases at once: {leading}"
        if leading:
            free = [
                name
                for name, node in self.nodes.items()
                if node.core is not None and node.core.leaderless_s(node.clock(self.now)) > 0
            ]
            assert len(free) <= len(self.nodes) // 2, f"{leading} lead without support: {free}"

    def _apply(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    assert to != node.name
                    self._heard(node, message)
                    self.bag.append((node.name, to, message))
                case Persist():
                    node.writing.append(effect)
                case SetTimer(at):
                    node.timer_at = at
                case BecameLeader(term):
                    rival = self.leaders.setdefault(term, node.name)
                    assert rival == node.name, f"{rival} and {node.name} lead term {term}"
        self.judge()

    def _heard(self, node: Node, message: Message) -> None:
        """Whatever is said of a term must be on disk by then; a pre-vote asks for the next."""
        term = message.term
        pre_vote = type(message).__name__ == "PreVoteRequest"
        spoken = term - 1 if pre_vote else term
        assert self.forgetful or spoken <= node.disk.term, f"{message} before it was written"
        self.terms[node.name] = max(self.terms.get(node.name, 0), spoken)


def storm(world: ElectionWorld, steps: int) -> None:
    """A random history: mostly progress, with crashes, stalls, loss and duplicates."""
    dice = world.dice
    names = list(world.nodes)
    for _ in range(steps):
        roll = dice.random()
        name = dice.choice(names)
        if roll < 0.60:
            world.deliver(dice.randrange(1 << 30), keep=dice.random() < 0.05)
        elif roll < 0.80:
            world.finish_write(name)
        elif roll < 0.94:
            world.advance(dice.choice((0.01, 0.01, 0.05, 0.2)))
        elif roll < 0.96:
            world.drop(dice.randrange(1 << 30))
        elif roll < 0.965:
            world.stall(dice.uniform(0, 4))
        elif roll < 0.972:
            world.crash(name)
        elif roll < 0.99:
            world.start(name)
        elif roll < 0.993:
            world.hand_over(name)
        elif roll < 0.995:
            world.cut_off ^= {name}
        while len(world.bag) > 60:
            world.drop(dice.randrange(1 << 30))
    world.cut_off = set()
