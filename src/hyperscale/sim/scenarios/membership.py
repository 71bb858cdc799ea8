"""Members that fail, freeze, get cut off, restart and leave: does everybody know the truth?

Safety phase: the seed's faults. Liveness phase, in stages: all views become one; some nodes are
killed for good and all others must know within the bound; one node leaves while another cannot
hear it, and the stale view must not bring it back.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum, auto
from typing import ClassVar

from hyperscale.cluster.identity import Node
from hyperscale.cluster.membership import (
    Change,
    Changed,
    MembershipConfig,
    Refused,
)
from hyperscale.cluster.membership import suspicion as suspicions
from hyperscale.cluster.membership.messages import decode_datagram, header
from hyperscale.nodes.member.membership_shell import MemberSettings, MembershipShell
from hyperscale.runtime.host import Address
from hyperscale.sim.checkers import Checker
from hyperscale.sim.faults import Limits
from hyperscale.sim.host import SimHost
from hyperscale.sim.links import Cut, partition
from hyperscale.sim.network import SimDatagrams
from hyperscale.sim.scenario import Scenario
from hyperscale.sim.scenarios.membership_bugs import plant
from hyperscale.sim.scenarios.membership_checkers import (
    Bounded,
    CrashKnown,
    DatagramBudget,
    FreshHeartbeats,
    LiveNotDead,
    NoResurrection,
    OwnIncarnation,
    SuspectFirst,
    Truth,
)
from hyperscale.sim.world import World

PORT = 7_000
SEEDS = 3
MANY_NODES = 20
HEARTBEAT_EVERY_S = 5.0
TOLD = (
    Change.SUSPECTED,
    Change.REFUTED,
    Change.DIED,
    Change.LEFT,
    Change.REVIVED,
    Change.MOVED,
    Change.GIVEN_UP,
    Change.REAPED,
)


class Phase(IntEnum):
    CONVERGE = auto()
    CRASH = auto()
    LEAVE = auto()
    FORGET = auto()
    DONE = auto()


class MembershipScenario(Scenario):
    name = "membership"
    summary = "who is alive: crashes known everywhere, no false deaths, one view after a heal"
    nodes_default = 5
    liveness_s = 240.0
    steady_s = 5.0
    planted_bugs: ClassVar[dict[str, str]] = {
        "never-refutes": "LiveNotDead",
        "buries-at-once": "SuspectFirst",
        "keeps-death-to-itself": "CrashKnown",
        "raises-others": "OwnIncarnation",
        "forgets-incarnation": "OwnIncarnation",
        "never-reconnects": "liveness",
        "believes-stale-views": "NoResurrection",
        "fat-datagrams": "DatagramBudget",
        "hoards-news": "Bounded",
        "takes-any-heartbeat": "FreshHeartbeats",
    }

    def __init__(self, nodes: int | None = None, planted_bug: str = "") -> None:
        super().__init__(nodes, planted_bug)
        if self.nodes > MANY_NODES:
            # As many events in less time: a history of many nodes costs a hundred times more.
            self.safety_s = 12.0
            self.steady_s = 3.0
            self.limits = Limits(down_max_s=6.0, cut_max_s=8.0, pause_max_s=8.0)
        self.config = MembershipConfig()
        if planted_bug == "fat-datagrams":
            self.config = replace(self.config, datagram_bytes_max=4_096, heartbeat_bytes_max=1_600)
        self.lives: dict[str, list[MembershipShell]] = {}
        self._phase = Phase.CONVERGE
        self._stage_since = 0.0
        self._killed: list[str] = []
        self._leaver = ""
        self._deaf = ""
        self._deaf_cut: Cut | None = None
        self._truth = Truth()
        self._live_not_dead = LiveNotDead(self._truth)
        self._suspect_first = SuspectFirst()
        self._own_incarnation = OwnIncarnation(self._spoken)
        self._crash_known = CrashKnown(self._detection_bound_s())
        self._no_resurrection = NoResurrection()
        self._budget = DatagramBudget()
        self._bounded = Bounded()
        self._heartbeats = FreshHeartbeats()

    def checkers(self) -> list[Checker]:
        return [
            self._truth,
            self._live_not_dead,
            self._suspect_first,
            self._own_incarnation,
            self._crash_known,
            self._no_resurrection,
            self._budget,
            self._bounded,
            self._heartbeats,
        ]

    # --- nodes --------------------------------------------------------------------------------

    async def setup(self, world: World) -> None:
        self._watch_datagrams(world)
        for name in self.node_names():
            world.add(name, lambda host: self.node(world, host))

    async def node(self, world: World, host: SimHost) -> None:
        shell = self._shell(world, host)
        earlier = self.lives.setdefault(host.name, [])
        before = max((life.core.me.incarnation for life in earlier), default=0)
        shell.on_change(lambda event: self._believed(world, host.name, event))
        life = f"{host.name}/{host.generation}"
        shell.on_heartbeat(lambda event: self._heartbeats.heard(life, event))
        await shell.start()
        earlier.append(shell)
        self._own_incarnation.born(host.name, shell.me.incarnation, before)
        version = 0
        while True:
            version += 1
            filler = 1_300 if self.planted_bug == "fat-datagrams" else 64
            shell.core.set_heartbeat(version, b"h" * filler)
            await host.clock.sleep(HEARTBEAT_EVERY_S)

    def _shell(self, world: World, host: SimHost) -> MembershipShell:
        seeds = tuple((f"10.0.0.{number}", PORT) for number in range(1, min(SEEDS, self.nodes) + 1))
        here = Address(host.ip, PORT)
        settings = MemberSettings(host.name, bind_udp=here, bind_tcp=here, seeds=seeds)
        return MembershipShell(host, settings, self.config, core=plant(self.planted_bug))

    def _watch_datagrams(self, world: World) -> None:
        fabric, send = world.network, world.network.send

        def watched(port: SimDatagrams, to: Address, data: bytes) -> None:
            self._budget.sent(port.machine.name, len(data))
            send(port, to, data)

        fabric.send = watched  # type: ignore[method-assign]  # the wire seen from outside

    def _believed(self, world: World, observer: str, event: Changed) -> None:
        now = world.now
        self._own_incarnation.believed(now, observer, event)
        self._no_resurrection.believed(now, observer, event)
        if event.change in TOLD:
            self._live_not_dead.believed(now, observer, event)
            self._suspect_first.believed(now, observer, event)
            world.observe(
                "belief",
                node=observer,
                subject=event.node.node_id,
                change=event.change.value,
                incarnation=event.incarnation,
                via=event.via.value,
            )

    def _spoken(self, name: str) -> int:
        return max((life.core.me.incarnation for life in self.lives.get(name, ())), default=0)

    def _detection_bound_s(self) -> float:
        """Ten rounds until somebody probes the dead, two shortest suspicions, five seconds of
        gossip."""
        config = self.config
        shortest_s, _ = suspicions.bounds(
            self.nodes,
            config.probe_interval_s,
            config.suspicion_mult,
            config.suspicion_max_ratio,
            config.suspicion_cap_s,
        )
        return 10.0 * config.probe_interval_s + 2.0 * shortest_s + 5.0

    # --- stages of the liveness phase ---------------------------------------------------------

    def goal(self, world: World) -> str:
        if not self._stage_since:
            self._stage_since = world.now
        self._poll_bounds(world)
        missing = {
            Phase.CONVERGE: self._converging,
            Phase.CRASH: self._crashing,
            Phase.LEAVE: self._leaving,
            Phase.FORGET: self._forgetting,
            Phase.DONE: self._converged,
        }[self._phase](world)
        if missing or self._phase is Phase.DONE:
            return missing
        self._phase = Phase(self._phase + 1)
        if self._phase is Phase.LEAVE and len(world.up()) < 3:
            self._phase = Phase.DONE  # nobody would be left to hear of it
        self._stage_since = world.now
        world.observe("stage", name=self._phase.name)
        self._begin(world)
        return f"stage {self._phase.name} begins"

    def _begin(self, world: World) -> None:
        dice = world.random
        names = self._present(world)
        if self._phase is Phase.CRASH:
            self._killed = dice.sample(names, dice.randint(1, max(1, len(names) // 5)))
            for name in self._killed:
                world.crash(name, dice.choice(("kept", "lost-unsynced")))
            self._crash_known.killed(world.now)
        elif self._phase is Phase.LEAVE:
            self._leaver, self._deaf = dice.sample(names, 2)
            self._deaf_cut = world.network.cut(partition([self._deaf], kind="isolate"))
            self._truth.on_cut(world.now, "deaf")
            shell = self.lives[self._leaver][-1]
            world.host(self._leaver).tasks.spawn("leave", shell.leave())
        elif self._phase is Phase.FORGET:
            self._no_resurrection.left(self._leaver)
            world.crash(self._leaver)
            assert self._deaf_cut is not None
            world.network.heal(self._deaf_cut)
            self._truth.on_cut_healed(world.now, "deaf")

    def _converging(self, world: World) -> str:
        if world.now - self._stage_since < self.limits.down_max_s + 1.0:
            return "restarts may still come"
        return self._converged(world)

    def _crashing(self, world: World) -> str:
        ignorant = self._believing(world, self._killed, self._present(world))
        self._crash_known.poll(world.now, ignorant)
        return f"{ignorant[0]} does not know of every crash" if ignorant else ""

    def _leaving(self, world: World) -> str:
        hearing = [name for name in self._present(world) if name != self._deaf]
        ignorant = self._believing(world, [self._leaver], hearing)
        return f"{ignorant[0]} does not know who left" if ignorant else ""

    def _forgetting(self, world: World) -> str:
        return self._converged(world)

    def _converged(self, world: World) -> str:
        """Every view holds exactly those who are up, and all views are equal."""
        present = self._present(world)
        first: tuple[int, ...] | None = None
        for name in present:
            if not self.lives.get(name):
                return f"{name} has not started"
            core = self.lives[name][-1].core
            if core.population != len(present) or core.suspects:
                return f"{name} sees {core.population} of {len(present)}, {core.suspects} suspect"
            first = first or core.digests
            if core.digests != first:
                return f"{name} and {present[0]} differ on incarnations"
        return ""

    def _present(self, world: World) -> list[str]:
        gone = self._leaver if self._phase >= Phase.LEAVE else ""
        return [name for name in world.up() if name != gone]

    def _believing(self, world: World, gone: list[str], observers: list[str]) -> list[str]:
        """Who still believes that somebody of `gone` lives."""
        believers = []
        for name in observers:
            core = self.lives[name][-1].core
            rows = [core.member(subject) for subject in gone if subject != name]
            if any(row is not None and row.live for row in rows):
                believers.append(name)
        return believers

    def _poll_bounds(self, world: World) -> None:
        for name in world.up():
            if self.lives.get(name):
                core = self.lives[name][-1].core
                self._bounded.poll(name, core.rows, core.queued_news, core.pending_deadlines)

    # --- for people ---------------------------------------------------------------------------

    def describe(self, data: bytes) -> str:
        try:
            message = decode_datagram(header(self.config.cluster), data)
        except Refused as refused:
            return f"refused: {refused.reason}"
        target = getattr(message, "target", "")
        to = target.node_id if isinstance(target, Node) else target
        news = f", {len(message.updates)} news" if message.updates else ""
        return f"{type(message).__name__} {to}{news}"

    def figures(self, world: World) -> dict[str, float]:
        lags = sum(life.core.counts["lags"] for lives in self.lives.values() for life in lives)
        return {
            "false_positives": float(self._live_not_dead.false_positives),
            "detection_s": self._crash_known.took_s,
            "largest_datagram": float(self._budget.largest),
            "lags": float(lags),
        }
